"""How many tokens a conversation has: as the model's server counted them last, and an estimate of what came since.

One ``Tokens`` is kept for a run. It remembers what it counted, so that a step costs as much as what it brings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fsm_agent.context.estimate import Estimator, best_estimator
from fsm_agent.events import Message, Messages, Reply, ToolSpec

PER_MESSAGE = 8
"""Tokens around a message, such as those that tell its role: an estimate, too."""


class Count(NamedTuple):
    """A number of tokens."""

    tokens: int
    estimated: int
    """How many of them no server has counted."""


class Tokens:
    """Counts the tokens of one run's conversation."""

    def __init__(self, tools: Sequence[ToolSpec] = (), estimator: Estimator | None = None) -> None:
        """``tools``: those that the server is told of with each question. ``estimator``: by default the best that is at hand."""
        self._estimator = estimator or best_estimator()
        self._around = sum(self._estimator.count(msgspec.json.encode(tool).decode()) for tool in tools)
        self._sizes: dict[Message, int] = {}
        self._sums = [0]
        """Of the first 0, 1, 2, ... messages of the history, which only grows."""
        self._asked = 0
        """The estimate of what was asked last, with the reply to it."""
        self._told = 0
        """What the server said of the same. Until it has said something, both are zero."""

    @property
    def estimate(self) -> str:
        """By what is estimated: ``characters``, or the name of a tokenizer."""
        return self._estimator.name

    def estimated(self, messages: Sequence[Message], count: int | None = None) -> int:
        """The estimate of these messages by themselves, or of the first ``count``. The run's own history is not counted anew each time."""
        count = len(messages) if count is None else count
        if not isinstance(messages, Messages):
            return sum(map(self.size, messages[:count]))
        for at in range(len(self._sums) - 1, count):
            self._sums.append(self._sums[-1] + self.size(messages[at]))
        return self._sums[count]

    def size(self, message: Message) -> int:
        """The estimate of one message."""
        size = self._sizes.get(message)
        if size is None:
            texts = [message.content, message.tool, *(text for call in message.tool_calls for text in (call.name, call.arguments))]
            size = self._sizes[message] = PER_MESSAGE + sum(self._estimator.count(text) for text in texts if text)
        return size

    def of(self, messages: Sequence[Message]) -> Count:
        """The tokens of a question with these messages."""
        return self.corrected(self.estimated(messages))

    def corrected(self, estimated: int) -> Count:
        """An estimate of messages, put right by what the server said last.

        What the server counted beyond its estimate is added as it is; where it counted less, all is taken to be so much less. This errs
        towards too many.
        """
        estimated += self._around
        since = max(estimated - self._asked, 0)
        if self._told >= self._asked:
            return Count(max(estimated + self._told - self._asked, 0), since)
        tokens = estimated * self._told // self._asked
        return Count(tokens, min(since, tokens))

    def room(self, limit: int) -> int:
        """The largest estimate of messages that are within ``limit`` tokens; below zero where none are."""
        if self._told >= self._asked:
            return limit - (self._told - self._asked) - self._around
        return limit * self._asked // self._told - self._around

    def replied(self, shown: Sequence[Message], reply: Reply) -> None:
        """The model replied to ``shown``: its server may have said how many tokens that was."""
        usage = reply.usage
        if usage is None or not usage.prompt_tokens:  # some servers say 0 where they do not know
            return
        written = self.size(Message("assistant", reply.text, reply.tool_calls))
        self._asked = self._around + self.estimated(shown) + written
        self._told = usage.prompt_tokens + (written if usage.completion_tokens is None else usage.completion_tokens)

"""What of a long conversation a model is shown. The run's history, and its record, keep everything.

A driver does this, with one ``Tokens`` for the whole run, before and after it asks the model:

    if (covers := context.due(messages, tokens, summary)) is not None:
        summary = context.summarise(messages[:covers], lang, summary)   # or await asummarise; whatever it raises: go on without
    shown = context.shown(messages, tokens, lang, summary)
    reply = ask(model, shown, tools)
    tokens.replied(shown, reply)

A summary is an event of the run, so that a run that is taken up again shows what it showed before; ``due`` and ``shown`` are pure.

Whatever is left out, these stay: what stands before the first reply (the system prompt, the task), and the newest step. A step, which
is a reply and all that follows it up to the next, is left out whole or not at all: so a call is never parted from its result, whether
the server sent it apart or the model wrote it as text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import attrs

from fsm_agent.context.tokens import Tokens
from fsm_agent.events import Message, Usage
from fsm_agent.language import ENGLISH, Language


class Summary(NamedTuple):
    """What a model is shown in place of the beginning of a conversation."""

    covers: int
    """How many messages, from the start, it stands for."""
    text: str
    usage: Usage | None = None
    """What it cost to make it, where that is known."""


@attrs.frozen
class Context(ABC):
    """A way to keep what a model is shown within bounds."""

    summarises: ClassVar[bool] = False
    """Whether ``due`` may ever ask for a summary."""

    @abstractmethod
    def shown(
        self, messages: Sequence[Message], tokens: Tokens, lang: Language = ENGLISH, summary: Summary | None = None
    ) -> Sequence[Message]:
        """What the model is shown of ``messages``, the whole history; the same object where nothing is left out.

        ``lang``: in which what is left out is told. ``summary``: the last one that was made in this run.
        """

    def due(self, messages: Sequence[Message], tokens: Tokens, summary: Summary | None = None) -> int | None:  # noqa: ARG002  # most make none
        """How many messages, from the start, a summary shall cover that is to be made now, before the model is asked. None: none is due."""
        return None

    def summarise(self, messages: Sequence[Message], lang: Language = ENGLISH, earlier: Summary | None = None) -> Summary:
        """A summary of these messages, the first ones of the history; ``earlier``, the last one that was made, is taken up in it.

        Raises what the model raises, and ``ModelError`` where it said nothing.
        """
        raise NotImplementedError(f"{type(self).__name__} makes no summaries")

    async def asummarise(self, messages: Sequence[Message], lang: Language = ENGLISH, earlier: Summary | None = None) -> Summary:
        """As ``summarise``, for asyncio."""
        raise NotImplementedError(f"{type(self).__name__} makes no summaries")

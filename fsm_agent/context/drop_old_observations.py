"""The whole conversation, but not all that tools said in it: most of a long one is output that the model has read and used."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs
import msgspec

from fsm_agent.context.base import Context, Summary
from fsm_agent.context.steps import last_steps
from fsm_agent.context.tokens import Tokens
from fsm_agent.events import Message
from fsm_agent.guards.base import at_least
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine.history import cut

LEAST = 50
"""So many tokens stay of each observation of the newest step, whatever the limit is."""

AROUND = 24
"""Tokens of a shortened observation that are not its text, such as those that tell how much was left out. One that is not longer stays."""


@attrs.frozen
class DropOldObservations(Context):
    """Above ``max_tokens``, the oldest observations are replaced by a line each. What the model said stays.

    They go in portions of a quarter of the limit, as a server that keeps the beginning of a conversation in its cache starts anew with each
    change. Where the observations of the newest step are too long by themselves, their middles are left out.
    """

    max_tokens: int = attrs.field(validator=at_least(1))
    """Tokens of a question. Where the replies alone have more, it is longer all the same."""

    def shown(
        self,
        messages: Sequence[Message],
        tokens: Tokens,
        lang: Language = ENGLISH,
        summary: Summary | None = None,  # noqa: ARG002  # none is made
    ) -> Sequence[Message]:
        excess = tokens.estimated(messages) - tokens.room(self.max_tokens)
        if excess <= 0:
            return messages
        newest = last_steps(messages, 1)
        portion = max(self.max_tokens // 4, 1)
        shown = list(messages)
        saved, wanted = 0, -(-excess // portion) * portion
        for at, message in enumerate(shown[:newest]):
            if saved >= wanted:
                break
            if message.role == "tool" and tokens.size(message) > AROUND:
                saved += _replace(shown, at, _left_out(message, lang), tokens)
        if saved < excess:
            saved += _shorten(shown, newest, excess - saved, tokens, lang)
        return shown if saved else messages


def _replace(shown: list[Message], at: int, shorter: str, tokens: Tokens) -> int:
    """Put a shorter text in the message's place, if it is shorter. Gives the tokens that it saves."""
    message = msgspec.structs.replace(shown[at], content=shorter)
    saved = tokens.size(shown[at]) - tokens.size(message)
    if saved > 0:
        shown[at] = message
    return max(saved, 0)


def _left_out(message: Message, lang: Language) -> str:
    return lang.count(
        "(This output of {n} character is left out, to save space.)",
        "(This output of {n} characters is left out, to save space.)",
        len(message.content),
    )


def _shorten(shown: list[Message], newest: int, excess: int, tokens: Tokens, lang: Language) -> int:
    """Cut the longest observations of the newest step, down to one length, until ``excess`` tokens are saved or all are at their least."""
    sizes = {at: tokens.size(shown[at]) for at in range(newest, len(shown)) if shown[at].role == "tool"}
    share = max(_share(sizes.values(), sum(sizes.values()) - excess), LEAST)
    saved = 0
    for at, size in sizes.items():
        if size > share:
            text = shown[at].content
            saved += _replace(shown, at, cut(text, len(text) * (share - AROUND) // size, lang), tokens)
    return saved


def _share(sizes: Collection[int], room: int) -> int:
    """The most that each may have, so that all are within ``room`` together: the small ones leave the others what they do not need."""
    for left, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        if size * left > room:
            return room // left
        room -= size
    return max(sizes, default=0)

"""Replies that cannot be used: malformed, empty, cut off."""

from __future__ import annotations

from typing import ClassVar

import attrs

from fsm_agent.events import ERROR_PREFIX, Fact, Malformed, ModelReplied, Said, ToolsReturned
from fsm_agent.guards.base import Evidence, Guard, Reading, at_least, below
from fsm_agent.guards.streaks import NONE, Streak
from fsm_agent.language import Language
from fsm_agent.text import first_line

MISCALLED = frozenset({"unknown_tool", "bad_arguments"})
"""Kinds of observations that say that the call itself was wrong."""

CUT_OFF = "length"
"""The finish reason of a reply that was cut off."""


@attrs.frozen
class MalformedStreak(Guard):
    """``max_malformed`` steps in a row without one well-formed call: unparseable replies, unknown tools, bad arguments.

    One counter over kinds and names, one for each step; a batch counts if every call in it was ill-formed. A well-formed call resets
    it, also one whose tool failed, and so does talk to a person. Formats are often mended late, so the default is high.
    """

    reason: ClassVar[str] = "malformed_streak"
    label: ClassVar[str] = "malformed"
    folds: ClassVar[tuple[type, ...]] = (Malformed, ToolsReturned, Said)

    max_malformed: int = attrs.field(default=10, validator=at_least(1))
    """Malformed steps in a row that halt the run."""
    warn_at: int | None = attrs.field(default=None, validator=below("max_malformed"))
    """Malformed steps in a row after which the model is told; None: never."""

    def start(self) -> Streak:
        return NONE

    def fold(self, memory: Streak, fact: Fact, step: int) -> Streak:
        if isinstance(fact, Malformed):
            return memory.grown(Evidence(step, fact.kind, first_line(fact.problem)), self.max_malformed)
        if not isinstance(fact, ToolsReturned):
            return NONE
        for observation in fact.observations:
            if observation.kind not in MISCALLED:
                return NONE
        worst = fact.observations[0]
        return memory.grown(Evidence(step, worst.kind, first_line(worst.text.removeprefix(ERROR_PREFIX))), self.max_malformed)

    def judge(self, memory: Streak) -> Reading:
        return memory.reading(self, self.max_malformed, self.warn_at)

    def explain(self, reading: Reading, lang: Language) -> str:
        last = reading.evidence[-1].text if reading.evidence else ""
        return lang.count(
            "stopped: {n} malformed reply or call in a row, the last: {last}",
            "stopped: {n} malformed replies or calls in a row, the last: {last}",
            int(reading.value),
            last=last,
        )

    def nudge(self, reading: Reading, lang: Language) -> str:
        return lang.say(
            "Warning: {n} replies in a row could not be used; at {limit} the run is stopped. "
            "Look again at the form of a reply, and at the tools' names and parameters.",
            n=reading.value,
            limit=reading.limit,
        )


@attrs.frozen
class EmptyReply(Guard):
    """``max_empty`` replies in a row that say nothing: no text but white space, and no tool call."""

    reason: ClassVar[str] = "empty_reply"
    label: ClassVar[str] = "empty"
    folds: ClassVar[tuple[type, ...]] = (ModelReplied,)

    max_empty: int = attrs.field(default=3, validator=at_least(1))
    """Empty replies in a row that halt the run."""

    def start(self) -> Streak:
        return NONE

    def fold(self, memory: Streak, fact: Fact, step: int) -> Streak:
        if not isinstance(fact, ModelReplied) or fact.reply.tool_calls or fact.reply.text.strip():
            return NONE
        reply = fact.reply
        return memory.grown(Evidence(step, "empty", repr(reply.text[:40])), self.max_empty)

    def judge(self, memory: Streak) -> Reading:
        return memory.reading(self, self.max_empty)

    def explain(self, reading: Reading, lang: Language) -> str:
        return lang.count("stopped: {n} empty reply in a row", "stopped: {n} empty replies in a row", int(reading.value))


@attrs.frozen
class TruncatedReply(Guard):
    """``max_truncated`` replies in a row were cut off (finish reason ``length``).

    The machine never makes the tool calls of such a reply: it tells the model so, and the model may answer shorter once. An answer
    that was cut off is still an answer.
    """

    reason: ClassVar[str] = "truncated_reply"
    label: ClassVar[str] = "cut off"
    folds: ClassVar[tuple[type, ...]] = (ModelReplied,)

    max_truncated: int = attrs.field(default=2, validator=at_least(1))
    """Replies cut off in a row that halt the run."""

    def start(self) -> Streak:
        return NONE

    def fold(self, memory: Streak, fact: Fact, step: int) -> Streak:
        if not isinstance(fact, ModelReplied) or fact.reply.finish_reason != CUT_OFF:
            return NONE
        reply = fact.reply
        text = reply.text or ", ".join(request.name for request in reply.tool_calls)
        return memory.grown(Evidence(step, "truncated", first_line(text)), self.max_truncated)

    def judge(self, memory: Streak) -> Reading:
        return memory.reading(self, self.max_truncated)

    def explain(self, reading: Reading, lang: Language) -> str:
        return lang.count(
            "stopped: {n} reply in a row was cut off; allow the model more tokens",
            "stopped: {n} replies in a row were cut off; allow the model more tokens",
            int(reading.value),
        )

"""A run in a few words: what happened in each step, alike steps counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import assert_never

import attrs

from fsm_agent.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptFailed,
    Cancelled,
    ContextCompacted,
    Decision,
    Event,
    Final,
    Malformed,
    ModelFailed,
    ModelReplied,
    RecordingEnded,
    Said,
    ToolCalls,
    ToolsFailed,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.language import Language
from fsm_agent.machine import Run, Taken
from fsm_agent.table import ROWS

LAST_CHANCES = frozenset(row.id for row in ROWS if row.guard == "has_last_chance")
"""The edges by which a run comes to its last word."""


@attrs.define
class _Teller:
    """Puts the events of one run into words."""

    lang: Language
    calls: list[frozenset[object]] = attrs.Factory(list)
    """What was called, step by step."""

    def decided(self, decision: Decision) -> str:  # noqa: PLR0911  # one return for each kind of decision
        """What a reply was."""
        say = self.lang.say
        match decision:
            case ToolCalls(calls=calls):
                return self._called(frozenset(call.signature for call in calls), len(calls))
            case Final():
                return say("the answer")
            case Said():
                return say("talk")
            case Malformed(kind="unparseable"):
                return say("an unparseable reply")
            case Malformed(kind="empty"):
                return say("an empty reply")
            case Malformed(kind="truncated"):
                return say("a reply cut off in a call")
            case Malformed(kind=kind):
                return say("a malformed reply ({kind})", kind=kind)
            case _:
                assert_never(decision)

    def _called(self, calls: frozenset[object], n: int) -> str:
        say = self.lang.say
        before, seen = self.calls[-1:], calls in self.calls
        self.calls.append(calls)
        if n > 1:
            return say("the same {n} calls", n=n) if before == [calls] else say("{n} calls", n=n)
        if not before:
            return say("a call")
        return say("the same call") if before == [calls] else say("an earlier call") if seen else say("another call")

    def happened(self, event: Event) -> str:
        """What the world said; empty: a reply, which its decision tells."""
        say = self.lang.say
        match event:
            case ModelReplied(reply=reply):
                extra = [say("cut off")] if reply.finish_reason == "length" and not reply.tool_calls else []
                if reply.usage is not None and (reply.usage.prompt_tokens or 0) > 0:
                    extra.append(say("many tokens"))
                return ", ".join(extra)
            case ToolsReturned(observations=observations):
                return ", ".join(sorted({observation.kind for observation in observations}))
            case ApprovalGiven(approvals=approvals):
                return say("a person decides ({verdicts})", verdicts=", ".join(sorted({approval.verdict for approval in approvals})))
            case _:
                return _OTHERS[type(event)](self.lang)


_OTHERS: dict[type, Callable[[Language], str]] = {
    ModelFailed: lambda lang: lang.say("the model fails"),
    AttemptFailed: lambda lang: lang.say("an attempt fails"),
    ContextCompacted: lambda lang: lang.say("summed up"),
    ApprovalAsked: lambda lang: lang.say("a person is asked"),
    ToolsFailed: lambda lang: lang.say("the tools are gone"),
    UserSpoke: lambda lang: lang.say("a person speaks"),
    Cancelled: lambda lang: lang.say("cancelled"),
    RecordingEnded: lambda lang: lang.say("the recording ends"),
}
"""The words for events of which nothing more is told (``tests/test_proof_claims.py`` has every event told)."""


def steps_of(run: Run, lang: Language) -> list[str]:
    """Each step of ``run`` in a few words; such as ``a call: denied``."""
    teller = _Teller(lang)
    decisions = iter(run.decisions)
    last = _last_word(run)
    told: list[tuple[int, str]] = []
    for step, event in events_of(run):
        words = teller.happened(event)
        if isinstance(event, ModelReplied):
            decided = teller.decided(next(decisions))
            words = f"{decided} ({words})" if words else decided
        told.append((step, lang.say("last word: {what}", what=words) if event is last else words))
    return [": ".join(words for _, words in step) for _, step in groupby(told, key=lambda each: each[0])]


def _last_word(run: Run) -> Event | None:
    """What came of the last chance; None: the run did not have it, or nothing came yet."""
    word = None
    for entry in reversed(run.log if run.chance is not None else ()):
        if isinstance(entry, ModelReplied | ModelFailed):
            word = entry
        elif isinstance(entry, Taken) and entry.edge in LAST_CHANCES:
            return word
    return None


def events_of(run: Run) -> Iterator[tuple[int, Event]]:
    """The events of ``run``, each with its step."""
    log = run.log
    for i, entry in enumerate(log):
        if not isinstance(entry, Taken):
            after = log[i + 1] if i + 1 < len(log) else None
            yield (after.step if isinstance(after, Taken) else run.step), entry


def in_short(run: Run, lang: Language) -> str:
    """All steps in one line; steps that are alike and follow one another are counted."""
    parts = []
    for words, alike in groupby(steps_of(run, lang)):
        n = len(list(alike))
        parts.append(words if n == 1 else lang.say("{n} × {what}", n=n, what=words))
    return lang.say("; ").join(parts)

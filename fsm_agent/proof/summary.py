"""A run in a few words: what happened in each step, alike steps counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import assert_never

import attrs

from fsm_agent.events import (
    Cancelled,
    Decision,
    Event,
    Final,
    Malformed,
    ModelFailed,
    ModelReplied,
    RecordingEnded,
    Said,
    ToolCalls,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.language import Language
from fsm_agent.machine import Run, Taken


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
            case ModelFailed():
                return say("the model fails")
            case UserSpoke():
                return say("a person speaks")
            case Cancelled():
                return say("cancelled")
            case RecordingEnded():
                return say("the recording ends")
            case _:
                assert_never(event)


def steps_of(run: Run, lang: Language) -> list[str]:
    """Each step of ``run`` in a few words; such as ``a call: denied``."""
    teller = _Teller(lang)
    decisions = iter(run.decisions)
    told: list[tuple[int, str]] = []
    for step, event in events_of(run):
        words = teller.happened(event)
        if isinstance(event, ModelReplied):
            decided = teller.decided(next(decisions))
            told.append((step, f"{decided} ({words})" if words else decided))
        else:
            told.append((step, words))
    return [": ".join(words for _, words in step) for _, step in groupby(told, key=lambda each: each[0])]


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

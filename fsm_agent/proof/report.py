"""The proof as text for people and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from fsm_agent.language import Language
from fsm_agent.machine import Run, Taken
from fsm_agent.proof.claims import Ending, Proof
from fsm_agent.proof.configuration import Configuration, shown
from fsm_agent.proof.findings import Bound, Endless
from fsm_agent.proof.options import words_of
from fsm_agent.proof.structure import MODEL_CALL
from fsm_agent.proof.summary import LAST_CHANCES, events_of, in_short, steps_of
from fsm_agent.proof.trail import Fault


@attrs.frozen
class Report:
    """Puts a proof into words."""

    configuration: Configuration
    proof: Proof
    lang: Language

    # --- for people ---

    def heading(self) -> str:
        """What was searched."""
        guards = shown(self.configuration.guards) or self.lang.say("no guards")
        if self.configuration.assumed:
            assumed = ", ".join(self.configuration.assumed)
            return self.lang.say(
                "{name} ({guards}; {assumed} for want of a better)", name=self.configuration.name, guards=guards, assumed=assumed
            )
        return f"{self.configuration.name} ({guards})"

    def verdict(self) -> str:
        """The verdict in one line."""
        say, proof = self.lang.say, self.proof
        match proof.verdict, proof.counterexample:
            case "proved", _:
                return say("PROVED: every run halts.")
            case _, Endless():
                return say("REFUTED: a run need not halt.")
            case _, Fault(problem=problem):
                return say("REFUTED: {problem}", problem=problem)
            case "refuted", _:
                faults = proof.structure.faults or (say("the cycle {cycle} spends nothing", cycle=" -> ".join(proof.structure.free_cycle)),)
                return say("REFUTED: the table breaks its rules: {faults}", faults="; ".join(faults))
            case _:
                return say("NOT PROVED: {why}", why=self._undecided())

    def _undecided(self) -> str:
        say, proof = self.lang.say, self.proof
        if proof.undecided is not None:
            return say(
                "the search came to --max-states. Every run of fewer than {n} model calls was searched; what longer ones do is not known",
                n=max(proof.undecided.depth, 1),
            )
        unsettled = [ending.reason for ending in proof.endings if ending.status == "undecided"]
        if unsettled:
            return say("every run halts, but whether one can halt as {reasons} is not known", reasons=", ".join(unsettled))
        return say("every run halts, but the bounds may be lower than these")

    def bounds(self) -> Iterator[str]:
        """How long a run can be."""
        say, proof = self.lang.say, self.proof
        if proof.model_calls is None:
            return
        yield self._with_retries(self._at_most(proof.model_calls, self._calls(proof.model_calls.most)))
        if proof.tool_rounds is not None and proof.tool_calls is not None:
            rounds, calls = proof.tool_rounds, proof.tool_calls
            if calls.most == rounds.most * proof.batch:
                what = self.lang.count(
                    "{n} round of tool calls, each with as many calls as the reply holds",
                    "{n} rounds of tool calls, each with as many calls as the reply holds",
                    rounds.most,
                )
            else:
                what = self.lang.count("{n} tool call", "{n} tool calls", calls.most)
            yield self._at_most(rounds, what)
        if proof.core:
            yield say("that rests on: {guards}", guards=", ".join(proof.core))
        person = say("{edges} is a person's own doing", edges=", ".join(proof.structure.of_a_person))
        yield say("; ").join([self._cycles(), person] if proof.structure.of_a_person else [self._cycles()])

    def _calls(self, n: int) -> str:
        calls = self.lang.count("{n} model call", "{n} model calls", n)
        had = any(edge in LAST_CHANCES for edge in self.proof.structure.spends)
        return self.lang.say("{calls}, the last word among them", calls=calls) if had else calls

    def _with_retries(self, line: str) -> str:
        if not self.proof.retries:
            return line
        return self.lang.count("{line}, each with up to {n} retry", "{line}, each with up to {n} retries", self.proof.retries, line=line)

    def _cycles(self) -> str:
        """Why no cycle of the machine goes on for ever."""
        spends = self.proof.structure.spends
        if set(spends.values()) == {MODEL_CALL}:
            return self.lang.say("each cycle of the machine passes {spends}, which spends a model call", spends=", ".join(spends))
        things = ", ".join(
            f"{self.lang.translate(what)} ({', '.join(edge for edge, spent in spends.items() if spent == what)})"
            for what in dict.fromkeys(spends.values())
        )
        return self.lang.say("each cycle of the machine spends something bounded: {things}", things=things)

    def _at_most(self, bound: Bound, what: str) -> str:
        say = self.lang.say
        line = say("at most {what}", what=what)
        if bound.each_message:
            line = say("at most {what} between two messages of a person, who may go on for ever", what=what)
        if not bound.exact and bound.run is not None:
            line = say("{line} (the longest run that was found makes {n} model calls)", line=line, n=bound.run.step)
        return line

    def reasons(self) -> list[tuple[str, str, str]]:
        """Each halt reason that runs end with, the model calls of the shortest, and what happens in it."""
        reached = [(ending.reason, ending.run) for ending in self.proof.endings if ending.status == "reached" and ending.run is not None]
        return [(reason, str(run.step), in_short(run, self.lang)) for reason, run in reached]

    def warnings(self) -> list[str]:
        """Guards that do nothing, and what is not known."""
        return [warning for ending in self.proof.endings if (warning := self._warning(ending))]

    def _warning(self, ending: Ending) -> str:
        say = self.lang.say
        because = ", ".join(ending.because)
        match ending.status:
            case "never" if because:
                return say("{reason} can never trip: {guards} ends every run before.", reason=ending.reason, guards=because)
            case "never":
                return say("{reason} can never trip: nothing that can happen makes it.", reason=ending.reason)
            case "shadowed":
                return say("{reason} is always shadowed: where it trips, {guards} comes first.", reason=ending.reason, guards=because)
            case "undecided":
                return say(
                    "{reason}: not known. No run of fewer than {n} model calls ends so; raise --max-states to search longer ones.",
                    reason=ending.reason,
                    n=max(ending.depth, 1),
                )
            case _:
                return ""

    def counterexample(self) -> list[str]:
        """The run that refutes, step by step, and what of it repeats."""
        found = self.proof.counterexample
        if found is None:
            return []
        say, run = self.lang.say, found.run
        steps = [say("step {step}: {what}", step=n, what=what) for n, what in _numbered(run, self.lang)]
        if isinstance(found, Fault):
            return [*steps, say("then: {problem}", problem=found.problem)]
        first, last = repeated(found)
        if first == last:
            return [*steps, say("step {first} can follow itself for ever", first=first)]
        return [*steps, say("steps {first} to {last} can follow one another for ever", first=first, last=last)]

    def footing(self) -> str:
        """How much was searched, and what is taken on trust."""
        line = self.lang.count("{n} state searched", "{n} states searched", self.proof.states)
        if self.proof.options.features:
            line = self.lang.say("{line}, with {options}", line=line, options=", ".join(words_of(self.proof.options)))
        if self.proof.judged_in_part:
            guards = ", ".join(self.proof.judged_in_part)
            return self.lang.say("{line}; that it never raises is tried, not proved, of: {guards}", line=line, guards=guards)
        return line

    # --- for programs ---

    def as_values(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        proof = self.proof
        return {
            "configuration": self.configuration.name,
            "guards": {guard.reason: guard.as_limits() for guard in proof.guards},
            "assumed": list(self.configuration.assumed),
            "with": words_of(proof.options),
            "verdict": proof.verdict,
            "model_calls": _bound(proof.model_calls),
            "tool_rounds": _bound(proof.tool_rounds),
            "tool_calls": _bound(proof.tool_calls),
            "calls_a_reply": proof.batch,
            "retries_a_call": proof.retries,
            "rests_on": list(proof.core),
            "structure": {**attrs.asdict(proof.structure), "spends": dict(proof.structure.spends)},
            "reasons": [self._ending(ending) for ending in proof.endings],
            "further_edges": [self._ending(ending) for ending in proof.further],
            "warnings": self.warnings(),
            "counterexample": self._counterexample(),
            "searched_to": None if proof.undecided is None else proof.undecided.depth,
            "judged_in_part": list(proof.judged_in_part),
            "states": proof.states,
        }

    def _ending(self, ending: Ending) -> dict[str, Any]:
        run = ending.run
        return {
            "reason": ending.reason,
            "status": ending.status,
            "because": list(ending.because),
            "model_calls": None if run is None else run.step,
            "steps": [] if run is None else steps_of(run, self.lang),
            "path": [] if run is None else _path(run),
        }

    def _counterexample(self) -> dict[str, Any] | None:
        found = self.proof.counterexample
        if found is None:
            return None
        values: dict[str, Any] = {"steps": steps_of(found.run, self.lang), "path": _path(found.run)}
        if isinstance(found, Fault):
            return {**values, "problem": found.problem}
        return {**values, "repeats": list(repeated(found))}


def repeated(endless: Endless) -> tuple[int, int]:
    """The first and the last step of the loop."""
    steps = [step for step, _ in events_of(endless.run)]
    return steps[endless.stem], steps[-1]


def _numbered(run: Run, lang: Language) -> Iterator[tuple[int, str]]:
    numbers = dict.fromkeys(step for step, _ in events_of(run))
    return zip(numbers, steps_of(run, lang), strict=True)


def _bound(bound: Bound | None) -> dict[str, Any] | None:
    return None if bound is None else {"most": bound.most, "exact": bound.exact, "each_message": bound.each_message}


def _path(run: Run) -> list[str]:
    return [entry.edge for entry in run.log if isinstance(entry, Taken)]

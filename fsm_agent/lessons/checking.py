"""An answer to an exercise, run: a scenario is played, limits are tried out on scenarios, and each demand is found met or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, assert_never

import attrs

from fsm_agent.events import CallTools, Event, Observation, ToolCall, ToolCalls, ToolsReturned
from fsm_agent.guards import Guard, Reading, guards_from, parse_limits
from fsm_agent.language import Language
from fsm_agent.lessons.load import Lesson, LessonError
from fsm_agent.machine import Run, Taken
from fsm_agent.protocols import LineProtocol
from fsm_agent.scenarios import Scenario, load
from fsm_agent.stepper import Branch, of_scenario

MOST_STEPS = 200
"""No run is played any further."""


@attrs.frozen
class Finding:
    """Whether one demand is met, and what was found."""

    met: bool
    text: str


@attrs.frozen
class Played:
    """A run of a scenario."""

    run: Run

    @property
    def reason(self) -> str:
        """Why it halted; empty: it did not within ``MOST_STEPS``."""
        return self.run.reason or ""

    @property
    def events(self) -> list[Event]:
        return [entry for entry in self.run.log if not isinstance(entry, Taken)]

    @property
    def made(self) -> list[tuple[ToolCall, Observation]]:
        """The calls that were made, with what they came to, in order."""
        calls = [call for decision in self.run.decisions if isinstance(decision, ToolCalls) for call in decision.calls]
        seen = [each for event in self.events if isinstance(event, ToolsReturned) for each in event.observations]
        return list(zip(calls, seen, strict=False))  # a call that was refused has no observation

    @property
    def last_readings(self) -> tuple[Reading, ...]:
        """What the guards read at the end."""
        return self.run.readings


@attrs.frozen
class Attempt:
    """A scenario that somebody wrote, and how it goes under any guards."""

    scenario: Scenario
    lang: Language

    def under(self, guards: Sequence[Guard]) -> Played:
        return play(self.scenario, guards, self.lang)

    @property
    def played(self) -> Played:
        """Under its own limits."""
        return self.under(self.scenario.guards)


ScenarioDemands = Callable[[Attempt, Language], Iterator[Finding]]
LimitsDemands = Callable[[dict[str, Any], Callable[[str, dict[str, Any]], Played], Language], Iterator[Finding]]
"""Given the limits, and how a scenario of the lesson goes under limits, by its name."""


@attrs.frozen
class WriteScenario:
    """An exercise whose answer is a scenario file."""

    demands: ScenarioDemands


@attrs.frozen
class FindLimits:
    """An exercise whose answer is limits for a preset's guards."""

    demands: LimitsDemands
    preset: str = "classic"


Exercise = WriteScenario | FindLimits


def play(scenario: Scenario, guards: Sequence[Guard], lang: Language) -> Played:
    """The scenario, played under these guards, for at most ``MOST_STEPS`` steps."""
    specs = tuple(tool.spec for tool in scenario.named_tools.values())
    pristine = Run(scenario.task, guards=guards, protocol=LineProtocol(lang), tools=specs)
    branch = Branch(of_scenario(scenario.name, pristine, scenario.model, scenario.named_tools))
    while (branch.run.step < MOST_STEPS or isinstance(branch.run.effect, CallTools)) and branch.play() is None:
        pass
    return Played(branch.run)


def check(lesson: Lesson, exercise: Exercise, answer: str, lang: Language) -> list[Finding]:
    """What ``answer`` comes to: a path of a scenario file, or limits, as the exercise asks.

    Raises ``LessonError`` (or another ``ValueError``) in one line for an answer that cannot be run, ``OSError`` for a file that cannot be
    read.
    """
    looks_like_a_file = answer.endswith(".toml") or "=" not in answer
    match exercise:
        case WriteScenario(demands=demands):
            if not looks_like_a_file and not Path(answer).exists():
                raise LessonError(f"lesson {lesson.number} asks for a scenario: give the path of a .toml file")
            return list(demands(Attempt(load(answer), lang), lang))
        case FindLimits(demands=demanded, preset=preset):
            if looks_like_a_file:
                raise LessonError(f"lesson {lesson.number} asks for limits: give them as in max_steps=6,max_errors=3")
            limits = parse_limits(answer)

            def under(name: str, limits: dict[str, Any]) -> Played:
                return play(lesson.scenario(name), guards_from(preset, **limits), lang)

            return list(demanded(limits, under, lang))
        case _:
            assert_never(exercise)

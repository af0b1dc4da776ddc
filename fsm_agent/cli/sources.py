"""What a command can be pointed at: a scenario, by name or file, or a trace file."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from fsm_agent.guards import Guard
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine import Run
from fsm_agent.scenarios import Scenario, built_in, load


def scenario_from(source: str) -> Scenario:
    """A scenario by its name, or by the path of its file. Raises ``ScenarioError`` or ``OSError``."""
    return load(source) if _is_path(source) or source.endswith(".toml") else built_in(source)


def run_from(source: str, guards: Sequence[Guard] | None = None, lang: Language = ENGLISH) -> tuple[Run, str]:
    """A run and its title: a scenario is played, a trace is replayed. Raises ``ValueError`` or ``OSError``."""
    if not source.endswith(".toml") and (_is_path(source) or source.endswith(".jsonl")):
        from fsm_agent.traces import load as load_trace

        trace = load_trace(source)
        return trace.replay(guards), trace.header.title or Path(source).stem
    scenario = scenario_from(source)
    return play(scenario, lang), title_of(scenario)


def play(scenario: Scenario, lang: Language = ENGLISH) -> Run:
    """The scenario, played to its end without a word."""
    from fsm_agent.drivers.interrupts import Interrupts
    from fsm_agent.drivers.sync import drive

    machine = new_run(scenario, lang)
    with Interrupts() as interrupts:
        drive(machine, scenario.model, scenario.named_tools, interrupts, ())
    return machine


def new_run(scenario: Scenario, lang: Language) -> Run:
    """A run that is set up for the scenario, with nothing fed to it yet."""
    from fsm_agent.protocols import LineProtocol

    specs = tuple(tool.spec for tool in scenario.named_tools.values())
    return Run(scenario.task, guards=scenario.guards, protocol=LineProtocol(lang), tools=specs, at=time.time())


def title_of(scenario: Scenario) -> str:
    """The scenario's name for records and pictures."""
    return f"Scenario {scenario.name}"


def _is_path(source: str) -> bool:
    return os.sep in source or "/" in source or Path(source).exists()

"""What a command can be pointed at: a scenario, by name or file, a trace file, a ledger, or a file of recordings."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from fsm_agent.guards import Guard
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine import Run
from fsm_agent.scenarios import Scenario, built_in, load, names
from fsm_agent.text import printable

if TYPE_CHECKING:
    from fsm_agent.traces.recordings import Damaged, Recording

Kind = Literal["scenario", "trace", "ledger", "recordings"]


def scenario_from(source: str) -> Scenario:
    """A scenario by its name, or by the path of its file. Raises ``ScenarioError`` or ``OSError``."""
    return load(source) if is_path(source) else built_in(source)


def is_path(source: str) -> bool:
    """Whether ``source`` is the path of a file. A scenario's name never is: a file that has the same one is ``./a``."""
    named = not source or source in names()
    return not named and (os.sep in source or "/" in source or bool(Path(source).suffix) or Path(source).exists())


def is_scenario(source: str) -> bool:
    """Whether ``source`` is a scenario, by its name or by the path of its file; otherwise it is a trace, a ledger or recordings."""
    return source.endswith(".toml") or not is_path(source)


def kind_of(source: str, form: str | None = None) -> Kind:
    """What ``source`` is; ``form`` is the format of a recording, where the user names it. Raises ``ValueError`` or ``OSError``."""
    from fsm_agent.audit.sources import is_ledger
    from fsm_agent.traces.recordings import detect

    if is_scenario(source):
        return "scenario"
    path = Path(source)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{path} is a device or a pipe; runs are read from a file")
    if is_ledger(path, form):
        return "ledger"
    return "trace" if (form or detect(path)) == "trace" else "recordings"


def run_from(
    source: str,
    wanted: str | None = None,
    guards: Sequence[Guard] | None = None,
    lang: Language = ENGLISH,
    *,
    form: str | None = None,
    error_pattern: str | None = None,
) -> tuple[Run, str]:
    """A run and its title: a scenario is played, anything else is replayed. ``wanted``: which run of a ledger or of recordings.

    ``guards`` replaces a run's own, of which a recording has none. A trace whose edges are not those that its events give is told on
    stderr, and replayed. Raises ``ValueError`` or ``OSError``.
    """
    from fsm_agent.audit.case import case_of_trace
    from fsm_agent.cli.traced import replayed, warning_of
    from fsm_agent.traces import Trace
    from fsm_agent.traces import load as load_trace
    from fsm_agent.traces.record import header_of
    from fsm_agent.traces.replay import replay

    kind = kind_of(source, form)
    if kind in {"ledger", "recordings"}:
        path = Path(source)
        recording = run_of_ledger(path, wanted) if kind == "ledger" else run_of_file(path, wanted, form, error_pattern)
        return replay(recording, guards or (), lang), f"{path.stem} {recording.id}"
    if wanted is not None:
        raise ValueError(f"{source} is one run; leave --run out")
    if kind == "trace":
        trace = load_trace(source)
        run = replayed(source, trace, guards)
        if guards is None and (warning := warning_of(source, trace)):
            click.echo(printable(warning), err=True)
        return run, trace.header.title or Path(source).stem
    scenario = scenario_from(source)
    run, title = play(scenario, lang), title_of(scenario)
    return (run if guards is None else case_of_trace(Trace(header_of(run, title), run.log), title, guards).play(guards)), title


def run_of_ledger(path: Path, wanted: str | None) -> Recording:
    """The run of this id, ``source:id`` or key; None: the only one. Raises ``LedgerError``."""
    from fsm_agent.traces.ledger import Ledger, LedgerError

    with Ledger.open(path) as ledger:
        if wanted is not None:
            return ledger.recording(ledger.find(wanted))
        if len(ledger) != 1:
            raise LedgerError(f"{path} holds {len(ledger)} runs; name one with --run" if len(ledger) else f"{path} holds no runs")
        return next(ledger.recordings())


def run_of_file(path: Path, wanted: str | None, form: str | None = None, error_pattern: str | None = None) -> Recording:
    """The run of this id or ``source:id``; None: the only one. Raises ``RecordingError``."""
    from fsm_agent.traces.recordings import Damaged, RecordingError, read

    if wanted is None:
        only = only_run(path, form, error_pattern)
        if only is None:
            raise RecordingError(_several(path, list(read(path, form, error_pattern))))
        return only
    damaged = []
    for found in read(path, form, error_pattern):
        if isinstance(found, Damaged):
            damaged.append(found)
        elif wanted in {found.id, f"{found.source}:{found.id}"}:
            return found
    named = re.compile(rf"(?<![^\s,(]){re.escape(wanted)}(?![^\s,)])")  # as a whole word of the place
    for each in damaged:
        if named.search(each.place):
            raise RecordingError(f"{path} holds no run {wanted!r} that can be read; {_told(each)}")
    more = f" It may be a damaged one: {'; '.join(map(_told, damaged[:3]))}{'; ...' if damaged[3:] else ''}" if damaged else ""
    raise RecordingError(f"{path} holds no run {wanted!r}; `fsm-agent replay {path} --json` lists them.{more}".removesuffix("."))


def _several(path: Path, found: Sequence[Recording | Damaged]) -> str:
    """Why a file that does not hold one run alone holds none that is meant."""
    from fsm_agent.traces.recordings import Damaged

    damaged = [each for each in found if isinstance(each, Damaged)]
    runs = len(found) - len(damaged)
    if not runs:
        return f"{path}: no run in it can be read ({_told(damaged[0])})" if damaged else f"{path} holds no runs"
    held = ENGLISH.count("{n} run", "{n} runs", runs)
    if damaged:
        held += f" and {ENGLISH.count('{n} damaged one', '{n} damaged ones', len(damaged))}"
    return f"{path} holds {held}; name one with --run (`fsm-agent replay {path} --json` lists them)"


def _told(damaged: Damaged) -> str:
    return f"{damaged.place}: {damaged.problem}" if damaged.place else damaged.problem


def only_run(path: Path, form: str | None = None, error_pattern: str | None = None) -> Recording | None:
    """The one run that the file holds; None: it holds none, several, or a damaged one. Raises ``RecordingError``."""
    from fsm_agent.traces.recordings import Damaged, read

    found = list(islice(read(path, form, error_pattern), 2))
    return found[0] if len(found) == 1 and not isinstance(found[0], Damaged) else None


def play(scenario: Scenario, lang: Language = ENGLISH) -> Run:
    """The scenario, played to its end without a word."""
    from fsm_agent.drivers.interrupts import Interrupts
    from fsm_agent.drivers.session import Session
    from fsm_agent.drivers.sync import drive

    machine = new_run(scenario, lang)
    with Interrupts() as interrupts:
        drive(Session(machine, scenario.model, scenario.named_tools), interrupts)
    return machine


def new_run(scenario: Scenario, lang: Language) -> Run:
    """A run that is set up for the scenario, with nothing fed to it yet."""
    from fsm_agent.protocols import LineProtocol

    specs = tuple(tool.spec for tool in scenario.named_tools.values())
    return Run(scenario.task, guards=scenario.guards, protocol=LineProtocol(lang), tools=specs, at=time.time())


def title_of(scenario: Scenario) -> str:
    """The scenario's name for records and pictures."""
    return f"Scenario {scenario.name}"

"""What ``fsm-agent draw`` is pointed at, and its drawings of many runs: the heat map, and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs
import click

from fsm_agent.cli.common import Fault, with_progress
from fsm_agent.cli.sources import Kind, kind_of, only_run, run_from
from fsm_agent.language import Language
from fsm_agent.text import printable

if TYPE_CHECKING:
    from fsm_agent.diagrams import View
    from fsm_agent.diagrams.heat import Heat
    from fsm_agent.guards import Guard
    from fsm_agent.machine import Run

CONDITIONS = "a condition such as outcome=failure, another file, or with --run the id of another run"


@attrs.define(slots=False)
class Chosen:
    """The runs that the command line names, and the guards for them."""

    sources: tuple[str, ...]
    wanted: str | None
    where: tuple[str, ...]
    against: str | None
    preset: str | None
    limits: str
    recording_format: str | None
    error_pattern: str | None
    lang: Language

    @cached_property
    def kind(self) -> Kind:
        """Of the first source."""
        return kind_of(self.sources[0], self.recording_format)

    @property
    def is_one_run(self) -> bool:
        """One run is named, which is a run by itself or one of several."""
        return len(self.sources) == 1 and not self.where and (self.wanted is not None or self.kind in {"scenario", "trace"})

    @property
    def guards(self) -> tuple[Guard, ...]:
        """For runs that have none of their own."""
        from fsm_agent.audit.plan import plan_of
        from fsm_agent.guards import parse_limits

        return plan_of(self.preset or "none", parse_limits(self.limits)).guards

    @property
    def own_guards(self) -> Sequence[Guard] | None:
        """To replace a run's own; None: none are."""
        if self.preset is None and self.limits:
            raise Fault("this run has guards of its own; give --guards too, to have others with these limits")
        return None if self.preset is None else self.guards

    @property
    def under(self) -> str:
        """The guards, for a title."""
        asked = ", ".join(filter(None, (self.preset, self.limits)))
        return self.lang.say("under {guards}", guards=asked) if self.guards else self.lang.say("as recorded")

    def run(self, source: str | None = None, wanted: str | None = None) -> tuple[Run, str]:
        """The run and its title; by default the one that is named. Raises ``ValueError`` or ``OSError``."""
        if len(self.sources) > 1 or self.where:
            raise Fault("a path is of one run: give one SOURCE, with --run where it holds several, and no --where")
        source = source or self.sources[0]
        own = kind_of(source, self.recording_format) in {"scenario", "trace"}
        guards = self.own_guards if own else self.guards
        wanted = wanted or self.wanted
        return run_from(source, wanted, guards, self.lang, form=self.recording_format, error_pattern=self.error_pattern)


def usual_view(chosen: Chosen) -> Literal["path", "heat", "diff"]:
    """What is drawn when no view is named."""
    if chosen.against is not None:
        return "diff"
    if chosen.is_one_run:
        return "path"
    alone = len(chosen.sources) == 1 and not chosen.where and chosen.kind == "recordings"
    return "path" if alone and only_run(Path(chosen.sources[0]), chosen.recording_format, chosen.error_pattern) else "heat"


def heat(chosen: Chosen) -> View:
    """The heat map of the runs that are chosen."""
    from fsm_agent.diagrams.heat import heat_view

    if chosen.against is not None:
        raise Fault("--against is for --view diff")
    name = ", ".join(filter(None, (_files(chosen.sources), *chosen.where, chosen.under)))
    return heat_view(_heat(chosen, chosen.sources, chosen.where), name, chosen.lang)


def diff(chosen: Chosen) -> View:
    """Two runs or two groups of runs."""
    if chosen.against is None:
        raise Fault(f"--view diff compares with what --against names: {CONDITIONS}")
    other = Path(chosen.against) if Path(chosen.against).exists() else None
    alone = chosen.is_one_run or (
        other is not None
        and len(chosen.sources) == 1
        and not chosen.where
        and all(_holds_one(chosen, path) for path in (*chosen.sources, other))
    )
    return _two_runs(chosen, chosen.against) if alone else _two_groups(chosen, chosen.against, other)


def _two_runs(chosen: Chosen, against: str) -> View:
    from fsm_agent.diagrams.run_diff import run_diff_view

    one, name = chosen.run()
    if chosen.kind in {"scenario", "trace"} or Path(against).exists():
        several = chosen.wanted is not None and kind_of(against, chosen.recording_format) in {"ledger", "recordings"}
        other, other_name = attrs.evolve(chosen, sources=(against,), wanted=chosen.wanted if several else None).run()
    else:
        other, other_name = chosen.run(wanted=against)
    return run_diff_view(one, other, (name, other_name), lang=chosen.lang)


def _two_groups(chosen: Chosen, against: str, other: Path | None) -> View:
    from fsm_agent.diagrams.diff import diff_view

    groups: tuple[tuple[tuple[str, ...], tuple[str, ...]], tuple[tuple[str, ...], tuple[str, ...]]]
    if other is None:
        groups = ((chosen.sources, chosen.where), (chosen.sources, (against,)))
        names = tuple(", ".join(where) or chosen.lang.say("all runs") for _, where in groups)
    else:
        groups = ((chosen.sources, chosen.where), ((against,), chosen.where))
        names = tuple(_files(sources) for sources, _ in groups)
    title = ", ".join(([_files(chosen.sources)] if other is None else list(chosen.where)) + [chosen.under])
    first, second = (_heat(chosen, sources, where) for sources, where in groups)
    return diff_view(first, second, (names[0], names[1]), title, chosen.lang)


def _heat(chosen: Chosen, sources: Sequence[str], where: tuple[str, ...]) -> Heat:
    """The runs of these sources, counted; damaged ones are told. Raises ``Fault`` where there are none."""
    from fsm_agent.audit.sources import runs_of
    from fsm_agent.diagrams.heat import heat_of
    from fsm_agent.traces.ledger import Where

    if chosen.wanted is not None:
        raise Fault("--run names one run; a heat map is of many, which --where chooses")
    for source in sources:
        if kind_of(source, chosen.recording_format) == "scenario":
            raise Fault(f"{source} is a scenario; a heat map is of recorded runs: give a ledger, or files of recordings")
    found = runs_of(
        [Path(source) for source in sources], Where.parse(*where), form=chosen.recording_format, error_pattern=chosen.error_pattern
    )
    heat = heat_of(with_progress((each for _, each in found), "Counting"), chosen.guards)
    for damaged in heat.damaged:
        click.echo(printable(f"damaged: {damaged.place}: {damaged.problem}"), err=True)
    if not heat.runs:
        raise Fault(f"{_files(sources)} holds no run{f' with {chr(44).join(where)}' if where else ''} that can be drawn")
    return heat


def _holds_one(chosen: Chosen, source: str | Path) -> bool:
    kind = kind_of(str(source), chosen.recording_format)
    return kind != "ledger" and (kind != "recordings" or only_run(Path(source), chosen.recording_format, chosen.error_pattern) is not None)


def _files(sources: Sequence[str]) -> str:
    return ", ".join(Path(source).name for source in sources)

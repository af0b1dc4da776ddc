"""``fsm-agent replay``: recorded runs of other systems, of a file or a ledger, fed through the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fsm_agent.cli.common import (
    Fault,
    faults,
    guard_options,
    json_option,
    keep_apart,
    lang_option,
    print_json,
    print_table,
    with_progress,
)
from fsm_agent.language import Language
from fsm_agent.text import printable

if TYPE_CHECKING:
    from fsm_agent.machine import Run
    from fsm_agent.traces.recordings import Damaged, Recording


@click.command()
@click.argument("recording", type=click.Path(path_type=Path))
@click.option("--run", "wanted", metavar="ID", help="Only this run.")
@click.option("--draw", "picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw the path of the run that --run names.")
@click.option("--format", "form", help="The format of the recording. [default: detected]")
@click.option("--error-pattern", metavar="REGEX", help="A tool result in which this is found is an error. [default: the format's own rule]")
@guard_options
@lang_option
@json_option
def replay(
    recording: Path,
    wanted: str | None,
    picture: Path | None,
    form: str | None,
    error_pattern: str | None,
    preset: str,
    limits: str,
    lang: Language,
    *,
    as_json: bool,
) -> None:
    """Feed the runs in RECORDING, a file or a ledger, through the machine, and see where the guards would have halted each.

    A run that no guard halts ends as `recording_ended`, which is not an error. Exit code: 0, or 2 where the file, or any run in it,
    cannot be read.
    """
    from fsm_agent.audit.sources import is_ledger
    from fsm_agent.cli.draw import draw_run, format_of
    from fsm_agent.cli.sources import run_of_file, run_of_ledger
    from fsm_agent.guards import guards_from, parse_limits
    from fsm_agent.traces.recordings import Damaged, remarks
    from fsm_agent.traces.replay import replay as through

    if picture is not None and wanted is None:
        raise Fault("--draw draws one run; name it with --run")
    keep_apart([recording], {"--draw": picture})
    with faults():
        guards = guards_from(preset, **parse_limits(limits))
        if picture is not None:
            format_of(picture, None)
    with faults(recording):
        if wanted is not None:
            ledger = is_ledger(recording, form)
            found = run_of_ledger(recording, wanted) if ledger else run_of_file(recording, wanted, form, error_pattern)
            run = through(found, guards, lang)
            _one(run, lang, as_json=as_json)
            if picture is not None:
                with faults():  # the picture's, and not the recording's
                    draw_run(run, f"{recording.stem} {found.id}", picture, None)
            return
        runs: dict[str, Run] = {}
        damaged: list[Damaged] = []
        for each in with_progress(_found(recording, form, error_pattern), f"Replaying {recording.name}"):
            if isinstance(each, Damaged):
                damaged.append(each)
            else:
                runs[_name(each, runs)] = through(each, guards, lang)
        for remark in () if is_ledger(recording, form) else remarks(recording, form):
            click.echo(printable(f"{recording.name}: {remark}"), err=True)
    for bad in damaged:
        click.echo(printable(f"damaged: {recording}, {bad.place}: {bad.problem}"), err=True)
    if damaged and not runs:
        raise Fault(f"{recording}: no run in it can be read")
    reasons = Counter(str(run.reason) for run in runs.values())
    if as_json:
        by_run = {name: run.reason for name, run in runs.items()}
        print_json(
            {
                "runs": len(runs),
                "reasons": dict(reasons.most_common()),
                "by_run": by_run,
                "damaged": [f"{d.place}: {d.problem}" for d in damaged],
            }
        )
        return
    title = f"{recording.name}: {lang.count('{n} run', '{n} runs', len(runs))} under {preset}{f' with {limits}' if limits else ''}"
    rows = [(reason, n, f"{n / len(runs):.1%}") for reason, n in reasons.most_common()]
    print_table(title, ["halt reason", "runs", "share"], [*rows, *([("(damaged)", len(damaged), "")] if damaged else [])])


def _found(path: Path, form: str | None, error_pattern: str | None) -> Iterator[Recording | Damaged]:
    from fsm_agent.audit.sources import is_ledger
    from fsm_agent.traces.ledger import Ledger
    from fsm_agent.traces.recordings import read

    if is_ledger(path, form):
        with Ledger.open(path) as ledger:
            yield from ledger.recordings()
    else:
        yield from read(path, form, error_pattern)


def _name(run: Recording, taken: Container[str]) -> str:
    """The run's id; in a ledger several may have it, and then its source stands before it, or a number behind it."""
    for name in (run.id, whole := f"{run.source}:{run.id}"):
        if name not in taken:
            return name
    return next(name for i in count(2) if (name := f"{whole}#{i}") not in taken)


def _one(run: Run, lang: Language, *, as_json: bool) -> None:
    from fsm_agent.cli.run import summary
    from fsm_agent.transcript import Transcript

    if as_json:
        print_json(summary(run, lang))
        return
    transcript = Transcript(lang)
    for line in (*transcript.lines(run), *transcript.end(run)):
        click.echo(line)

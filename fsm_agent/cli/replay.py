"""``fsm-agent replay``: recorded runs of other systems, fed through the machine."""

from __future__ import annotations

from collections import Counter
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

if TYPE_CHECKING:
    from fsm_agent.machine import Run


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
    """Feed the runs in RECORDING through the machine, and see where the guards would have halted each.

    A run that no guard halts ends as `recording_ended`, which is not an error. Exit code: 0, or 2 where the file cannot be read.
    """
    from fsm_agent.cli.draw import draw_run, format_of
    from fsm_agent.guards import guards_from, parse_limits
    from fsm_agent.traces.recordings import Damaged, read, remarks
    from fsm_agent.traces.replay import replay as through

    if picture is not None and wanted is None:
        raise Fault("--draw draws one run; name it with --run")
    keep_apart([recording], {"--draw": picture})
    with faults():
        guards = guards_from(preset, **parse_limits(limits))
        if picture is not None:
            format_of(picture, None)
    with faults(recording):
        runs, damaged = {}, []
        for found in with_progress(read(recording, form, error_pattern), f"Replaying {recording.name}"):
            if isinstance(found, Damaged):
                damaged.append(found)
            elif wanted is None or found.id == wanted:
                runs[found.id] = through(found, guards, lang)
        for remark in remarks(recording, form):
            click.echo(f"{recording.name}: {remark}", err=True)
    for each in damaged:
        click.echo(f"damaged: {recording}, {each.place}: {each.problem}", err=True)
    if wanted is not None and wanted not in runs:
        raise Fault(f"{recording}: there is no run {wanted!r}")
    if wanted is not None:
        _one(runs[wanted], lang, as_json=as_json)
        if picture is not None:
            with faults():
                draw_run(runs[wanted], f"{recording.stem} {wanted}", picture, None)
        return
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
    title = f"{recording.name}: {len(runs)} runs under {preset}{f' with {limits}' if limits else ''}"
    rows = [(reason, n, f"{n / len(runs):.1%}") for reason, n in reasons.most_common()]
    print_table(title, ["halt reason", "runs", "share"], [*rows, *([("(damaged)", len(damaged), "")] if damaged else [])])


def _one(run: Run, lang: Language, *, as_json: bool) -> None:
    from fsm_agent.cli.run import summary
    from fsm_agent.transcript import Transcript

    if as_json:
        print_json(summary(run, lang))
        return
    transcript = Transcript(lang)
    for line in (*transcript.lines(run), *transcript.end(run)):
        click.echo(line)

"""``fsm-agent audit``: why recorded runs stopped, and what other limits would have done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from fsm_agent.cli.common import (
    DIFFERS,
    DONE,
    PRESETS,
    WRONG_USE,
    Fault,
    faults,
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
    from fsm_agent.audit.audit import Audit, Found
    from fsm_agent.audit.condition import Verdict
    from fsm_agent.traces.recordings import Recording

CHARTS = (".svg", ".png")


@attrs.frozen
class Question:
    """What an audit is asked, as it stands on the command line."""

    preset: str = "production"
    limits: str = ""
    what_ifs: tuple[str, ...] = ()
    sweeps: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    by: str = "source"
    form: str | None = None
    error_pattern: str | None = None


_OPTIONS = (
    click.option(
        "--guards",
        "preset",
        type=click.Choice(PRESETS),
        default="production",
        show_default=True,
        help="The guards that are tried out.",
    ),
    click.option(
        "--limits",
        default="",
        metavar="LIMITS",
        help="Other limits for them, as in max_errors=3,max_steps=30. Without max_steps there is no cap.",
    ),
    click.option("--what-if", "what_ifs", multiple=True, metavar="LIMITS", help="Compare with these limits in place of those; repeatable."),
    click.option(
        "--sweep",
        "sweeps",
        multiple=True,
        metavar="LIMIT=A..B",
        help="Try each value of a limit: max_errors=1..6, or max_errors=2,4,8; repeatable.",
    ),
    click.option("--where", multiple=True, metavar="CONDITION", help="Only these runs, as in outcome=failure,steps>=10; repeatable."),
    click.option("--by", type=click.Choice(["source", "model", "file"]), default="source", show_default=True, help="How runs are grouped."),
    click.option("--format", "form", help="The format of the files that are no ledgers. [default: detected]"),
    click.option(
        "--error-pattern",
        metavar="REGEX",
        help="In these files, a tool result in which this is found is an error. [default: the format's own rule]",
    ),
)


def question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that make a ``Question``, for every command that asks one."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SOURCE...")
@question_options
@click.option("--chart", type=click.Path(dir_okay=False, path_type=Path), help="Draw the sweeps into this file (.svg or .png).")
@click.option(
    "--fail-if", "conditions", multiple=True, metavar="CONDITION", help="Exit with 1 if it holds, as in 'false_kills > 0.5%'; repeatable."
)
@click.option("--csv", "folder", type=click.Path(file_okay=False, path_type=Path), help="Write every table as a CSV file into this folder.")
@lang_option
@json_option
@click.pass_context
def audit(
    context: click.Context,
    /,
    sources: tuple[Path, ...],
    chart: Path | None,
    conditions: tuple[str, ...],
    folder: Path | None,
    lang: Language,
    *,
    as_json: bool,
    **asked: Any,
) -> None:
    """Say why the runs in SOURCE... stopped, and what guards would have made of them.

    SOURCE is a ledger (see `fsm-agent import`) or a file of recordings. Each run is fed through the machine once. A guard stops a failed
    run, and saves the model calls after it, or kills a successful one, when it halts it before its last step.

    --fail-if compares a figure of the tables: with a per cent sign its share, without one its count. Figures are runs, successes,
    failures, unknown, model_calls, beyond, damaged; halts, median_steps, median_tokens, tokens_unknown (of [reason=...]);
    failures_stopped, calls_saved, false_kills, median_kill_step, capped_stopped_early, unknown_stopped, let_beyond; near_misses;
    capped, no_guard_helped. Brackets choose the row:
    false_kills[group=*, guard=no_progress, plan=1] is that of one guard, in each group, under the first --what-if;
    halts[reason=no_progress, outcome=success] and near_misses[outcome=failure] count the runs of one outcome, out of all.

    Exit code: 0; 1 if a --fail-if holds; 2 for unreadable input, and for a --fail-if that cannot be judged, since no run is chosen or
    the figure is not known (in any of the groups).
    """
    from fsm_agent.audit import condition

    keep_apart(sources, {"--chart": chart})
    with faults():
        if chart is not None and chart.suffix.lower() not in CHARTS:
            raise Fault(f"{chart}: a chart is written as {' or '.join(CHARTS)}")
        if chart is not None and not asked["sweeps"]:
            raise Fault("--chart draws a sweep; give one, such as --sweep max_errors=1..6")
        parsed = [condition.parse(text) for text in conditions]
        found = audited(sources, Question(**asked))
        verdicts = [verdict for each in parsed for verdict in condition.judge(each, found)] if found.pooled.runs else []
        if chart is not None:
            _draw(found, chart)
        if folder is not None:
            _export(found, folder, lang)
    if found.pooled.runs or not found.unreadable:
        _tell(found, asked["by"], lang, as_json=as_json, verdicts=verdicts)
    for damaged in found.damaged:
        click.echo(printable(f"damaged: {damaged.place}: {damaged.problem}"), err=True)
    for file in found.unreadable:
        click.echo(printable(f"Error: {file}: no run in it can be read"), err=True)
    if not found.pooled.runs and not found.unreadable:
        for each in parsed:
            click.echo(printable(f"--fail-if {each.text} cannot be judged: no run is chosen"), err=True)
    judged = _judged(verdicts)
    unjudged = not judged or (bool(parsed) and not found.pooled.runs)
    context.exit(WRONG_USE if found.unreadable or unjudged else DIFFERS if any(verdict.holds for verdict in verdicts) else DONE)


def _judged(verdicts: list[Verdict]) -> bool:
    """Tell how the conditions were judged, and whether each could be: in one group, where it is asked for in several."""
    judged = True
    for condition, group in groupby(verdicts, lambda verdict: verdict.condition):
        of_groups = list(group)
        known = any(verdict.holds is not None for verdict in of_groups)
        judged = judged and known
        for verdict in of_groups:
            if verdict.holds is None:
                said = f"{verdict}, so it does not hold there" if known else f"cannot be judged: {verdict}"
                click.echo(printable(f"--fail-if {condition.text}{':' if known else ''} {said}"), err=True)
            elif verdict.holds:
                click.echo(printable(f"--fail-if {condition.text} holds: {verdict}"), err=True)
    return judged


def audited(sources: tuple[Path, ...], asked: Question) -> Audit:
    """The audit that is asked for. Raises ``ValueError`` or ``OSError`` in one line for what cannot be read or meant."""
    from fsm_agent.audit.audit import audit_runs
    from fsm_agent.audit.plan import parse_sweep, plan_of
    from fsm_agent.guards import parse_limits

    limits = parse_limits(asked.limits)
    base = plan_of(asked.preset, limits, ", ".join(filter(None, (asked.preset, asked.limits))))
    what_ifs = [plan_of(asked.preset, {**limits, **parse_limits(text)}, text) for text in asked.what_ifs]
    sweeps = [(sweep, sweep.plans(asked.preset, limits)) for sweep in map(parse_sweep, asked.sweeps)]
    found = _Grouped(sources, asked)
    audit = audit_runs(with_progress(found, "Auditing"), base, what_ifs=what_ifs, sweeps=sweeps, group=found.group)
    return attrs.evolve(audit, unreadable=tuple(found.unreadable))


class _Grouped:
    """The runs as they are read, and the group of the one that was read last."""

    def __init__(self, sources: tuple[Path, ...], asked: Question) -> None:
        from fsm_agent.audit.sources import BY_FILE, GROUPS, runs_of
        from fsm_agent.traces.ledger import Where

        self.unreadable: list[str] = []
        """Files in which something is damaged and no run can be read."""
        self._found = runs_of(
            sources,
            Where.parse(*asked.where),
            form=asked.form,
            error_pattern=asked.error_pattern,
            by_file=asked.by == BY_FILE,
            unreadable=self.unreadable,
        )
        self._file = ""
        self.group: Callable[[Recording], str] = GROUPS.get(asked.by, lambda _: self._file)

    def __iter__(self) -> Iterator[Found]:
        for file, found in self._found:
            self._file = file
            yield found


def _tell(found: Audit, group: str, lang: Language, *, as_json: bool, verdicts: list[Verdict]) -> None:
    from fsm_agent.audit.export import as_json as exported
    from fsm_agent.audit.notes import notes
    from fsm_agent.audit.pages import pages

    said = list(notes(found, lang))
    if as_json:
        checks = [
            {"condition": verdict.condition.text, "where": verdict.where, "value": verdict.value, "holds": verdict.holds}
            for verdict in verdicts
        ]
        print_json({**exported(found, said), "fail_if": checks})
    else:
        for page in pages(found, lang, lang_group(group, lang)):
            print_table(page.title, page.columns, page.rows)
            click.echo()
        if found.base.near_misses[-1].runs or found.base.capped[-1].runs:
            click.echo(
                printable(
                    lang.say("`fsm-agent explain FILE --run ID` tells all of a run; --json and --csv name every run that the tables count.")
                )
            )
        for note in said:
            click.echo(printable(note))


def lang_group(group: str, lang: Language) -> str:
    """What runs are grouped by, as a column's title."""
    return {"source": lang.say("source"), "model": lang.say("model"), "file": lang.say("file")}[group]


def _draw(found: Audit, path: Path) -> None:
    from fsm_agent.audit.chart import chart

    path.write_bytes(chart(found, path.suffix.lower().removeprefix(".")))


def _export(found: Audit, folder: Path, lang: Language) -> None:
    from fsm_agent.audit.export import write_csv
    from fsm_agent.audit.notes import notes

    write_csv(found, folder, list(notes(found, lang)))

"""``fsm-agent import``: recorded runs of other systems into a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from fsm_agent.cli.common import WRONG_USE, faults, json_option, print_json, print_table, with_progress
from fsm_agent.text import printable, well_formed

if TYPE_CHECKING:
    from fsm_agent.guards import Guard
    from fsm_agent.machine import Run
    from fsm_agent.traces.ledger import Judged, Tally
    from fsm_agent.traces.recordings import Damaged, Recording

COUNTS = ("new", "already_there", "updated", "changed")
"""Of a tally, what is added up over files."""


@attrs.define
class FileReport:
    """What came of one file."""

    file: str
    tally: Tally
    format: str = ""
    error: str | None = None
    """Why it could not be read, or not to its end."""

    @property
    def runs(self) -> int:
        return self.tally.new + self.tally.already_there


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--ledger", "book", required=True, type=click.Path(path_type=Path), help="The ledger, an SQLite file; made where it is not there."
)
@click.option("--format", "form", help="The format of the files. [default: detected, file by file]")
@click.option("--error-pattern", metavar="REGEX", help="A tool result in which this is found is an error. [default: the format's own rule]")
@json_option
@click.pass_context
def import_(
    context: click.Context, files: tuple[Path, ...], book: Path, form: str | None, error_pattern: str | None, *, as_json: bool
) -> None:
    """Bring the recorded runs in FILES into a ledger, which can then be audited.

    A run that is in the ledger already is not stored again, whatever file it comes from; so an import that was stopped is simply run
    again. Damaged runs are named, counted and left out, and a file that cannot be read does not keep the others from being imported.

    Exit code: 0, or 2 where a file or the ledger cannot be used.
    """
    with faults():
        reports, held = import_files(files, book, form, error_pattern)
    if as_json:
        print_json(_as_json(book, reports, held))
    else:
        _print(book, reports, held)
    for report in reports:
        for damaged in report.tally.damaged:
            click.echo(printable(f"damaged: {report.file}, {damaged.place}: {damaged.problem}"), err=True)
    errors = [report.error for report in reports if report.error is not None]
    for error in dict.fromkeys(errors):  # what is wrong with an option is said once
        click.echo(f"Error: {printable(error)}", err=True)
    context.exit(WRONG_USE if errors else 0)


def import_files(
    files: Sequence[Path], book: Path, form: str | None = None, error_pattern: str | None = None
) -> tuple[list[FileReport], int]:
    """A report for each file, and how many runs the ledger holds now. A ledger is not made before there is a run for it.

    Raises ``LedgerError``; what was imported until then is in the ledger.
    """
    from fsm_agent.traces.ledger import Importer, Ledger, Tally
    from fsm_agent.traces.recordings import Damaged

    reports: list[FileReport] = []
    ledger: Ledger | None = None
    with ExitStack() as opened:
        if book.exists():
            ledger = opened.enter_context(Ledger.create_or_open(book))
        for file in files:
            report = FileReport(well_formed(str(file)), Tally(), form or "")
            reports.append(report)
            importer: Importer | None = None
            for found in _found(file, report, form, error_pattern):
                if isinstance(found, Damaged):
                    report.tally.damaged.append(found)
                    continue
                if importer is None:
                    ledger = ledger or opened.enter_context(Ledger.create_or_open(book))
                    importer = Importer(ledger, shadow_readings)
                report.format = found.source
                importer.take(found, report.file, report.tally)
            if importer is not None:
                importer.flush(report.tally)
        return reports, 0 if ledger is None else len(ledger)


def _found(file: Path, report: FileReport, form: str | None, error_pattern: str | None) -> Iterator[Recording | Damaged]:
    """What the file holds. Why it could not be read goes into the report."""
    from fsm_agent.traces.recordings import RecordingError, read

    try:
        yield from with_progress(read(file, form, error_pattern), f"Importing {printable(file.name)}")
    except RecordingError as error:
        report.error = str(error)
    except Exception as error:  # noqa: BLE001  # a reader may be another package's and raise anything, and the other files are still to be read
        report.error = f"{file}: its reader failed: {type(error).__name__}: {error}"


def shadow_readings(run: Run) -> Iterator[Judged]:
    """The readings of ``shadow_guards`` over a run that none of them halted."""
    from fsm_agent.audit.shadow import readings, timeline_of
    from fsm_agent.traces.ledger import Judged

    timeline = timeline_of(run)
    for guard in shadow_guards():
        for step, reading, _ in readings(guard, timeline):
            yield Judged(guard, step, reading)


@cache
def shadow_guards() -> tuple[Guard, ...]:
    """The presets' guards at their default limits. The cap is left out: its value is the step."""
    from fsm_agent.guards import MaxSteps, classic, production

    return tuple(guard for guard in (*production(max_steps=1), *classic()) if not isinstance(guard, MaxSteps))


def _totals(reports: Sequence[FileReport]) -> dict[str, int]:
    totals = {name: sum(getattr(report.tally, name) for report in reports) for name in COUNTS}
    damaged, unreadable = sum(len(report.tally.damaged) for report in reports), sum(report.error is not None for report in reports)
    return {"runs": sum(report.runs for report in reports), **totals, "damaged": damaged, "unreadable_files": unreadable}


def _as_json(book: Path, reports: Sequence[FileReport], held: int) -> dict[str, Any]:
    files = [
        {
            "file": report.file,
            "format": report.format or None,
            "runs": report.runs,
            **{name: getattr(report.tally, name) for name in COUNTS},
            "damaged": [{"place": damaged.place, "problem": damaged.problem} for damaged in report.tally.damaged],
            "error": report.error,
        }
        for report in reports
    ]
    return {"ledger": well_formed(str(book)), "runs_in_ledger": held, **_totals(reports), "files": files}


def _print(book: Path, reports: Sequence[FileReport], held: int) -> None:
    rows = [
        _row(
            report.file,
            report.format,
            {"runs": report.runs, "damaged": len(report.tally.damaged), **attrs.asdict(report.tally, filter=_count)},
        )
        for report in reports
    ]
    totals = _totals(reports)
    if len(reports) > 1:
        rows.append(_row("all files", "", totals))
    print_table("", ["file", "format", "runs", "new", "already there", "damaged"], rows)
    click.echo(printable(f"{book} holds {held} runs"))
    if totals["updated"]:
        click.echo(f"{totals['updated']} of the runs already there had another outcome, score or ending; it is the new one now")
    if totals["changed"]:
        why = "they were read by another rule for errors, or the file was changed"
        click.echo(f"{totals['changed']} of the new runs are there with other content too (same file, same id: {why}); both are kept")


def _count(field: attrs.Attribute[Any], _: object) -> bool:
    return field.name in COUNTS


def _row(file: str, form: str, counts: dict[str, Any]) -> tuple[object, ...]:
    return file, form, *(counts[name] for name in ("runs", "new", "already_there", "damaged"))

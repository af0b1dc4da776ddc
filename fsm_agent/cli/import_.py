"""``fsm-agent import``: recorded runs of other systems into a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from fsm_agent.cli.common import WRONG_USE, faults, json_option, lang_option, print_json, print_table, with_progress
from fsm_agent.language import Language
from fsm_agent.text import printable, well_formed

if TYPE_CHECKING:
    from fsm_agent.guards import Guard
    from fsm_agent.machine import Run
    from fsm_agent.traces.ledger import Judged, Tally
    from fsm_agent.traces.recordings import Damaged, Recording


@attrs.define
class FileReport:
    """What came of one file."""

    file: str
    tally: Tally
    format: str = ""
    error: str | None = None
    """Why it could not be read, or not to its end."""
    remarks: tuple[str, ...] = ()
    """What it says of itself and does not bear out."""

    @property
    def counts(self) -> dict[str, int]:
        """What is added up over files."""
        tally = self.tally
        return {
            "runs": tally.new + tally.already_there,
            "new": tally.new,
            "already_there": tally.already_there,
            "updated": tally.updated,
            "changed": tally.changed,
            "damaged": len(tally.damaged),
            "unreadable_files": int(self.error is not None),
        }


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(readable=False, path_type=Path))
@click.option(
    "--ledger",
    "book",
    required=True,
    type=click.Path(readable=False, path_type=Path),
    help="The ledger, an SQLite file; made where it is not there.",
)
@click.option("--format", "form", help="The format of the files. [default: detected, file by file]")
@click.option("--error-pattern", metavar="REGEX", help="A tool result in which this is found is an error. [default: the format's own rule]")
@lang_option
@json_option
@click.pass_context
def import_(
    context: click.Context,
    files: tuple[Path, ...],
    book: Path,
    form: str | None,
    error_pattern: str | None,
    lang: Language,
    *,
    as_json: bool,
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
        _print(book, reports, held, lang)
    for report in reports:
        for damaged in report.tally.damaged:
            click.echo(printable(f"damaged: {report.file}, {damaged.place}: {damaged.problem}"), err=True)
        for remark in report.remarks:
            click.echo(printable(f"note: {report.file}: {remark}"), err=True)
    errors = [report.error for report in reports if report.error is not None]
    for error in dict.fromkeys(errors):  # what is wrong with an option is said once
        click.echo(f"Error: {printable(error)}", err=True)
    context.exit(WRONG_USE if errors else 0)


def import_files(
    files: Sequence[Path], book: Path, form: str | None = None, error_pattern: str | None = None
) -> tuple[list[FileReport], int | None]:
    """A report for each file, and how many runs the ledger holds now. A ledger is neither made nor touched before there is a run for it.

    Raises ``LedgerError``; what was imported until then is in the ledger.
    """
    from fsm_agent.traces.ledger import Importer, Ledger, Tally
    from fsm_agent.traces.ledger.errors import EmptyLedgerError
    from fsm_agent.traces.recordings import Damaged

    reports: list[FileReport] = []
    ledger: Ledger | None = None
    held: int | None = None
    if book.is_dir() or (book.exists() and book.stat().st_size):
        with suppress(EmptyLedgerError), Ledger.open(book) as there:  # what is no ledger is refused before anything is read
            held = len(there)
    with ExitStack() as opened:
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
            if report.error is None and not report.counts["runs"]:
                report.error = f"{file}: no run in it can be read" if report.tally.damaged else f"{file} holds no runs"
        return reports, held if ledger is None else len(ledger)


def _found(file: Path, report: FileReport, form: str | None, error_pattern: str | None) -> Iterator[Recording | Damaged]:
    """What the file holds. Why it could not be read goes into the report."""
    from fsm_agent.traces.recordings import RecordingError, read, remarks

    try:
        yield from with_progress(read(file, form, error_pattern), f"Importing {printable(file.name)}")
        report.remarks = remarks(file, form)
    except RecordingError as error:
        report.error = str(error)


def shadow_readings(run: Run) -> Iterator[Judged]:
    """The readings of ``shadow_guards`` over a run that none of them halted."""
    from fsm_agent.audit.shadow import readings, timeline_of
    from fsm_agent.traces.ledger import Judged

    timeline = timeline_of(run)
    for guard in shadow_guards():
        for step, reading, final in readings(guard, timeline):
            yield Judged(guard, step, reading, final)


@cache
def shadow_guards() -> tuple[Guard, ...]:
    """The presets' guards at their default limits. The cap is left out: its value is the step."""
    from fsm_agent.guards import MaxSteps, classic, production

    return tuple(guard for guard in (*production(max_steps=1), *classic()) if not isinstance(guard, MaxSteps))


def _totals(reports: Sequence[FileReport]) -> dict[str, int]:
    return {name: sum(report.counts[name] for report in reports) for name in reports[0].counts}


def _as_json(book: Path, reports: Sequence[FileReport], held: int | None) -> dict[str, Any]:
    files = []
    for report in reports:
        damaged = [{"place": each.place, "problem": each.problem} for each in report.tally.damaged]
        counts = {name: number for name, number in report.counts.items() if name != "unreadable_files"}
        files.append(
            {
                "file": report.file,
                "format": report.format or None,
                **counts,
                "damaged": damaged,
                "error": report.error,
                "remarks": report.remarks,
            }
        )
    return {"ledger": well_formed(str(book)), "runs_in_ledger": held, **_totals(reports), "files": files}


def _print(book: Path, reports: Sequence[FileReport], held: int | None, lang: Language) -> None:
    say, totals = lang.say, _totals(reports)
    lines = [(report.file, report.format, report.counts) for report in reports]
    if len(reports) > 1:
        lines.append((say("all files"), "", totals))
    columns = {"runs": say("runs"), "new": say("new"), "already_there": say("already there"), "damaged": say("damaged")}
    rows = [(file, form, *(counts[column] for column in columns)) for file, form, counts in lines]
    print_table("", [say("file"), say("format"), *columns.values()], rows)
    if held is None:
        click.echo(printable(say("{ledger} was not made: there is no run for it", ledger=book)))
    else:
        click.echo(printable(lang.count("{ledger} holds {n} run", "{ledger} holds {n} runs", held, ledger=book)))
    if updated := totals["updated"]:
        click.echo(say("runs that were there and have another outcome, score or ending now: {n}", n=updated))
    if changed := totals["changed"]:
        click.echo(
            say("new runs that are there with other content too (read by another rule for errors, or the file was changed): {n}", n=changed)
        )

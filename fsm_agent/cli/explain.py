"""``fsm-agent explain``: why one run ended, and what would have changed it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from fsm_agent.cli.common import PRESETS, Fault, faults, json_option, lang_option, print_json, print_table
from fsm_agent.language import Language
from fsm_agent.text import printable

if TYPE_CHECKING:
    from fsm_agent.audit.case import Case
    from fsm_agent.guards import Guard


PIPED_COLUMNS = 100
"""Columns of a line that goes into a pipe or a file."""
CELL_COLUMNS = 60
"""Columns of a table's cell there."""


@click.command()
@click.argument("source")
@click.option("--run", "wanted", metavar="ID", help="The run, where SOURCE holds several: its id, or source:id.")
@click.option(
    "--guards",
    "preset",
    type=click.Choice(PRESETS),
    help="The guards. [default: the run's own; of a recording, production]",
)
@click.option("--limits", default="", metavar="LIMITS", help="Other limits for them, as in max_errors=3,max_steps=30.")
@click.option("--format", "form", help="The format of a recording. [default: detected]")
@click.option(
    "--error-pattern",
    metavar="REGEX",
    help="In a recording, a tool result in which this is found is an error. [default: the format's own rule]",
)
@lang_option
@json_option
def explain(
    source: str,
    wanted: str | None,
    preset: str | None,
    limits: str,
    form: str | None,
    error_pattern: str | None,
    lang: Language,
    *,
    as_json: bool,
) -> None:
    """Print the halt certificate of a run: the reason, its evidence, every counter, and which limits would have changed the end.

    SOURCE is a trace file, a scenario (its name or TOML file), a ledger, or a file of recordings; of the last two, --run names the run.
    Recorded runs of other systems are judged by --guards, without a cap on steps unless --limits gives max_steps.
    """
    from fsm_agent.audit.certificate import certify, plain
    from fsm_agent.audit.certificate_pages import foot, head, pages

    with faults():
        certificate = certify(case_from(source, wanted, preset, limits, form, error_pattern, lang), lang)
    if as_json:
        print_json(plain(certificate))
        return
    for line in head(certificate, lang):
        _say(line)
    for page in pages(certificate, lang):
        click.echo()
        print_table(page.title, page.columns, [[_wrapped(cell, CELL_COLUMNS) for cell in row] for row in page.rows])
    if said := list(foot(certificate, lang)):
        click.echo()
        for line in said:
            _say(line)


def _say(line: str) -> None:
    click.echo(_wrapped(printable(line), PIPED_COLUMNS))


def _wrapped(text: str, columns: int) -> str:
    """In a pipe, text is wrapped; a terminal does so by itself."""
    piped = sys.stdout is None or not sys.stdout.isatty()
    return "\n".join(wrap(text, columns, break_on_hyphens=False)) if piped else text


def case_from(
    source: str,
    wanted: str | None,
    preset: str | None,
    limits: str,
    form: str | None = None,
    error_pattern: str | None = None,
    lang: Language | None = None,
) -> Case:
    """The run that the command line names, under the guards that it asks for. Raises ``ValueError`` or ``OSError`` in one line."""
    from fsm_agent.audit.case import case_of_recording, case_of_trace
    from fsm_agent.audit.sources import is_ledger
    from fsm_agent.cli.sources import is_scenario, play, run_of_file, run_of_ledger, scenario_from, title_of
    from fsm_agent.cli.traced import replayed
    from fsm_agent.language import ENGLISH
    from fsm_agent.traces import Trace, load
    from fsm_agent.traces.record import header_of
    from fsm_agent.traces.recordings import detect

    lang = lang or ENGLISH
    path = Path(source)
    if is_scenario(source):
        _alone(wanted, source)
        scenario = scenario_from(source)
        run = play(scenario, lang)
        return case_of_trace(Trace(header_of(run, title_of(scenario)), run.log), title_of(scenario), _asked(preset, limits))
    if is_ledger(path, form):
        recording = run_of_ledger(path, wanted)
        return case_of_recording(recording, _guards(preset, limits), f"{path.name} {recording.id}", lang)
    if (form or detect(path)) == "trace" and error_pattern is None:
        _alone(wanted, source)
        trace, guards = load(path), _asked(preset, limits)
        replayed(path, trace, guards)  # tells the file and the line of what no run can have had
        return case_of_trace(trace, trace.header.title or path.stem, guards)
    recording = run_of_file(path, wanted, form, error_pattern)
    return case_of_recording(recording, _guards(preset, limits), f"{path.name} {recording.id}", lang)


def _alone(wanted: str | None, source: str) -> None:
    if wanted is not None:
        raise Fault(f"{source} is one run; leave --run out")


def _asked(preset: str | None, limits: str) -> Sequence[Guard] | None:
    """The guards that are to replace a run's own; None: none are."""
    if preset is None and limits:
        raise Fault("this run has guards of its own; give --guards too, to have others with these limits")
    return None if preset is None else _guards(preset, limits)


def _guards(preset: str | None, limits: str) -> Sequence[Guard]:
    from fsm_agent.audit.plan import plan_of
    from fsm_agent.guards import parse_limits

    return plan_of(preset or "production", parse_limits(limits)).guards

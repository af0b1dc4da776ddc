"""``fsm-agent run``: play a scenario and watch the loop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fsm_agent.cli.common import DIFFERS, DONE, HALTED, Fault, colour, faults, json_option, keep_apart, lang_option, print_json
from fsm_agent.formats import ENDINGS
from fsm_agent.language import Language

if TYPE_CHECKING:
    from fsm_agent.machine import Run
    from fsm_agent.scenarios import Scenario
    from fsm_agent.transcript import Transcript


@click.command()
@click.argument("scenario")
@lang_option
@click.option("--trace", type=click.Path(dir_okay=False, path_type=Path), help="Write the record of the run to this file, while it goes.")
@click.option(
    "--draw",
    "picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"Draw the path that the run took ({', '.join(ENDINGS)}).",
)
@json_option
@click.pass_context
def run(context: click.Context, scenario: str, lang: Language, trace: Path | None, picture: Path | None, *, as_json: bool) -> None:
    """Play SCENARIO, a name from `fsm-agent scenarios` or the path of a TOML file.

    Exit code: 0 final answer, 3 halted for another reason, 1 it did not end as the scenario expects, 130 cancelled.
    """
    from fsm_agent.cli.draw import draw_run, format_of
    from fsm_agent.cli.sources import is_path, new_run, scenario_from, title_of
    from fsm_agent.drivers.interrupts import Interrupts
    from fsm_agent.drivers.session import Session
    from fsm_agent.drivers.setup import Setup
    from fsm_agent.drivers.sync import drive
    from fsm_agent.drivers.watching import watchers_of
    from fsm_agent.traces.record import Trace, header_of
    from fsm_agent.transcript import Transcript

    with faults():
        played = scenario_from(scenario)
        machine = new_run(played, lang)
        if picture is not None:
            format_of(picture, None)
            if not picture.parent.is_dir():
                raise Fault(f"{picture}: there is no folder {picture.parent}")
    keep_apart([scenario] if is_path(scenario) else [], {"--trace": trace, "--draw": picture})
    transcript = Transcript(lang)
    told = watchers_of(() if as_json else (lambda run, _edge: _tell(transcript, run),))
    session = Session(machine, played.model, played.named_tools, told)
    setup = Setup(session, Trace(header_of(machine, title_of(played)), machine.log))

    def draw() -> None:
        if picture is not None:
            with faults():
                draw_run(machine, title_of(played), picture, None)

    try:
        with faults(), setup.recording(trace), Interrupts() as interrupts:
            try:
                drive(session, interrupts)
            finally:
                if machine.reason is not None:
                    _tell_end(transcript, machine, lang, as_json=as_json)
    except KeyboardInterrupt:
        draw()
        raise
    draw()
    differences = _differences(played, machine)
    for difference in differences:
        click.echo(f"not as expected: {difference}", err=True)
    context.exit(DIFFERS if differences else DONE if machine.reason == "final_answer" else HALTED)


def _tell(transcript: Transcript, machine: Run) -> None:
    for line in transcript.lines(machine):
        prefix, bracket, rest = line.partition("] ")
        shown = click.style(prefix + bracket, dim=True) + rest if colour() and line.startswith("[step ") else line
        click.echo(shown)


def _tell_end(transcript: Transcript, machine: Run, lang: Language, *, as_json: bool) -> None:
    if as_json:
        print_json(summary(machine, lang))
        return
    for line in transcript.end(machine):
        click.echo(click.style(line, bold=True) if colour() else line)


def summary(machine: Run, lang: Language) -> dict[str, object]:
    """The run as the object that ``--json`` prints."""
    from fsm_agent.machine import Taken
    from fsm_agent.outcome import answer_of, message_of

    return {
        "reason": machine.reason,
        "answer": answer_of(machine),
        "message": message_of(machine, lang),
        "steps": machine.step,
        "model_calls": machine.step,
        "path": [entry.edge for entry in machine.log if isinstance(entry, Taken)],
    }


def _differences(played: Scenario, machine: Run) -> list[str]:
    from fsm_agent.outcome import answer_of

    expect = played.expect
    pairs = (
        ("reason", expect.reason, machine.reason),
        ("model_calls", expect.model_calls, machine.step),
        ("answer", expect.answer, answer_of(machine)),
    )
    return [f"{field}: expected {wanted!r}, got {got!r}" for field, wanted, got in pairs if wanted is not None and wanted != got]

"""``fsm-agent draw``: the machine, or the path that a run took through it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fsm_agent.cli.common import Fault, faults, lang_option
from fsm_agent.language import Language

if TYPE_CHECKING:
    from fsm_agent.diagrams import View
    from fsm_agent.machine import Run

FORMATS = {
    ".svg": "svg",
    ".png": "png",
    ".pdf": "pdf",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".txt": "text",
}
NAMES = sorted(set(FORMATS.values()))
TEXTUAL = {"dot", "mermaid", "text"}


@click.command()
@click.argument("source", default="machine")
@click.option(
    "--view", type=click.Choice(["path", "machine"]), help="What to draw of SOURCE. [default: its path; of `machine`, the whole table]"
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; its ending names the format. [default: stdout]",
)
@click.option("--format", "form", type=click.Choice(NAMES), help="The format. [default: by the file's ending; text on stdout]")
@lang_option
def draw(source: str, view: str | None, output: Path | None, form: str | None, lang: Language) -> None:
    """Draw the path that a run took, or the machine.

    SOURCE is `machine` (the whole transition table), a scenario (its name or TOML file) or a trace file. With --view machine, the
    machine with the guards of that run. The format `text` is a timeline for terminals and screen readers.
    """
    from fsm_agent.cli.sources import run_from
    from fsm_agent.diagrams import machine_view, path_view

    with faults():
        form = format_of(output, form)
        if source == "machine":
            if view == "path":
                raise Fault("the machine has no path; name a scenario or a trace")
            picture = machine_view()
        else:
            run, title = run_from(source, lang=lang)
            picture = machine_view(run.wiring.guards) if view == "machine" else path_view(run, title)
        write(picture, output, form)


def draw_run(run: Run, title: str, output: Path, form: str | None) -> None:
    """Draw the path of ``run`` into a file. Raises ``Fault`` for an unknown ending, ``OSError`` where it cannot be written."""
    from fsm_agent.diagrams import path_view

    write(path_view(run, title), output, format_of(output, form))


def write(picture: View, output: Path | None, form: str) -> None:
    """Render a view to a file or to stdout."""
    from fsm_agent.diagrams import render

    rendered = render(picture, form)
    if output is not None:
        output.write_bytes(rendered)
    elif form in TEXTUAL:
        click.echo(rendered.decode().rstrip("\n"))
    else:
        sys.stdout.buffer.write(rendered)


def format_of(output: Path | None, form: str | None) -> str:
    """The format that is asked for. Raises ``Fault`` for an unknown ending."""
    if form is not None:
        return form
    if output is None:
        return "text"
    if output.suffix.lower() not in FORMATS:
        raise Fault(f"{output}: the ending names no format; known are {', '.join(FORMATS)}, or give --format")
    return FORMATS[output.suffix.lower()]

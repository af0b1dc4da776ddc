"""``fsm-agent draw``: the machine, the path of a run, the heat map of many, or two of either side by side."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from fsm_agent.cli.common import PRESETS, Fault, faults, keep_apart, lang_option
from fsm_agent.formats import CHARTS, ENDINGS
from fsm_agent.language import Language

if TYPE_CHECKING:
    from fsm_agent.cli.draw_runs import Chosen
    from fsm_agent.diagrams import View
    from fsm_agent.machine import Run

NAMES = sorted({*ENDINGS.values(), *CHARTS.values()})
THEMES = ("light", "dark", "print")
THEMED = ("svg", "png", "pdf", "dot")
TEXTUAL = {"dot", "mermaid", "text", "html", *CHARTS.values()}
VIEWS = ("path", "unrolled", "machine", "heat", "diff")


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--view", type=click.Choice(VIEWS), help="What to draw of SOURCE. [default: the path of one run, the heat map of many]")
@click.option("--run", "wanted", metavar="ID", help="The run, where SOURCE holds several: its id, or source:id.")
@click.option("--where", multiple=True, metavar="CONDITION", help="Only these runs, as in outcome=failure,steps>=10; repeatable.")
@click.option("--against", metavar="OTHER", help="What to compare with: a condition, another file, or with --run the id of another run.")
@click.option(
    "--guards",
    "preset",
    type=click.Choice(PRESETS),
    help="The guards. [default: a run's own; of recordings, none]",
)
@click.option("--limits", default="", metavar="LIMITS", help="Other limits for them, as in max_errors=3,max_steps=30.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; its ending names the format. [default: stdout]",
)
@click.option("--format", "form", type=click.Choice(NAMES), help="The format. [default: by the file's ending; text on stdout]")
@click.option("--theme", type=click.Choice(THEMES), help="The colours of a picture (svg, png, pdf, dot). [default: light]")
@click.option("--legend", is_flag=True, help="Say in the picture what its boxes and arrows mean.")
@click.option("--live", is_flag=True, help="Draw again each time that the run of a trace file has gone on, until it halts.")
@click.option("--recording-format", metavar="FORMAT", help="The format of a recording. [default: detected]")
@click.option(
    "--error-pattern",
    metavar="REGEX",
    help="In a recording, a tool result in which this is found is an error. [default: the format's own rule]",
)
@lang_option
def draw(
    sources: tuple[str, ...],
    view: Literal["path", "unrolled", "machine", "heat", "diff"] | None,
    output: Path | None,
    form: str | None,
    theme: str | None,
    lang: Language,
    *,
    legend: bool,
    live: bool,
    **chosen: Any,
) -> None:
    """Draw the machine, the path of a run, the heat map of many runs, or what tells two runs or two groups of runs apart.

    SOURCE is `machine` (the whole transition table, the default), a scenario (its name or TOML file), a trace file, a ledger, or a file of
    recordings. With --view machine, the machine with the guards of that run. The format `text` is for terminals and screen readers;
    `html` is a page in which a run is stepped through edge by edge; `scxml` and `xstate` (.json) are the machine as a state chart for
    other programs.

    \b
    fsm-agent draw runs.db --run 9/2 -o path.svg
    fsm-agent draw runs.db --run 9/2 --view unrolled -o steps.svg
    fsm-agent draw runs.db --where outcome=failure -o heat.svg
    fsm-agent draw runs.db --where outcome=success --against outcome=failure -o diff.svg
    fsm-agent draw runs.db --run 9/1 --against 9/2
    fsm-agent draw run.jsonl --live -o path.svg
    """  # noqa: D301  # click keeps the lines of a paragraph after a backspace
    from fsm_agent.cli.draw_live import draw_live
    from fsm_agent.cli.draw_runs import Chosen
    from fsm_agent.cli.sources import is_path
    from fsm_agent.diagrams import with_legend

    with faults():
        form = format_of(output, form, {**ENDINGS, **CHARTS})
        if form in CHARTS.values():
            if view not in {None, "machine"}:
                raise Fault(f"a state chart ({', '.join(CHARTS.values())}) is of the machine; leave --view out, or give --view machine")
            view = "machine"
        _check_looks(form, theme, legend=legend)
        asked = Chosen(sources or ("machine",), lang=lang, **chosen)
        keep_apart([source for source in (*sources, asked.against) if source and is_path(source)], {"--output": output})
        if live:
            draw_live(asked, view, output, lambda run, title: _drawn(run, title, view, form, theme, lang, legend=legend))
        elif form == "html":
            _put(_player(asked, view), output, form)
        else:
            picture = _picture(asked, view)
            write(with_legend(picture, lang) if legend else picture, output, form, theme or "light")


def _picture(chosen: Chosen, view: Literal["path", "unrolled", "machine", "heat", "diff"] | None) -> View:
    """The drawing that is asked for. Raises ``Fault``, ``ValueError`` or ``OSError`` in one line."""
    from fsm_agent.cli import draw_runs
    from fsm_agent.diagrams import machine_view, path_view, unrolled_view

    if chosen.sources == ("machine",):
        if view in {None, "machine"}:
            return machine_view(chosen.own_guards, chosen.lang)
        raise Fault(
            "the machine has no path; name a scenario or a trace"
            if view in {"path", "unrolled"}
            else "the machine has no runs; name a ledger, or files of recordings"
        )
    match view or draw_runs.usual_view(chosen):
        case "path":
            return path_view(*chosen.run(), chosen.lang)
        case "unrolled":
            return unrolled_view(*chosen.run(), chosen.lang)
        case "machine":
            run = chosen.run()[0] if chosen.is_one_run else None
            return machine_view(run.wiring.guards if run else chosen.guards, chosen.lang, run.options.features if run else ())
        case "heat":
            return draw_runs.heat(chosen)
        case "diff":
            return draw_runs.diff(chosen)


def _player(chosen: Chosen, view: Literal["path", "unrolled", "machine", "heat", "diff"] | None) -> bytes:
    """The page in which the run that is chosen is stepped through. Raises as ``_picture`` does."""
    from fsm_agent.cli.draw_runs import usual_view
    from fsm_agent.player import player_page

    if chosen.sources == ("machine",) or (view or usual_view(chosen)) != "path":
        raise Fault("a page (html) steps through one run: name a scenario, a trace, or with --run one run of several")
    return player_page(*chosen.run(), chosen.lang).encode()


def _drawn(run: Run, title: str, view: str | None, form: str, theme: str | None, lang: Language, *, legend: bool) -> bytes:
    """The picture of a run that is followed."""
    from fsm_agent.diagrams import path_view, render, unrolled_view, with_legend

    if form == "html":
        from fsm_agent.player import player_page

        return player_page(run, title, lang).encode()
    picture = unrolled_view(run, title, lang) if view == "unrolled" else path_view(run, title, lang)
    return render(with_legend(picture, lang) if legend else picture, form, theme or "light")


def draw_run(run: Run, title: str, output: Path, form: str | None, lang: Language | None = None) -> None:
    """Draw the path of ``run`` into a file; ``lang`` is by default the language in which its model was spoken to.

    Raises ``Fault`` for an unknown ending, ``OSError`` where it cannot be written.
    """
    from fsm_agent.diagrams import path_view

    form = format_of(output, form)
    if form == "html":
        from fsm_agent.player import player_page

        _put(player_page(run, title, lang).encode(), output, form)
    else:
        write(path_view(run, title, lang), output, form)


def _check_looks(form: str, theme: str | None, *, legend: bool) -> None:
    """Raises ``Fault`` where a format has no such looks."""
    if theme is not None and form not in THEMED:
        raise Fault(f"--theme is of {', '.join(THEMED)}; {form} has no colours to choose")
    if legend and form not in {*THEMED, "mermaid"}:
        raise Fault(f"--legend is of {', '.join(THEMED)}, mermaid; {form} has no boxes or arrows")


def write(picture: View, output: Path | None, form: str, theme: str = "light") -> None:
    """Render a view to a file or to stdout."""
    from fsm_agent.diagrams import render

    _put(render(picture, form, theme), output, form)


def _put(rendered: bytes, output: Path | None, form: str) -> None:
    """Write what was rendered to a file or to stdout."""
    if output is not None:
        output.write_bytes(rendered)
    elif form in TEXTUAL:
        click.echo(rendered.decode().rstrip("\n"))
    else:
        sys.stdout.buffer.write(rendered)


def format_of(output: Path | None, form: str | None, endings: Mapping[str, str] = ENDINGS) -> str:
    """The format that is asked for. Raises ``Fault`` for an unknown ending."""
    if form is not None:
        return form
    if output is None:
        return "text"
    if output.suffix.lower() not in endings:
        raise Fault(f"{output}: the ending names no format; known are {', '.join(endings)}, or give --format")
    return endings[output.suffix.lower()]

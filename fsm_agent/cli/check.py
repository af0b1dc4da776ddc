"""``fsm-agent check``: the proof that every run halts, or the shortest run that does not."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fsm_agent.cli.common import (
    DIFFERS,
    DONE,
    PRESETS,
    Fault,
    colour,
    faults,
    json_option,
    keep_apart,
    lang_option,
    print_json,
    print_table,
)
from fsm_agent.language import Language

if TYPE_CHECKING:
    from fsm_agent.machine import Run
    from fsm_agent.proof.claims import Proof
    from fsm_agent.proof.configuration import Configuration
    from fsm_agent.proof.report import Report


@click.command()
@click.argument("source", required=False)
@click.option("--preset", type=click.Choice(PRESETS), help="The guards to begin with. [default: classic]")
@click.option(
    "--limits", default="", metavar="LIMITS", help="Other limits, and the guards that they are of, as in max_steps=6,max_errors=2."
)
@click.option("--guard", "paths", multiple=True, metavar="MODULE:NAME", help="A guard of your own, by import path; repeatable.")
@click.option(
    "--with",
    "on",
    metavar="FEATURES",
    help="What else is on, such as retries=5,approvals: of retries, approvals, compaction, last_chance, tool_servers; all; none. "
    "[default: all but last_chance]",
)
@click.option("--batch", type=click.IntRange(min=1, max=4), default=2, show_default=True, help="Tool calls that one reply may hold.")
@click.option(
    "--max-states", type=click.IntRange(min=1), default=10_000, show_default=True, help="Give up a search that comes to more states."
)
@click.option("--witness", metavar="REASON", help="Show the shortest run that ends with this reason, or by this edge, edge by edge.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the run that refutes, or that --witness names, into this file.",
)
@lang_option
@json_option
@click.pass_context
def check(
    context: click.Context,
    source: str | None,
    preset: str | None,
    limits: str,
    paths: tuple[str, ...],
    on: str | None,
    batch: int,
    max_states: int,
    witness: str | None,
    output: Path | None,
    lang: Language,
    *,
    as_json: bool,
) -> None:
    """Prove that every run halts, for every reply, observation and person, by exhaustive search over the machine itself.

    What is checked is a preset with limits, or SOURCE: a scenario, or a TOML file with `preset`, a table `limits` and lists `guards` and
    `with`.
    Of what halts is told: within how many model calls and tool calls, for which reasons, and the shortest run to each; and which
    guards can never trip, or are always shadowed by another. Of what does not halt, the shortest run that goes on for ever.

    Exit code: 0 proved, 1 refuted or not proved within --max-states, 2 wrong use.
    """
    from fsm_agent.cli.draw import draw_run, format_of
    from fsm_agent.cli.sources import is_path
    from fsm_agent.diagrams import path_view
    from fsm_agent.proof.claims import prove
    from fsm_agent.proof.report import Report

    with faults():
        if output is not None:
            format_of(output, None)
            keep_apart([source] if source is not None and is_path(source) else [], {"--output": output})
        configuration = _configuration(source, preset, limits, paths, None if on is None else on.split(","))
        with _waiting():
            proof = prove(configuration.guards, configuration.options, max_states=max_states, batch=batch)
    report = Report(configuration, proof, lang)
    run = _named(proof, witness)
    if output is not None and run is None:
        raise Fault("-o: there is no counterexample to draw; name a run with --witness REASON")
    if as_json:
        print_json(report.as_values())
    elif witness is not None and run is not None:
        click.echo(path_view(run, configuration.name, lang).text.rstrip("\n"))
    else:
        _print(report)
    if output is not None and run is not None:
        with faults():
            draw_run(run, configuration.name, output, None, lang)
    context.exit(DONE if proof.verdict == "proved" else DIFFERS)


def _waiting() -> AbstractContextManager[object]:
    """A sign of life on a terminal's stderr: a search may take a minute."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("searching")


def _configuration(source: str | None, preset: str | None, limits: str, paths: tuple[str, ...], on: list[str] | None) -> Configuration:
    from fsm_agent.proof.configuration import Configuration, from_file, from_options, imported
    from fsm_agent.proof.options import SEARCHED, options_from
    from fsm_agent.scenarios import names

    if source is None:
        return from_options(preset or "classic", limits, paths, on)
    if preset is not None or limits:
        raise Fault(f"{source} brings its own limits; leave --preset and --limits away")
    if source in names():
        from fsm_agent.scenarios import built_in

        options = SEARCHED if on is None else options_from(on)
        return Configuration(source, (*built_in(source).guards, *imported(paths)), options=options)
    return from_file(source, paths, on)


def _named(proof: Proof, witness: str | None) -> Run | None:
    """The run that is to be shown or drawn: the witness, or else what refutes."""
    if witness is None:
        return proof.counterexample.run if proof.counterexample is not None else None
    ending = next((ending for ending in (*proof.endings, *proof.further) if ending.reason == witness), None)
    if ending is None:
        known = ", ".join(ending.reason for ending in proof.endings) or "none, since the check ended before"
        raise Fault(f"--witness: {witness!r} is no halt reason of this machine; there are {known}")
    if ending.run is None:
        raise Fault(f"--witness: no run that ends with {witness} was found")
    return ending.run


def _print(report: Report) -> None:
    verdict = report.verdict()
    click.echo(report.heading())
    click.echo(click.style(verdict, bold=True) if colour() else verdict)
    for line in (*report.bounds(), *report.counterexample()):
        click.echo(f"  {line}")
    reasons = report.reasons()
    if reasons:
        click.echo()
        say = report.lang.say
        print_table("", [say("halt reason"), say("model calls"), say("shortest run")], reasons)
    warnings = report.warnings()
    if warnings:
        click.echo()
        for warning in warnings:
            click.echo(report.lang.say("warning: {warning}", warning=warning))
    click.echo()
    click.echo(report.footing())

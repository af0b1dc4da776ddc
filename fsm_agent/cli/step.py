"""``fsm-agent step``: go through a run edge by edge, and be its model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fsm_agent.cli.common import Fault, console, faults, lang_option
from fsm_agent.language import Language

if TYPE_CHECKING:
    from fsm_agent.stepper import Script


@click.command()
@click.argument("source")
@click.option(
    "--at", "edge", type=click.IntRange(min=0), default=0, metavar="N", help="Begin after the N-th edge. [default: before the first]"
)
@lang_option
def step(source: str, edge: int, lang: Language) -> None:
    """Step through SOURCE, edge by edge, forwards and backwards.

    SOURCE is a scenario (its name or TOML file) or a trace file. Where the model is asked, press t and type its reply: the run goes on
    from there, with its real tools. Going back and typing again makes a branch.

    In a terminal each key press is a step, and ? lists the keys. Without one, each line of input is a command: an empty line for the
    next edge, `t REPLY` for a reply; ? lists the others.
    """
    from fsm_agent.stepper import Stepper
    from fsm_agent.stepper.lines import play
    from fsm_agent.stepper.terminal import Terminal, can_draw

    with faults():
        stepper = Stepper(script_from(source, lang))
    while stepper.cursor < edge:
        if stepper.next() is not None:
            raise Fault(f"--at is {edge}, and this run has {stepper.cursor} edges")
    screen = console(markup=False, emoji=False)
    if can_draw(screen):
        Terminal(stepper, lang, screen).play()
    else:
        if hasattr(sys.stdin, "reconfigure"):
            sys.stdin.reconfigure(errors="replace")
        play(stepper, sys.stdin or (), lang, click.echo)


def script_from(source: str, lang: Language) -> Script:
    """What is stepped through. Raises ``ValueError`` or ``OSError`` in one line."""
    from fsm_agent.cli.sources import new_run, scenario_from, title_of
    from fsm_agent.cli.traced import replayed
    from fsm_agent.stepper import of_scenario, of_trace
    from fsm_agent.traces import load

    if is_trace(source):
        trace = load(source)
        replayed(source, trace)  # tells the file and the line of what no run can have had
        return of_trace(trace, trace.header.title or source, lang)
    scenario = scenario_from(source)
    return of_scenario(title_of(scenario), new_run(scenario, lang), scenario.model, scenario.named_tools)


def is_trace(source: str) -> bool:
    """Whether it is a trace file's path; otherwise it is a scenario's name or file."""
    from fsm_agent.cli.sources import is_scenario

    return not is_scenario(source)

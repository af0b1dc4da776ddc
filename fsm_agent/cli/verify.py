"""``fsm-agent verify``: does a record hold?"""

from __future__ import annotations

import click

from fsm_agent.cli.common import DIFFERS, DONE, faults
from fsm_agent.text import printable


@click.command()
@click.argument("trace")
@click.pass_context
def verify(context: click.Context, trace: str) -> None:
    """Replay the events in TRACE and compare every edge and reading with what was recorded.

    Exit code: 0 they are the same, 1 with the first line that differs.
    """
    from fsm_agent.cli.traced import new_run_of
    from fsm_agent.traces import load
    from fsm_agent.traces.load import line_of
    from fsm_agent.traces.verify import verify as check

    with faults(trace):
        loaded = load(trace)
        new_run_of(trace, loaded)
        verdict = check(loaded)
    if verdict.line is not None:
        for line in (
            f"{trace}, line {line_of(trace, verdict.line)} differs",
            f"  recorded: {verdict.recorded}",
            f"  replayed: {verdict.replayed}",
        ):
            click.echo(printable(line))
        context.exit(DIFFERS)
    run = verdict.run
    ended = bool(run.reason) and len(loaded.log) == len(run.log)
    end = f"halted: {run.reason}" if ended else "the run did not end"
    missing = len(run.log) - len(loaded.log)
    gone = f", the last {missing} of the edges that its events give are not there" if missing and not loaded.cut_off else ""
    cut = ", the last line is cut off" if loaded.cut_off else ""
    click.echo(f"{printable(trace)}: {len(loaded.events)} events and {len(loaded.edges)} edges hold; {end}{gone}{cut}")
    context.exit(DONE)

"""A run gone through once more, edge by edge: what the stepper calls moments."""

from __future__ import annotations

from fsm_agent.machine import Run, Taken
from fsm_agent.stepper import Branch, Script


def gone_through(run: Run) -> Branch:
    """The events of ``run``, fed to a new run that is set up as it was: each of its edges, with all that belongs to it."""
    events = [entry for entry in run.log if not isinstance(entry, Taken)]
    pristine = Run(
        run.task,
        guards=run.wiring.guards,
        protocol=run.protocol,
        tools=run.tools,
        options=run.options,
        run_id=run.id,
        at=run.at,
    )
    return Branch(Script("", pristine, lambda _step: None, {}), events)

"""The machine that runs the table."""

from fsm_agent.machine.foreign import GuardError
from fsm_agent.machine.run import Run, Taken, UnexpectedEvent
from fsm_agent.machine.wiring import TRIGGERS, Wiring, wire

__all__ = ["TRIGGERS", "GuardError", "Run", "Taken", "UnexpectedEvent", "Wiring", "wire"]

"""The machine that runs the table."""

from fsm_agent.machine.run import Run, Taken, UnexpectedEvent
from fsm_agent.machine.wiring import TRIGGERS, Wiring, wire

__all__ = ["TRIGGERS", "Run", "Taken", "UnexpectedEvent", "Wiring", "wire"]

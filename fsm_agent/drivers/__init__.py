"""Drivers: they perform a run's effects, so that the machine has to know nothing of the world."""

from fsm_agent.drivers.setup import Result
from fsm_agent.drivers.sync import run

__all__ = ["Result", "run"]

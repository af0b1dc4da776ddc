"""Stepping through a run: a cursor over its edges, forwards and backwards, that branches where a person types the model's reply.

``script`` says what a run is made from, ``branch`` plays it, ``stepper`` is the cursor. ``page`` puts a position into words;
``lines`` prints them one after the other, ``screen`` fits them into a terminal, ``terminal`` waits for keys.
"""

from fsm_agent.stepper.branch import Branch, Moment, Stop
from fsm_agent.stepper.script import Script, of_scenario, of_trace
from fsm_agent.stepper.stepper import Stepper

__all__ = ["Branch", "Moment", "Script", "Stepper", "Stop", "of_scenario", "of_trace"]

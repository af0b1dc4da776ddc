"""A run of a real agent as a person watches it: what has just been said, where the machine is, and questions to the person."""

from fsm_agent.live.person import Person
from fsm_agent.live.plain import PlainView
from fsm_agent.live.screen import LiveView
from fsm_agent.live.view import View, can_draw, can_type

__all__ = ["LiveView", "Person", "PlainView", "View", "can_draw", "can_type"]

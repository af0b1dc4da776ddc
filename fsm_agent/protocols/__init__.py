"""The forms in which models answer: each reads a reply into a decision, purely."""

from collections.abc import Callable

from fsm_agent.language import Language
from fsm_agent.protocols.base import Protocol
from fsm_agent.protocols.recorded import RecordedProtocol
from fsm_agent.protocols.line import LineProtocol

__all__ = ["PROTOCOLS", "RecordedProtocol", "LineProtocol", "Protocol"]

PROTOCOLS: dict[str, Callable[[Language], Protocol]] = {"line": LineProtocol, "recorded": RecordedProtocol}
"""The protocols by the name that a record gives them."""

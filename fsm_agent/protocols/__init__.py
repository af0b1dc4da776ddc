"""The forms in which models answer: each reads a reply into a decision, purely."""

from collections.abc import Callable

from fsm_agent.language import Language
from fsm_agent.protocols.base import Protocol
from fsm_agent.protocols.function_calling import FunctionCallingProtocol
from fsm_agent.protocols.json_text import JsonTextProtocol
from fsm_agent.protocols.line import LineProtocol
from fsm_agent.protocols.react import ReactProtocol
from fsm_agent.protocols.recorded import RecordedProtocol

__all__ = ["PROTOCOLS", "FunctionCallingProtocol", "JsonTextProtocol", "LineProtocol", "Protocol", "ReactProtocol", "RecordedProtocol"]

PROTOCOLS: dict[str, Callable[[Language], Protocol]] = {
    "line": LineProtocol,
    "function_calling": FunctionCallingProtocol,
    "json_text": JsonTextProtocol,
    "react": ReactProtocol,
    "recorded": RecordedProtocol,
}
"""The protocols by the name that a record gives them."""

"""An LLM agent loop as an explicit finite state machine that you can draw, audit and prove.

The public names are loaded when they are first used, so that ``import fsm_agent`` and ``fsm-agent --help`` cost next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fsm_agent.context import DropOldObservations, KeepLast, Summarise
    from fsm_agent.drivers import Result, run
    from fsm_agent.drivers.aio import arun
    from fsm_agent.drivers.approvals import ApprovalRequest
    from fsm_agent.drivers.resume import aresume, resume
    from fsm_agent.drivers.watching import Watcher
    from fsm_agent.events import Approval, Message, Reply, ToolCall
    from fsm_agent.guards import Guard, Reading, classic, production
    from fsm_agent.machine import GuardError
    from fsm_agent.models import ScriptedModel
    from fsm_agent.tools import Tool, ToolError, ToolServerDead, ToolServerError, tool
    from fsm_agent.tools.mcp import McpServer, mcp_tools
    from fsm_agent.traces import Trace, load, verify

__all__ = [
    "Approval",
    "ApprovalRequest",
    "DropOldObservations",
    "Guard",
    "GuardError",
    "KeepLast",
    "McpServer",
    "Message",
    "Reading",
    "Reply",
    "Result",
    "ScriptedModel",
    "Summarise",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolServerDead",
    "ToolServerError",
    "Trace",
    "Watcher",
    "aresume",
    "arun",
    "classic",
    "load",
    "mcp_tools",
    "production",
    "resume",
    "run",
    "tool",
    "verify",
]

_HOMES = {
    "context": ("DropOldObservations", "KeepLast", "Summarise"),
    "drivers": ("Result", "run"),
    "drivers.aio": ("arun",),
    "drivers.approvals": ("ApprovalRequest",),
    "drivers.resume": ("aresume", "resume"),
    "drivers.watching": ("Watcher",),
    "events": ("Approval", "Message", "Reply", "ToolCall"),
    "guards": ("Guard", "Reading", "classic", "production"),
    "machine": ("GuardError",),
    "models": ("ScriptedModel",),
    "tools": ("Tool", "ToolError", "ToolServerDead", "ToolServerError", "tool"),
    "tools.mcp": ("McpServer", "mcp_tools"),
    "traces": ("Trace", "load", "verify"),
}
_HOME = {name: f"fsm_agent.{home}" for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fsm_agent' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})

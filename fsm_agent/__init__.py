"""An LLM agent loop as an explicit finite state machine that you can draw, audit and prove."""

from fsm_agent.drivers import Result, run
from fsm_agent.events import Message, Reply
from fsm_agent.guards import Guard, Reading, classic
from fsm_agent.models import ScriptedModel
from fsm_agent.tools import Tool, ToolError, tool
from fsm_agent.traces import Trace, load, verify

__all__ = ["Guard", "Message", "Reading", "Reply", "Result", "ScriptedModel", "Tool", "ToolError", "Trace", "classic", "load", "run", "tool", "verify"]

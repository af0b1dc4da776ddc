"""Tools: functions that a model can call."""

from fsm_agent.tools.base import Tool, observe, tool
from fsm_agent.tools.builtin import BUILT_IN, add, mul, now
from fsm_agent.tools.errors import ToolError, ToolServerDead, ToolServerError

__all__ = ["BUILT_IN", "Tool", "ToolError", "ToolServerDead", "ToolServerError", "add", "mul", "now", "observe", "tool"]

"""Tools: functions that a model can call."""

from fsm_agent.tools.base import Tool, ToolError, observe, tool
from fsm_agent.tools.builtin import BUILT_IN, add, mul, now

__all__ = ["BUILT_IN", "Tool", "ToolError", "add", "mul", "now", "observe", "tool"]

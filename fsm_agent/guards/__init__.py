"""The guards that may halt a run, and their presets."""

from fsm_agent.guards.base import Evidence, Guard, Reading, at_least
from fsm_agent.guards.budgets import CostBudget, TokenBudget, ToolBudget
from fsm_agent.guards.classic import ConsecutiveErrors, MaxSteps, RepeatedCall, classic, limits
from fsm_agent.guards.combined import AllOf, AnyOf, Not
from fsm_agent.guards.deadline import Deadline
from fsm_agent.guards.errors import Denied, ErrorStreak
from fsm_agent.guards.predicate import Predicate, Summary, predicate
from fsm_agent.guards.presets import PRESETS, LimitsError, guards_from, known_limits, parse_limits, production
from fsm_agent.guards.progress import NoProgress
from fsm_agent.guards.registry import BUILT_IN, rebuild
from fsm_agent.guards.replies import EmptyReply, MalformedStreak, TruncatedReply

__all__ = [
    "BUILT_IN",
    "PRESETS",
    "AllOf",
    "AnyOf",
    "ConsecutiveErrors",
    "CostBudget",
    "Deadline",
    "Denied",
    "EmptyReply",
    "ErrorStreak",
    "Evidence",
    "Guard",
    "LimitsError",
    "MalformedStreak",
    "MaxSteps",
    "NoProgress",
    "Not",
    "Predicate",
    "Reading",
    "RepeatedCall",
    "Summary",
    "TokenBudget",
    "ToolBudget",
    "TruncatedReply",
    "at_least",
    "classic",
    "guards_from",
    "known_limits",
    "limits",
    "parse_limits",
    "predicate",
    "production",
    "rebuild",
]

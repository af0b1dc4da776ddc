"""The guards that a record can name without any code of a user's, and how they are made again from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fsm_agent.guards.base import Guard
from fsm_agent.guards.budgets import CostBudget, TokenBudget, ToolBudget
from fsm_agent.guards.classic import ConsecutiveErrors, MaxSteps, RepeatedCall
from fsm_agent.guards.combined import AllOf, AnyOf, Not
from fsm_agent.guards.deadline import Deadline
from fsm_agent.guards.errors import Denied, ErrorStreak
from fsm_agent.guards.progress import NoProgress
from fsm_agent.guards.replies import EmptyReply, MalformedStreak, TruncatedReply

BUILT_IN: dict[str, type[Guard]] = {
    "repeated_call": RepeatedCall,
    "tool_budget": ToolBudget,
    "token_budget": TokenBudget,
    "cost_budget": CostBudget,
    "denied": Denied,
    "truncated_reply": TruncatedReply,
    "empty_reply": EmptyReply,
    "error_streak": ErrorStreak,
    "no_progress": NoProgress,
    "malformed_streak": MalformedStreak,
    "consecutive_errors": ConsecutiveErrors,
    "deadline": Deadline,
    "max_steps": MaxSteps,
}
"""By reason, in the order of the table. A tool's own budget is ``tool_budget:`` and its name."""

_COMBINED: tuple[type[Guard], ...] = (AllOf, AnyOf, Not)

_CLASSES = {kind.__name__: kind for kind in (*BUILT_IN.values(), *_COMBINED)}


def rebuild(reason: str, guard: str, limits: Mapping[str, Any]) -> Guard:
    """The guard of this class with these limits, as ``Guard.as_limits`` gave them.

    Raises ``ValueError`` in one line for a class that is not this package's, and for limits or a reason that are not that guard's.
    """
    kind = _CLASSES.get(guard)
    if kind is None:
        raise ValueError(f"the guard {guard} ({reason}) is not one of this package's; give the guards to replay with")
    try:
        fields = {**limits, "parts": tuple(_part(part) for part in limits["parts"])} if kind in _COMBINED else limits
        made = kind(**fields)
    except KeyError as error:
        raise ValueError(f"the guard {guard} ({reason}): the field {error} is missing") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the guard {guard} ({reason}): {error}") from None
    if made.reason != reason:
        raise ValueError(f"the guard {guard} has the reason {made.reason!r}, not {reason!r}")
    return made


def _part(part: Any) -> Guard:
    if not isinstance(part, dict):
        raise TypeError(f"{part!r} is not a guard")
    return rebuild(str(part["reason"]), str(part["guard"]), dict(part.get("limits", {})))

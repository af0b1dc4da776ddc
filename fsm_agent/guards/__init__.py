"""The guards that may halt a run, and their presets."""

from fsm_agent.guards.base import Evidence, Guard, Reading, at_least
from fsm_agent.guards.classic import ConsecutiveErrors, MaxSteps, RepeatedCall, classic, limits

__all__ = ["BUILT_IN", "ConsecutiveErrors", "Evidence", "Guard", "MaxSteps", "Reading", "RepeatedCall", "at_least", "classic", "limits"]

BUILT_IN: dict[str, type[Guard]] = {guard.reason: guard for guard in (RepeatedCall, ConsecutiveErrors, MaxSteps)}
"""The guards that a trace can name without any code of a user's."""

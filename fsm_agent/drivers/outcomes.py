"""What is told of a call that did not end by itself: it was given up, called off, or its server or its process died."""

from __future__ import annotations

from fsm_agent.events import ERROR_PREFIX, Observation, ToolCall
from fsm_agent.language import Language
from fsm_agent.tools.errors import ToolServerDead


def too_late(call: ToolCall, lang: Language) -> Observation:
    """Of a call that was not made, since the time of the run was up."""
    return Observation(call.name, f"{ERROR_PREFIX} {lang.say('not started, the time of the run was up')}", "refused")


def server_dead(call: ToolCall, error: ToolServerDead) -> Observation:
    """Of a call whose server is gone for good."""
    return Observation(call.name, f"{ERROR_PREFIX} {error}", "interrupted" if error.under_way else "tool_error")


def cancelled(call: ToolCall, lang: Language, *, started: bool) -> Observation:
    """Of a call that was running, or waiting for its turn, when the run was cancelled."""
    say = lang.say
    text = say("cancelled by the user; its outcome is unknown") if started else say("cancelled by the user; it was not started")
    return Observation(call.name, text, "cancelled")


def interrupted(call: ToolCall, lang: Language) -> Observation:
    """Of a call that was running when the process ended, and that is not made again."""
    text = lang.say("the process ended while {tool} ran; whether it took effect is not known", tool=call.name)
    return Observation(call.name, f"{ERROR_PREFIX} {text}", "interrupted")

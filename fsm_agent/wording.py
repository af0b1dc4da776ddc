"""What the world said, in words for people: of the events that are more than what a model or a tool said."""

from __future__ import annotations

from typing import assert_never

from fsm_agent.events import Approval, ApprovalAsked, ApprovalGiven, AttemptFailed, ContextCompacted, ToolCall, ToolsFailed
from fsm_agent.language import Language

Told = AttemptFailed | ContextCompacted | ApprovalAsked | ApprovalGiven | ToolsFailed


def heading(event: Told, lang: Language) -> str:
    """What happened, in a few words."""
    say = lang.say
    match event:
        case AttemptFailed():
            return say("the model could not be asked")
        case ContextCompacted(covers=covers):
            return lang.count("summed up: {n} message", "summed up: {n} messages", covers)
        case ApprovalAsked(calls=calls):
            return say("a person is asked about call {calls}", calls=", ".join(str(index + 1) for index in calls))
        case ApprovalGiven():
            return say("a person decided")
        case ToolsFailed():
            return say("the tools are gone")
        case _:
            assert_never(event)


def details(event: Told, lang: Language) -> str:
    """What is told of it besides; empty: nothing."""
    match event:
        case AttemptFailed(error=error, message=message) | ToolsFailed(error=error, message=message):
            return f"{error}: {message}"
        case ContextCompacted(summary=summary):
            return summary
        case ApprovalAsked():
            return ""
        case ApprovalGiven(approvals=approvals):
            return "\n".join(verdict(each, lang) for each in approvals)
        case _:
            assert_never(event)


def verdict(approval: Approval, lang: Language) -> str:
    """What a person decided about a call."""
    say = lang.say
    match approval.verdict:
        case "yes":
            return say("agreed")
        case "no":
            return say("did not agree: {words}", words=approval.words) if approval.words.strip() else say("did not agree")
        case "edit":
            return say("changed it to {arguments}", arguments=str(ToolCall("", approval.arguments or {})))
        case _:
            assert_never(approval.verdict)

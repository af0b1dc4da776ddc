"""Whether an event fits what a run waits for. What a state takes at all the table says; here is what an event must bring besides."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fsm_agent.events import (
    ApprovalAsked,
    ApprovalGiven,
    AskApproval,
    CallTools,
    Cancelled,
    ContextCompacted,
    ToolsFailed,
    ToolsReturned,
)

if TYPE_CHECKING:
    from fsm_agent.machine.run import Run

VERDICTS = ("yes", "no", "edit")
"""What a person can say of a call. Whatever else is said, a misspelt no above all, must not pass for a yes."""


def awaited(run: Run, kind: type) -> bool:
    """Whether the run's effect waits for such an event, in a state that takes it."""
    match run.effect:
        case AskApproval():
            return kind not in {ApprovalAsked, ToolsReturned, ToolsFailed}
        case CallTools(may_ask=may_ask):
            return kind is not ApprovalGiven and (may_ask or kind is not ApprovalAsked)
    return kind is not ContextCompacted or not run.summed_up


def _counted(run: Run, event: ToolsReturned | ToolsFailed | Cancelled) -> str:
    calls = len(run.effect.calls) if isinstance(run.effect, CallTools | AskApproval) else 0
    return "" if len(event.observations) == calls else f"{len(event.observations)} observations: {calls} calls wait for one each"


def _asked(run: Run, event: ApprovalAsked) -> str:
    calls = [*range(len(run.effect.calls))]  # type: ignore[union-attr]  # it waits for CallTools
    if event.calls and list(event.calls) == sorted({*event.calls} & {*calls}):
        return ""
    return f"calls {event.calls}: they must be some of {calls}, in order"


def _given(run: Run, event: ApprovalGiven) -> str:
    asked = len(run.effect.asked)  # type: ignore[union-attr]  # it waits for AskApproval
    if len(event.approvals) != asked:
        return f"{len(event.approvals)} approvals: {asked} calls wait for one each"
    for each in event.approvals:
        if each.verdict not in VERDICTS:
            return f"the verdict {each.verdict!r}: it must be one of {', '.join(VERDICTS)}"
        if each.verdict == "edit" and each.arguments is None:
            return "an edit without arguments"
    return ""


def _compacted(run: Run, event: ContextCompacted) -> str:
    least = run.summary.covers if run.summary else 0
    messages = len(run.history)
    return "" if least < event.covers <= messages else f"covers is {event.covers}: it must be above {least} and at most {messages}"


FITS: dict[type, Callable[[Run, Any], str]] = {
    ToolsReturned: _counted,
    ToolsFailed: _counted,
    Cancelled: _counted,
    ApprovalAsked: _asked,
    ApprovalGiven: _given,
    ContextCompacted: _compacted,
}
"""By event, what is wrong with it here, in words; empty: nothing. An event that is not named always fits."""

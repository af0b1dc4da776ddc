"""Which calls a person has to agree to, and how the person is asked."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import attrs
import msgspec

from fsm_agent.events import Approval, AskApproval, ToolCall, ToolCalls
from fsm_agent.machine import Run
from fsm_agent.machine.fitting import VERDICTS
from fsm_agent.models.base import is_async
from fsm_agent.text import well_formed
from fsm_agent.tools import Tool

Policy = Literal["side_effects", "always", "never"] | Collection[str] | Callable[[ToolCall], bool]
"""Which calls are asked about: those of tools with side effects, all, none, those of the tools with these names, or those of which
a function says so."""

WORDS = ("side_effects", "always", "never")


@attrs.frozen
class ApprovalRequest:
    """One call, as a person is asked about it."""

    call: ToolCall
    """Its ``key`` names it, also in another process."""
    tool: Tool
    thought: str = ""
    """What the model said with the call."""
    task: str = ""
    step: int = 0
    interrupted: bool = False
    """The call had begun when the process ended, and what came of it is not known: shall it be made (again)?"""


Answer = Approval | bool | None
"""What a person says: an ``Approval``; True or False; None: nothing yet, so that the run waits."""

Approver = Callable[[ApprovalRequest], Answer] | Callable[[ApprovalRequest], Awaitable[Answer]]
"""Asks the person. What is awaited needs ``arun``."""

Approvals = Approver | Mapping[str, Approval | bool] | Approval | bool
"""What a run that waits is gone on with: an approver, answers by the calls' keys, or one answer to all that are asked about."""


def checked_policy(policy: Any) -> Policy:
    """Raises ``ValueError`` or ``TypeError`` for what is no policy."""
    if isinstance(policy, str) and policy not in WORDS:
        raise ValueError(f"policy is {policy!r}; it must be one of {', '.join(WORDS)}, a list of tools' names, or a function of a call")
    if isinstance(policy, str) or (callable(policy) and not is_async(policy)):
        return cast("Policy", policy)
    if not isinstance(policy, Collection) or not all(isinstance(name, str) for name in policy):
        raise TypeError(f"policy is {policy!r}; it must be one of {', '.join(WORDS)}, a list of tools' names, or a function of a call")
    return frozenset(policy)


def check_names(policy: Policy, tools: Collection[str]) -> None:
    """Raises ``ValueError`` for a policy that names a tool which is not there: it would ask about nothing."""
    if isinstance(policy, str) or callable(policy):
        return
    if unknown := [name for name in policy if name not in tools]:
        raise ValueError(f"policy names the tool {min(unknown)!r}, which is not there; the tools are {', '.join(tools) or 'none'}")


def may_ask(policy: Policy, tools: Iterable[Tool]) -> bool:
    """Whether a run under this policy may ever ask."""
    if isinstance(policy, str):
        return policy == "always" or (policy == "side_effects" and any(tool.side_effects for tool in tools))
    return True


def asked_about(policy: Policy, calls: Sequence[ToolCall], tools: Mapping[str, Tool]) -> tuple[int, ...]:
    """The calls that a person has to agree to, by their places.

    Not asked about, nor shown to a policy, is one that cannot be made, as its tool is unknown or does not take such arguments.
    """
    return tuple(
        index
        for index, call in enumerate(calls)
        if (tool := tools.get(call.name)) is not None and tool.takes(call) and _is_asked_about(policy, call, tool)
    )


def _is_asked_about(policy: Policy, call: ToolCall, tool: Tool) -> bool:
    if policy == "side_effects":
        return tool.side_effects
    if isinstance(policy, str):
        return policy == "always"
    return bool(policy(call)) if callable(policy) else call.name in policy


def requests(run: Run, effect: AskApproval, tools: Mapping[str, Tool]) -> list[ApprovalRequest]:
    """What a person is asked, one by one."""
    thought = run.decision.thought if isinstance(run.decision, ToolCalls) else ""
    return [
        ApprovalRequest(run.keyed(index, effect.calls[index]), tools[effect.calls[index].name], thought, run.task, run.step)
        for index in effect.asked
    ]


def as_approval(answer: object) -> Approval | None:
    """An answer as it is kept. Raises ``TypeError`` for what is none, ``ValueError`` for an ``Approval`` that cannot be meant so."""
    if isinstance(answer, bool):
        return Approval("yes" if answer else "no")
    if answer is None:
        return None
    if not isinstance(answer, Approval):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError(f"{answer!r} is no answer to an approval request; it must be an Approval, True, False, or None for none yet")
    if answer.verdict not in VERDICTS:
        raise ValueError(f"the verdict of an approval is {answer.verdict!r}; it must be one of {', '.join(VERDICTS)}")
    if not isinstance(answer.words, str):
        raise TypeError(f"the words of an approval are {answer.words!r}; they must be text")
    if answer.verdict != "edit":
        return Approval(answer.verdict, well_formed(answer.words))
    if answer.arguments is None:
        raise ValueError("an approval with the verdict 'edit' needs the arguments to call the tool with")
    try:
        arguments = msgspec.json.decode(msgspec.json.encode(answer.arguments), type=dict[str, Any])
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"an approval's arguments must be a JSON object: {error}") from None
    return Approval("edit", well_formed(answer.words), arguments)


def approver_of(approvals: Approvals | None) -> Approver | None:
    """Who answers. Raises as ``as_approval`` does.

    One answer to all is an answer to what a run waits for. It is none to whether a call that was interrupted shall be made again: that
    takes a function, or an answer by its key.
    """
    if approvals is None or callable(approvals):
        return approvals
    if isinstance(approvals, Mapping):
        answers = dict(approvals)

        def look_up(request: ApprovalRequest) -> Answer:
            return answers.get(request.call.key)

        return look_up
    one = as_approval(approvals)
    return lambda request: None if request.interrupted else one

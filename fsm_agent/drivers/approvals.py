"""Which calls a person has to agree to, and how the person is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import attrs

from fsm_agent.events import Approval, AskApproval, ToolCall, ToolCalls
from fsm_agent.machine import Run
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
"""What a run that waits is gone on with: an approver, answers by the calls' keys, or one answer to all."""


def checked_policy(policy: Any) -> Policy:
    """Raises ``ValueError`` or ``TypeError`` for what is no policy."""
    if isinstance(policy, str) and policy not in WORDS:
        raise ValueError(f"policy is {policy!r}; it must be one of {', '.join(WORDS)}, a list of tools' names, or a function of a call")
    if not isinstance(policy, str) and not callable(policy):
        if not isinstance(policy, Collection) or not all(isinstance(name, str) for name in policy):
            raise TypeError(f"policy is {policy!r}; it must be one of {', '.join(WORDS)}, a list of tools' names, or a function of a call")
        policy = frozenset(policy)
    return cast("Policy", policy)


def may_ask(policy: Policy, tools: Iterable[Tool]) -> bool:
    """Whether a run under this policy may ever ask."""
    if isinstance(policy, str):
        return policy == "always" or (policy == "side_effects" and any(tool.side_effects for tool in tools))
    return True


def asked_about(policy: Policy, calls: Sequence[ToolCall], tools: Mapping[str, Tool]) -> tuple[int, ...]:
    """The calls that a person has to agree to, by their places. One that cannot be made, as its tool is unknown, is not asked about."""
    return tuple(index for index, call in enumerate(calls) if call.name in tools and _is_asked_about(policy, call, tools[call.name]))


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
    """An answer as it is kept. Raises ``TypeError`` for what is none."""
    if answer is None or isinstance(answer, Approval):
        return answer
    if isinstance(answer, bool):
        return Approval("yes" if answer else "no")
    raise TypeError(f"{answer!r} is no answer to an approval request; it must be an Approval, True, False, or None for none yet")


def approver_of(approvals: Approvals | None) -> Approver | None:
    """Who answers. Raises ``TypeError`` for what cannot."""
    if approvals is None or callable(approvals):
        return approvals
    if isinstance(approvals, Mapping):
        answers = dict(approvals)

        def look_up(request: ApprovalRequest) -> Answer:
            return answers.get(request.call.key)

        return look_up
    one = as_approval(approvals)
    return lambda _request: one

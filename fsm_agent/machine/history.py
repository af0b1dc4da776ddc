"""What a run writes into its history: corrections, observations, and what is left out of a long one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fsm_agent.events import Approval, CallTools, Message, Observation, Reply, ToolCall, ToolCalls
from fsm_agent.language import Language


def corrections(reply: Reply, problem: str) -> Iterable[Message]:
    """What was wrong with a reply, for the model; where it held structured calls, as the result of each."""
    if not reply.tool_calls:
        yield Message("user", problem)
    for request in reply.tool_calls:
        yield Message("tool", problem, (), "", request.id)  # no tool said it: it is the run's own word


def observed(call: ToolCall, tool: str, text: str, approval: Approval | None, most: int | None, lang: Language) -> Message:
    """The observation of a call as the model reads it: at most ``most`` characters of it, and told when a person changed the call."""
    if most is not None:
        text = cut(text, most, lang)
    if approval is not None and approval.verdict == "edit":
        changed = ToolCall(call.name, approval.arguments or {})
        text = f"{lang.say('(a person changed the call; it was made as {call})', call=changed)}\n{text}"
    return Message("tool", text, (), tool, call.id)


def refused(decision: ToolCalls, reason: str, lang: Language) -> list[Observation]:
    """The observations of calls that are not made, as a guard stops the run."""
    told = lang.say("refused, the run was stopped first: {reason}", reason=reason)
    return [Observation(call.name, told, "refused") for call in decision.calls]


def last_call(reason: str, lang: Language) -> Message:
    """What the model is told when it has its last chance."""
    return Message(
        "user", lang.say("The run is being stopped: {reason}. No tool can be called any more. Give your final answer now.", reason=reason)
    )


def decided(calls: Sequence[ToolCall], approvals: Mapping[int, Approval], lang: Language) -> CallTools:
    """The calls as a person wants them made, and the observations of those that are not."""
    made = list(calls)
    settled: list[Observation | None] = [None] * len(made)
    for index, approval in approvals.items():
        call = made[index]
        if approval.verdict == "edit":
            made[index] = msgspec.structs.replace(call, arguments=approval.arguments)
        elif approval.verdict == "no":
            words = approval.words.strip()
            told = lang.say("denied by a person: {words}", words=words) if words else lang.say("denied by a person")
            settled[index] = Observation(call.name, told, "denied")
    return CallTools(tuple(made), tuple(settled), may_ask=False)


def cut(text: str, most: int, lang: Language) -> str:
    """The beginning and the end of ``text``, ``most`` characters together, and between them how many were left out; all of a short one."""
    if len(text) <= most:
        return text
    end = most // 4
    left_out = len(text) - most
    told = lang.count("[... {n} character left out ...]", "[... {n} characters left out ...]", left_out)
    return f"{text[: most - end]}\n{told}\n{text[len(text) - end :] if end else ''}"

"""What was said and done on an edge, as headings and texts. Nothing is cut: whoever shows them does that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, assert_never

import attrs

from fsm_agent.context.steps import first_step
from fsm_agent.diagrams.readings import number
from fsm_agent.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptFailed,
    Cancelled,
    ContextCompacted,
    Decision,
    Final,
    Malformed,
    Message,
    ModelFailed,
    ModelReplied,
    Observation,
    RecordingEnded,
    Reply,
    Said,
    ToolCalls,
    ToolRequest,
    ToolsFailed,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.language import Language
from fsm_agent.machine import Run
from fsm_agent.stepper.branch import Moment
from fsm_agent.table import PURE
from fsm_agent.wording import details, heading, verdict

Tone = Literal["plain", "call", "error", "answer"]
TONES: tuple[Tone, ...] = ("plain", "call", "error", "answer")


@attrs.frozen
class Item:
    """Something that was said or done."""

    head: str
    text: str
    tone: Tone = "plain"
    note: str = ""
    """What is known beside it, in few words: the model's name, tokens, seconds."""


def items_of(moment: Moment, run: Run, lang: Language) -> Iterator[Item]:
    """What came with an edge of ``run``: the event on an edge out of a waiting state, what was made of it on one out of a pure state."""
    if moment.decision is not None:
        yield from _of_decision(moment.decision, lang)
    elif moment.row.source not in PURE:
        yield from _of_event(moment, lang)
    if moment.row.id == "nudge":
        count = sum(reading.warns for reading in moment.taken.readings)
        for message in run.history[moment.messages - count : moment.messages]:
            yield Item(lang.say("warning to the model"), message.content)
    elif moment.row.spends == "the last chance":
        yield Item(lang.say("told to the model"), run.history[moment.messages - 1].content)


def summed_up(history: Sequence[Message], summary: ContextCompacted | None) -> range:
    """The places of the messages in whose stead a model is shown the summary."""
    return range(first_step(history), summary.covers) if summary is not None else range(0)


def requests_text(requests: tuple[ToolRequest, ...]) -> str:
    """Structured calls as they came, one a line."""
    return "\n".join(f"{request.name}({request.arguments})" for request in requests)


def _of_event(moment: Moment, lang: Language) -> Iterator[Item]:
    say, event = lang.say, moment.event
    match event:
        case ModelReplied(reply=reply):
            text = "\n".join(part for part in (reply.text, requests_text(reply.tool_calls)) if part)
            yield Item(say("you said, as the model") if moment.typed else say("the model said"), text, note=_note(reply, lang))
        case ModelFailed(error=error, message=message):
            yield Item(say("the model failed"), f"{error}: {message}", "error")
        case ToolsReturned(observations=observations) | Cancelled(observations=observations):
            yield from _of_observations(observations, lang)
        case UserSpoke(text=text):
            yield Item(say("a person said"), text)
        case AttemptFailed() | ContextCompacted():
            yield Item(heading(event, lang), details(event, lang), "error" if isinstance(event, AttemptFailed) else "plain")
        case ApprovalAsked():
            yield from (Item(say("a person is asked"), str(call), "call") for call in moment.asked)
        case ApprovalGiven(approvals=approvals):
            for call, each in zip(moment.asked, approvals, strict=True):
                yield Item(verdict(each, lang), str(call), "error" if each.verdict == "no" else "call")
        case ToolsFailed(observations=observations):
            yield Item(heading(event, lang), details(event, lang), "error")
            yield from _of_observations(observations, lang)
        case RecordingEnded():
            return
        case _:
            assert_never(event)


def _of_observations(observations: Iterable[Observation], lang: Language) -> Iterator[Item]:
    say = lang.say
    for seen in observations:
        if seen.is_error:
            yield Item(say("{tool} failed ({kind})", tool=seen.tool, kind=seen.kind), seen.text, "error")
        else:
            yield Item(say("{tool} returned", tool=seen.tool), seen.text)
        if seen.traceback is not None:
            yield Item(say("where it was raised (no model is shown this)"), seen.traceback, "call")


def _of_decision(decision: Decision, lang: Language) -> Iterator[Item]:
    say = lang.say
    match decision:
        case ToolCalls(calls=calls, thought=thought):
            if thought:
                yield Item(say("thought"), thought)
            for call in calls:
                yield Item(say("call"), str(call), "call")
        case Final(answer=answer):
            yield Item(say("answer"), answer, "answer")
        case Said(text=text):
            yield Item(say("said to a person"), text)
        case Malformed(problem=problem):
            yield Item(say("goes back to the model"), problem, "error")
        case _:
            assert_never(decision)


def _note(reply: Reply, lang: Language) -> str:
    """What a server told of its reply."""
    usage, parts = reply.usage, [reply.model] if reply.model else []
    if usage is not None and (usage.prompt_tokens is not None or usage.completion_tokens is not None):
        read, written = ("?" if each is None else str(each) for each in (usage.prompt_tokens, usage.completion_tokens))
        parts.append(lang.say("tokens: {read} read, {written} written", read=read, written=written))
    if usage is not None and usage.cost is not None:
        parts.append(f"${usage.cost:.6g}")
    if reply.latency_s is not None:
        parts.append(lang.say("{seconds} s", seconds=number(reply.latency_s)))
    if reply.finish_reason == "length":
        parts.append(lang.say("cut off"))
    return " · ".join(parts)

"""The steps of one ReAct text log (``Thought k:``, ``Action k: Tool[argument]``, ``Observation k:``, with or without numbers) as events.

Observations span lines and may quote anything, so a marker counts only where it is expected: after ``Observation 2:`` nothing but
``Thought 3:`` (or ``Action 3:`` in a log without thoughts) begins the next step. Without numbers, the order is all there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import attrs
import msgspec

from fsm_agent.events import Reply, ToolRequest
from fsm_agent.traces.recordings.base import UnreadableError
from fsm_agent.traces.recordings.documents import decode
from fsm_agent.traces.recordings.transcript import Transcript

MARKER = re.compile(r"^(?P<kind>Thought|Action Input|Action|Observation|Final Answer)(?: (?P<number>\d{1,9}))?[ \t]*:[ \t]*", re.MULTILINE)
ERROR = re.compile(r"\A(?:Could not find\b|No more results|Invalid [Aa]ction\b|The last page [Ss]earched\b)")
"""What a failed call's observation starts with, in the paper's harness and in Reflexion's."""

_UNPARSED = re.compile(r"^ohh\.\.\.[ \t]*", re.MULTILINE)
"""How the paper's harness prints an output that it cannot split; the same text follows as the thought of the retry."""
_REFUSED = re.compile(r"\AInvalid [Aa]ction\b")
"""The harness did not take the action, whatever it said."""
_FOLLOW: Mapping[str, frozenset[str]] = {
    "Thought": frozenset({"Thought", "Action", "Observation", "Final Answer"}),
    "Action": frozenset({"Thought", "Action Input", "Observation", "Final Answer"}),
    "Action Input": frozenset({"Thought", "Observation", "Final Answer"}),
    "Observation": frozenset({"Thought", "Action", "Final Answer"}),
    "Final Answer": frozenset(),
}
"""Which markers may come next."""
_CALL = re.compile(r"(?P<tool>\w[\w.-]*)[ \t]*\[")
"""The beginning of ``Tool[argument]``; the argument goes on to the end of the action, whatever brackets it holds."""


@attrs.frozen
class Step:
    """A thought and its action as they stand in the log; None: it is not there."""

    thought: str | None = None
    action: str | None = None
    action_input: str | None = None
    observation: str | None = None
    final_answer: str | None = None
    unparsed: tuple[str, ...] = ()
    """Outputs before this step that the harness could not split."""


@attrs.frozen
class Replayed:
    """What the steps came to."""

    transcript: Transcript
    thoughts: tuple[str, ...] = ()
    """The thought beside the answer, which has no room for it."""
    verdict: str = ""
    """The last observation: what the harness said to the answer."""
    corrections: tuple[str, ...] = ()
    """What the harness said to replies that it could not parse."""


def parse_steps(text: str) -> Iterator[Step]:
    """The steps in a run's text, in order. Before the first marker, only outputs that could not be split are of interest."""
    fields: dict[str, str] = {}
    unparsed: list[str] = []
    kind, start = "", 0
    for marker in [*_markers(text), None]:
        part = text[start : marker.start() if marker else len(text)]
        output = _UNPARSED.search(part) if kind in {"", "Observation"} else None
        if kind:
            fields[kind.lower().replace(" ", "_")] = (part[: output.start()] if output else part).strip()
        if marker is None or kind in {"", "Observation"} or marker["kind"] == "Thought":
            if fields:
                yield Step(**fields, unparsed=tuple(unparsed))
            fields, unparsed = {}, [part[output.end() :].strip()] if output else []
        if marker:
            kind, start = marker["kind"], marker.end()
    if unparsed:
        yield Step(unparsed=tuple(unparsed))


def _markers(text: str) -> Iterator[re.Match[str]]:
    """The markers that begin a part of a step, without those that an observation or a thought only quotes."""
    markers = list(MARKER.finditer(text))
    thoughts = any(marker["kind"] == "Thought" for marker in markers)
    last: re.Match[str] | None = None
    for marker in markers:
        if _expected(marker, last, thoughts=thoughts):
            last = marker
            yield marker


def _expected(marker: re.Match[str], last: re.Match[str] | None, *, thoughts: bool) -> bool:
    """Whether ``marker`` may come after ``last`` (None: at the beginning), in a log with or without ``thoughts``."""
    kind, number = marker["kind"], marker["number"]
    acts_without_thought = kind == "Action" and (number is None or not thoughts)
    if last is None:
        return kind == "Thought" or acts_without_thought
    begins_step = kind == "Thought" or (kind == "Action" and last["kind"] == "Observation")
    if begins_step and kind == "Action" and not acts_without_thought:
        return False
    wanted = None if last["number"] is None else str(int(last["number"]) + begins_step)
    return kind in _FOLLOW[last["kind"]] and number == wanted


def replay_steps(steps: Sequence[Step], is_error: re.Pattern[str]) -> Replayed:
    """The steps as events. The last one is the answer where it finishes and the harness took that; every other call is a call."""
    transcript = Transcript()
    corrections: list[str] = []
    for number, step in enumerate(steps, 1):
        for output in step.unparsed:
            transcript.reply(Reply(output, taken_as="unparseable"))
        observation = step.observation or ""
        call = _request(step)
        answer = step.final_answer if call is None else _answer(call, observation)
        if answer is not None and number == len(steps):
            transcript.reply(Reply(answer, taken_as="answer"))
            return Replayed(transcript, (step.thought,) if step.thought else (), observation, tuple(corrections))
        if call is not None:
            transcript.reply(Reply(step.thought or "", (call,)))
            if step.observation is not None:
                transcript.result(observation, failed=is_error.search(observation) is not None, place=call.name)
        elif (said := _said(step)) is not None:
            transcript.reply(Reply(said, taken_as="unparseable"))
            corrections += [observation] if observation else []
    return Replayed(transcript, corrections=tuple(corrections))


def _request(step: Step) -> ToolRequest | None:
    if step.action is None:
        return None
    if step.action_input is not None:
        return ToolRequest("", step.action, _arguments(step.action_input)) if step.action else None
    call = _CALL.match(step.action)
    return ToolRequest("", call["tool"], _encoded(step.action[call.end() :].removesuffix("]"))) if call else None


def _arguments(text: str) -> str:
    """An action's input: a JSON object is the arguments, any other text the one argument."""
    try:
        decode(text.encode(), dict)
    except UnreadableError:
        return _encoded(text)
    return text


def _encoded(argument: str) -> str:
    return msgspec.json.encode({"input": argument}).decode()


def _answer(call: ToolRequest, observation: str) -> str | None:
    """The answer in a call that finishes the run, as long as the harness took it."""
    if call.name.lower() != "finish" or _REFUSED.match(observation):
        return None
    argument = msgspec.json.decode(call.arguments).get("input")
    return argument if isinstance(argument, str) else call.arguments


def _said(step: Step) -> str | None:
    """A reply without a call that can be read, as it was; None: the step is no reply."""
    if step.action is None:
        return step.thought if step.final_answer is None else f"Final Answer: {step.final_answer}"
    return "\n".join(part for part in (step.thought, f"Action: {step.action}") if part)

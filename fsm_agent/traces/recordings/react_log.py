"""ReAct text logs in the paper's form: runs that begin with ``Question:`` or ``Claim:``, then steps, then what the harness prints.

What the paper's harness prints is a line with a Python dict (``{'steps': 2, 'answer': 'REFUTES', 'em': 1, ...}``). A ``steps`` above the
number of steps tells that the harness itself finished the run, silently, at its cap.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import msgspec

from fsm_agent.traces.recordings.base import Damaged, Ending, Outcome, Recording, RecordingError, UnreadableError
from fsm_agent.traces.recordings.documents import text_of
from fsm_agent.traces.recordings.react_steps import ERROR, MARKER, parse_steps, replay_steps

_TASK = re.compile(r"^(?:(?P<id>\d+)[ \t]+)?(?:Question|Claim|Task)[ \t]*:[ \t]*(?P<task>.*)$", re.MULTILINE)
_LINE = re.compile(rf"{_TASK.pattern}|{MARKER.pattern}|^(?P<ruler>[-=#]{{5,}})[ \t]*$", re.MULTILINE)
_TAIL = re.compile(r"^(?:(?P<facts>\{.*\})[ \t]*|Correct answer:[ \t]*(?P<wanted>.*)|[-=#]{5,}[ \t]*)$", re.MULTILINE)
"""After the last observation: what the harness prints at the end of a run."""
_VERDICT = re.compile(
    r"\breward = (?P<reward>-?\d+(?:\.\d+)?)|\bAnswer is (?P<word>CORRECT|INCORRECT)\b"
    r"|\bYour score \(min [\d.]+\): (?P<score>\d+(?:\.\d+)?)"
)


class ReActLog:
    """The reader."""

    name = "react"

    def recognises(self, head: bytes, _path: Path, /) -> bool:
        return looks_like_log(head.decode(errors="replace"))

    def read(self, path: Path, is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        text = text_of(path)
        if not looks_like_log(text):
            raise RecordingError(f"{path} is no ReAct log: no line begins with Action: or Action 1:")
        yield from runs_of(text, self.name, is_error)


def looks_like_log(text: str) -> bool:
    """Whether the text holds an action, and a thought or an observation."""
    kinds = {marker["kind"] for marker in MARKER.finditer(text)}
    return "Action" in kinds and bool(kinds & {"Thought", "Observation"})


def runs_of(text: str, source: str, is_error: re.Pattern[str] | None) -> Iterator[Recording | Damaged]:
    """The runs in a log, each from its task to the next one's."""
    for number, found in enumerate(_split(text), 1):
        try:
            yield recording_of(found, source, str(number), is_error)
        except UnreadableError as error:
            yield Damaged(f"line {text.count(chr(10), 0, found.start) + 1}", str(error))


@attrs.frozen
class LoggedRun:
    """A run's part of a log."""

    start: int
    """Its place in the log, in characters."""
    body: str
    """From after the task to the next run."""
    task: str = ""
    id: str | None = None
    """What the log calls it."""


def _split(text: str) -> Iterator[LoggedRun]:
    """The runs: each begins with a task that a first step follows, or with a first step after a ruler; a task without steps is one too."""
    tasks = _TASK.search(text) is not None
    thoughts = any(marker["kind"] == "Thought" for marker in MARKER.finditer(text))
    task: re.Match[str] | None = None
    starts: list[tuple[int, re.Match[str] | None]] = []
    apart = True  # after a ruler or at the beginning: what comes now is no part of an observation
    for line in _LINE.finditer(text):
        if line["ruler"]:
            apart = True
        elif line["task"] is not None:
            if apart and task is not None:
                starts.append((task.start(), task))
            task = line
        elif _may_begin(line, thoughts=thoughts):
            if task is not None or apart or (line["number"] and not tasks):
                starts.append((line.start() if task is None else task.start(), task))
            task, apart = None, False
        else:
            task, apart = None, False
    if task is not None and apart:
        starts.append((task.start(), task))
    for (start, found), (end, _) in pairwise([*starts, (len(text), None)]):
        if found is None:
            yield LoggedRun(start, text[start:end])
        else:
            yield LoggedRun(start, text[found.end() : end], found["task"].strip(), found["id"])


def _may_begin(line: re.Match[str], *, thoughts: bool) -> bool:
    """Whether the marker may be a run's first, in a log with or without ``thoughts``."""
    acts_without_thought = line["kind"] == "Action" and (line["number"] is None or not thoughts)
    return (line["kind"] == "Thought" or acts_without_thought) and line["number"] in {None, "1"}


def recording_of(run: LoggedRun, source: str, number: str, is_error: re.Pattern[str] | None) -> Recording:
    """The run as a recording. Raises ``UnreadableError`` where there are no steps, or where one is missing."""
    markers = list(MARKER.finditer(run.body))
    tail = _TAIL.search(run.body, markers[-1].end() if markers else 0)
    steps = list(parse_steps(run.body[: tail.start()] if tail else run.body))
    if not steps:
        raise UnreadableError(f"no step follows the task {run.task[:60]!r}")
    _check_numbers(markers, len(steps))
    replayed = replay_steps(steps, is_error or ERROR)
    facts = _facts(run.body[tail.start() :]) if tail else {}
    told: dict[str, Any] = {
        "thoughts": list(replayed.thoughts),
        "verdict": replayed.verdict,
        "corrections": list(replayed.corrections),
        "facts": facts,
    }
    outcome, score = _outcome(facts, steps[-1].observation or "")
    return Recording(
        id=run.id or number,
        source=source,
        task=run.task,
        events=replayed.transcript.end(),
        outcome=outcome,
        score=score,
        ending=_ending(facts, len(steps), answered=replayed.transcript.answered),
        extra={name: value for name, value in told.items() if value} | replayed.transcript.notes(),
    )


def _check_numbers(markers: list[re.Match[str]], steps: int) -> None:
    """A step that is missing makes all that follow it part of an observation. A lone marker in an observation is a quotation."""
    for marker, following in pairwise(markers):
        number = marker["number"]
        if number and int(number) > steps and (marker["kind"], following["kind"], following["number"]) == ("Thought", "Action", number):
            raise UnreadableError(f"Thought {number} comes where Thought {steps + 1} is expected")


def _facts(tail: str) -> dict[str, Any]:
    """The dict that the harness prints, and the wanted answer; what cannot be read of it is kept as text."""
    facts: dict[str, Any] = {}
    for line in _TAIL.finditer(tail):
        if line["wanted"] is not None:
            facts["wanted"] = line["wanted"].strip()
        elif line["facts"]:
            facts |= _literal(line["facts"]) or {"text": line["facts"]}
    return facts


def _literal(text: str) -> dict[str, Any] | None:
    """The dict that a Python literal spells; None where it is none, or none that JSON can hold."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a literal is not ours to mend
            value = ast.literal_eval(text)
        return msgspec.json.decode(msgspec.json.encode(value), type=dict[str, Any])
    except (ValueError, SyntaxError, TypeError, OverflowError, MemoryError, RecursionError, msgspec.MsgspecError):
        return None


def _outcome(facts: Mapping[str, Any], verdict: str) -> tuple[Outcome, float | None]:
    """By exact match, else by reward, else by the harness's last word."""
    said = _VERDICT.search(verdict)
    match, score = _number(facts.get("em")), _number(facts.get("reward", facts.get("em")))
    if score is None and said:
        score = _number(said["reward"] or said["score"])
    judged = score if match is None else match
    if judged is not None:
        return "success" if judged >= 1 else "failure", score
    if said and said["word"]:
        return "success" if said["word"] == "CORRECT" else "failure", score
    return "unknown", score


def _number(value: object) -> float | None:
    """A number, or a text that spells one, as a float; None: it is neither, or too large for one."""
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None


def _ending(facts: Mapping[str, Any], steps: int, *, answered: bool) -> Ending:
    counted = facts.get("steps")
    if answered:
        return "answer"
    return "cap" if isinstance(counted, int) and counted > steps else "unknown"

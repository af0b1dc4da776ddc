"""Reflexion's log files: trials, each with a summary line and the same agents' runs, sorted by how they ended.

Three sections a trial: correct, incorrect, halted. The halted section also lists agents that finished on their last step, which stand
in another section too: such a run is read once, where it is first, and told of the other place. Runs that were already correct are
not made again but printed again in later trials. A run's id is its place: ``1/correct/7``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

from fsm_agent.traces.recordings.base import Damaged, Recording, RecordingError, UnreadableError
from fsm_agent.traces.recordings.documents import text_of
from fsm_agent.traces.recordings.react_log import LoggedRun, recording_of

_TRIAL = re.compile(
    r"^BEGIN TRIAL (?P<trial>\d+)\n"
    r"(?:Trial summary: Correct: (?P<correct>\d+), Incorrect: (?P<incorrect>\d+)(?:, Halted: (?P<halted>\d+))?)?",
    re.MULTILINE,
)
_SECTION = re.compile(r"^-{3,} *BEGIN (?P<section>\w+) AGENTS *-{3,}$", re.MULTILINE)
_QUESTION = re.compile(r"^Question:[ \t]*(?P<task>.*)$", re.MULTILINE)


@attrs.frozen
class Counts:
    """Agents by how they ended."""

    correct: int
    incorrect: int
    halted: int

    def __str__(self) -> str:
        return (
            f"{self.correct} correct, {self.incorrect} incorrect, {self.halted} halted ({self.correct + self.incorrect + self.halted} runs)"
        )


@attrs.frozen
class TrialSummary:
    """What a trial's summary line says, and what the trial holds."""

    trial: int
    line: Counts | None
    """None: there is no such line."""
    body: Counts
    """Every run once, by its end: an agent that finished does not count as halted, wherever it is listed."""


@attrs.frozen
class _Listed:
    trial: int
    section: str
    number: int
    run: LoggedRun

    @property
    def place(self) -> str:
        return f"{self.trial}/{self.section}/{self.number}"

    @property
    def key(self) -> tuple[str, str]:
        return self.run.task, self.run.body.strip()


class Reflexion:
    """The reader."""

    name = "reflexion"

    def recognises(self, head: bytes, _path: Path, /) -> bool:
        text = head.decode(errors="replace").replace("\r\n", "\n")
        return _TRIAL.search(text) is not None and _SECTION.search(text) is not None

    def read(self, path: Path, is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        text = _text(path)
        printed: dict[tuple[str, str], str] = {}  # where a correct run was printed first
        for _, listed in _trials(text):
            for first, again in _once(listed):
                notes = {"also_listed": again} if again else {}
                if first.section == "correct" and (earlier := printed.setdefault(first.key, first.place)) != first.place:
                    notes["printed_before"] = earlier
                try:
                    yield _recording(first, notes, is_error)
                except UnreadableError as error:
                    yield Damaged(f"{first.place} (line {text.count(chr(10), 0, first.run.start) + 1})", str(error))

    def remarks(self, path: Path) -> list[str]:
        """The trials whose summary line is not borne out by what they hold."""
        return [
            f"trial {each.trial}: its summary line says {each.line}; it holds {each.body}"
            for each in summaries(path)
            if each.line is not None and each.line != each.body
        ]


def summaries(path: Path) -> list[TrialSummary]:
    """For each trial its summary line beside what it holds. Raises ``RecordingError`` for a file without trials."""
    found = []
    for head, listed in _trials(_text(path)):
        sections = [first.section for first, _ in _once(listed)]
        body = Counts(*(sections.count(section) for section in ("correct", "incorrect", "halted")))
        line = Counts(int(head["correct"]), int(head["incorrect"]), int(head["halted"] or 0)) if head["correct"] else None
        found.append(TrialSummary(int(head["trial"]), line, body))
    return found


def _text(path: Path) -> str:
    text = text_of(path)
    if not _TRIAL.search(text):
        raise RecordingError(f"{path} is no Reflexion log: no line says BEGIN TRIAL")
    return text


def _trials(text: str) -> Iterator[tuple[re.Match[str], list[_Listed]]]:
    """Each trial's heading, and the runs that its sections list, in order."""
    heads = list(_TRIAL.finditer(text))
    for head, end in zip(heads, _ends(heads, len(text)), strict=True):
        sections = list(_SECTION.finditer(text, head.end(), end))
        listed: list[_Listed] = []
        for section, until in zip(sections, _ends(sections, end), strict=True):
            runs = enumerate(_runs(text, section.end(), until), 1)
            listed += [_Listed(int(head["trial"]), section["section"].lower(), number, run) for number, run in runs]
        yield head, listed


def _ends(parts: list[re.Match[str]], end: int) -> list[int]:
    """Where each part ends: where the next one starts, the last one at ``end``."""
    return [*(part.start() for part in parts[1:]), end] if parts else []


def _runs(text: str, start: int, end: int) -> Iterator[LoggedRun]:
    """The runs of a section: a question counts where steps follow, or where the run before it has ended."""
    questions = []
    last = start
    for question in _QUESTION.finditer(text, start, end):
        before = text[last : question.start()].rstrip().rpartition("\n")[2]
        if not before or before.startswith("Correct answer:") or text.startswith(("Thought 1:", "Action 1:"), question.end() + 1):
            questions.append(question)
            last = question.end()
    for question, until in zip(questions, _ends(questions, end), strict=True):
        yield LoggedRun(question.start(), text[question.end() : until], question["task"].strip())


def _once(listed: list[_Listed]) -> list[tuple[_Listed, str]]:
    """Every run of a trial once, with the place where it is listed again, or ""."""
    first: dict[tuple[str, str], _Listed] = {}
    again: dict[tuple[str, str], str] = {}
    for each in listed:
        if first.setdefault(each.key, each) is not each:
            again[each.key] = each.place
    return [(each, again.get(key, "")) for key, each in first.items()]


def _recording(listed: _Listed, notes: dict[str, str], is_error: re.Pattern[str] | None) -> Recording:
    run = recording_of(listed.run, Reflexion.name, listed.place, is_error)
    return attrs.evolve(
        run,
        outcome=run.outcome if run.outcome != "unknown" else "success" if listed.section == "correct" else "failure",
        ending="cap" if run.ending == "unknown" and listed.section == "halted" else run.ending,
        extra={**run.extra, "trial": listed.trial, **notes},
    )

"""One task tried: run as people run it, and looked at from outside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from fsm_agent import Result, arun, load, run, verify
from fsm_agent.events import ModelReplied
from fsm_agent.guards import guards_from
from fsm_agent.models.named import model_from
from fsm_agent.tools import add
from tests.real.server import MODEL
from tests.real.tasks import Task

MAX_STEPS = 4
MAX_REPLY_TOKENS = 64
GUARDS = guards_from("production", max_steps=MAX_STEPS, max_tokens=4000)
NAMED = {"final_answer", *(guard.reason for guard in GUARDS)}
"""How a run may end. ``model_error`` is not among them: the server must not fail."""


@attrs.frozen
class Outcome:
    """How a task ended."""

    task: Task
    reason: str
    answer: str
    steps: int
    seconds: float
    problems: Sequence[str]
    """What must not be; none: the task passed."""

    @property
    def is_right(self) -> bool:
        return self.task.is_right(self.answer)


def tried(task: Task, base_url: str, record: Path) -> Outcome:
    """Run the task, with its record in this file, and say what is wrong with the way it ended."""
    begun = time.monotonic()
    try:
        result, pieces = _run(task, base_url, record)
    except Exception as error:  # noqa: BLE001  # whether anything is raised is what is tried
        return Outcome(task, "raised", "", 0, time.monotonic() - begun, [f"{type(error).__name__}: {error}"])
    seconds = time.monotonic() - begun
    return Outcome(task, result.reason, result.answer or "", result.steps, seconds, [*_problems(result, record, pieces)])


def _run(task: Task, base_url: str, record: Path) -> tuple[Result, list[str]]:
    """The result, and the pieces of text that were streamed."""
    pieces: list[str] = []
    on_text = pieces.append if task.way == "streamed" else None
    model = model_from(f"openai:{MODEL}", base_url=base_url, timeout_s=120, max_tokens=MAX_REPLY_TOKENS, temperature=0, **task.options)

    async def awaited() -> Result:
        async with model:
            return await arun(task.text, model=model, tools=[add], guards=GUARDS, protocol="json_text", lang="en", trace=record)

    if task.way == "async":
        return asyncio.run(awaited()), pieces
    with model:
        return run(
            task.text, model=model, tools=[add], guards=GUARDS, protocol="json_text", lang="en", trace=record, on_text=on_text
        ), pieces


def _problems(result: Result, record: Path, pieces: Sequence[str]) -> Iterator[str]:
    if result.reason not in NAMED:
        yield f"it ended as {result.reason}: {result.message}"
    if not 1 <= result.steps <= MAX_STEPS:
        yield f"it took {result.steps} steps; its limit is {MAX_STEPS}"
    trace = load(record)
    replies = [event.reply for event in trace.log if isinstance(event, ModelReplied)]
    for reply in replies:
        if reply.usage is None or not 0 < (reply.usage.completion_tokens or 0) <= MAX_REPLY_TOKENS:
            yield f"a reply's usage is {reply.usage}; its limit is {MAX_REPLY_TOKENS} tokens"
    if pieces and "".join(pieces) != "".join(reply.text for reply in replies):
        yield f"what was streamed is not what was recorded: {''.join(pieces)!r}"
    verdict = verify(trace)
    if verdict.line is not None or verdict.run.reason != result.reason:
        yield f"its record does not hold at line {verdict.line}: {verdict.recorded} became {verdict.replayed}"

"""tau-bench's result files: a list of ``{task_id, trial, reward, info, traj}``, where ``traj`` holds OpenAI chat messages.

A run's key is the task and the trial. A text is talk to the (simulated) user, never an answer: a run ends because the user says
``###STOP###``, because the model hands over to a person, or at the harness's cap, which no mark tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from fsm_agent.traces.recordings.base import Damaged, Ending, Recording, UnreadableError
from fsm_agent.traces.recordings.documents import decode, json_of
from fsm_agent.traces.recordings.openai_chat import ChatMessage, replay_messages, text_of
from fsm_agent.traces.recordings.peek import first_run

ERROR = re.compile(r"\AError")
"""What a failed tool's result starts with."""
STOP = "###STOP###"
"""The user's last word."""
TRANSFER = "transfer_to_human_agents"
CAP_TURNS = 30
"""Assistant messages after which the harness stops a run."""
WHOLE_REWARD = 1.0


class _Task(msgspec.Struct):
    instruction: str | None = None


class _Info(msgspec.Struct):
    task: _Task | None = None


class _Key(msgspec.Struct):
    task_id: int | str
    trial: int | str


class _Run(_Key):
    traj: list[ChatMessage]
    reward: float | None = None
    info: _Info | None = None


class TauBench:
    """The reader."""

    name = "tau-bench"

    def recognises(self, head: bytes, _path: Path, /) -> bool:
        run = first_run(head)
        return "trial" in run and "task_id" in run

    def read(self, path: Path, is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        for i, item in enumerate(json_of(path, list[msgspec.Raw]), 1):
            try:
                yield _recording(decode(item, _Run), is_error or ERROR)
            except UnreadableError as error:
                yield Damaged(f"item {i}{_named(item)}", str(error))


def _named(item: msgspec.Raw) -> str:
    """The key of a damaged run, where that can still be read."""
    try:
        key = decode(item, _Key)
    except UnreadableError:
        return ""
    return f" ({key.task_id}/{key.trial})"


def _recording(run: _Run, is_error: re.Pattern[str]) -> Recording:
    replayed = replay_messages(run.traj, is_error, last_text_answers=False)
    instruction = run.info.task.instruction if run.info and run.info.task else None
    return Recording(
        id=f"{run.task_id}/{run.trial}",
        source=TauBench.name,
        task=replayed.task,
        events=replayed.transcript.end(),
        outcome="unknown" if run.reward is None else "success" if run.reward >= WHOLE_REWARD else "failure",
        score=run.reward,
        ending=_ending(run.traj),
        extra={**replayed.told, **({"instruction": instruction} if instruction else {}), **replayed.transcript.notes()},
    )


def _ending(messages: Sequence[ChatMessage]) -> Ending:
    last = messages[-1]
    if last.role == "user" and STOP in text_of(last.content):
        return "user_stop"
    replies = [message for message in messages if message.role == "assistant"]
    calls = replies[-1].tool_calls or () if replies else ()
    if any(call.function is not None and call.function.name == TRANSFER for call in calls):
        return "transfer"
    return "cap" if len(replies) >= CAP_TURNS else "unknown"

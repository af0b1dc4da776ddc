"""InterCode's result files: a map of runs, each with parallel arrays of thoughts, actions, observations, rewards and ``valid_action``.

``execute[code]`` is a call and ``submit`` the answer: what is submitted is the last result, which ``submit`` echoes, errors included.
Where there is an action more than ``turns_taken``, the harness itself added that ``submit`` at its cap. An output without code is
unparseable; the observation says so, and ``valid_action`` often does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from fsm_agent.events import Reply, ToolRequest
from fsm_agent.traces.recordings.base import Damaged, Recording, UnreadableError
from fsm_agent.traces.recordings.documents import decode, json_of
from fsm_agent.traces.recordings.peek import peek
from fsm_agent.traces.recordings.transcript import Transcript

ERROR = re.compile(r"\AError executing\b")
"""What a failed action's observation starts with; ``valid_action`` false means the same."""
SUBMIT = "submit"
_UNPARSEABLE = re.compile(r"action did not contain \w+ code")
_CALL = re.compile(r"(?<!\w)(?P<tool>\w++)\[")
"""The beginning of a call; its code goes on to the last closing bracket, and what follows that is not run."""
WHOLE_REWARD = 1.0


class _History(msgspec.Struct):
    actions: list[str]
    observations: list[Any]
    thoughts: list[str] | None = None
    rewards: list[float] | None = None
    valid_action: list[bool] | None = None


class _Summary(msgspec.Struct):
    max_reward: float | None = None
    turns_taken: int | None = None


class _Run(msgspec.Struct):
    turn_history: _History
    summary: _Summary = msgspec.field(default_factory=_Summary)
    query: str = ""
    environment: str | None = None
    hardness: str | None = None


class InterCode:
    """The reader."""

    name = "intercode"

    def recognises(self, head: bytes, _path: Path, /) -> bool:
        document = peek(head)
        runs = list(document.values()) if isinstance(document, dict) else []
        return bool(runs) and isinstance(runs[0], dict) and "turn_history" in runs[0]

    def read(self, path: Path, is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        for key, item in json_of(path, dict[str, msgspec.Raw]).items():
            try:
                yield _recording(key, decode(item, _Run), is_error)
            except UnreadableError as error:
                yield Damaged(f"run {key}", str(error))


def _recording(key: str, run: _Run, is_error: re.Pattern[str] | None) -> Recording:
    history, taken = run.turn_history, run.summary.turns_taken
    turns = len(history.actions)
    lengths = {name: len(array) for name in msgspec.structs.asdict(history) if (array := getattr(history, name)) is not None}
    if len(set(lengths.values())) > 1:
        raise UnreadableError(f"its arrays are not parallel: {', '.join(f'{name} {length}' for name, length in lengths.items())}")
    capped = taken is not None and taken < turns and history.actions[-1] == SUBMIT
    transcript, corrections = _replayed(history, turns - capped, is_error)
    last = turns - capped - 1
    told = {
        "thoughts": [history.thoughts[last]] if transcript.answered and history.thoughts else [],
        "corrections": corrections,
        "rewards": history.rewards,
        "environment": run.environment,
        "hardness": run.hardness,
    }
    reward = run.summary.max_reward
    return Recording(
        id=key,
        source=InterCode.name,
        task=run.query,
        events=transcript.end(),
        outcome="unknown" if reward is None else "success" if reward >= WHOLE_REWARD else "failure",
        score=reward,
        ending="cap" if capped else "answer" if transcript.answered else "unknown",
        extra={name: value for name, value in told.items() if value} | transcript.notes(),
    )


def _replayed(history: _History, turns: int, is_error: re.Pattern[str] | None) -> tuple[Transcript, list[str]]:
    """The first ``turns`` turns as events, and what the harness said to outputs that it could not parse."""
    transcript = Transcript()
    corrections: list[str] = []
    rows = zip_longest(
        history.actions[:turns], history.observations[:turns], (history.thoughts or [])[:turns], (history.valid_action or [])[:turns]
    )
    for i, (action, shown, thought, valid) in enumerate(rows):
        observation = shown if isinstance(shown, str) else msgspec.json.encode(shown).decode()
        call = _call(action)
        if action == SUBMIT and i == turns - 1:
            transcript.reply(Reply(observation, taken_as="answer"))
        elif _UNPARSEABLE.search(observation) or (call is None and action != SUBMIT):
            transcript.reply(Reply("\n".join(part for part in (thought, f"Action: {action}") if part), taken_as="unparseable"))
            corrections.append(observation)
        else:
            transcript.reply(Reply(thought or "", (call or ToolRequest("", SUBMIT, "{}"),)))
            failed = valid is False or (is_error or ERROR).search(observation) is not None
            transcript.result(observation, failed=failed, place=f"turn {i + 1}")
    return transcript, corrections


def _call(action: str) -> ToolRequest | None:
    call, end = _CALL.search(action), action.rfind("]")
    if call is None or end < call.end():
        return None
    return ToolRequest("", call["tool"], msgspec.json.encode({"input": action[call.end() : end]}).decode())

"""What recordings of chats have in common: a list of messages, an object with ``messages``, or many of either (a list, or JSON Lines).

Beside ``messages`` an object may say ``id`` (or ``task_id``), ``model``, ``outcome`` (success, failure), ``success`` (true, false) and
``score`` or ``reward``. A text without calls is talk to a person, with one exception: where the task is all that a person ever
said, a text that ends the recording is the answer, as it is for every agent that calls functions in a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from fsm_agent.traces.recordings.base import Damaged, Outcome, Recording, RecordingError, UnreadableError
from fsm_agent.traces.recordings.documents import decode, documents
from fsm_agent.traces.recordings.peek import peek


class _Shape(msgspec.Struct):
    messages: msgspec.Raw = msgspec.Raw()


class Chat(msgspec.Struct, kw_only=True):
    """What an object says of the run whose messages it holds."""

    id: str | int | None = None
    task_id: str | int | None = None
    model: str | None = None
    outcome: str | None = None
    success: bool | None = None
    score: float | None = None
    reward: float | None = None

    def name(self, otherwise: str) -> str:
        """The run's id."""
        told = self.task_id if self.id is None else self.id
        return otherwise if told is None else str(told)

    @property
    def recorded_outcome(self) -> Outcome:
        if self.success is not None:
            return "success" if self.success else "failure"
        return "success" if self.outcome == "success" else "failure" if self.outcome == "failure" else "unknown"

    @property
    def recorded_score(self) -> float | None:
        return self.reward if self.score is None else self.score


def read_chats(path: Path, recording: Callable[[msgspec.Raw, str], Recording]) -> Iterator[Recording | Damaged]:
    """Each run of the file, made by ``recording`` from a list of messages or an object, and the name that it has without an id.

    Raises ``RecordingError`` where the file is one run, and that is damaged.
    """
    number = 0
    for place, document in documents(path):
        for where, item in _runs(document, place):
            number += 1
            try:
                if isinstance(item, UnreadableError):
                    raise item
                yield recording(item, str(number) if where else path.stem)
            except UnreadableError as error:
                if not where:
                    raise RecordingError(f"{path}: {error}") from None
                yield Damaged(where, str(error))


def _runs(document: msgspec.Raw | UnreadableError, place: str) -> Iterator[tuple[str, msgspec.Raw | UnreadableError]]:
    """The document's runs with their places: the document itself, or the items of a list of runs."""
    items = decode(document, list[msgspec.Raw]) if isinstance(document, msgspec.Raw) and starts_with(document, b"[") else []
    if any(starts_with(item, b"[") or (starts_with(item, b"{") and bytes(decode(item, _Shape).messages)) for item in items[:1]):
        for i, item in enumerate(items, 1):
            yield f"{place}, item {i}".removeprefix(", "), item
    else:
        yield place, document


def starts_with(document: msgspec.Raw, sign: bytes) -> bool:
    """Whether the JSON starts with this character."""
    return bytes(memoryview(document)[:64]).lstrip()[:1] == sign


def first_chat(head: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The first run in a file's head: what the object says beside its messages, and the messages; both empty where there is none."""
    document = peek(head)
    first = document[0] if isinstance(document, list) and document else None
    if isinstance(first, list) or (isinstance(first, dict) and "messages" in first):
        document = first
    told = document if isinstance(document, dict) else {}
    messages = told.get("messages") if told else document
    return told, [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []

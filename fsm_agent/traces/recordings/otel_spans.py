"""OpenTelemetry spans from JSON, in the three forms in which they are found.

- OTLP: ``{"resourceSpans": [{"scopeSpans": [{"spans": [...]}]}]}``, attributes as a list of keys and typed values;
- an object with ``spans``, or a list of them, each with a ``context``, as the Python SDK's data look when written down;
- one such object a line (JSON Lines).

Trace ids have 128 bits and span ids 64, whether they are written as numbers or in hexadecimal: they are never read as floats.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
import msgspec

from fsm_agent.traces.recordings.base import Damaged, RecordingError, UnreadableError
from fsm_agent.traces.recordings.chats import starts_with
from fsm_agent.traces.recordings.documents import decode, documents

SECOND_NS = 1_000_000_000


@attrs.frozen
class Span:
    """One finished operation."""

    trace: str
    """Its trace's id, 32 hexadecimal digits."""
    id: str
    """16 hexadecimal digits."""
    parent: str | None
    name: str
    start_ns: int | None
    """In nanoseconds since 1970 UTC; None: not recorded. So ``end_ns``."""
    end_ns: int | None
    failed: bool
    """Its status is an error; most instrumentations leave it unset."""
    problem: str
    """What the status says."""
    attributes: dict[str, Any]

    @property
    def start_s(self) -> float | None:
        """In seconds since 1970 UTC, as events have it. So ``end_s``."""
        return None if self.start_ns is None else self.start_ns / SECOND_NS

    @property
    def end_s(self) -> float | None:
        return None if self.end_ns is None else self.end_ns / SECOND_NS

    @property
    def duration_s(self) -> float | None:
        return None if self.start_ns is None or self.end_ns is None else (self.end_ns - self.start_ns) / SECOND_NS


class _Context(msgspec.Struct):
    trace_id: str | int | None = None
    span_id: str | int | None = None


class _Status(msgspec.Struct):
    status_code: str | int | None = None
    description: str | None = None
    code: str | int | None = None
    message: str | None = None


class _RawSpan(msgspec.Struct, rename={"trace_id": "traceId", "span_id": "spanId", "parent_span_id": "parentSpanId"}):
    name: str = ""
    context: _Context | None = None
    parent: _Context | None = None
    parent_id: str | int | None = None
    start_time: str | int | None = None
    end_time: str | int | None = None
    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    start_ns: str | int | None = msgspec.field(default=None, name="startTimeUnixNano")
    end_ns: str | int | None = msgspec.field(default=None, name="endTimeUnixNano")
    status: _Status | None = None
    attributes: dict[str, Any] | list[dict[str, Any]] | None = None


class _Scope(msgspec.Struct):
    spans: list[msgspec.Raw] = []


class _Resource(msgspec.Struct):
    scope_spans: list[_Scope] = msgspec.field(default=[], name="scopeSpans")


class _File(msgspec.Struct):
    spans: list[msgspec.Raw] | None = None
    resource_spans: list[_Resource] | None = msgspec.field(default=None, name="resourceSpans")
    final_output: Any = None


@attrs.frozen
class Batch:
    """The spans of one document."""

    spans: list[Span]
    damaged: list[Damaged]
    final_output: Any = None
    """What the recording system kept beside the spans."""


def batches(path: Path) -> Iterator[Batch]:
    """The spans of the file, a batch for a document; JSON Lines are one batch. Raises ``RecordingError``."""
    lines: list[Span] = []
    damaged: list[Damaged] = []
    for place, document in documents(path):
        try:
            if isinstance(document, UnreadableError):
                raise document
            batch = _batch(document, place)
        except UnreadableError as error:
            if not place:
                raise RecordingError(f"{path}: {error}") from None
            damaged.append(Damaged(place, str(error)))
            continue
        if not place:
            yield batch
            return
        lines += batch.spans
        damaged += batch.damaged
    yield Batch(lines, damaged)


def _batch(document: msgspec.Raw, place: str) -> Batch:
    final_output = None
    if starts_with(document, b"["):
        items = decode(document, list[msgspec.Raw])
    else:
        file = decode(document, _File)
        items = [document] if file.spans is None else file.spans
        if file.resource_spans is not None:
            items = [item for resource in file.resource_spans for scope in resource.scope_spans for item in scope.spans]
        final_output = file.final_output
    spans: list[Span] = []
    damaged: list[Damaged] = []
    for i, item in enumerate(items, 1):
        try:
            spans.append(_span(decode(item, _RawSpan)))
        except UnreadableError as error:
            damaged.append(Damaged(", ".join(part for part in (place, f"span {i}") if part), str(error)))
    return Batch(spans, damaged, final_output)


def _span(raw: _RawSpan) -> Span:
    context, parent, status = raw.context or _Context(), raw.parent or _Context(), raw.status or _Status()
    code = str(status.status_code if status.code is None else status.code).lower()
    trace = _id(raw.trace_id or context.trace_id, 32)
    its_id = _id(raw.span_id or context.span_id, 16)
    if trace is None or its_id is None:
        raise UnreadableError("the span has no trace id and span id")
    return Span(
        trace,
        its_id,
        _id(raw.parent_span_id or raw.parent_id or parent.span_id, 16),
        raw.name,
        _nanoseconds(raw.start_time if raw.start_ns is None else raw.start_ns),
        _nanoseconds(raw.end_time if raw.end_ns is None else raw.end_ns),
        code.removeprefix("status_code_").removeprefix("statuscode.") in {"error", "2"},
        status.description or status.message or "",
        raw.attributes if isinstance(raw.attributes, dict) else _values(raw.attributes or []),
    )


def _id(value: str | int | None, digits: int) -> str | None:
    if isinstance(value, int):
        return f"{value:0{digits}x}"
    return value.lower().removeprefix("0x").zfill(digits) if value else None


def _nanoseconds(value: str | int | None) -> int | None:
    """Nanoseconds, as a number or its digits, or an ISO 8601 time, as nanoseconds since 1970 UTC."""
    if value is None or isinstance(value, int):
        return value
    if value.isdecimal():
        return int(value)
    try:
        return round(datetime.fromisoformat(value).timestamp() * 1_000_000) * 1_000
    except (ValueError, OverflowError, OSError):
        raise UnreadableError(f"{value[:40]!r} is no time") from None


def _values(pairs: object) -> dict[str, Any]:
    """OTLP's list of keys and typed values as a dict."""
    found = [pair for pair in pairs if isinstance(pair, dict)] if isinstance(pairs, list) else []
    return {str(pair.get("key")): _value(pair.get("value")) for pair in found}


def _value(typed: object) -> Any:
    if not isinstance(typed, dict) or not typed:
        return None
    kind, value = next(iter(typed.items()))
    inner = value.get("values") if isinstance(value, dict) else None
    if kind == "arrayValue":
        return [_value(each) for each in inner] if isinstance(inner, list) else []
    if kind == "kvlistValue":
        return _values(inner)
    return int(value) if kind == "intValue" and isinstance(value, str) and value.removeprefix("-").isdecimal() else value

"""Files of recordings, read within bounds: JSON documents one by one, and text. What is wrong is said in one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from fsm_agent.traces.recordings.base import RecordingError, UnreadableError

HEAD_BYTES = 256 * 1024
"""What a reader is shown of a file to recognise it."""
MOST_BYTES = 256 * 1024 * 1024
"""The largest JSON document or text that is read."""
MOST_LINE_BYTES = 64 * 1024 * 1024
"""The longest line of JSON Lines that is read."""

_BOM = b"\xef\xbb\xbf"

T = TypeVar("T")


def head_of(path: Path) -> bytes:
    """The file's beginning. Raises ``RecordingError`` for what no reader can read, ``OSError`` where it cannot be opened."""
    if path.is_dir():
        raise RecordingError(f"{path} is a directory; give a file")
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head.strip():
        raise RecordingError(f"{path} is empty")
    if b"\0" in head:
        raise RecordingError(f"{path} is a binary file (it holds NUL bytes); recordings are JSON or text")
    return head


def bytes_of(path: Path) -> bytes:
    """The whole file, without a byte order mark. Raises ``RecordingError`` for one that is too large."""
    with path.open("rb") as file:
        data = b"" if path.stat().st_size > MOST_BYTES else file.read(MOST_BYTES + 1)
    if not data or len(data) > MOST_BYTES:
        raise RecordingError(f"{path} is larger than {MOST_BYTES >> 20} MiB; split it, or write it as JSON Lines, one run a line")
    return data.removeprefix(_BOM)


def text_of(path: Path) -> str:
    """The whole file as text, its line breaks as they are in Unix. Raises ``RecordingError`` for one that is too large or not UTF-8."""
    data = bytes_of(path)
    try:
        return data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RecordingError(
            f"{path}, line {line}: this is not UTF-8 (byte 0x{data[error.start]:02x}); convert the file to UTF-8"
        ) from None


def json_of(path: Path, kind: type[T]) -> T:
    """The whole file as one JSON document. Raises ``RecordingError`` for one that is too large, no JSON, or no ``kind``."""
    try:
        return decode(bytes_of(path), kind)
    except UnreadableError as error:
        raise RecordingError(f"{path}: {error}") from None


def documents(path: Path) -> Iterator[tuple[str, msgspec.Raw | UnreadableError]]:
    """The file's JSON documents with their places: one, placed "", or in JSON Lines one a line, an error where a line is no JSON.

    Raises ``RecordingError`` for a file that is neither.
    """
    if not _is_json_lines(path):
        yield "", json_of(path, msgspec.Raw)
        return
    for number, line in _lines(path):
        if line is None:
            yield f"line {number}", UnreadableError(f"the line is longer than {MOST_LINE_BYTES >> 20} MiB")
        elif line.strip():
            try:
                yield f"line {number}", decode(line, msgspec.Raw)
            except UnreadableError as error:
                yield f"line {number}", error


def _is_json_lines(path: Path) -> bool:
    """By the file's name, or because one of its first two lines is a document by itself while the file is none."""
    if path.suffix.lower() in {".jsonl", ".ndjson"}:
        return True
    first: list[bytes] = []
    for _, line in _lines(path):
        first += [line] if line and line.strip() else []
        if len(first) == 2 or line is None:
            break
    if len(first) < 2:
        return False
    return _is_document(first[0]) or (_is_document(first[1]) and not _is_document(bytes_of(path)))


def _lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """The lines with their numbers; None for one that is too long, which is passed over a piece at a time."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MOST_LINE_BYTES + 1):
            number += 1
            if len(line) <= MOST_LINE_BYTES:
                yield number, line.removeprefix(_BOM) if number == 1 else line
                continue
            while line and not line.endswith(b"\n"):
                line = file.readline(HEAD_BYTES)
            yield number, None


def _is_document(text: bytes) -> bool:
    try:
        return text.lstrip()[:1] in {b"{", b"["} and decode(text, msgspec.Raw) is not None
    except UnreadableError:
        return False


def decode(text: bytes | msgspec.Raw, kind: type[T]) -> T:
    """JSON as a ``kind``. Raises ``UnreadableError``, saying where it is broken or what does not fit."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise UnreadableError(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    except RecursionError:
        raise UnreadableError("the JSON is nested too deeply") from None
    try:
        return msgspec.json.decode(_tidy(bytes(text)), type=kind)
    except msgspec.ValidationError as error:
        raise UnreadableError(str(error)) from None


def _tidy(text: bytes) -> bytes:
    """What Python's own ``json`` writes and strict readers refuse, mended: NaN becomes null, a lone surrogate U+FFFD."""
    try:
        value = json.loads(text, parse_constant=lambda _: None)
        mended = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"this is not UTF-8 (byte 0x{text[error.start]:02x} at byte {error.start}); convert the file to UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        cut_off = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        where = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise UnreadableError(f"the JSON is cut off at {where}" if cut_off else f"this is not JSON ({error.msg} at {where})") from None
    except RecursionError:
        raise UnreadableError("the JSON is nested too deeply") from None
    return mended

"""Recognising a JSON file by its beginning: the head, cut off anywhere, as the largest value that is whole in it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from fsm_agent.traces.recordings.base import UnreadableError
from fsm_agent.traces.recordings.documents import decode

_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*+"|["\[\]{},]')
_CLOSING = {b"{": b"}", b"[": b"]"}
_BROKEN_LINES = 8
"""So many lines of JSON Lines may be broken at the beginning of a file that is still recognised."""


@lru_cache(maxsize=2)
def peek(head: bytes) -> Any:
    """The first JSON object or list in ``head``; where it is cut off, what stands before the cut. None: there is none.

    >>> peek(b'[{"role": "user", "content": "It was a dark and sto')
    [{'role': 'user'}]
    """
    text = head.removeprefix(b"\xef\xbb\xbf")
    for _ in range(_BROKEN_LINES):
        text = text.lstrip()
        if text[:1] not in _CLOSING:
            break
        whole, broken_at = _whole_part(text)
        line_end = text.find(b"\n", broken_at)
        try:
            if line_end < 0:
                return decode(whole, object)
        except UnreadableError:
            line_end = text.find(b"\n")
        if line_end < 0:
            break
        text = text[line_end:]
    return None


def _whole_part(text: bytes) -> tuple[bytes, int]:
    """The part of the first value that is whole, its brackets closed; and where the value is broken, or the length of ``text``."""
    opened: list[bytes] = []
    end = 0
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in _CLOSING:
            opened.append(_CLOSING[sign])
        elif sign in {b"]", b"}"}:
            if opened.pop() != sign:
                return b"", token.start()
        elif sign == b'"':  # a string that does not end in its line
            return text[:end] + b"".join(reversed(opened)), token.start()
        elif sign != b",":
            continue
        end = token.start() if sign == b"," else token.end()
        if not opened:
            break
    return text[:end] + b"".join(reversed(opened)), len(text)


def first_run(head: bytes) -> dict[str, Any]:
    """The object that stands first: the document itself, or the first item of a list; empty where it is none."""
    document = peek(head)
    first = document[0] if isinstance(document, list) and document else document
    return first if isinstance(first, dict) else {}

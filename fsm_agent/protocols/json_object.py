"""JSON objects within text that a model wrote: found in one pass, however hostile the text is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from json import JSONDecoder
from typing import Any, NamedTuple, NoReturn

import msgspec

from fsm_agent.text import well_formed

MAX_FALSE_STARTS = 50
"""So many places at which an object seems to begin and does not are looked at; each may cost a scan of the text, no more."""

_START = re.compile(r'\{(?=[ \t\r\n]*["}])')
_FENCE = re.compile(r"\A```[\w+-]*[ \t]*\n?(?P<inside>.*?)\n?[ \t]*```\s*\Z", re.DOTALL)


class Found(NamedTuple):
    """An object in a text, and where it stands."""

    value: dict[str, Any]
    start: int
    end: int


def objects(text: str) -> Iterator[Found]:
    """The outermost JSON objects of ``text``, in order, whatever stands around them.

    A string may hold raw line breaks, which models often write. An object with a number or a string that JSON cannot
    hold (infinite, a lone surrogate) is none.
    """
    at = false_starts = 0
    while false_starts < MAX_FALSE_STARTS and (start := _START.search(text, at)):
        found = object_at(text, start.start())
        if found is None:
            false_starts += 1
            at = start.end()
        else:
            yield found
            at = found.end


def object_at(text: str, at: int) -> Found | None:
    """The JSON object that begins at this character; None where none does."""
    try:
        value, end = _decoder.raw_decode(text, at)
        msgspec.json.encode(value)
    except (ValueError, TypeError, RecursionError):
        return None
    return Found(value, at, end) if isinstance(value, dict) else None


def unfenced(text: str) -> str:
    """``text`` without the white space and the Markdown fence around it."""
    text = text.strip()
    fence = _FENCE.match(text) if text.startswith("```") else None
    return fence["inside"].strip() if fence else text


def json_text(value: object) -> str:
    """A JSON value as its text; text as it is."""
    return well_formed(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _refuse(_constant: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("the number is out of range")
    return number


_decoder = JSONDecoder(strict=False, parse_constant=_refuse, parse_float=_finite)

"""Fields of what a server sent, read without trust: they may be missing, null, or of any type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


def as_mapping(value: object) -> Mapping[str, Any]:
    """An object; anything else is an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> Sequence[Any]:
    """A list; anything else is an empty one."""
    return value if isinstance(value, list | tuple) else ()


def as_text(value: object) -> str:
    """Text, the text of a list of parts, a number as it prints; anything else is empty."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return "".join(text for part in value if isinstance(text := as_mapping(part).get("text"), str))
    return str(value) if isinstance(value, int | float) else ""


def as_json(value: object) -> str:
    """Arguments as JSON text: text as it came, anything else encoded, nothing as nothing."""
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


def as_count(value: object) -> int | None:
    """A number of tokens; anything else, and more than there can be, is not known."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None

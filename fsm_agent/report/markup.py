"""HTML that cannot be broken by what stands in it: text is escaped where it enters, and only this module makes markup of strings.

What a model, a tool or a file said comes in as ``str`` and is shown as text, whatever it is; ``Html`` is what this package wrote.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Literal, NamedTuple

from fsm_agent.text import printable

VOID = frozenset({"meta", "input", "br"})
"""Elements without an end tag."""


class Html(NamedTuple):
    """Markup that is whole and safe."""

    markup: str


Child = Html | str | None
"""What an element holds: markup, text, or nothing."""


def text(value: str) -> str:
    """Text as it is written in HTML, in an element or in an attribute: nothing in it is markup, or turns the reading direction."""
    return escape(printable(value))


def element(name: str, /, *children: Child, **attributes: str | bool | None) -> Html:
    """An element. ``class_`` is the attribute ``class``, ``aria_label`` is ``aria-label``; True is an attribute without a value."""
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None and value is not False)
    if name in VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(children).markup}</{name}>")


def joined(children: Iterable[Child]) -> Html:
    """One after the other."""
    return Html("".join("" if child is None else child.markup if isinstance(child, Html) else text(child) for child in children))


def _attribute(name: str, value: Literal[True] | str) -> str:
    key = name.rstrip("_").replace("_", "-")
    return f" {key}" if value is True else f' {key}="{text(value)}"'

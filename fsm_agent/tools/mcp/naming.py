"""The names under which a model calls the tools of several servers: the servers' own, with the server's in front where two are alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence


def names_of(listed: Sequence[tuple[str, Sequence[str]]], taken: Collection[str] = ()) -> list[list[str]]:
    """A name for each tool of each server, which no other tool has, and none of the ``taken``.

    ``listed``: by server, its name and its tools' names.
    """
    plain = [(_plain(server), [_plain(tool) for tool in tools]) for server, tools in listed]
    often = Counter(tool for _, tools in plain for tool in tools)
    used = set(taken) | {tool for tool, times in often.items() if times == 1}
    named = []
    for server, tools in plain:
        named.append([tool if often[tool] == 1 and tool not in taken else unused(f"{server}_{tool}", used) for tool in tools])
    return named


def unused(name: str, used: set[str]) -> str:
    """``name``, with a number where it is used already. It is used from now on."""
    found, number = name, 1
    while found in used:
        number += 1
        found = f"{name}_{number}"
    used.add(found)
    return found


def numbered(names: Iterable[str]) -> list[str]:
    """The names, with a number at each that stood before."""
    used: set[str] = set()
    return [unused(name, used) for name in names]


def _plain(name: str) -> str:
    """A name that every protocol can write."""
    return re.sub(r"[^\w./:-]+", "_", name) or "_"

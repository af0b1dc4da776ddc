"""The structural reason for halting, read from the rows of the table alone: every cycle passes an edge that spends something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import attrs

from fsm_agent.table import HALTED, PREDICATES, PURE, STATES, Row

PERSON = frozenset({"user_spoke"})
"""The triggers that only a person can pull, each time anew."""

MODEL_CALL = "a model call"


@attrs.frozen
class Structure:
    """What the rows tell."""

    spends: Mapping[str, str]
    """The rows that spend something of which there is so much only, each with what it is."""
    of_a_person: tuple[str, ...]
    """The rows of a cycle that a person has to take each time."""
    free_cycle: tuple[str, ...]
    """A cycle that spends nothing, by its rows; empty: there is none."""
    faults: tuple[str, ...]
    """Rows that break the rules of the table, in one line each."""


def structure_of(rows: Sequence[Row]) -> Structure:
    """Read the rows of a machine."""
    inside = [row for row in rows if row.dest != HALTED]
    spends = [row for row in inside if row.begins_step or row.spends]
    of_a_person = [row for row in inside if row.trigger in PERSON and row not in spends]
    free = [row for row in inside if row not in spends and row not in of_a_person]
    return Structure(
        spends={row.id: row.spends or MODEL_CALL for row in spends},
        of_a_person=tuple(row.id for row in of_a_person),
        free_cycle=tuple(row.id for row in _cycle(free)),
        faults=tuple(_faults(rows)),
    )


def _cycle(rows: Sequence[Row]) -> list[Row]:
    """A cycle of these rows; empty: there is none."""
    for start in STATES:
        ways: dict[str, list[Row]] = {start: []}
        ahead = [start]
        while ahead:
            state = ahead.pop(0)
            for row in rows:
                if row.source == state and row.dest == start:
                    return [*ways[state], row]
                if row.source == state and row.dest not in ways:
                    ways[row.dest] = [*ways[state], row]
                    ahead.append(row.dest)
    return []


def _faults(rows: Sequence[Row]) -> Iterable[str]:
    """The table's rules, each with the rows that break it."""
    for row in rows:
        if row.source == HALTED:
            yield f"{row.id} leaves Halted"
        if (row.dest == HALTED) != (row.reason is not None):
            yield f"{row.id} has the reason {row.reason} and leads to {row.dest}"
    for (source, trigger), group in groupby(sorted(rows, key=_group), key=_group):
        *before, last = group
        if last.guard is not None:
            yield f"{trigger} can be refused in {source}: the last of its rows, {last.id}, has a guard"
        if early := [row.id for row in before if row.guard is None]:
            yield f"{early[0]} stands before other rows of {trigger} in {source}, and is always taken"
    entered = {row.dest for row in rows}
    for state in STATES:
        if state in entered and state != HALTED and not any(row.source == state for row in rows):
            yield f"{state} has no edge out of it"
    for state in PURE:
        if len(triggers := {row.trigger for row in rows if row.source == state}) > 1:
            yield f"{state} has the triggers {', '.join(sorted(triggers))}; the machine pulls one"


def _group(row: Row) -> tuple[str, str]:
    return row.source, row.trigger


def only_stops(rows: Sequence[Row]) -> bool:
    """A guard does nothing but stop a run: its edges lead to Halted, if need be by way of the model's last word."""
    return all(row.dest == HALTED for row in rows if row.guard is not None and row.guard not in PREDICATES)

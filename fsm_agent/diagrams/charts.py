"""The machine as a state chart that other programs run: SCXML, the W3C's XML form, and the JSON of XState.

Guards are *named conditions*: in SCXML booleans of the data model, in XState guards that whoever runs the chart implements. The order
of transitions is that of the table. Halt reasons are final states. The states that a run passes through without waiting
(``PURE``) leave by themselves: in SCXML they raise the table's own event when entered, in XState their transitions are eventless.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

from fsm_agent.diagrams.graph import halted_id
from fsm_agent.diagrams.text import one_line
from fsm_agent.table import HALTED, INITIAL, PREDICATES, PURE, STATES, Row

NAME = "fsm_agent"
SCXML = "http://www.w3.org/2005/07/scxml"
OWN = "urn:fsm-agent"
"""The namespace of what SCXML has no place for: an edge's id, its label, and whether a model call is counted on it."""


def scxml(rows: Sequence[Row], title: str) -> str:
    """The rows as an SCXML document."""
    names, reasons = conditions(rows), _reasons(rows)
    root = ET.Element("scxml", {"xmlns": SCXML, "xmlns:fsm": OWN, "version": "1.0", "name": NAME, "datamodel": "ecmascript"})
    root.set("initial", INITIAL)
    root.set("fsm:title", title)
    data = ET.SubElement(root, "datamodel")
    for name in dict.fromkeys(names.values()):
        ET.SubElement(data, "data", {"id": name, "expr": "false"})
    for state in STATES:
        if state == HALTED:
            continue
        here = ET.SubElement(root, "state", {"id": state})
        own = [row for row in rows if row.source == state]
        if state in PURE:
            ET.SubElement(ET.SubElement(here, "onentry"), "raise", {"event": own[0].trigger})
        for row in own:
            edge = {"event": row.trigger, **({"cond": names[row.id]} if row.guard else {}), "target": _target(row, reasons)}
            counted = {"fsm:begins-step": "true"} if row.begins_step else {}
            ET.SubElement(here, "transition", {**edge, "fsm:edge": row.id, "fsm:label": one_line(row.label, 40), **counted})
    for reason in reasons:
        final = ET.SubElement(root, "final", {"id": halted_id(reasons, reason)})
        ET.SubElement(ET.SubElement(final, "donedata"), "param", {"name": "reason", "expr": json.dumps(reason)})
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def xstate(rows: Sequence[Row], title: str) -> str:
    """The rows as the JSON that XState's ``createMachine`` takes."""
    names, reasons = conditions(rows), _reasons(rows)
    states: dict[str, Any] = {}
    for state in STATES:
        if state == HALTED:
            continue
        groups: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if row.source == state:
                guard = {"guard": names[row.id]} if row.guard else {}
                meta = {"edge": row.id, "trigger": row.trigger, "begins_step": row.begins_step}
                edge = {**guard, "target": _target(row, reasons), "description": one_line(row.label, 40), "meta": meta}
                groups.setdefault(row.trigger, []).append(edge)
        states[state] = {"always": next(iter(groups.values()))} if state in PURE else {"on": groups}
    for reason in reasons:
        states[halted_id(reasons, reason)] = {"type": "final", "tags": ["halted"], "meta": {"reason": reason}}
    chart = {"id": NAME, "description": title, "initial": INITIAL, "states": states}
    return json.dumps(chart, ensure_ascii=False, indent=2) + "\n"


def conditions(rows: Sequence[Row]) -> dict[str, str]:
    """The name of the condition of each row that has one, by the row's id: the guard's, with the reason where several have it.

    A predicate is the same condition in every row that has it.
    """
    guarded = [(row, row.guard) for row in rows if row.guard]
    often = Counter(guard for _, guard in guarded)
    named: dict[str, str] = {}
    for row, guard in guarded:
        if guard in PREDICATES:
            named[row.id] = guard
            continue
        name = wanted = _identifier(guard if often[guard] == 1 else f"{guard}_{row.reason}")
        number = 2
        while name in named.values():
            name, number = f"{wanted}_{number}", number + 1
        named[row.id] = name
    return named


def _identifier(text: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"_{plain}" if plain[:1].isdigit() else plain


def _reasons(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.reason for row in rows if row.reason))


def _target(row: Row, reasons: list[str]) -> str:
    return halted_id(reasons, row.reason or "") if row.dest == HALTED else row.dest

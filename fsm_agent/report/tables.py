"""The audit's tables as HTML, each in a section with one line that says how to read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fsm_agent.audit.audit import Audit
from fsm_agent.audit.figures import POOLED
from fsm_agent.audit.pages import Page, pages
from fsm_agent.diagrams.text import one_line
from fsm_agent.language import Language
from fsm_agent.report.markup import Child, Html, element, joined

CELL_WIDTH = 80
"""Of a cell, in columns: a model or a file may have a name of any length."""
SECTIONS = ("stops", "guards", "limits")
"""Where a table stands: why the runs stopped, what guards do, other limits."""

_NUMBER = re.compile(r"(?:[\d,.]+(?: \([\d.]+%\))?|[-?])?")


class Placed(NamedTuple):
    """A table, and where it stands."""

    section: str
    """One of ``SECTIONS``."""
    html: Html


def tables(audit: Audit, lang: Language, group: str) -> Iterator[Placed]:
    """Every table of the audit. ``group``: what the groups are, such as ``source``."""
    known = _known(audit, lang)
    for i, found in enumerate(pages(audit, lang, group), 1):
        section, hint = known.get(found.title, (SECTIONS[-1], ""))
        yield Placed(section, table(found, f"table-{i}", hint))


def table(found: Page, key: str, hint: str) -> Html:
    """A table under its title, and how to read it. ``key``: its id in the page."""
    numeric = [all(_NUMBER.fullmatch(row[i]) for row in found.rows) for i in range(len(found.columns))]
    classes = ["n" if number else None for number in numeric]
    head = element("tr", *(element("th", name, scope="col", class_=kind) for name, kind in zip(found.columns, classes, strict=True)))
    body = []
    firsts = [row[0] for row in found.rows]
    above = firsts[0] if firsts else ""
    for row in found.rows:
        look = [*(["pooled"] if POOLED in row[:2] else []), *(["begins"] if row[0] != above and len(set(firsts)) < len(firsts) else [])]
        first, *cells = (
            element("td" if i else "th", one_line(cell, CELL_WIDTH), scope=None if i else "row", class_=classes[i])
            for i, cell in enumerate(row)
        )
        body.append(element("tr", first, *cells, class_=" ".join(look) or None))
        above = row[0]
    caption = element("caption", found.title, class_="unseen")
    whole = element("table", caption, element("thead", head), element("tbody", *body))
    said = element("p", hint, class_="hint") if hint else None
    return joined([element("h3", found.title, id=key), said, scrolled(whole, labelled_by=key)])


def scrolled(*children: Child, labelled_by: str | None = None, label: str | None = None) -> Html:
    """What may be wider than the page: it is scrolled by itself, by keyboard too."""
    return element("div", *children, class_="scroll", tabindex="0", role="region", aria_labelledby=labelled_by, aria_label=label)


def _known(audit: Audit, lang: Language) -> dict[str, tuple[str, str]]:
    """By a table's title, its section and how to read it."""
    say = lang.say
    found = {
        say("Runs"): (
            "stops",
            say("A row is a group of runs as they were recorded; the last one holds all of them, where there are several."),
        ),
        say("Halt reasons under {plan}", plan=audit.base.plan.name): (
            "stops",
            say("Why the runs end under these guards. recording_ended: no guard halts the run; in brackets, how its recording ended."),
        ),
        say("Each guard alone, and all together: what they stop and what they kill"): (
            "guards",
            say("Halting a run before its last step stops a failed one and kills a successful one. Read both columns together."),
        ),
        say("Near misses"): (
            "guards",
            say("A guard let these runs pass, and one more would have halted them: the next lower limit meets them."),
        ),
        say("Runs that ended at a cap"): (
            "guards",
            say("Their own system stopped these runs at its cap. Where no guard would have helped, no limit here stops them earlier."),
        ),
        say("What if"): ("limits", say("The same runs under other limits, a column each: compare what is saved with what is killed.")),
    }
    for sweep in audit.sweeps:
        found[say("{limit}: its guard alone", limit=sweep.limit)] = (
            "limits",
            say("A row is a value of {limit} and a group: what the guard of this limit does by itself.", limit=sweep.limit),
        )
        found[say("{limit}: all guards together", limit=sweep.limit)] = (
            "limits",
            say("The same values of {limit} among all guards: what the choice changes in the end.", limit=sweep.limit),
        )
    return found


def pooled_rows(audit: Audit) -> bool:
    """Whether the tables have rows of all runs together."""
    return len(audit.group_names) > 1

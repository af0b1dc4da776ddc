"""A page fitted into a terminal of any size: as many lines as it has rows, none wider than it has columns.

What matters is told by words and brackets as well as by colour. Widths are in a terminal's cells: a Chinese character takes two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs
from rich.cells import cell_len
from rich.text import Text

from fsm_agent.language import Language
from fsm_agent.stepper.items import Item
from fsm_agent.stepper.page import Gauge, Page
from fsm_agent.stepper.wrapping import wrapped
from fsm_agent.table import HALTED, STATES

ROOMY_ROWS = 18
"""From so many rows on, each guard has a line of its own, and parts are set apart by empty lines."""
GAUGE = 10
"""Cells of a gauge."""

CURRENT, HALT, ANSWER, QUIET, HEAD = "bold reverse", "bold red", "bold green", "dim", "cyan"


@attrs.frozen
class Frame:
    """What is drawn: a line for each row of the terminal."""

    lines: list[Text]
    furthest: int
    """How far it can be scrolled."""


def page_frame(page: Page, width: int, height: int, lang: Language, notice: str = "", scroll: int = 0) -> Frame:
    """The page in ``height`` rows. ``notice`` takes the place of the keys in the last line; ``scroll``: so many lines of the
    middle are above it.
    """
    roomy = height >= ROOMY_ROWS
    gap = [Text()] if roomy else []
    head = [_title(page, width), *gap, machine_line(page.state, page.reason, width), *gap]
    middle: list[Text] = [*_edge(page)]
    middle += [_gauge_line(gauge, width) for gauge in page.gauges] if roomy else _joined(page.gauges)
    middle += [*gap, *_items(page.ending, HALT)] if page.ending else []
    middle += [*gap, *_items(page.items, HEAD)] if page.items else []
    middle += [*gap, Text(page.asked, "italic")] if page.asked else []
    return assembled(head, middle, foot(width, lang, notice), width, height, lang, scroll)


def list_frame(title: str, items: Iterable[Item], width: int, height: int, lang: Language, scroll: int = 0) -> Frame:
    """A list with a title, such as the messages, in ``height`` rows."""
    middle = list(_items(items, HEAD))
    return assembled([Text(title, "bold")], middle, Text(lang.say("any other key: back"), QUIET), width, height, lang, scroll)


def assembled(head: Sequence[Text], middle: Sequence[Text], last: Text, width: int, height: int, lang: Language, scroll: int) -> Frame:
    """Head, as much of the middle as fits, and the last line. What does not fit is counted."""
    top = list(head[: max(height - 2, 0)])
    body = [piece for line in middle for piece in wrapped(line, width)]
    room = max(height - len(top) - 1, 0)
    furthest = max(len(body) - room, 0)
    first = min(scroll, furthest)
    shown = body[first : first + room]
    hidden = len(body) - first - len(shown)
    if hidden and len(shown) > 1:
        more = lang.count("… {n} more line (down)", "… {n} more lines (down)", hidden + 1)
        shown[-1] = Text(more, QUIET)
    rows = [*top, *shown, *[Text()] * (height - 1 - len(top) - len(shown)), last]
    lines = [fitted(line, width) for line in rows[:height]]
    return Frame([*lines[:-1], fitted(lines[-1], width - 1)], furthest)  # the corner stays free: some terminals scroll when it is filled


def machine_line(state: str, reason: str, width: int) -> Text:
    """The states in a row, the current one in brackets; shortened where the terminal is narrow."""
    here = f"{HALTED}({reason})" if state == HALTED and reason else state
    for between, short in ((" - ", 99), (" ", 99), (" ", 3), (" ", 1)):
        parts = [(f"[{here}]", CURRENT) if each == state else (each[:short], "") for each in STATES]
        line = Text(between).join(Text(text, style) for text, style in parts)
        if cell_len(line.plain) <= width:
            return line
    return Text(f"[{here}]", CURRENT)


def foot(width: int, lang: Language, notice: str) -> Text:
    """The last line: what there is to say, or the keys."""
    if notice:
        return Text(notice, "bold")
    for keys in (
        lang.say("n next, p back, g/G ends, t be the model, m messages, b branch, ? help, q quit"),
        lang.say("n next p back t type ? help q quit"),
    ):
        if cell_len(keys) <= width:
            return Text(keys, QUIET)
    return Text("n p t ? q", QUIET)


def _title(page: Page, width: int) -> Text:
    title, place = Text(page.title, "bold"), Text(page.place)
    space = width - cell_len(page.title) - cell_len(page.place)
    if space >= 1:
        return Text.assemble(title, " " * space, place)
    return place


def _edge(page: Page) -> Iterator[Text]:
    style = HALT if page.reason and page.reason != "final_answer" else ANSWER if page.reason else "bold"
    yield Text.assemble((page.edge, style), f"  {page.label}")


def _gauge_line(gauge: Gauge, width: int) -> Text:
    full = GAUGE if gauge.limit <= 0 else max(min(int(GAUGE * gauge.value / gauge.limit), GAUGE), 0)
    bar = f"[{'#' * full}{'-' * (GAUGE - full)}]"
    text = Text.assemble(f"  {bar} ", (gauge.shown, HALT if gauge.mark else ""))
    return text if cell_len(text.plain) <= width else Text(gauge.shown, HALT if gauge.mark else "")


def _joined(gauges: Sequence[Gauge]) -> list[Text]:
    return [Text(" · ").join(Text(gauge.shown, HALT if gauge.mark else "") for gauge in gauges)] if gauges else []


def _items(items: Iterable[Item], style: str) -> Iterator[Text]:
    for item in items:
        first, *more = item.text.split("\n")
        yield Text.assemble((f"{item.head}: ", style), first)
        yield from (Text(f"  {line}") for line in more)


def fitted(line: Text, width: int) -> Text:
    """The line, cut where it is too wide."""
    line = line.copy()
    line.rstrip()
    line.truncate(max(width, 1), overflow="ellipsis")
    return line

"""A position of the stepper in words: which edge was taken, what came with it, what the guards read, and why the run halted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import attrs

from fsm_agent.diagrams.readings import number, words
from fsm_agent.diagrams.text import one_line
from fsm_agent.events import Message
from fsm_agent.guards import Guard, Reading
from fsm_agent.language import Language
from fsm_agent.machine import Run
from fsm_agent.outcome import halting_reading, message_of
from fsm_agent.stepper.branch import Moment, Stop
from fsm_agent.stepper.items import Item, items_of, requests_text, summed_up
from fsm_agent.stepper.stepper import Stepper
from fsm_agent.table import HALTED, INITIAL
from fsm_agent.text import printable
from fsm_agent.wording import heading

MOST_SHOWN = 4_000
"""Characters of one text that are shown; of a longer one, the rest is counted."""

MOST_HEAD = 200
"""Columns of a heading."""
MOST_MESSAGES = 50
"""Of a longer history, the last are shown."""


@attrs.frozen
class Gauge:
    """What a guard read."""

    label: str
    value: int | float
    limit: int | float
    mark: str = ""
    """That it trips or warns, in a word; empty: it does neither."""

    @property
    def shown(self) -> str:
        """In few words, such as ``errors 1/2``."""
        return f"{self.label} {number(self.value)}/{number(self.limit)}" + (f" ({self.mark})" if self.mark else "")


@attrs.frozen
class Page:
    """All that is shown of a position."""

    title: str
    place: str
    """The edge's number and the step's, and the branch where there are several."""
    state: str
    """The current state."""
    reason: str
    """Of a run that halted here; else empty."""
    edge: str
    """From where to where."""
    label: str
    """The edge in a person's words."""
    gauges: tuple[Gauge, ...]
    items: tuple[Item, ...]
    ending: tuple[Item, ...]
    """Where the run halted: why, and what that rests on."""
    asked: str
    """Where the model is about to be asked: that it is, and how to answer in its place."""


def page_of(stepper: Stepper, lang: Language) -> Page:
    """The page of the stepper's position."""
    moment, run = stepper.moment, stepper.branch.run
    title = printable(" ".join(stepper.script.title.split()))
    asked = _asked(stepper, lang)
    if moment is None:
        task = Item(lang.say("the task"), _cut(run.task, lang))
        return Page(title, _place(stepper, None, lang), INITIAL, "", f"start -> {INITIAL}", lang.say("start"), (), (task,), (), asked)
    row = moment.row
    reason = printable(row.reason) if row.reason is not None else ""
    dest = f"{HALTED}({reason})" if row.dest == HALTED else row.dest
    gauges = tuple(_gauge(reading, run.wiring.guards, lang) for reading in moment.taken.readings)
    items = tuple(_fit(item, lang) for item in items_of(moment, run, lang))
    ending = tuple(_ending(run, lang)) if row.dest == HALTED else ()
    return Page(
        title,
        _place(stepper, moment, lang),
        row.dest,
        reason,
        f"{row.source} -> {dest}",
        words(row.label, lang),
        gauges,
        items,
        ending,
        asked,
    )


def shown_messages(stepper: Stepper, lang: Language) -> tuple[Item, ...]:
    """The history at the cursor, as the model is shown it."""
    history, moment = stepper.branch.run.history, stepper.moment
    count = moment.messages if moment else len(stepper.script.pristine.history)
    hidden = summed_up(history, moment.summary if moment else None)
    places = [place for place in range(count) if place not in hidden or place == hidden[0]]
    earlier = len(places) - MOST_MESSAGES
    items = [Item("…", lang.count("{n} earlier message", "{n} earlier messages", earlier))] if earlier > 0 else []
    for place in places[-MOST_MESSAGES:]:
        if moment and moment.summary and place in hidden:
            items.append(_fit(Item(heading(moment.summary, lang), moment.summary.summary), lang))
        else:
            items.append(_message(history[place], lang))
    return tuple(items)


def stopped(stop: Stop, lang: Language) -> str:
    """Why there is no next edge, in one sentence."""
    match stop:
        case "halted":
            return lang.say("the run has halted: no edge leads out of Halted")
        case "recording_ended":
            return lang.say("the recording ends here")
        case "script_ended":
            return lang.say("nothing says what the model would reply here: type it (t)")
        case _:
            assert_never(stop)


def _place(stepper: Stepper, moment: Moment | None, lang: Language) -> str:
    say, end = lang.say, stepper.known_end
    if moment is None:
        place = say("before the first edge")
    elif not moment.taken.step:
        place = say("edge {k}, before step 1", k=moment.number)
    elif end is None:
        place = say("edge {k}, step {step}", k=moment.number, step=moment.taken.step)
    else:
        place = say("edge {k} of {n}, step {step}", k=moment.number, n=end, step=moment.taken.step)
    if len(stepper.branches) == 1:
        return place
    return say("branch {k} of {n}: {place}", k=stepper.number + 1, n=len(stepper.branches), place=place)


def _asked(stepper: Stepper, lang: Language) -> str:
    if not stepper.asks_model:
        return ""
    moment = stepper.moment
    count = moment.messages if moment else len(stepper.script.pristine.history)
    hidden = summed_up(stepper.branch.run.history, moment.summary if moment else None)
    count -= max(len(hidden) - 1, 0)
    text = lang.count(
        "next, the model is asked; it is shown {n} message (m)", "next, the model is asked; it is shown {n} messages (m)", count
    )
    return text if stepper.script.why_not else lang.say("{text}; t: answer in its place", text=text)


def _gauge(reading: Reading, guards: tuple[Guard, ...], lang: Language) -> Gauge:
    label = next((guard.edge().label for guard in guards if guard.reason == reading.guard), reading.guard)
    mark = lang.say("trips") if reading.trips else lang.say("warns") if reading.warns else ""
    return Gauge(words(label, lang), reading.value, reading.limit, mark)


def _ending(run: Run, lang: Language) -> Iterator[Item]:
    if run.reason != "final_answer":  # whose message is the answer, which is there already
        yield Item(lang.say("why"), _cut(message_of(run, lang), lang))
    reading = halting_reading(run)
    for each in reading.evidence if reading else ():
        yield Item(lang.say("step {step}", step=each.step), _cut(each.text, lang))


def _message(message: Message, lang: Language) -> Item:
    parts = (message.content, requests_text(message.tool_calls))
    return _fit(Item(f"{message.role} {message.tool}".strip(), "\n".join(part for part in parts if part)), lang)


def _fit(item: Item, lang: Language) -> Item:
    """Fit for a terminal."""
    head = one_line(f"{item.head} ({item.note})" if item.note else item.head, MOST_HEAD)
    return Item(head, _cut(item.text, lang))


def _cut(text: str, lang: Language) -> str:
    """Text that others wrote, fit for a terminal, and no more of it than can be read."""
    more = len(text) - MOST_SHOWN
    shown = printable(text[:MOST_SHOWN].replace("\r\n", "\n").expandtabs(4))
    return f"{shown}\n" + lang.count("… and {n} more character", "… and {n} more characters", more) if more > 0 else shown

"""A position of the stepper in words: which edge was taken, what came with it, what the guards read, and why the run halted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import attrs

from fsm_agent.diagrams.readings import number, words
from fsm_agent.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptFailed,
    Cancelled,
    ContextCompacted,
    Decision,
    Event,
    Final,
    Malformed,
    Message,
    ModelFailed,
    ModelReplied,
    Observation,
    RecordingEnded,
    Reply,
    Said,
    ToolCalls,
    ToolsFailed,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.guards import Guard, Reading
from fsm_agent.language import Language
from fsm_agent.machine import Run
from fsm_agent.outcome import halting_reading, message_of
from fsm_agent.stepper.branch import Moment, Stop
from fsm_agent.stepper.stepper import Stepper
from fsm_agent.table import HALTED, INITIAL
from fsm_agent.text import printable
from fsm_agent.wording import details, heading

MOST_SHOWN = 4_000
"""Characters of one text that are shown; of a longer one, the rest is counted."""

MOST_MESSAGES = 50
"""Of a longer history, the last are shown."""


@attrs.frozen
class Item:
    """Something that was said or done: a heading, and its text."""

    head: str
    text: str


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
    items = (*_of_moment(moment, lang), *_warnings(moment, run, lang))
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
    run = stepper.branch.run
    count = stepper.moment.messages if stepper.moment else len(stepper.script.pristine.history)
    first = max(count - MOST_MESSAGES, 0)
    earlier = [Item("…", lang.count("{n} earlier message", "{n} earlier messages", first))] if first else []
    return (*earlier, *(_message(message, lang) for message in run.history[first:count]))


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
    count = stepper.moment.messages if stepper.moment else len(stepper.script.pristine.history)
    text = lang.count(
        "next, the model is asked; it is shown {n} message (m)", "next, the model is asked; it is shown {n} messages (m)", count
    )
    return text if stepper.script.why_not else lang.say("{text}; t: answer in its place", text=text)


def _gauge(reading: Reading, guards: tuple[Guard, ...], lang: Language) -> Gauge:
    label = next((guard.edge().label for guard in guards if guard.reason == reading.guard), reading.guard)
    mark = lang.say("trips") if reading.trips else lang.say("warns") if reading.warns else ""
    return Gauge(words(label, lang), reading.value, reading.limit, mark)


def _of_moment(moment: Moment, lang: Language) -> Iterator[Item]:
    if moment.decision is not None:
        yield from _of_decision(moment.decision, lang)
    elif moment.row.trigger != "observed":
        yield from _of_event(moment.event, lang, typed=moment.typed)


def _of_event(event: Event, lang: Language, *, typed: bool) -> Iterator[Item]:
    say = lang.say
    match event:
        case ModelReplied(reply=reply):
            yield Item(say("you said, as the model") if typed else say("the model said"), _cut(_said(reply), lang))
        case ModelFailed(error=error, message=message):
            yield Item(say("the model failed"), _cut(f"{error}: {message}", lang))
        case ToolsReturned(observations=observations) | Cancelled(observations=observations):
            for seen in observations:
                yield Item(_returned(seen, lang), _cut(seen.text, lang))
        case UserSpoke(text=text):
            yield Item(say("a person said"), _cut(text, lang))
        case AttemptFailed() | ContextCompacted() | ApprovalAsked() | ApprovalGiven():
            yield Item(heading(event, lang), _cut(details(event, lang), lang))
        case ToolsFailed(observations=observations):
            yield Item(heading(event, lang), _cut(details(event, lang), lang))
            for seen in observations:
                yield Item(_returned(seen, lang), _cut(seen.text, lang))
        case RecordingEnded():
            return
        case _:
            assert_never(event)


def _of_decision(decision: Decision, lang: Language) -> Iterator[Item]:
    say = lang.say
    match decision:
        case ToolCalls(calls=calls, thought=thought):
            if thought:
                yield Item(say("thought"), _cut(thought, lang))
            for call in calls:
                yield Item(say("call"), _cut(str(call), lang))
        case Final(answer=answer):
            yield Item(say("answer"), _cut(answer, lang))
        case Said(text=text):
            yield Item(say("said to a person"), _cut(text, lang))
        case Malformed(problem=problem):
            yield Item(say("goes back to the model"), _cut(problem, lang))
        case _:
            assert_never(decision)


def _warnings(moment: Moment, run: Run, lang: Language) -> Iterator[Item]:
    """What a guard told the model on a nudge: the last messages of this moment."""
    if moment.row.id == "nudge":
        count = sum(reading.warns for reading in moment.taken.readings)
        for message in run.history[moment.messages - count : moment.messages]:
            yield Item(lang.say("warning to the model"), _cut(message.content, lang))


def _ending(run: Run, lang: Language) -> Iterator[Item]:
    if run.reason != "final_answer":  # whose message is the answer, which is there already
        yield Item(lang.say("why"), _cut(message_of(run, lang), lang))
    reading = halting_reading(run)
    for each in reading.evidence if reading else ():
        yield Item(lang.say("step {step}", step=each.step), _cut(each.text, lang))


def _returned(seen: Observation, lang: Language) -> str:
    tool = printable(seen.tool)
    return lang.say("{tool} failed ({kind})", tool=tool, kind=seen.kind) if seen.is_error else lang.say("{tool} returned", tool=tool)


def _message(message: Message, lang: Language) -> Item:
    calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
    return Item(
        printable(f"{message.role} {message.tool}".strip()), _cut("\n".join(part for part in (message.content, *calls) if part), lang)
    )


def _said(reply: Reply) -> str:
    return "\n".join(part for part in (reply.text, *(f"{call.name}({call.arguments})" for call in reply.tool_calls)) if part)


def _cut(text: str, lang: Language) -> str:
    """Text that others wrote, fit for a terminal, and no more of it than can be read."""
    more = len(text) - MOST_SHOWN
    shown = printable(text[:MOST_SHOWN].replace("\r\n", "\n").expandtabs(4))
    return f"{shown}\n" + lang.count("… and {n} more character", "… and {n} more characters", more) if more > 0 else shown

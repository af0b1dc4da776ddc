"""The stepper without a terminal: a line of input is a command, and each position is a few plain lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fsm_agent.language import Language
from fsm_agent.stepper.items import Item
from fsm_agent.stepper.page import page_of, shown_messages, stopped
from fsm_agent.stepper.stepper import Stepper
from fsm_agent.text import printable


def play(stepper: Stepper, commands: Iterable[str], lang: Language, write: Callable[[str], None]) -> None:
    """Show the position, then what each line of ``commands`` leads to, until ``q`` or their end.

    An empty line, ``n`` or ``next`` goes to the next edge; ``t REPLY`` is the model's reply; ``?`` lists the others.
    """
    for line in shown(stepper, lang):
        write(line)
    for command in commands:
        word, _, rest = command.strip().partition(" ")
        if word in {"q", "quit"}:
            return
        for line in answer(stepper, word, rest.strip(), lang):
            write(line)


def answer(stepper: Stepper, word: str, rest: str, lang: Language) -> Iterator[str]:
    """Do one command, and give the lines that it leads to."""
    say = lang.say
    match word:
        case "" | "n" | "next":
            stop = stepper.next()
            yield from shown(stepper, lang) if stop is None else [stopped(stop, lang)]
        case "p" | "back":
            yield from shown(stepper, lang) if stepper.back() else [say("this is the beginning")]
        case "g" | "home":
            stepper.first()
            yield from shown(stepper, lang)
        case "G" | "end":
            stepper.last()
            yield from shown(stepper, lang)
        case "m":
            yield from _items(shown_messages(stepper, lang))
        case "b":
            yield from shown(stepper, lang) if stepper.switch() else [say("there is no other branch: type a reply (t) to make one")]
        case "t" if not rest:
            yield say("after t comes the model's reply, as in: {example}", example="t TOOL add a=3,b=4")
        case "t":
            why_not = stepper.why_not_type(lang)
            if not why_not:
                stepper.type_reply(rest)
            yield from [why_not] if why_not else shown(stepper, lang)
        case "?" | "h" | "help":
            yield from usage(lang)
        case _:
            yield say("{word} is no command; ? lists them", word=repr(printable(word[:20])))


def usage(lang: Language) -> list[str]:
    """The commands, a line each."""
    say = lang.say
    return [
        say("n or an empty line: the next edge"),
        say("p: the edge before"),
        say("g, G: the beginning, the end"),
        say("t REPLY: be the model, and say REPLY"),
        say("b: the next branch, where you made one"),
        say("m: the messages that the model is shown"),
        say("q: leave"),
    ]


def shown(stepper: Stepper, lang: Language) -> list[str]:
    """The position in plain lines."""
    page = page_of(stepper, lang)
    lines = [page.title] if stepper.moment is None else []
    lines.append(f"[{page.place}] {page.edge}  {page.label}")
    lines += _items(page.items)
    if page.gauges:
        lines.append("  " + lang.say("guards: {readings}", readings=" · ".join(gauge.shown for gauge in page.gauges)))
    lines += _items(page.ending)
    return [*lines, f"  {page.asked}"] if page.asked else lines


def _items(items: Iterable[Item]) -> Iterator[str]:
    for item in items:
        first, *more = item.text.split("\n")
        yield f"  {item.head}: {first}".rstrip()
        yield from (f"    {line}".rstrip() for line in more)

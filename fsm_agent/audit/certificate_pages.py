"""A halt certificate for people: sentences, and tables of text."""

from __future__ import annotations

from collections.abc import Iterator

from fsm_agent.audit.certificate import Certificate, Counter
from fsm_agent.audit.changes import Change
from fsm_agent.audit.figures import shown
from fsm_agent.audit.pages import Page
from fsm_agent.guards import MaxSteps, Reading
from fsm_agent.language import Language
from fsm_agent.text import first_line

_CALL_SHOWN = 60
"""Characters of a call that the headline has room for."""
_MESSAGE_SHOWN = 300
"""Characters of the headline, whatever it quotes."""


def head(certificate: Certificate, lang: Language) -> Iterator[str]:
    """What happened, in a few lines."""
    ended = certificate.ended
    yield certificate.title
    calls = lang.count("{n} model call", "{n} model calls", ended.step)
    if ended.reason is None:
        yield lang.say("Not halted; its events end at step {step}, {calls}", step=ended.step, calls=calls)
    else:
        yield lang.say("Halted({reason}) at step {step}, {calls}", reason=ended.reason, step=ended.step, calls=calls)
    if certificate.answer is None:
        yield _short(certificate)
    else:
        yield lang.say("answer: {answer}", answer=first_line(certificate.answer))
    yield from _verdict(certificate, lang)


def _short(certificate: Certificate) -> str:
    """The end in one sentence, with the calls that it quotes shortened: the evidence, and the JSON, have them whole."""
    message = certificate.message
    for each in certificate.evidence:
        if len(each.text) > _CALL_SHOWN:
            message = message.replace(each.text, first_line(each.text, _CALL_SHOWN))
    return first_line(message, _MESSAGE_SHOWN)


def _verdict(certificate: Certificate, lang: Language) -> Iterator[str]:
    """Was it right to stop?"""
    if certificate.ended.beyond:
        yield lang.say(
            "No guard here halts it where it was stopped when it was recorded ({ending}); what would have come is beyond the recording.",
            ending=certificate.ending,
        )
        if certificate.ending == "cap":
            yield lang.say("No guard would have helped.")
    if certificate.false_kill:
        yield lang.count(
            "A false kill: the run succeeded when it was recorded, {n} model call later.",
            "A false kill: the run succeeded when it was recorded, {n} model calls later.",
            certificate.saved,
        )
    elif certificate.saved and certificate.outcome == "failure":
        yield lang.count(
            "The run failed when it was recorded: {n} model call is saved.",
            "The run failed when it was recorded: {n} model calls are saved.",
            certificate.saved,
        )
    elif certificate.outcome != "unknown":
        yield lang.say(
            "recorded outcome: {outcome}", outcome=lang.say("success") if certificate.outcome == "success" else lang.say("failure")
        )


def pages(certificate: Certificate, lang: Language) -> Iterator[Page]:
    """The evidence, what every guard read, and the limits that would have changed the end."""
    if certificate.evidence:
        rows: list[tuple[str, ...]] = [(str(each.step), each.kind, each.text) for each in certificate.evidence]
        yield Page(lang.say("Evidence"), [lang.say("step"), lang.say("kind"), lang.say("what")], rows)
    if certificate.counters:
        columns = [lang.say("guard"), lang.say("limits"), lang.say("last reading"), lang.say("closest before"), lang.say("verdict")]
        yield Page(
            lang.say("Every guard, with its limits"), columns, [_counter(counter, certificate, lang) for counter in certificate.counters]
        )
    if certificate.tried.changes:
        columns = [lang.say("limit"), lang.say("was"), lang.say("then")]
        yield Page(
            lang.say("The smallest change of each limit that changes the end"),
            columns,
            [_change(change, lang) for change in certificate.tried.changes],
        )


def foot(certificate: Certificate, lang: Language) -> Iterator[str]:
    """What is to be said beside the tables."""
    if certificate.tried.without:
        yield lang.say("No other value of these limits changes the end: {limits}.", limits=", ".join(certificate.tried.without))
    if all(counter.guard != MaxSteps.reason for counter in certificate.counters):
        yield lang.say("There is no cap on steps among these guards; give max_steps to try one out.")


def _counter(counter: Counter, certificate: Certificate, lang: Language) -> tuple[str, ...]:
    limits = ", ".join(f"{name}={_value(value)}" for name, value in counter.limits.items() if value is not None)
    verdict = {
        counter.last is None: lang.say("not judged"),
        counter.let_pass: lang.say("let it pass"),
        counter.last is not None and counter.last.trips: lang.say("would have halted it too"),
        counter.last is not None and counter.last.trips and certificate.answer is not None: lang.say("overruled by the answer"),
        counter.halted: lang.say("halted the run"),
    }
    return counter.guard, limits, _read(counter.last, counter.step, lang), _read(counter.closest, counter.closest_step, lang), verdict[True]


def _read(reading: Reading | None, step: int, lang: Language) -> str:
    if reading is None:
        return ""
    value = lang.say("at least {value}", value=shown(reading.value)) if reading.unknown else shown(reading.value)
    return lang.say("{value} of {limit} at step {step}", value=value, limit=shown(reading.limit), step=step)


def _change(change: Change, lang: Language) -> tuple[str, ...]:
    ended = change.ended
    if ended.beyond:
        then = lang.say("it would have gone on, beyond the recording")
    elif ended.reason is None:
        then = lang.say("it would not have been halted")
    else:
        then = lang.say("Halted({reason}) at step {step}", reason=ended.reason, step=ended.step)
    return f"{change.limit}={_value(change.value)}", _value(change.was), then


def _value(value: object) -> str:
    """A limit as it is written in ``--limits``."""
    return str(value).lower() if isinstance(value, bool) else str(value)

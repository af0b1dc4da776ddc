"""What each lesson's exercise asks for: the demands that an answer must meet, whatever it looks like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fsm_agent.guards import classic, production
from fsm_agent.language import Language
from fsm_agent.lessons.checking import Attempt, Exercise, Finding, FindLimits, Played, WriteScenario
from fsm_agent.outcome import answer_of

Under = Callable[[str, dict[str, Any]], Played]


# --- what the demands are made of ---


def _ends(played: Played, reason: str, lang: Language, who: str = "") -> Finding:
    """It halts with this reason."""
    say = lang.say
    who = who or say("your scenario")
    if not played.reason:
        return Finding(met=False, text=say("{who} does not halt within {n} steps", who=who, n=played.run.step))
    ended = say("{who} halts as {reason}, after {calls}", who=who, reason=played.reason, calls=_calls(played.run.step, lang))
    if played.reason == reason:
        return Finding(met=True, text=ended)
    return Finding(met=False, text=say("{ended}; it should halt as {wanted}", ended=ended, wanted=reason))


def _calls(count: int, lang: Language) -> str:
    return lang.count("{n} model call", "{n} model calls", count)


def _within(played: Played, reason: str, most: int, lang: Language, who: str) -> Finding:
    """It halts with this reason, soon enough."""
    found = _ends(played, reason, lang, who)
    if not found.met or played.run.step <= most:
        return found
    return Finding(met=False, text=lang.say("{ended}; {calls} are enough", ended=found.text, calls=_calls(most, lang)))


def _counted(met: bool, found: str, wanted: str, lang: Language) -> Finding:  # noqa: FBT001  # it is the finding itself
    return Finding(met, found if met else lang.say("{found}; {wanted}", found=found, wanted=wanted))


def _failed(played: Played, lang: Language) -> tuple[int, str]:
    """How many calls failed, and that in words."""
    count = sum(seen.is_error for _, seen in played.made)
    return count, lang.count("{n} call failed", "{n} calls failed", count)


# --- lesson by lesson ---


def _loop(attempt: Attempt, lang: Language) -> Iterator[Finding]:
    played = attempt.played
    yield _ends(played, "final_answer", lang)
    made = len(played.made)
    yield _counted(
        made == 3,
        lang.count("{n} tool call was made", "{n} tool calls were made", made),
        lang.say("it should go round the loop three times, with one call each time"),
        lang,
    )
    failed, said = _failed(played, lang)
    yield _counted(failed == 0, said, lang.say("none should"), lang)


def _written_back(attempt: Attempt, lang: Language) -> Iterator[Finding]:
    played, say = attempt.played, lang.say
    yield _ends(played, "final_answer", lang)
    used = next(
        (
            (seen.text, after)
            for (_, seen), (after, _) in zip(played.made, played.made[1:], strict=False)
            if not seen.is_error and seen.text in {str(value) for value in after.arguments.values()}
        ),
        None,
    )
    found = (
        say("no call takes what the call before it returned") if used is None else say("{call} takes {value}", call=used[1], value=used[0])
    )
    yield _counted(used is not None, found, say("one should have it as an argument"), lang)
    last = played.made[-1][1].text if played.made else ""
    told = bool(last) and last in (answer_of(played.run) or "")
    yield _counted(
        told,
        say("the answer tells the last observation") if told else say("the answer does not tell the last observation"),
        say("it should"),
        lang,
    )


def _answer_kept(limits: dict[str, Any], under: Under, lang: Language) -> Iterator[Finding]:
    cap = limits.get("max_steps")
    if cap is None:
        yield Finding(met=False, text=lang.say("max_steps is not given; this exercise is about it"))
        return
    yield _ends(under("trip", limits), "final_answer", lang, f"trip.toml, max_steps={cap}")
    if cap > 1:
        yield _ends(under("trip", {**limits, "max_steps": cap - 1}), "max_steps", lang, f"trip.toml, max_steps={cap - 1}")


def _mended(attempt: Attempt, lang: Language) -> Iterator[Finding]:
    played, say = attempt.under(classic()), lang.say
    yield _ends(played, "final_answer", lang)
    failed, said = _failed(played, lang)
    yield _counted(failed >= 2, said, say("at least two should"), lang)
    good = sum(not seen.is_error for _, seen in played.made)
    yield _counted(good >= 1, lang.count("{n} call succeeded", "{n} calls succeeded", good), say("at least one should"), lang)


def _breaker(limits: dict[str, Any], under: Under, lang: Language) -> Iterator[Finding]:
    yield _ends(under("slow", limits), "final_answer", lang, "slow.toml")
    yield _within(under("hopeless", limits), "consecutive_errors", 5, lang, "hopeless.toml")


def _circle(attempt: Attempt, lang: Language) -> Iterator[Finding]:
    yield from _under_both(attempt, "max_steps", "no_progress", lang)


def _cap(limits: dict[str, Any], under: Under, lang: Language) -> Iterator[Finding]:
    yield _ends(under("long", limits), "final_answer", lang, "long.toml")
    yield _within(under("d", limits), "max_steps", 12, lang, lang.say("scenario d"))


def _order(attempt: Attempt, lang: Language) -> Iterator[Finding]:
    played, say = attempt.played, lang.say
    yield _ends(played, "consecutive_errors", lang)
    tripped = [reading.guard for reading in played.last_readings if reading.trips]
    names = ", ".join(tripped) or say("none")
    found = say("at the last edge these trip: {names}", names=names)
    yield _counted({"consecutive_errors", "max_steps"} <= set(tripped), found, say("consecutive_errors and max_steps both should"), lang)


def _production(attempt: Attempt, lang: Language) -> Iterator[Finding]:
    yield from _under_both(attempt, "consecutive_errors", "final_answer", lang)


def _under_both(attempt: Attempt, classic_reason: str, production_reason: str, lang: Language) -> Iterator[Finding]:
    """It ends so under the one preset, and so under the other, with the same cap."""
    cap = attempt.scenario.limits.max_steps
    yield _ends(attempt.under(classic(max_steps=cap)), classic_reason, lang, lang.say("under classic, your scenario"))
    yield _ends(attempt.under(production(max_steps=cap)), production_reason, lang, lang.say("under production, your scenario"))


EXERCISES: dict[int, Exercise] = {
    1: WriteScenario(_loop),
    2: WriteScenario(_written_back),
    3: FindLimits(_answer_kept),
    4: WriteScenario(_mended),
    5: FindLimits(_breaker),
    6: WriteScenario(_circle),
    7: FindLimits(_cap),
    8: WriteScenario(_order),
    9: WriteScenario(_production),
}
"""By the lesson's number."""

"""What the player says by itself, in the language of its reader. ``{k}`` and the like are filled in by ``player.js``."""

from __future__ import annotations

from fsm_agent.language import Language


def spoken(lang: Language) -> dict[str, str]:
    """By the name that ``player.js`` calls it by."""
    say = lang.say
    return {
        "beginning": say("before the first edge"),
        "place": say("edge {k} of {n}, step {step}", k="{k}", n="{n}", step="{step}"),
        "early": say("edge {k} of {n}, before step 1", k="{k}", n="{n}"),
        "way": say("{source} to {dest}: {label}", source="{source}", dest="{dest}", label="{label}"),
        "start": say("start"),
        "seconds": say("{seconds} s after the start", seconds="{seconds}"),
        "now": say("now"),
        "task": say("the task"),
        "nothing": say("(nothing)"),
        "silent": say("Nothing is said on this edge."),
        "more": say("show all {n} characters", n="{n}"),
        "less": say("show less"),
        "all": say("show all {n}", n="{n}"),
        "judged": say("judged in {state}, just now", state="{state}"),
        "judgedAt": say("judged in {state}, last at step {step}", state="{state}", step="{step}"),
        "notJudged": say("judged in {state}, not yet", state="{state}"),
        "trips": say("trips"),
        "warns": say("warns"),
        "atLeast": say("at least"),
        "reading": say("{value} of {limit}", value="{value}", limit="{limit}"),
        "noReading": say("not judged yet"),
        "step": say("step {step}", step="{step}"),
        "also": say("also tripped: {readings}", readings="{readings}"),
        "earlier": say("earlier messages: {n}", n="{n}"),
        "play": say("Play"),
        "pause": say("Pause"),
    }


def keys(lang: Language) -> tuple[tuple[str, str], ...]:
    """Each key and what it does."""
    say = lang.say
    return (
        ("→", say("the next edge")),
        ("←", say("the edge before")),
        ("Shift →, Shift ←", say("the next step, the step before")),
        ("Home", say("the beginning")),
        ("End", say("the end")),
        (say("Space"), say("play, pause")),
        ("+, −", say("faster, slower")),
        ("?", say("these keys")),
    )

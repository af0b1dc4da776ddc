"""Players within the page: a run that is worth a look, stepped through edge by edge.

What was said in it is cut, so that the page stays small. Players wait in ``<template>`` elements until ``page.js`` puts them on the page,
which is when a run is opened for the first time. Another part of the page tells the run as text, so a player's own timeline is left out.
"""

from __future__ import annotations

import msgspec

from fsm_agent.language import Language
from fsm_agent.machine import Run, Taken
from fsm_agent.player import player_fragment
from fsm_agent.player.embed import safe_json
from fsm_agent.report.markup import Html, element

MOST_EDGES = 1_000
"""A run that has more is not stepped through in the page."""
MOST_TEXT = 40_000
"""Characters of one run, all that was said in it together."""
CUTS = (2_000, 1_000, 500, 200, 80)
"""At how many characters each text is cut: at the first of these with which all of them are few enough, else at the last."""

_DATA = '<script type="application/json">'


def player(run: Run, title: str, key: str, lang: Language) -> Html:
    """A player of ``run``, or why there is none. ``key``: unique in the page."""
    if sum(isinstance(entry, Taken) for entry in run.log) > MOST_EDGES:
        return element(
            "p", lang.say("It is too long to be stepped through here; `fsm-agent draw` makes a page of it alone."), class_="hint"
        )
    before, begun, rest = player_fragment(run, title, key, lang, level=4).partition(_DATA)
    packed, closed, after = rest.partition("</script>")
    data = msgspec.json.decode(packed)
    data["texts"] = shortened(data["texts"])
    frame, _, told = before.partition("<noscript>")
    whole = Html(f"{frame}{told.partition('</noscript>')[2]}{begun}{safe_json(data)}{closed}{after}")
    return element("template", whole, class_="player")


def shortened(texts: list[str]) -> list[str]:
    """The texts, each cut so that they come to few enough characters together."""
    fitting = (cut for cut in CUTS if sum(min(len(text), cut) for text in texts) <= MOST_TEXT)
    cut = next(fitting, CUTS[-1])
    return [text if len(text) <= cut else f"{text[:cut]}…" for text in texts]

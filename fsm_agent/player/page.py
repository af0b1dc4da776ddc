"""The page: the frame in ``player.html``, its words, the picture and the data put together. The same run gives the same page."""

from __future__ import annotations

from functools import lru_cache
from html import escape
from importlib.resources import files
from string import Template

from fsm_agent.diagrams import machine_view, path_view
from fsm_agent.diagrams.text import one_line
from fsm_agent.language import Language
from fsm_agent.machine import Run, Taken
from fsm_agent.player.colours import COLOURS, variables
from fsm_agent.player.data import packed
from fsm_agent.player.embed import content_policy, safe_json, safe_text
from fsm_agent.player.picture import picture_of
from fsm_agent.player.svg import svg_of
from fsm_agent.player.words import keys

HTML_LANG = {"en": "en", "zh": "zh-CN"}
SPEEDS = (0.5, 1, 2, 5, 10, 50)
"""Edges a second."""
USUAL_SPEED = 2
PAGE_ID = "run"
SCRIPTS = ("text.js", "picture.js", "gauges.js", "said.js", "player.js")
PAGE_STYLE = f""":root {{ color-scheme: light dark; }}
body {{ margin: 0; background: light-dark({", ".join(COLOURS["ground"])}); }}
main {{ max-width: 84rem; margin: 0 auto; padding: 0 clamp(0.4rem, 2vw, 2rem) 1.5rem; }}
"""


def player_page(run: Run, title: str, lang: Language | None = None) -> str:
    """``run`` as one page that needs nothing beside it: HTML with its style, its script and all that was said.

    ``title`` names the run; ``lang`` is by default the language in which its model was spoken to.
    """
    lang = lang or run.protocol.lang
    style, script = PAGE_STYLE + player_style(), player_script()
    heading = one_line(title, 200) or lang.say("A run")
    return (
        f'<!DOCTYPE html>\n<html lang="{HTML_LANG[lang.code]}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy([style], [script])}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(heading)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        f"{player_fragment(run, heading, PAGE_ID, lang, level=1)}</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def player_fragment(run: Run, title: str, id: str, lang: Language | None = None, *, level: int = 2) -> str:  # noqa: A002  # what HTML calls it
    """A player of ``run`` to be put into a page of one's own, which has ``player_style()`` and ``player_script()`` once.

    ``id`` is its own on that page: letters, digits, ``-`` and ``_``, a letter first; the page's fragment ``#id=12`` goes to its edge 12.
    ``level`` is that of its heading. Raises ``ValueError`` for another ``id`` or ``level``.
    """
    if not (id.isascii() and id.replace("-", "").replace("_", "").isalnum() and id[0].isalpha()):
        raise ValueError(f"id is {id!r}; it must be letters, digits, - and _, and begin with a letter")
    if not 1 <= level <= 5:
        raise ValueError(f"level is {level}; it must be 1 to 5")
    lang = lang or run.protocol.lang
    say = lang.say
    view = path_view(run, "", lang)
    machine = machine_view(run.wiring.guards, lang, run.options.features)
    none = "" if run.wiring.guards else f"<p>{escape(say('This run has no guards.'))}</p>"
    told = {
        "id": id,
        "lang": HTML_LANG[lang.code],
        "title": one_line(title, 200),
        "summary": view.graph.title,
        "edges": str(sum(isinstance(entry, Taken) for entry in run.log)),
        "timeline": safe_text(view.text),
        "controls": say("Controls"),
        "first": say("the beginning"),
        "back": say("the edge before"),
        "play": say("Play"),
        "space": say("Space"),
        "next": say("the next edge"),
        "last": say("the end"),
        "position": say("Edge"),
        "speed": say("Edges a second"),
        "keys": say("Keys"),
        "machine": say("The machine"),
        "legend": say("▶ and wide: the edge just taken. ● and wide: the state it is in now. ×: how often taken so far. Dashed: not yet."),
        "happened": say("In this step"),
        "guards": say("Guards"),
        "shown": say("Messages that the model is shown:"),
        "close": say("Close"),
    }
    markup = {
        "level": f"h{level}",
        "sub": f"h{level + 1}",
        "svg": svg_of(picture_of(run.wiring.rows, lang), machine.graph.title, machine.text, lang),
        "none": none,
        "speeds": "".join(f"<option{' selected' if each == USUAL_SPEED else ''}>{each:g}</option>" for each in SPEEDS),
        "listed": "".join(f'<tr><th scope="row">{escape(key)}</th><td>{escape(does)}</td></tr>' for key, does in keys(lang)),
        "data": safe_json(packed(run, lang)),
    }
    return Template(_file("player.html")).substitute({name: escape(text) for name, text in told.items()} | markup)


def player_style() -> str:
    """The style of every player on a page, for one ``<style>`` element. Light or dark is the page's own ``color-scheme``."""
    return variables() + _file("player.css")


def player_script() -> str:
    """What starts every player on a page, for one ``<script>`` element at the end of its body."""
    return "\n".join(("(() => {", '"use strict";', *map(_file, SCRIPTS), "})();", ""))


@lru_cache
def _file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")

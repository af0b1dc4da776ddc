"""How a run is shown inside a page: the one place to change to show it otherwise."""

from __future__ import annotations

import re
from html import escape
from itertools import count

import attrs

from fsm_agent.diagrams import View, path_view, render
from fsm_agent.diagrams.palette import DARK, LIGHT, Theme
from fsm_agent.language import Language
from fsm_agent.machine import Run
from fsm_agent.player import player_fragment

_ID = re.compile(r'(?<=[ \n])(id|aria-labelledby|aria-describedby)="([^"]*)"')
_STYLE = re.compile(r' style="[^"]*"')
_REFERENCE = re.compile(r'(href="#|url\(#)')
_numbers = count(1)


def embed(run: Run, name: str, caption: str, lang: Language) -> str:
    """The run, as HTML for the body of a page: its path as inline SVG, and under it a player, whose heading is the caption.

    ``name`` is the run's own on the page, as ids are. The page has the player's style and script, and allows them.
    """
    drawn = figure(path_view(run, "", lang), caption)
    return f'<div class="run">{drawn}{player_fragment(run, caption, name, lang, level=2)}</div>'


def figure_style() -> str:
    """What makes the pictures dark for those who read on dark ground: each colour of the one theme is that of the other."""
    pairs = [(getattr(LIGHT, field.name), getattr(DARK, field.name)) for field in attrs.fields(Theme)]
    rules = [f'.picture [{what}="{light}"] {{ {what}: {dark}; }}' for light, dark in pairs for what in ("fill", "stroke")]
    return "\n".join(("@media (prefers-color-scheme: dark) {", *rules, "}", ""))


def figure(view: View, label: str) -> str:
    """A picture. Its ids are unique, so that a page can hold many, and it has no style of its own, which the page's policy would refuse."""
    svg = render(view, "svg").decode()
    svg = svg[svg.index("<svg") :].rstrip()
    prefix = f"figure{next(_numbers)}-"
    svg = _ID.sub(lambda found: f'{found[1]}="{" ".join(prefix + each for each in found[2].split())}"', svg)
    svg = _STYLE.sub("", _REFERENCE.sub(lambda found: found[1] + prefix, svg), count=1)
    named = escape(label or view.graph.title)
    return f'<figure><div class="picture" tabindex="0" role="group" aria-label="{named}">{svg}</div></figure>'

"""How a run is shown inside a page: the one place to change to show it otherwise."""

from __future__ import annotations

import re
from itertools import count

from fsm_agent.diagrams import View, machine_view, path_view, render
from fsm_agent.language import Language
from fsm_agent.machine import Run

_ID = re.compile(r'(?<=[ \n])(id|aria-labelledby|aria-describedby)="([^"]*)"')
_REFERENCE = re.compile(r'(href="#|url\(#)')
_numbers = count(1)


def embed(run: Run, caption: str, lang: Language) -> str:
    """The run, as HTML that stands by itself in the body of a page: its path as inline SVG."""
    return figure(path_view(run, "", lang), caption)


def embed_machine(lang: Language) -> str:
    """The whole machine, as HTML."""
    return figure(machine_view(lang=lang), "")


def figure(view: View, caption: str) -> str:
    """A picture with its caption. Its ids are unique, so that a page can hold many."""
    from html import escape

    svg = render(view, "svg").decode()
    svg = svg[svg.index("<svg") :].rstrip()
    prefix = f"figure{next(_numbers)}-"
    svg = _ID.sub(lambda found: f'{found[1]}="{" ".join(prefix + each for each in found[2].split())}"', svg)
    svg = _REFERENCE.sub(lambda found: found[1] + prefix, svg)
    words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    label = escape(caption or view.graph.title)
    return f'<figure><div class="picture" tabindex="0" role="group" aria-label="{label}">{svg}</div>{words}</figure>'

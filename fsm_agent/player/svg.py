"""The laid out machine as inline SVG. How it looks is in ``player.css``; what is current is set by ``player.js``."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from fsm_agent.language import Language
from fsm_agent.player.picture import Picture
from fsm_agent.player.shapes import LINE, Box, Line, Words, down_head
from fsm_agent.table import HALTED, STATES


def svg_of(picture: Picture, name: str, description: str, lang: Language) -> str:
    """The picture. ``name`` and ``description`` tell it to those who do not see it."""
    return "".join(_parts(picture, name, description, lang))


def _parts(picture: Picture, name: str, description: str, lang: Language) -> Iterator[str]:
    here = lang.say("now here")
    yield f'<svg class="fsm-svg" viewBox="0 0 {picture.width:g} {picture.height:g}" preserveAspectRatio="xMidYMin" '
    yield f'role="img" aria-label="{escape(name)}"><desc>{escape(description)}</desc>'
    halted = picture.states[HALTED]
    yield f'<g class="fsm-state fsm-halted" data-state="{HALTED}">{_rect(halted, 9)}{_rect(_inset(halted, 3), 7)}'
    yield _text(HALTED, halted.x + halted.width / 2, halted.y + 21, "fsm-name")
    yield f"{_text(f'● {here}', halted.x + halted.width / 2, halted.y + 34, 'fsm-here')}</g>"
    x, y = picture.start
    first = picture.states[STATES[0]]
    yield f'<g class="fsm-start"><circle cx="{x:g}" cy="{y:g}" r="5"/><path d="{picture.first}"/>'
    yield f'<path class="fsm-head" d="{down_head(x, first.y)}"/></g><g class="fsm-edges">'
    for line in picture.lines:
        yield from _line(line)
    yield "</g>"
    for state, box in picture.states.items():
        if state != HALTED:
            middle = box.x + box.width / 2
            yield f'<g class="fsm-state" data-state="{state}">{_rect(box, 9)}{_text(state, middle, box.middle + 5, "fsm-name")}'
            yield f"{_text(f'● {here}', middle, box.middle + 14, 'fsm-here')}</g>"
    yield "</svg>"


def _line(line: Line) -> Iterator[str]:
    row = line.row
    kind = " fsm-loop" if row.source == row.dest else ""
    if row.reason:
        kind = " fsm-answers" if row.reason == "final_answer" else " fsm-stops"
    yield f'<g class="fsm-edge{kind}" data-row="{" ".join(map(str, line.indices))}"><path class="fsm-path" d="{line.path}"/>'
    yield f'<path class="fsm-head" d="{line.head}"/>'
    if line.chip is not None:
        yield f"{_rect(line.chip, line.chip.height / 2)}<title>{escape(row.reason or '')}</title>"
    words = line.words
    turned = f' transform="rotate(-90 {words.x:g} {words.y:g})"' if words.upright else ""
    yield f'<text class="fsm-words" x="{words.x:g}" y="{words.y:g}" text-anchor="{words.anchor}"{turned}>'
    yield f"{''.join(_told(words, chip=line.chip is not None))}</text></g>"


def _told(words: Words, *, chip: bool) -> Iterator[str]:
    """The lines, a mark for the edge just taken, and how often it was taken, which a halt is only once."""
    mark, count = '<tspan class="fsm-mark"></tspan>', '<tspan class="fsm-count"></tspan>'
    first, *more = map(escape, words.lines)
    yield first if words.below else f"{mark}{first}"
    for line in more:
        yield f'<tspan x="{words.x:g}" dy="{LINE:g}">{line}</tspan>'
    if words.below:
        yield f'<tspan x="{words.x:g}" dy="{LINE + 1:g}">{mark}{count}</tspan>'
    elif not chip:
        yield f" {count}"


def _rect(box: Box, radius: float) -> str:
    return f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="{radius:g}"/>'


def _inset(box: Box, by: float) -> Box:
    return Box(box.x + by, box.y + by, box.width - 2 * by, box.height - 2 * by)


def _text(text: str, x: float, y: float, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="middle">{escape(text)}</text>'

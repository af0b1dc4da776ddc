"""Pictures within the page: SVG that holds shapes and text alone, in colours that follow the reader's light or dark.

A page that allows no inline styles draws none, so styles become attributes. Ids are made the picture's own, since many stand in a page.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from html import escape

from fsm_agent.diagrams import palette
from fsm_agent.report.markup import Html

ELEMENTS = frozenset({"svg", "g", "path", "text", "polygon", "polyline", "ellipse", "circle", "rect", "line", "defs", "clipPath", "use"})
"""What a picture may be made of; anything else is left out."""
ATTRIBUTES = frozenset(
    {
        *("viewBox", "transform", "d", "points", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "rx", "ry", "r", "width", "height"),
        *("fill", "fill-opacity", "opacity", "clip-path", "font-family", "font-size", "font-weight", "text-anchor"),
        *("stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin"),
    }
)
DARK: Mapping[str, str] = {
    palette.GROUND: "#14181d",
    "white": "#14181d",
    palette.INK: "#e6eaef",
    palette.QUIET: "#a9b4c0",
    palette.STATE: "#263241",
    palette.STOP: "#f2ab6d",
    palette.STOP_FILL: "#3a2a14",
    palette.ANSWER: "#7cc4f0",
    palette.ANSWER_FILL: "#12303f",
    palette.FIRST: "#cda8ec",
    palette.SECOND: "#5fcaca",
    "#1a1a1a": "#e6eaef",
    "#000000": "#e6eaef",
    "#d0d0d0": "#3a444f",
    "#0072b2": "#5ab4e5",
    "#d55e00": "#ff9a4d",
    "#007a5a": "#4cc39a",
    "#9a5b8a": "#d59ac6",
    "#8a6d00": "#d6b94a",
    "#3a7ca5": "#8ec3e0",
}
"""The colours of diagrams and charts, each with the one that takes its place on a dark page."""

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_LOCAL = re.compile(r"(?:url\()?#([\w.-]+)\)?")


def picture(svg: bytes, key: str, title: str, described_by: str) -> Html:
    """An SVG of this package's own as part of the page. ``key``: unique in the page; ``described_by``: the id of what tells it in words."""
    root = ET.fromstring(_NOT_XML.sub("\ufffd", svg.decode()))  # noqa: S314  # of this package's own making
    width, height = (_points(root.get(name, "0")) for name in ("width", "height"))
    head = {
        "role": "img",
        "class": "picture",
        "aria-labelledby": f"{key}-title",
        "aria-describedby": described_by,
        "viewBox": root.get("viewBox", f"0 0 {width:g} {height:g}"),
        "width": f"{width:g}",
        "height": f"{height:g}",
    }
    inside = "".join(_written(child, key) for child in root)
    return Html(f'<svg{_attributes(head)}><title id="{key}-title">{_text(title)}</title>{inside}</svg>')


def dark_rules() -> str:
    """The style rules that turn the pictures' colours on a dark page."""
    rules = (f'.picture [{name}="{light}"]{{{name}:{dark}}}' for light, dark in DARK.items() for name in ("fill", "stroke"))
    return f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}"


def _written(node: ET.Element, key: str) -> str:
    name = node.tag.removeprefix(_SVG)
    if name not in ELEMENTS:
        return ""
    inside = (_text(node.text) if name == "text" else "") + "".join(_written(child, key) for child in node)
    return f"<{name}{_attributes(dict(_kept(node, name, key)))}>{inside}</{name}>"


def _kept(node: ET.Element, name: str, key: str) -> Iterator[tuple[str, str]]:
    """The attributes that may stay, those of ``style`` among them."""
    styles = (part.partition(":") for part in node.get("style", "").split(";"))
    for attribute, value in (*node.items(), *((style.strip(), value.strip()) for style, _, value in styles)):
        local = _LOCAL.fullmatch(value)
        if attribute == "id" and name in {"path", "clipPath"}:
            yield "id", f"{key}-{value}"
        elif attribute == _HREF and local:
            yield "href", f"#{key}-{local[1]}"
        elif attribute == "clip-path" and local:
            yield "clip-path", f"url(#{key}-{local[1]})"
        elif attribute in ATTRIBUTES and "url(" not in value:
            yield attribute, " ".join(value.split()) if attribute == "d" else value


def _attributes(attributes: Mapping[str, str]) -> str:
    return "".join(f' {name}="{_text(value)}"' for name, value in attributes.items())


def _text(value: str | None) -> str:
    return escape(value or "")


def _points(length: str) -> float:
    """A length in CSS pixels."""
    return round(float(length.removesuffix("pt")) * (4 / 3 if length.endswith("pt") else 1), 2)

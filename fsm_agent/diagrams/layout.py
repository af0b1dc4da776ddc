"""DOT text to a picture, by the Graphviz that ``pygraphviz`` carries: no program has to be installed, and none is started."""

from __future__ import annotations

import re
import threading
import zlib
from html import escape

_LOCK = threading.Lock()
"""Graphviz is not thread-safe: one layout at a time, from parsing to freeing."""

PNG_DPI = 144


class LayoutError(ValueError):
    """DOT text that Graphviz cannot draw, or a format that it does not know."""


def lay_out(source: str, form: str) -> bytes:
    """The picture of DOT text in a format of Graphviz's, such as ``svg``, ``png`` or ``pdf``. Raises ``LayoutError``."""
    import pygraphviz

    with _LOCK:
        try:
            graph = pygraphviz.AGraph(string=source)
        except (ValueError, pygraphviz.DotError) as error:
            raise LayoutError(f"not DOT text: {error}") from None
        try:
            if form == "png":
                graph.graph_attr["dpi"] = str(PNG_DPI)
            return bytes(graph.draw(format=form, prog="dot"))
        except (ValueError, OSError) as error:
            raise LayoutError(f"cannot draw {form}: {error}") from None
        finally:
            graph.close()


def described_svg(svg: str, title: str, description: str) -> str:
    """A Graphviz SVG with a title and a description that a screen reader finds, as wide as there is room."""
    key = f"{zlib.crc32(f'{title}{description}'.encode()):08x}"
    attributes = f'role="img" aria-labelledby="title-{key} desc-{key}" style="max-width:100%;height:auto" '
    told = f'<title id="title-{key}">{escape(title)}</title>\n<desc id="desc-{key}">{escape(description)}</desc>\n'
    start = svg.index("<svg ")
    body = svg.index(">", start) + 1
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<svg {attributes}{svg[start + 5 : body]}\n'
    return head + told + re.sub(r"<!--.*?-->\n?", "", svg[body:].lstrip(), flags=re.DOTALL)

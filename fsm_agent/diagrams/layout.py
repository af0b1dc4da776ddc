"""DOT text to a picture, by the Graphviz that ``pygraphviz`` carries: no program has to be installed, and none is started."""

from __future__ import annotations

import os
import re
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from html import escape
from tempfile import TemporaryFile

_LOCK = threading.Lock()
"""Graphviz is not thread-safe: one layout at a time, from parsing to freeing."""
_fonts_read = threading.Event()
"""Set after the first layout of the process, which reads the configuration of the system's fonts."""

PNG_DPI = 144
"""Twice as fine as the 72 points to the inch of the other formats, for screens of today."""


class LayoutError(ValueError):
    """DOT text that Graphviz cannot draw, or a format that it does not know."""


def lay_out(source: str, form: str) -> bytes:
    """The picture of DOT text in a format of Graphviz's, such as ``svg``, ``png`` or ``pdf``. Raises ``LayoutError``."""
    import pygraphviz

    with _LOCK, nullcontext() if _fonts_read.is_set() else _font_warnings_held():
        _fonts_read.set()
        try:
            graph = pygraphviz.AGraph(string=source)
        except (ValueError, pygraphviz.DotError) as error:
            raise LayoutError(f"not DOT text: {error}") from None
        try:
            if form == "png":
                graph.graph_attr["dpi"] = str(PNG_DPI)
            return bytes(graph.draw(format=form, prog="dot"))
        except (ValueError, TypeError, OSError) as error:  # TypeError: how pygraphviz meets an unknown format
            raise LayoutError(f"cannot draw the format {form!r}: {error}") from None
        finally:
            graph.close()


@contextmanager
def _font_warnings_held() -> Iterator[None]:
    """Within, the process's standard error is held back; then all of it is passed on but the font library's warnings.

    The library warns of files of newer systems that it cannot read and does not need, straight to the file descriptor.
    """
    try:
        stderr = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    with TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            held.seek(0)
            for line in held:
                if not line.startswith(b"Fontconfig warning"):
                    os.write(2, line)


def described_svg(svg: str, title: str, description: str) -> str:
    """A Graphviz SVG with a title and a description that a screen reader finds; it shrinks where there is less room."""
    key = f"{zlib.crc32(f'{title}{description}'.encode()):08x}"  # several drawings may stand in one page
    start = svg.index("<svg ")
    body = svg.index(">", start) + 1
    head = f'<svg role="img" aria-labelledby="title-{key} desc-{key}" style="max-width:100%;height:auto" {svg[start + 5 : body]}'
    told = f'<title id="title-{key}">{escape(title)}</title>\n<desc id="desc-{key}">{escape(description)}</desc>'
    drawn = re.sub(r"<!--.*?-->\n?", "", svg[body:].lstrip(), flags=re.DOTALL)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{told}\n{drawn}'

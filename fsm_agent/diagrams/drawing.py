"""A ``graphviz.Digraph`` that draws itself in process, in notebooks too: no ``dot`` program is needed."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import graphviz

from fsm_agent.diagrams import dot
from fsm_agent.diagrams.graph import View
from fsm_agent.diagrams.layout import described_svg, lay_out
from fsm_agent.diagrams.palette import LIGHT, Theme


class Drawing(graphviz.Digraph):  # type: ignore[misc]  # graphviz has no type hints
    """The digraph of a view. It can be changed like any other; a copy of it has no view, hence no description.

    ``pipe`` and ``render`` use the ``dot`` program only where they are given an engine or an option that it alone knows.
    """

    view_drawn: View | None = None

    def pipe(self, format: str | None = None, *args: Any, encoding: str | None = None, **options: Any) -> Any:  # noqa: A002  # graphviz's name
        """The picture: bytes, or text with ``encoding``."""
        if args or options.keys() - {"quiet"} or self.engine != "dot":
            return super().pipe(format, *args, encoding=encoding, **options)
        data = self.picture(format or self.format)
        return data if encoding is None else data.decode(encoding)

    def picture(self, form: str) -> bytes:
        """The picture in a format of Graphviz's; an SVG has a title and a description. Raises ``LayoutError``."""
        data = lay_out(self.source, form)
        if form == "svg" and self.view_drawn is not None:
            graph = self.view_drawn.graph
            data = described_svg(data.decode(), graph.title, graph.description).encode()
        return data

    def render(
        self,
        filename: str | PathLike[str] | None = None,
        directory: str | PathLike[str] | None = None,
        view: bool = False,  # noqa: FBT001, FBT002  # graphviz's signature
        cleanup: bool = False,  # noqa: FBT001, FBT002  # graphviz's signature
        format: str | None = None,  # noqa: A002  # graphviz's name
        **options: Any,
    ) -> str:
        """Write DOT text to ``filename`` and the picture beside it, as ``filename.svg``, and give the picture's path."""
        if options.keys() - {"quiet", "quiet_view"} or self.engine != "dot":
            return str(super().render(filename, directory=directory, view=view, cleanup=cleanup, format=format, **options))
        source = Path(self.save(filename, directory=directory))
        form = format or self.format
        picture = source.with_name(f"{source.name}.{form}")
        picture.write_bytes(self.picture(form))
        if cleanup:
            source.unlink()
        if view:
            import webbrowser

            webbrowser.open(picture.resolve().as_uri())
        return str(picture)


def drawing_of(view: View, theme: Theme = LIGHT) -> Drawing:
    """The digraph of a view."""
    drawing = Drawing(view.graph.name, format="svg")
    drawing.view_drawn = view
    dot.fill(drawing, view.graph, theme)
    return drawing

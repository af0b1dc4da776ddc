"""A ``graphviz.Digraph`` that draws itself in process, in notebooks too: no ``dot`` program is needed."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import graphviz

from fsm_agent.diagrams import dot
from fsm_agent.diagrams.graph import View
from fsm_agent.diagrams.layout import described_svg, lay_out


class Drawing(graphviz.Digraph):  # type: ignore[misc]  # graphviz has no type hints
    """The digraph of a view. It can be changed like any other; a copy has no view and hence no description."""

    view_of: View | None = None
    """What it was drawn from."""

    def pipe(self, format: str | None = None, *args: Any, encoding: str | None = None, **options: Any) -> bytes | str:  # noqa: A002  # graphviz's name
        """The picture as bytes, or as text with ``encoding``. Options that only the ``dot`` program knows are passed on to it."""
        if args or options.keys() - {"quiet"} or self.engine != "dot":
            return super().pipe(format, *args, encoding=encoding, **options)  # type: ignore[no-any-return]  # untyped
        form = format or self.format
        data = lay_out(self.source, form)
        if form == "svg" and self.view_of is not None:
            graph = self.view_of.graph
            data = described_svg(data.decode(), graph.title, graph.description).encode()
        return data if encoding is None else data.decode(encoding)

    def render(
        self,
        filename: str | PathLike[str] | None = None,
        directory: str | PathLike[str] | None = None,
        *,
        view: bool = False,
        cleanup: bool = False,
        format: str | None = None,
        **options: Any,
    ) -> str:  # noqa: A002  # graphviz's name
        """Write DOT text to ``filename`` and the picture beside it, and give the picture's path."""
        if options.keys() - {"quiet", "quiet_view"} or self.engine != "dot":
            return super().render(filename, directory, view=view, cleanup=cleanup, format=format, **options)  # type: ignore[no-any-return]  # untyped
        source = Path(self.save(filename, directory))
        picture = source.with_name(f"{source.name}.{format or self.format}")
        picture.write_bytes(self.pipe(format or self.format))
        if cleanup:
            source.unlink()
        if view:
            import webbrowser

            webbrowser.open(picture.resolve().as_uri())
        return str(picture)


def drawing_of(view: View) -> Drawing:
    """The digraph of a view."""
    drawing = Drawing(view.graph.name)
    drawing.format = "svg"
    drawing.view_of = view
    dot.fill(drawing, view.graph)
    return drawing

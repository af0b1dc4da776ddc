"""The formats in which a run can be drawn, by the endings of files. Whatever draws, or offers to, has them from here."""

from __future__ import annotations

PICTURES = ("svg", "png", "pdf", "dot", "mermaid", "text")
"""What a view can be rendered to."""

CHARTS = {".scxml": "scxml", ".json": "xstate"}
"""State charts, which are made of the machine alone: by the endings of files."""

ENDINGS = {
    ".svg": "svg",
    ".png": "png",
    ".pdf": "pdf",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".txt": "text",
    ".html": "html",
}
"""A format by the ending of a file: each of the pictures, and ``html``, the page in which a run is stepped through."""

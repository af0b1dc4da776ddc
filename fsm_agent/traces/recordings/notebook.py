"""Jupyter notebooks whose cells print ReAct logs, as the ReAct paper's own runs were published.

A cell's output comes in chunks that are cut anywhere, also in the middle of a run: they are joined first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import msgspec

from fsm_agent.traces.recordings.base import Damaged, Recording, RecordingError
from fsm_agent.traces.recordings.documents import json_of
from fsm_agent.traces.recordings.peek import first_run
from fsm_agent.traces.recordings.react_log import looks_like_log, runs_of

Text = str | list[str]


class _Output(msgspec.Struct):
    """A chunk that was printed."""

    text: Text | None = None
    name: str | None = None
    """The stream: ``stdout`` or ``stderr``."""


class _Cell(msgspec.Struct):
    outputs: list[_Output] = []


class _Notebook(msgspec.Struct):
    cells: list[_Cell]


class Notebook:
    """The reader."""

    name = "notebook"

    def recognises(self, head: bytes, path: Path, /) -> bool:
        return path.suffix == ".ipynb" or isinstance(first_run(head).get("cells"), list)

    def read(self, path: Path, is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        logs = {i: log for i, cell in enumerate(json_of(path, _Notebook).cells, 1) if looks_like_log(log := _printed(cell))}
        if not logs:
            raise RecordingError(f"{path}: no cell has printed a ReAct log (lines that begin with Thought and Action); run it and save it")
        for i, log in logs.items():
            for run in runs_of(log, self.name, is_error):
                yield attrs.evolve(run, place=f"cell {i}, {run.place} of its output") if isinstance(run, Damaged) else run


def _printed(cell: _Cell) -> str:
    """All that the cell printed, its chunks joined; not what it printed to stderr."""
    return "".join(_joined(output.text) for output in cell.outputs if output.text is not None and output.name != "stderr")


def _joined(text: Text) -> str:
    return text if isinstance(text, str) else "".join(text)

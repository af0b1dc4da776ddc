"""What watches a run as it is driven: the record, a live view, spans, and a user's own hooks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from fsm_agent.events import AskModel, Event, Observation, ToolCall
from fsm_agent.machine import Run, Taken
from fsm_agent.models.base import is_async
from fsm_agent.traces.notes import CallEnded, CallStarted
from fsm_agent.traces.writer import TraceWriter

Hook = Callable[[Run, Taken], object]
"""Called on every edge, in order, after the event on which it was taken: the run, and the edge with its readings."""


class Watcher:
    """Is told what happens to a run, always by the thread or the task that drives it. What it raises breaks the run off."""

    def began(self, run: Run) -> None:
        """The run is about to be driven: it is new, or is taken up again."""

    def asks(self, run: Run, question: AskModel) -> None:
        """The model is about to be asked; the messages are those that it is shown, of a long conversation not all."""

    def calls(self, run: Run, index: int, call: ToolCall) -> None:
        """A tool is about to be called; ``index`` is the call's place in the reply. Others may be running."""

    def called(self, run: Run, index: int, observation: Observation) -> None:
        """What a call came to that was made: also that it was given up."""

    def took(self, run: Run, event: Event, edges: Sequence[Taken], /) -> None:
        """The run took an event, and these edges on it."""

    def ended(self, run: Run) -> None:
        """The run is not driven any more: it has halted, waits for a person, or was broken off."""


class _Hooked(Watcher):
    """A hook that is called on every edge."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook

    def took(self, run: Run, _event: Event, edges: Sequence[Taken], /) -> None:
        for edge in edges:
            self._hook(run, edge)


class Recorder(Watcher):
    """Writes the record."""

    def __init__(self, writer: TraceWriter, idempotent: Iterable[str]) -> None:
        """``idempotent``: the tools whose single calls need no note, as they can be made again."""
        self._writer = writer
        self._idempotent = frozenset(idempotent)

    def calls(self, run: Run, index: int, call: ToolCall) -> None:
        if call.name not in self._idempotent:
            self._writer.note(CallStarted(run.step, index, time.time()))

    def called(self, run: Run, index: int, observation: Observation) -> None:
        if observation.tool not in self._idempotent:
            self._writer.note(CallEnded(run.step, index, observation, time.time()))

    def took(self, run: Run, _event: Event, _edges: Sequence[Taken], /) -> None:
        self._writer.write(run)


def watchers_of(hooks: Iterable[Hook | Watcher]) -> tuple[Watcher, ...]:
    """The hooks as watchers. Raises ``TypeError`` for what is none."""
    found: list[Watcher] = []
    for hook in hooks:
        if isinstance(hook, Watcher):
            found.append(hook)
        elif callable(hook) and not is_async(hook):
            found.append(_Hooked(hook))
        else:
            raise TypeError(f"{hook!r} is no hook; a hook is a plain function of the run and an edge, or a Watcher")
    return tuple(found)

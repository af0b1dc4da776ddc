"""Building a recorded run: what a reader finds, in the order in which it finds it, as events that the machine takes."""

from __future__ import annotations

import attrs

from fsm_agent.events import (
    Cancelled,
    Event,
    ModelFailed,
    ModelReplied,
    Observation,
    RecordingEnded,
    Reply,
    ToolRequest,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.protocols.recorded import read_request

NO_RESULT = "(the recording holds no result of this call)"


@attrs.define
class Transcript:
    """The events of one run. Results may come in any order, each for a call of the last reply; whatever has no place is noted."""

    events: list[Event] = attrs.field(factory=list)
    unmatched: list[str] = attrs.field(factory=list)
    """Results that belong to no call, each with its place."""
    missing: list[str] = attrs.field(factory=list)
    """Calls without a result though the run went on; their observation is ``NO_RESULT``."""
    _pending: list[ToolRequest] = attrs.field(factory=list)
    _results: list[Observation | None] = attrs.field(factory=list)
    _returned_at: float | None = None

    def reply(self, reply: Reply, at: float | None = None) -> None:
        """The model answered. What it had called before is settled first."""
        self.settle()
        self.events.append(ModelReplied(reply, at))
        runs = reply.taken_as is None and reply.finish_reason != "length" and all(read_request(call) for call in reply.tool_calls)
        if runs and reply.tool_calls:
            self._pending = list(reply.tool_calls)
            self._results = [None] * len(self._pending)

    def result(self, text: str, *, failed: bool, place: str, call_id: str | None = None, tool: str = "", at: float | None = None) -> None:
        """What a call came to: the first of this id that has no result; without an id, of this tool; without either, the next one."""
        for i, call in enumerate(self._pending):
            if self._results[i] is None and (call.id == call_id if call_id else call.name == tool if tool else True):
                self._results[i] = Observation(call.name, text, "tool_error" if failed else "ok")
                self._returned_at = max(at, self._returned_at or at) if at is not None else self._returned_at
                return
        self.unmatched.append(f"{place}: {tool or call_id or 'a result'}: {text}")

    def user(self, text: str, at: float | None = None) -> None:
        """A person spoke."""
        self.settle()
        self.events.append(UserSpoke(text, at))

    def end(self, at: float | None = None) -> tuple[Event, ...]:
        """The recording ends here: a last batch of calls without any result stays open. Gives all events."""
        if any(self._results):
            self.settle()
        last = self.events[-1] if self.events else None
        if not isinstance(last, ModelFailed | Cancelled) and not self.answered:
            self.events.append(RecordingEnded(at))
        return tuple(self.events)

    @property
    def open_calls(self) -> frozenset[str]:
        """The ids of the calls that wait for their results."""
        return frozenset(call.id for call, result in zip(self._pending, self._results, strict=True) if result is None and call.id)

    @property
    def answered(self) -> bool:
        """The last thing that happened is the answer."""
        last = self.events[-1] if self.events else None
        return isinstance(last, ModelReplied) and last.reply.taken_as == "answer"

    def settle(self) -> None:
        """The run goes on: the calls of the last reply have what results they have."""
        if not self._pending:
            return
        observations = []
        for call, observation in zip(self._pending, self._results, strict=True):
            if observation is None:
                self.missing.append(f"{call.name} ({call.id})" if call.id else call.name)
            observations.append(observation or Observation(call.name, NO_RESULT, "cancelled"))
        self.events.append(ToolsReturned(tuple(observations), self._returned_at))
        self._pending, self._results, self._returned_at = [], [], None

    def notes(self) -> dict[str, list[str]]:
        """What belongs into a recording's ``extra``: ``unmatched`` and ``missing``, where there are any."""
        notes = {"unmatched": self.unmatched, "missing": self.missing}
        return {name: found for name, found in notes.items() if found}

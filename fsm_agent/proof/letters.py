"""Letters: things that can happen, as events of names, which a run still remembers or meets for the first time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import attrs
import msgspec

from fsm_agent.events import (
    Approval,
    ApprovalAsked,
    ApprovalGiven,
    AttemptFailed,
    Cancelled,
    ContextCompacted,
    Event,
    ModelReplied,
    Observation,
    ObservationKind,
    Reply,
    ToolRequest,
    ToolsFailed,
    ToolsReturned,
    Usage,
    UserSpoke,
)

SEEN, TEXT, TALK = "seen", "text", "talk"
LENGTH = "length"
Verdict = Literal["yes", "no", "edit"]


class Names:
    """The names that a run remembers, by kind, in the order of their appearance in its state; and new ones."""

    def __init__(self, remembered: Mapping[str, Sequence[int]], new: Callable[[str, int], int], covered: int = 0) -> None:
        """``covered``: how many messages the last summary covers."""
        self._remembered = remembered
        self._new = new
        self.covered = covered

    def name(self, kind: str, index: int) -> str:
        """The name at ``index``; beyond those that are remembered, a new one."""
        remembered = self._remembered.get(kind, ())
        return f"{kind}#{remembered[index] if index < len(remembered) else self._new(kind, index - len(remembered))}"


Make = Callable[[Names], Event]


@attrs.frozen(eq=False)
class Letter:
    """One thing that can happen."""

    event: Make
    person: bool = False
    """A person has to do it each time, so that a loop through it is that person's doing."""


def kind_of(tool: str) -> str:
    """The kind of names that a tool's calls have."""
    return re.sub(r"\W", "_", tool)


# --- what the model says -----------------------------------------------------------------------------------------


def calls(batch: Sequence[tuple[str, int]], finish: str | None = None, *, broken: bool = False) -> Callable[[Names], Reply]:
    """Calls, each a tool and the index of a name; ``broken``: their arguments cannot be read."""

    def make(names: Names) -> Reply:
        requests = []
        for position, (tool, index) in enumerate(batch, 1):
            arguments = msgspec.json.encode({"n": names.name(kind_of(tool), index)}).decode()
            requests.append(ToolRequest(str(position), tool, arguments[:-1] if broken else arguments))
        return Reply("", tuple(requests), finish_reason=finish)

    return make


def text(index: int, finish: str | None, taken_as: Literal["answer", "unparseable"] | None) -> Callable[[Names], Reply]:
    """A text."""
    return lambda names: Reply(names.name(TEXT, index), finish_reason=finish, taken_as=taken_as)


def empty(finish: str | None) -> Callable[[Names], Reply]:
    """A reply that says nothing."""
    return lambda _names: Reply("", finish_reason=finish)


def replied(make: Callable[[Names], Reply], usage: Usage | None, at: float | None, latency: float | None) -> Make:
    """The model replies."""
    if usage is None and latency is None:
        return lambda names: ModelReplied(make(names), at)
    return lambda names: ModelReplied(msgspec.structs.replace(make(names), usage=usage, latency_s=latency), at)


# --- what happens instead ----------------------------------------------------------------------------------------


def spoke(index: int, at: float | None) -> Make:
    """A person says something."""
    return lambda names: UserSpoke(names.name(TALK, index), at)


def attempt_failed(asked_s: float | None, at: float | None) -> Make:
    """The model could not be asked; the server asks to wait so long."""
    return lambda _names: AttemptFailed("RateLimitError", "busy", asked_s, at)


def compacted(usage: Usage | None, at: float | None) -> Make:
    """A summary is made; it covers one message more than the one before: as little as it can, which each history has."""
    return lambda names: ContextCompacted(names.covered + 1, "a summary", usage, at)


# --- what becomes of calls ---------------------------------------------------------------------------------------


def returned(
    tools: Sequence[str],
    kinds: Sequence[ObservationKind],
    indices: Sequence[int],
    at: float | None,
    settled: Sequence[Observation | None] = (),
) -> Make:
    """Each call comes to something: what was ``settled`` before, or an observation of this kind and text."""

    def make(names: Names) -> Event:
        seen = [Observation(tool, names.name(SEEN, index), kind) for tool, kind, index in zip(tools, kinds, indices, strict=True)]
        return ToolsReturned(tuple([given or each for given, each in zip(settled or [None] * len(seen), seen, strict=True)]), at)

    return make


def approval_asked(asked: tuple[int, ...], at: float | None) -> Make:
    """A person has to agree to these calls."""
    return lambda _names: ApprovalAsked(asked, at)


def approval_given(verdicts: Sequence[Verdict], at: float | None) -> Make:
    """The person decides."""
    said = {"yes": Approval("yes"), "no": Approval("no", "no!"), "edit": Approval("edit", "", {"n": "edited"})}
    approvals = tuple(said[verdict] for verdict in verdicts)
    return lambda _names: ApprovalGiven(approvals, at)


def tools_failed(tools: Sequence[str], at: float | None) -> Make:
    """What runs the tools is gone."""
    observations = tuple(Observation(tool, "no outcome", "interrupted") for tool in tools)
    return lambda _names: ToolsFailed(observations, "ToolServerDead", "gone", at)


def cancelled(tools: Sequence[str] = (), *, asked: bool = True) -> Make:
    """A person stops the run."""
    observations = tuple(Observation(tool, "cancelled", "cancelled") for tool in tools)
    return lambda _names: Cancelled(observations, asked=asked)

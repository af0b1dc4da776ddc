"""The alphabet of the search: everything that the world may answer to an effect, up to what guards can see of it.

A letter makes an event of names: of those that the run still remembers (*again*: the same call, the same text), or of new ones. Guards
compare names and nothing else of them, so a new name stands for every other call or text. Of numbers there are none, nothing and too
much, which come to every limit as late and as early as can be.

``letters`` ends in ``assert_never``: an effect that is new in ``events`` cannot be forgotten here. The order of the letters is from
harmless to final, because the search tries the first of them first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from typing import assert_never

import attrs
import msgspec

from fsm_agent.events import (
    AskModel,
    CallTools,
    Cancelled,
    Effect,
    Event,
    ModelFailed,
    ModelReplied,
    Observation,
    ObservationKind,
    RecordingEnded,
    Reply,
    ToolRequest,
    ToolSpec,
    ToolsReturned,
    Usage,
    UserSpoke,
)
from fsm_agent.proof.sight import CUT_OFF, KINDS, POLLING, TIME, USAGE, Sight

WORK, POLL = "work", "poll"
SEEN, TEXT, TALK = "seen", "text", "talk"
LENGTH = "length"


class Names:
    """The names that a run remembers, by kind, in the order of their appearance in its state; and new ones."""

    def __init__(self, remembered: Mapping[str, Sequence[int]], new: Callable[[str, int], int]) -> None:
        self._remembered = remembered
        self._new = new

    def name(self, kind: str, index: int) -> str:
        """The name at ``index``; beyond those that are remembered, a new one."""
        remembered = self._remembered.get(kind, ())
        return f"{kind}#{remembered[index] if index < len(remembered) else self._new(kind, index - len(remembered))}"


@attrs.frozen(eq=False)
class Letter:
    """One thing that can happen."""

    event: Callable[[Names], Event]
    person: bool = False
    """A person has to do it each time, so that a loop through it is that person's doing."""


@attrs.frozen
class Alphabet:
    """The letters for one set of guards."""

    sight: Sight
    tools: tuple[ToolSpec, ...]
    """The tools of the runs that are searched."""
    batch: int
    """Tool calls that one reply may hold."""

    @property
    def called(self) -> tuple[str, ...]:
        """The tools that are called: those of which it matters which is called."""
        return WORK, *((POLL,) if POLLING in self.sight.sees else ()), *self.sight.tools

    def letters(self, effect: Effect, counts: Mapping[str, int]) -> tuple[Letter, ...]:
        """Everything that can be answered to ``effect`` by a world in which so many names of each kind are remembered."""
        match effect:
            case AskModel():
                return (*self._replies(counts), *self._instead(counts))
            case CallTools(calls=calls):
                tools = tuple(call.name for call in calls)
                return (*self._returns(tools, counts), *self._stopped(tools))
            case _:
                assert_never(effect)

    # --- the model's reply ---

    def _replies(self, counts: Mapping[str, int]) -> Iterator[Letter]:
        for make in self._forms(counts):
            for usage in self._usages():
                for at, latency in self._times():
                    yield Letter(_replied(make, usage, at, latency))

    def _forms(self, counts: Mapping[str, int]) -> Iterator[Callable[[Names], Reply]]:
        """Calls, what cannot be used, talk, the answer."""
        batches = [batch for size in range(1, self.batch + 1) for batch in self._batches(size, counts)]
        yield from (_calls(batch) for batch in batches)
        finishes = (None, LENGTH) if CUT_OFF in self.sight.sees else (None,)
        for finish in finishes:
            yield from (_text(index, finish, "unparseable") for index in _newest_first(counts.get(TEXT, 0)))
            yield from (_text(index, finish, None) for index in _newest_first(counts.get(TEXT, 0)))
            yield _empty(finish)
        yield from (_calls(batch, LENGTH) for batch in batches if len(batch) == 1)
        yield from (_calls(batch, broken=True) for batch in batches if len(batch) == 1)
        yield from (_text(counts.get(TEXT, 0), finish, "answer") for finish in finishes)

    def _batches(self, size: int, counts: Mapping[str, int]) -> list[tuple[tuple[str, int], ...]]:
        """Batches of ``size`` calls, each a tool and the index of a name; new names are used in their order."""
        known = [(tool, index) for tool in self.called for index in range(counts.get(kind_of(tool), 0))]
        new = [(tool, counts.get(kind_of(tool), 0) + i) for tool in self.called for i in range(size)]
        batches = combinations_with_replacement([*new, *known], size)
        return [batch for batch in batches if _in_order(batch, counts)]

    def _usages(self) -> tuple[Usage | None, ...]:
        if USAGE not in self.sight.sees:
            return (None,)
        large = self.sight.large
        return Usage(0, 0, 0.0), None, Usage(0, None, None), Usage(large, large, float(large))

    def _times(self) -> tuple[tuple[float | None, float | None], ...]:
        """When it happened and, of replies, how long it took. The clock stands still, is not known, or jumps; it may go back."""
        if TIME not in self.sight.sees:
            return ((None, None),)
        large = float(self.sight.large)
        return (0.0, None), (None, None), (large, None), (large, large)

    def _moments(self) -> list[float | None]:
        return list(dict.fromkeys(at for at, _ in self._times()))

    # --- what may happen instead ---

    def _instead(self, counts: Mapping[str, int]) -> Iterator[Letter]:
        for index in _newest_first(counts.get(TALK, 0)):
            for at in self._moments():
                yield Letter(_spoke(index, at), person=True)
        yield Letter(lambda _names: ModelFailed("ConnectionError", "no answer"))
        yield Letter(lambda _names: Cancelled())
        yield Letter(lambda _names: RecordingEnded())

    # --- what tools return ---

    def _returns(self, tools: Sequence[str], counts: Mapping[str, int]) -> Iterator[Letter]:
        known = counts.get(SEEN, 0)
        for kinds in product(KINDS if len(tools) == 1 else self.sight.kinds, repeat=len(tools)):
            for indices in _texts(kinds, known):
                for at in self._moments():
                    yield Letter(_returned(tools, kinds, indices, at))

    def _stopped(self, tools: Sequence[str]) -> Iterator[Letter]:
        observations = tuple(Observation(tool, "cancelled", "cancelled") for tool in tools)
        yield Letter(lambda _names: Cancelled(observations))
        yield Letter(lambda _names: RecordingEnded())


def tools_for(sight: Sight) -> tuple[ToolSpec, ...]:
    """Tools for runs whose guards can see so much."""
    polls = (ToolSpec(POLL, polls=True),) if POLLING in sight.sees else ()
    return (ToolSpec(WORK), *polls, *(ToolSpec(tool) for tool in sight.tools))


def kind_of(tool: str) -> str:
    """The kind of names that a tool's calls have."""
    return re.sub(r"\W", "_", tool)


def _newest_first(known: int) -> Iterable[int]:
    return known, *range(known)


def _texts(kinds: Sequence[ObservationKind], known: int) -> list[tuple[int, ...]]:
    """For observations of these kinds, the texts that they may have: new, or one again; errors again only where nothing succeeds."""
    may_be_again = "ok" if "ok" in kinds else "tool_error"
    found: list[tuple[int, ...]] = [()]
    for kind in kinds:
        before, found = found, []
        for texts in before:
            new = max((known, *(index + 1 for index in texts)))
            found += [(*texts, index) for index in (new, *(range(new) if kind == may_be_again else ()))]
    return found


def _in_order(batch: Iterable[tuple[str, int]], counts: Mapping[str, int]) -> bool:
    """New names of each tool are used in their order, so that no two batches differ in the names of what is new alone."""
    by_tool: dict[str, list[int]] = {}
    for tool, index in batch:
        by_tool.setdefault(tool, []).append(index)
    return all(_new_in_order(indices, counts.get(kind_of(tool), 0)) for tool, indices in by_tool.items())


def _new_in_order(indices: Iterable[int], known: int) -> bool:
    following = known
    for index in indices:
        if index > following:
            return False
        following += index == following
    return True


def _calls(batch: Sequence[tuple[str, int]], finish: str | None = None, *, broken: bool = False) -> Callable[[Names], Reply]:
    def make(names: Names) -> Reply:
        requests = []
        for position, (tool, index) in enumerate(batch, 1):
            arguments = msgspec.json.encode({"n": names.name(kind_of(tool), index)}).decode()
            requests.append(ToolRequest(str(position), tool, arguments[:-1] if broken else arguments))
        return Reply("", tuple(requests), finish_reason=finish)

    return make


def _text(index: int, finish: str | None, taken_as: str | None) -> Callable[[Names], Reply]:
    return lambda names: Reply(names.name(TEXT, index), finish_reason=finish, taken_as=taken_as)  # type: ignore[arg-type]  # one of its words


def _empty(finish: str | None) -> Callable[[Names], Reply]:
    return lambda _names: Reply("", finish_reason=finish)


def _replied(make: Callable[[Names], Reply], usage: Usage | None, at: float | None, latency: float | None) -> Callable[[Names], Event]:
    if usage is None and latency is None:
        return lambda names: ModelReplied(make(names), at)
    return lambda names: ModelReplied(msgspec.structs.replace(make(names), usage=usage, latency_s=latency), at)


def _spoke(index: int, at: float | None) -> Callable[[Names], Event]:
    return lambda names: UserSpoke(names.name(TALK, index), at)


def _returned(tools: Sequence[str], kinds: Sequence[ObservationKind], indices: Sequence[int], at: float | None) -> Callable[[Names], Event]:
    def make(names: Names) -> Event:
        parts = zip(tools, kinds, indices, strict=True)
        return ToolsReturned(tuple([Observation(tool, names.name(SEEN, index), kind) for tool, kind, index in parts]), at)

    return make

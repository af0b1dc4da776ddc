"""The alphabet of the search: everything that the world may answer to an effect, up to what guards can see of it.

A letter makes an event of names: of those that the run still remembers (*again*: the same call, the same text), or of new ones. Guards
compare names and nothing else of them, so a new name stands for every other call or text. Of numbers there are none, nothing and too
much, which come to every limit as late and as early as can be.

``letters`` ends in ``assert_never``: an effect that is new in ``events`` cannot be forgotten here. The order of the letters is from
harmless to final, because the search tries the first of them first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement, product
from typing import assert_never

import attrs

from fsm_agent.events import (
    AskApproval,
    AskModel,
    CallTools,
    Effect,
    ModelFailed,
    Observation,
    ObservationKind,
    RecordingEnded,
    Reply,
    ToolSpec,
    Usage,
)
from fsm_agent.options import OFF, Options
from fsm_agent.proof import letters as of
from fsm_agent.proof.letters import LENGTH, SEEN, TALK, TEXT, Letter, Names, Verdict, kind_of
from fsm_agent.proof.sight import CUT_OFF, KINDS, POLLING, TIME, USAGE, VERDICTS, Sight

WORK, POLL = "work", "poll"


@attrs.frozen
class Alphabet:
    """The letters for one set of guards."""

    sight: Sight
    tools: tuple[ToolSpec, ...]
    """The tools of the runs that are searched."""
    batch: int
    """Tool calls that one reply may hold."""
    options: Options = OFF
    """What is on in these runs."""

    @property
    def called(self) -> tuple[str, ...]:
        """The tools that are called: those of which it matters which is called."""
        return WORK, *((POLL,) if POLLING in self.sight.sees else ()), *self.sight.tools

    def letters(self, effect: Effect, counts: Mapping[str, int], *, summed_up: bool = False, last: bool = False) -> tuple[Letter, ...]:
        """Everything that can be answered to ``effect`` by a world in which so many names of each kind are remembered.

        ``summed_up``: the step has had its summary. ``last``: it is the last word, of which no guard is shown anything.
        """
        if last:
            blind = Alphabet(Sight(kinds=self.sight.kinds), self.tools, self.batch, self.options)
            return (*reversed([*blind._replies({})]), *blind._instead({}, summed_up=summed_up))
        match effect:
            case AskModel():
                return (*self._replies(counts), *self._instead(counts, summed_up=summed_up))
            case CallTools(calls=calls, settled=settled, may_ask=may_ask):
                tools = [call.name for call in calls]
                asks = self._asks(len(calls)) if may_ask and self.options.approvals else ()
                return (*self._returns(tools, settled, counts), *asks, *self._gone(tools), *self._stopped(tools))
            case AskApproval(calls=calls, asked=asked):
                return (*self._decides(len(asked)), *self._stopped([call.name for call in calls]))
            case _:
                assert_never(effect)

    # --- the model's reply ---

    def _replies(self, counts: Mapping[str, int]) -> Iterator[Letter]:
        for make in self._forms(counts):
            for usage in self._usages():
                for at, latency in self._times():
                    yield Letter(of.replied(make, usage, at, latency))

    def _forms(self, counts: Mapping[str, int]) -> Iterator[Callable[[Names], Reply]]:
        """Calls, what cannot be used, talk, the answer."""
        batches = [batch for size in range(1, self.batch + 1) for batch in self._batches(size, counts)]
        yield from (of.calls(batch) for batch in batches)
        finishes = (None, LENGTH) if CUT_OFF in self.sight.sees else (None,)
        for finish in finishes:
            yield from (of.text(index, finish, "unparseable") for index in _newest_first(counts.get(TEXT, 0)))
            yield from (of.text(index, finish, None) for index in _newest_first(counts.get(TEXT, 0)))
            yield of.empty(finish)
        yield from (of.calls(batch, LENGTH) for batch in batches if len(batch) == 1)
        yield from (of.calls(batch, broken=True) for batch in batches if len(batch) == 1)
        yield from (of.text(counts.get(TEXT, 0), finish, "answer") for finish in finishes)

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

    def _instead(self, counts: Mapping[str, int], *, summed_up: bool) -> Iterator[Letter]:
        moments, options = self._moments(), self.options
        for index in _newest_first(counts.get(TALK, 0)):
            yield from (Letter(of.spoke(index, at), person=True) for at in moments)
        if options.compaction and not summed_up:
            yield from (Letter(of.compacted(usage, at)) for usage in self._usages() for at in moments)
        if options.max_retries:
            yield from (Letter(of.attempt_failed(asked_s, at)) for asked_s in (None, 0.0, options.max_wait_s) for at in moments)
        yield Letter(lambda _names: ModelFailed("ConnectionError", "no answer"))
        if options.max_retries:
            yield Letter(of.attempt_failed(2 * options.max_wait_s + 1, None))
        yield Letter(of.cancelled())
        yield Letter(of.cancelled(asked=False))
        yield Letter(lambda _names: RecordingEnded())

    # --- what becomes of calls ---

    def _returns(self, tools: Sequence[str], settled: Sequence[Observation | None], counts: Mapping[str, int]) -> Iterator[Letter]:
        known = counts.get(SEEN, 0)
        possible = KINDS if len(tools) == 1 else self.sight.kinds
        for kinds in product(*((given.kind,) if given else possible for given in settled or [None] * len(tools))):
            for indices in _texts(kinds, known):
                for at in self._moments():
                    yield Letter(of.returned(tools, kinds, indices, at, settled))

    def _asks(self, n: int) -> Iterator[Letter]:
        """A person is asked about all calls, or, where a guard can tell, about some of them."""
        sizes = range(n, 0, -1) if VERDICTS in self.sight.sees else (n,)
        for asked in (asked for size in sizes for asked in combinations(range(n), size)):
            yield from (Letter(of.approval_asked(asked, at)) for at in self._moments())

    def _decides(self, n: int) -> Iterator[Letter]:
        """Of all calls the same is said, or, where a guard can tell, of each something else."""
        verdicts: tuple[Verdict, ...] = ("yes", "no", "edit")
        given: Iterable[tuple[Verdict, ...]] = (
            product(verdicts, repeat=n) if VERDICTS in self.sight.sees else ((each,) * n for each in verdicts)
        )
        for each in given:
            yield from (Letter(of.approval_given(each, at)) for at in self._moments())

    def _gone(self, tools: Sequence[str]) -> Iterator[Letter]:
        if self.options.tool_servers:
            yield Letter(of.tools_failed(tools, None))

    def _stopped(self, tools: Sequence[str]) -> Iterator[Letter]:
        yield Letter(of.cancelled(tools))
        yield Letter(lambda _names: RecordingEnded())


def tools_for(sight: Sight) -> tuple[ToolSpec, ...]:
    """Tools for runs whose guards can see so much."""
    polls = (ToolSpec(POLL, polls=True),) if POLLING in sight.sees else ()
    return (ToolSpec(WORK), *polls, *(ToolSpec(tool) for tool in sight.tools))


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

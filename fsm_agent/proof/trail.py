"""A run of the real machine along a path that was found in a space: with every guard, as it is, and with its whole past."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from fsm_agent.events import Event
from fsm_agent.guards import Guard
from fsm_agent.language import ENGLISH
from fsm_agent.machine import Run
from fsm_agent.outcome import message_of
from fsm_agent.proof.letters import Letter, Names
from fsm_agent.proof.shapes import canonical
from fsm_agent.proof.space import Space
from fsm_agent.proof.states import Edge, halting_edges, in_one_line, key_of, new_run, problem_of
from fsm_agent.proof.watched import Restart, Uncheckable, Watched


@attrs.frozen
class Fault:
    """A run that does what none may do."""

    run: Run
    """Before the event on which it does."""
    problem: str


class Refuted(Exception):
    """A run under all guards does what none may do."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.problem)
        self.fault = fault


class Trail:
    """Three runs that are fed the same events: in the space, under all guards watched, and under all guards as they are."""

    def __init__(self, space: Space, guards: Sequence[Guard], watched: Sequence[Watched]) -> None:
        self._space = space
        self._guards = guards
        self._setup = space.alphabet.tools, space.alphabet.options
        self._small = new_run(space.guards, *self._setup)
        self._whole = new_run(watched, *self._setup)
        self.run: Run = new_run(guards, *self._setup)
        """Under all guards as they are: what can be shown."""
        self._events: list[Event] = []
        self._given: dict[str, int] = {}
        self._watched = watched
        self._known = [guard.known() for guard in watched]

    def take(self, edges: Iterable[Edge]) -> bool:
        """Go along these edges until the run is stopped. Gives whether it went to their end.

        Raises ``Refuted`` where a guard raises, and ``Uncheckable`` where the run does not go where the path went.
        """
        for edge in edges:
            if self.stopped:
                return False
            event = self._event(edge.letter)
            problem = self._problem(event)
            if problem:
                self._undo()
                raise Refuted(Fault(self.run, problem))
            self._events.append(event)
            self._small.feed(event)
            if self._known != [guard.known() for guard in self._watched]:
                raise Restart
            if self._whole.state != self.run.state or (edge.dest.halt is None and self._key() != self._space.key(edge.dest.run)[0]):
                raise Uncheckable("the same events led a guard to another memory: it depends on something else, or tells names apart")
        return True

    @property
    def stopped(self) -> bool:
        """The run under all guards has halted, or has its last chance, which in the space it does not have."""
        return self.run.effect is None or (self.run.chance is not None and self._small.chance is None)

    def breaks(self, letter: Letter, problem: str) -> Fault:
        """The run that breaks on ``letter``, as the search met it. Raises ``Uncheckable`` where the run as it is does not."""
        found = self._problem(self._event(letter))
        self._undo()
        if found is None:
            raise Uncheckable(f"{problem}; but it did not when the search took its hand away, so it depends on more than facts")
        return Fault(self.run, problem)

    def _problem(self, event: Event) -> str | None:
        """What goes wrong when ``event`` is fed to the run as it is, in one line."""
        try:
            self._whole.feed(event)
        except (Restart, Uncheckable):
            raise
        except Exception as error:  # noqa: BLE001  # whatever a guard or the machine raises
            return in_one_line(error)
        try:
            halted = self.run.feed(event) is None
            problem = problem_of(self.run, halting_edges(self.run))
            if halted and problem is None:
                message_of(self.run, ENGLISH)
        except Exception as error:  # noqa: BLE001  # whatever a guard raises where it is put into words
            return f"a guard raised {type(error).__name__} in its words for {self.run.reason or 'a warning'}: {error}"
        return problem

    def _undo(self) -> None:
        """Take back the event that was fed last."""
        self.run = new_run(self._guards, *self._setup)
        for past in self._events:
            self.run.feed(past)

    def _event(self, letter: Letter) -> Event:
        """What ``letter`` is, with names that were never used before for what is new."""
        used: dict[str, int] = {}

        def new(kind: str, offset: int) -> int:
            used[kind] = max(used.get(kind, 0), offset + 1)
            return self._given.get(kind, 0) + offset

        covered = self.run.summary.covers if self.run.summary else 0
        event = letter.event(Names(key_of(self._small)[1], new, covered))
        for kind, count in used.items():
            self._given[kind] = self._given.get(kind, 0) + count
        return event

    def _key(self) -> str:
        return self._space.key(self._small)[0]

    def state(self) -> str:
        """What tells the state of the run under all guards from others."""
        return key_of(self._whole)[0]

    def memories(self) -> dict[str, str]:
        """By guard, the shape of its memory."""
        pairs = zip(self._whole.wiring.guards, self._whole.memories, strict=True)
        return {guard.reason: canonical(held.shape, self._whole.step)[0] for guard, held in pairs}

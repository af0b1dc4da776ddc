"""The stepper: a cursor over the edges of a run, which plays on where the cursor goes, and branches where a reply is typed."""

from __future__ import annotations

from fsm_agent.language import Language
from fsm_agent.stepper.branch import Branch, Moment, Stop
from fsm_agent.stepper.script import Script

AT_ONCE = 10_000
"""``last`` plays at most so many edges on, so that it comes back from a run that goes on and on."""


class Stepper:
    """Where a person is in a run. Position 0 is before the first edge, position k after the k-th."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.branches = [Branch(script)]
        """The script's own course first, then those in which something was typed, in the order of their making."""
        self.number = 0
        """Which branch is looked at."""
        self.cursor = 0

    @property
    def branch(self) -> Branch:
        """The branch that is looked at."""
        return self.branches[self.number]

    @property
    def moment(self) -> Moment | None:
        """The edge just taken; None: at the beginning."""
        return self.branch.moments[self.cursor - 1] if self.cursor else None

    @property
    def known_end(self) -> int | None:
        """How many edges the branch has, where it has halted; None: that is not known yet."""
        return len(self.branch.moments) if self.branch.run.effect is None else None

    @property
    def asks_model(self) -> bool:
        """The model is to be asked next, so a reply can be typed."""
        return self.moment is None or self.moment.asks_model

    def next(self) -> Stop | None:
        """Go to the next edge. None: done; otherwise why there is none."""
        if self.cursor == len(self.branch.moments):
            stop = self.branch.play()
            if stop is not None:
                return stop
        self.cursor += 1
        return None

    def back(self) -> bool:
        """Go to the edge before; False: there is none."""
        self.cursor, moved = max(self.cursor - 1, 0), self.cursor > 0
        return moved

    def first(self) -> None:
        """Go to the beginning."""
        self.cursor = 0

    def last(self) -> Stop | None:
        """Go to the end, or ``AT_ONCE`` edges on. Gives why it is the end; None: it is not."""
        for _ in range(AT_ONCE):
            stop = self.next()
            if stop is not None:
                return stop
        return None

    def why_not_type(self, lang: Language) -> str:
        """Why no reply can be typed at the cursor, in one sentence; empty: one can."""
        if self.script.why_not:
            return self.script.why_not
        if self.moment is not None and self.moment.row.reason is not None:
            return lang.say("the run has halted: nothing is asked any more; go back to a place where the model is asked")
        return "" if self.asks_model else lang.say("the model is not asked here: a reply can be typed in Deciding")

    def type_reply(self, text: str) -> None:
        """At the cursor the model says ``text``; the cursor goes to the edge on which it is heard.

        What the run did from here until now is kept as the branch that it is; a new one is made, unless nothing would be lost.
        Raises ``ValueError`` where nothing can be typed.
        """
        if why_not := self.why_not_type(self.branch.run.protocol.lang):
            raise ValueError(why_not)
        branch = self.branch
        if branch.is_script or self.cursor < len(branch.moments):
            begun = self.moment.taken.step if self.moment else 0
            events = branch.events[: self.moment.events if self.moment else 0]
            self.branches.append(Branch(self.script, events, [step for step in branch.typed if step <= begun]))
            self.number = len(self.branches) - 1
        self.branch.type_reply(text)
        self.cursor += 1

    def switch(self) -> bool:
        """Look at the next branch, at the last edge that it shares with this one, or before it; False: there is but one branch."""
        before = self.branch
        self.number = (self.number + 1) % len(self.branches)
        shared = 0
        for mine, other in zip(before.moments, self.branch.moments, strict=False):
            if mine.event is not other.event:
                break
            shared += 1
        self.cursor = min(self.cursor, shared)
        return before is not self.branch

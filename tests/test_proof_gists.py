"""Gists: memories with equal gists have the same future, tried on random runs."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent.events import (
    Malformed,
    ModelReplied,
    Observation,
    ObservationKind,
    Reply,
    Said,
    Started,
    ToolCall,
    ToolCalls,
    ToolSpec,
    ToolsReturned,
)
from fsm_agent.guards import MaxSteps, NoProgress
from fsm_agent.proof.gists import gist, has_gist

Step = tuple[Any, ...]
"""The facts of one step."""

GUARDS = [NoProgress(), NoProgress(3, 3, 1), NoProgress(2, 2, 5), NoProgress(4, compare="call"), NoProgress(1, 2, 1)]
TOOLS = (ToolSpec("work"), ToolSpec("poll", polls=True))


def called(name: str, n: int, text: str, kind: ObservationKind) -> Step:
    call = ToolCall(name, {"n": n})
    return ModelReplied(Reply()), ToolCalls((call,)), ToolsReturned((Observation(name, text, kind),))


def batch(*numbers: int) -> Step:
    calls = tuple(ToolCall("work", {"n": n}) for n in numbers)
    return ModelReplied(Reply()), ToolCalls(calls), ToolsReturned(tuple(Observation("work", str(n)) for n in numbers))


def unusable(text: str) -> Step:
    return ModelReplied(Reply(text)), Malformed("no", "unparseable")


def said(text: str) -> Step:
    return ModelReplied(Reply(text)), Said(text)


STEPS = st.one_of(
    st.builds(called, st.just("work"), st.integers(0, 1), st.sampled_from("ab"), st.just("ok")),
    st.builds(called, st.just("work"), st.integers(0, 1), st.sampled_from("ab"), st.just("timeout")),
    st.builds(called, st.just("poll"), st.integers(0, 1), st.just("a"), st.just("ok")),
    st.builds(batch, st.integers(0, 1), st.integers(0, 1)),
    st.builds(unusable, st.sampled_from("ab")),
    st.builds(said, st.sampled_from("ab")),
)


class Walk:
    """A run of the guard alone, and which steps it can do again."""

    def __init__(self, guard: NoProgress) -> None:
        self.guard = guard
        self.memory: Any = guard.fold(guard.start(), Started(TOOLS), 0)
        self.steps: list[Step] = []

    def take(self, step: Step) -> None:
        self.steps.append(step)
        for fact in step:
            if type(fact) in self.guard.folds:
                self.memory = self.guard.fold(self.memory, fact, len(self.steps))

    @property
    def verdict(self) -> tuple[float, float, bool]:
        reading = self.guard.judge(self.memory)
        return reading.value, reading.limit, reading.trips


def walked(guard: NoProgress, steps: list[Step]) -> Walk:
    walk = Walk(guard)
    for step in steps:
        walk.take(step)
    return walk


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(GUARDS), st.lists(STEPS, max_size=14))
def test_a_run_of_other_steps_with_the_same_pattern_has_the_same_gist_and_the_same_verdicts(guard: NoProgress, steps: list[Step]) -> None:
    walk, twin = Walk(guard), Walk(guard)
    images: list[tuple[Step, Step]] = []
    for n, step in enumerate(steps):
        walk.take(step)
        new = called("poll", n, "b", "ok") if polls(step) else unusable(f"step {n}")
        image = next((image for original, image in images if same(guard, original, step)), new)
        images.append((step, image))
        twin.take(image)
        assert gist(guard, walk.memory) == gist(guard, twin.memory)
        assert walk.verdict == twin.verdict


def same(guard: NoProgress, one: Step, other: Step) -> bool:
    """What the guard takes for the same step."""
    memory = walked(guard, [one, other]).memory
    return bool(memory.runs) and memory.runs[0] == 1


def polls(step: Step) -> bool:
    return any(isinstance(fact, ToolCalls) and fact.calls[0].name == "poll" for fact in step)


def test_images_are_other_steps() -> None:
    guard = NoProgress()
    assert same(guard, said("a"), said("a"))
    assert not same(guard, said("a"), unusable("a"))
    assert not same(guard, called("poll", 0, "a", "ok"), called("poll", 0, "a", "ok"))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(GUARDS), st.lists(STEPS, max_size=14), st.lists(STEPS, max_size=14))
def test_equal_gists_give_equal_verdicts(guard: NoProgress, one: list[Step], other: list[Step]) -> None:
    walks = [walked(guard, steps) for steps in (one, other)]
    if gist(guard, walks[0].memory) == gist(guard, walks[1].memory):
        assert walks[0].verdict[2] == walks[1].verdict[2]


def test_a_step_that_is_equal_to_no_other_has_its_own_sign() -> None:
    guard = NoProgress(3)
    poll, work = called("poll", 0, "a", "ok"), called("work", 0, "a", "ok")
    assert gist(guard, walked(guard, [poll, poll]).memory) == "-.- ()"
    assert gist(guard, walked(guard, [work, poll, work]).memory) == "0.-.0 (0, 1)"
    assert gist(guard, walked(guard, [work, work]).memory) == "0.0 (1,)"


def test_most_guards_have_none() -> None:
    assert has_gist(NoProgress())
    assert not has_gist(MaxSteps(3))
    assert gist(MaxSteps(3), 1) is None

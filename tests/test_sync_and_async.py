"""``run`` and ``arun`` make the same run of the same world: the same edges, readings, questions and observations, whatever happens in it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent import (
    Approval,
    ApprovalRequest,
    DropOldObservations,
    KeepLast,
    Message,
    Reply,
    Result,
    Summarise,
    Tool,
    ToolError,
    Watcher,
    arun,
    classic,
    tool,
)
from fsm_agent.events import AskModel, Event, Observation, ToolCall
from fsm_agent.guards import MaxSteps, NoProgress, ToolBudget
from fsm_agent.machine import Run, Taken
from fsm_agent.models.errors import ModelRefused, ModelUnavailable
from tests.driving import ASYNC, SYNC, Driver, Script, both, call, calls, whole

# --- worlds --------------------------------------------------------------------------------------------------------


@attrs.frozen
class World:
    """What a model says, what tools do, what a person answers, and how the run is set up."""

    says: tuple[str | Reply | ModelUnavailable | ModelRefused, ...]
    answers: tuple[Any, ...]
    """Of the person, in order, then again from the first."""
    policy: Any
    cancels_at: int | None
    """The edge, by its number, at which a hook cancels the run."""
    options: dict[str, Any]


REQUESTS = st.builds(
    call,
    st.sampled_from(["look", "look", "pay", "pay", "fail", "boom", "unknown"]),
    st.sampled_from(['{"n": 1}', '{"n": 2}', '{"n": 3}', '{"n": 4}', "{}", '{"n": "x"}', '{"m": 1}', "["]),
    st.sampled_from(["1", "2", ""]),
)

BATCHES = st.lists(REQUESTS, min_size=1, max_size=3).map(lambda requests: calls(*requests))

SAYS = st.one_of(
    *[BATCHES] * 5,
    st.sampled_from(["done", "", Reply("cut off", finish_reason="length"), Reply("cut", (call("look"),), "length")]),
    st.just(ModelUnavailable("busy", 429, 0.0)),
    st.sampled_from([ModelUnavailable("busy", 429, 0.0), ModelRefused("no", 400)]),
)

ANSWERS = st.sampled_from(
    [True, True, False, Approval("no", "not now"), Approval("edit", arguments={"n": 7}), Approval("edit", arguments={"m": 7}), None]
)

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "guards": st.sampled_from(
            [classic(max_errors=9), classic(max_steps=3), (MaxSteps(5),), (*classic(max_errors=9), NoProgress(), ToolBudget(3))]
        ),
        "last_chance": st.just(value=True),
        "max_retries": st.integers(0, 2),
        "max_observation_chars": st.sampled_from([1, 5]),
        "context": st.sampled_from([KeepLast(1), DropOldObservations(60), Summarise(lambda messages: "all is well", at_tokens=90)]),
    },
)

WORLDS = st.builds(
    World,
    st.lists(SAYS, min_size=2, max_size=8).map(tuple),
    st.lists(ANSWERS, min_size=1, max_size=4).map(tuple),
    st.sampled_from(["side_effects", "always", "never", ("look",), lambda call: call.arguments.get("n") == 1]),
    st.one_of(st.none(), st.none(), st.integers(0, 20)),
    OPTIONS,
)


# --- telling -------------------------------------------------------------------------------------------------------


class Diary(Watcher):
    """What a run did, without its times and its id; and perhaps it is cancelled at some edge."""

    def __init__(self, cancels_at: int | None) -> None:
        self.told: list[Any] = []
        self._cancels_at = cancels_at
        self._edges = 0

    def asks(self, run: Run, question: AskModel) -> None:
        self.told.append(("asks", question.attempt, question.delay_s, list(question.messages), question.tools))

    def calls(self, run: Run, index: int, call: ToolCall) -> None:
        self.told.append(("calls", index, call.key.removeprefix(run.id), str(call)))

    def called(self, run: Run, index: int, observation: Observation) -> None:
        self.told.append(("called", index, observation.text, observation.kind))

    def took(self, run: Run, event: Event, edges: Sequence[Taken], /) -> None:
        self.told.append(
            ("took", msgspec.structs.replace(event, at=None) if not hasattr(event, "observations") else _traceless(event), tuple(edges))
        )
        for _ in edges:
            if self._edges == self._cancels_at:
                run.cancel()
            self._edges += 1

    def ended(self, run: Run) -> None:
        self.told.append(("ended", run.state, run.reason, run.history))


def _traceless(event: Any) -> Any:
    """Tracebacks tell of the driver's own code."""
    return msgspec.structs.replace(
        event, at=None, observations=tuple(msgspec.structs.replace(each, traceback=None) for each in event.observations)
    )


def told_by(driver: Driver, world: World, path: Path, *, awaited: bool = False, watched: bool = True) -> tuple[Result, list[Any]]:
    """The run, its record looked at; ``awaited``: its tools are async; ``watched``: somebody could cancel it."""
    diary = Diary(world.cancels_at)
    asked: list[int] = []

    def approve(request: ApprovalRequest) -> Any:
        asked.append(1)
        diary.told.append(("a person is asked", str(request.call), request.step, request.thought))
        return world.answers[(len(asked) - 1) % len(world.answers)]

    model = Script(*world.says, *[OSError("the script is over")] * 4)
    options = {"approve": approve, "policy": world.policy, "hooks": [diary] * watched, "max_parallel": 1, "trace": path, **world.options}
    result = driver.run(model=model, tools=async_tools() if awaited else plain_tools(), **options)
    assert whole(path).log == result.trace.log
    return result, diary.told


def plain_tools() -> list[Tool]:
    def look(n: int = 0) -> str:
        return f"saw {n}, and more of it"

    def fail(n: int = 0) -> str:
        raise ToolError(f"failed {n}")

    def pay(n: int = 0) -> str:
        return f"paid {n}"

    def boom(n: int = 0) -> str:
        raise SystemExit(n)

    return [tool(look), tool(fail), tool(side_effects=True)(pay), tool(boom)]


def async_tools() -> list[Tool]:
    async def look(n: int = 0) -> str:
        await asyncio.sleep(0)
        return f"saw {n}, and more of it"

    async def fail(n: int = 0) -> str:
        raise ToolError(f"failed {n}")

    async def pay(n: int = 0) -> str:
        await asyncio.sleep(0)
        return f"paid {n}"

    async def boom(n: int = 0) -> str:
        raise SystemExit(n)

    return [tool(look), tool(fail), tool(side_effects=True)(pay), tool(boom)]


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@settings(max_examples=150)
@given(world=WORLDS)
def test_both_drivers_make_the_same_run_of_the_same_world(folder: Path, world: World) -> None:
    plain, told = told_by(SYNC, world, folder / "sync.jsonl")
    for awaited in (False, True):
        waited, told_async = told_by(ASYNC, world, folder / "async.jsonl", awaited=awaited)
        assert told_async == told
        assert (waited.reason, waited.answer, waited.message, waited.steps) == (plain.reason, plain.answer, plain.message, plain.steps)
        assert [str(each) for each in waited.awaiting] == [str(each) for each in plain.awaiting]
        assert waited.trace.edges == plain.trace.edges
    if world.cancels_at is None:
        for driver in (SYNC, ASYNC):
            unwatched, _ = told_by(driver, world, folder / "unwatched.jsonl", watched=False)
            assert unwatched.trace.edges == plain.trace.edges
            assert unwatched.trace.replay().history == plain.trace.replay().history


@settings(max_examples=60)
@given(world=WORLDS, answers=st.lists(ANSWERS, min_size=1, max_size=3))
def test_both_drivers_go_on_alike_with_a_run_that_waits_or_was_broken_off(folder: Path, world: World, answers: list[Any]) -> None:
    """It is broken off at an edge, and each driver takes up the same record."""

    class Broke(Exception):
        pass

    class Breaking(Diary):
        def took(self, run: Run, event: Event, edges: Sequence[Taken], /) -> None:
            if self._edges >= (world.cancels_at or 0):
                raise Broke
            super().took(run, event, edges)

    path = folder / "broken.jsonl"
    model = Script(*world.says, *[OSError("the script is over")] * 4)
    options = {"policy": world.policy, "approve": lambda _: world.answers[0]}
    with suppress(Broke):
        SYNC.run(model=model, tools=plain_tools(), hooks=[Breaking(None)], trace=path, max_parallel=1, **options, **world.options)
    content = path.read_bytes()
    ends = []
    for driver in (SYNC, ASYNC):
        path.write_bytes(content)
        diary, said = Diary(None), iter(answers * 50)
        rest = Script(*world.says[len(model.asked) :], *[OSError("the script is over")] * 4)
        result = driver.resume(
            path,
            lambda request, said=said: next(said),
            model=rest,
            tools=plain_tools(),
            hooks=[diary],
            max_parallel=1,
            policy=world.policy,
            context=world.options.get("context"),
        )
        assert whole(path).log == result.trace.log
        ends.append((result.reason, result.answer, result.message, result.trace.edges, diary.told, len(rest.asked)))
    assert ends[0] == ends[1]


TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


# --- concurrently --------------------------------------------------------------------------------------------------


def test_many_runs_in_one_loop_are_each_as_if_they_were_alone(tmp_path: Path) -> None:
    """Plain tools run in threads, and share nothing."""

    async def main() -> list[Result]:
        return await asyncio.gather(
            *(
                arun(
                    f"task {n}",
                    model=Script(calls(call("look", f'{{"n": {n}}}', "1"), call("pay", f'{{"n": {n}}}', "2")), f"answer {n}"),
                    tools=plain_tools(),
                    policy="never",
                    protocol="function_calling",
                    trace=tmp_path / f"{n}.jsonl",
                )
                for n in range(30)
            )
        )

    for n, result in enumerate(asyncio.run(main())):
        assert (result.answer, result.reason) == (f"answer {n}", "final_answer")
        assert [message.content for message in result.trace.replay().history if message.role == "tool"] == [
            f"saw {n}, and more of it",
            f"paid {n}",
        ]
        whole(tmp_path / f"{n}.jsonl")


@both
def test_a_context_variable_of_the_caller_is_seen_by_models_tools_and_the_person(driver: Driver) -> None:
    """Also in threads; what they set there is their own."""
    seen: list[str] = []

    @tool
    def note(n: int = 0) -> str:
        seen.append(f"tool: {TENANT.get()}")
        TENANT.set("somebody else")
        return TENANT.get()

    def model(messages: Sequence[Message]) -> Reply:
        seen.append(f"model: {TENANT.get()}")
        return calls(call("note", id="1"), call("note", id="2")) if len(messages) < 3 else Reply("done")

    def approve(request: ApprovalRequest) -> bool:
        seen.append(f"person: {TENANT.get()}")
        return True

    token = TENANT.set("me")
    try:
        driver.run(model=model, tools=[note], policy="always", approve=approve, max_parallel=1)
    finally:
        TENANT.reset(token)
    assert seen == ["model: me", "person: me", "person: me", "tool: me", "tool: me", "model: me"]

"""A model that cannot be asked just now is asked again: each time is an event and an edge, there are so many in a row, and then a halt."""

from __future__ import annotations

import _thread
import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import Reply, Result, Watcher, arun, run
from fsm_agent.events import AskModel, AttemptFailed, Cancelled, Message, ModelFailed
from fsm_agent.machine import Run
from fsm_agent.models.errors import ContextOverflow, ModelRefused, ModelUnavailable
from fsm_agent.tools import add
from tests.aimock import Aimock, aimock_fixture, aimock_server
from tests.asked import WAYS, Way
from tests.driving import ASYNC, SYNC, Driver, Script, both, call, calls, edges, soon, whole
from tests.raw_server import Answer, RawServer, raw_server

__all__ = ["aimock_fixture", "aimock_server", "raw_server"]

every_way = pytest.mark.parametrize("way", WAYS, ids=str)


class Questions(Watcher):
    """Keeps what the model was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, float]] = []
        """The attempt, and the seconds that were waited before it."""

    def asks(self, run: Run, question: AskModel) -> None:
        self.asked.append((question.attempt, question.delay_s))


def ask(way: Way, url: str, **options: Any) -> Result:
    """A run, in one of the ways in which a model is asked."""
    model = way.model(url)
    shown = {"on_text": lambda _: None} if way.streamed else {}
    chosen: dict[str, Any] = {"tools": [add], "protocol": "function_calling", "lang": "en", **shown, **options}
    if not way.awaited:
        with model:
            return run("task", model=model, **chosen)

    async def awaited() -> Result:
        async with model:
            return await arun("task", model=model, **chosen)

    return asyncio.run(awaited())


def failed(result: Result) -> list[tuple[str, float | None]]:
    return [(event.error, event.retry_after_s) for event in result.trace.events if isinstance(event, AttemptFailed)]


def answered(way: Way, text: str) -> Answer:
    if way.provider == "openai":
        return Answer({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
    return Answer({"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"})


BUSY = Answer({"error": {"message": "too many requests"}}, 429, {"retry-after-ms": "1"})


# --- servers ---------------------------------------------------------------------------------------------------------


@every_way
def test_after_a_429_the_model_is_asked_again_when_the_server_said(aimock: Aimock, way: Way, tmp_path: Path) -> None:
    busy = {"error": {"message": "Slow down.", "type": "rate_limit_error"}, "status": 429, "retryAfter": 0}
    aimock.add(
        {"match": {"endpoint": "chat", "sequenceIndex": 0}, "response": busy},
        {"match": {"endpoint": "chat"}, "response": {"content": "done"}},
    )
    watched = Questions()
    result = ask(way, aimock.url, trace=tmp_path / "t.jsonl", hooks=[watched])
    assert (result.reason, result.answer, result.model_calls) == ("final_answer", "done", 1)
    assert failed(result) == [("ModelUnavailable", 0.0)]
    assert edges(result) == ["retry", "model_replied", "final_answer"]
    assert watched.asked == [(1, 0.0), (2, 0.0)]
    assert [request["response"]["status"] for request in aimock.requests()] == [429, 200]
    whole(tmp_path / "t.jsonl")


@every_way
def test_what_the_server_asks_for_is_how_long_it_is_waited(raw: RawServer, way: Way) -> None:
    raw.first = [BUSY, Answer({"error": {"message": "again"}}, 429, {"retry-after-ms": "2.5"})]
    raw.answer = answered(way, "done")
    watched = Questions()
    result = ask(way, raw.url, hooks=[watched])
    assert result.answer == "done"
    assert failed(result) == [("ModelUnavailable", 0.001), ("ModelUnavailable", 0.0025)]
    assert watched.asked == [(1, 0.0), (2, 0.001), (3, 0.0025)]


@every_way
def test_a_server_that_fails_until_the_bound_halts_the_run_with_its_words(raw: RawServer, way: Way, tmp_path: Path) -> None:
    raw.answer = Answer({"error": {"message": "the backend is down"}}, 500, {"retry-after-ms": "0"})
    result = ask(way, raw.url, max_retries=2, trace=tmp_path / "t.jsonl")
    assert (result.reason, result.answer, result.model_calls) == ("model_error", None, 1)
    assert result.message == f"stopped: the model failed (ModelUnavailable: {way.provider}:some-model answered 500: the backend is down)"
    assert edges(result) == ["retry", "retry", "retries_exhausted"]
    assert len(raw.requests) == 3
    assert whole(tmp_path / "t.jsonl").reason == "model_error"


@every_way
def test_an_adapter_is_asked_again_three_times_by_default(raw: RawServer, way: Way) -> None:
    raw.answer = BUSY
    assert edges(ask(way, raw.url)) == ["retry", "retry", "retry", "retries_exhausted"]


@every_way
def test_a_lost_connection_is_worth_asking_again(raw: RawServer, way: Way) -> None:
    whole_answer = answered(way, "done")
    raw.first = [Answer(json.dumps(whole_answer.body), cut=True, headers={"retry-after-ms": "0"})]
    raw.answer = whole_answer
    result = ask(way, raw.url)
    assert (result.reason, result.answer) == ("final_answer", "done")
    assert edges(result) == ["retry", "model_replied", "final_answer"]


@every_way
@pytest.mark.parametrize(("status", "words"), [(401, "Incorrect API key provided"), (400, "no such parameter"), (404, "no such model")])
def test_what_is_not_worth_asking_again_halts_at_once_with_the_servers_words(raw: RawServer, way: Way, status: int, words: str) -> None:
    raw.answer = Answer({"error": {"message": words}}, status)
    result = ask(way, raw.url)
    assert (result.reason, edges(result), len(raw.requests)) == ("model_error", ["model_error"], 1)
    assert result.message == f"stopped: the model failed (ModelRefused: {way.provider}:some-model answered {status}: {words})"


# --- bounds ----------------------------------------------------------------------------------------------------------


def unavailable(retry_after_s: float | None = 0.0) -> ModelUnavailable:
    return ModelUnavailable("busy", 429, retry_after_s)


@both
def test_the_bound_is_of_retries_in_a_row(driver: Driver) -> None:
    add_again = calls(call("add", '{"a": 1, "b": 2}'))
    model = Script(unavailable(), unavailable(), add_again, unavailable(), unavailable(), Reply("3"))
    result = driver.run(model=model, tools=[add], max_retries=2)
    assert (result.answer, result.steps) == ("3", 2)
    assert edges(result) == [
        *("retry", "retry", "model_replied", "call_tools", "tools_returned", "go_on"),
        *("retry", "retry", "model_replied", "final_answer"),
    ]


@both
def test_without_retries_the_first_failure_halts(driver: Driver) -> None:
    result = driver.run(model=Script(unavailable()), max_retries=0)
    assert (result.reason, edges(result)) == ("model_error", ["model_error"])


@both
def test_a_plain_callable_is_not_asked_again_unless_it_is_said_how_often(driver: Driver) -> None:
    for max_retries, taken in ((None, ["model_error"]), (1, ["retry", "model_replied", "final_answer"])):
        script = Script(unavailable(), "done")
        result = driver.run(model=lambda messages, script=script: script.ask(messages), max_retries=max_retries)
        assert edges(result) == taken


@both
@pytest.mark.parametrize(
    "error", [ModelRefused("no", 400), ContextOverflow("too long", 400), OSError("broken")], ids=lambda error: type(error).__name__
)
def test_other_errors_are_no_attempts(driver: Driver, error: Exception) -> None:
    result = driver.run(model=Script(error))
    (event,) = result.trace.events
    assert isinstance(event, ModelFailed)
    assert (event.error, event.message) == (type(error).__name__, str(error))


@both
def test_a_server_that_asks_for_more_than_a_minute_is_not_asked_again(driver: Driver) -> None:
    assert edges(driver.run(model=Script(unavailable(61)))) == ["retries_exhausted"]


@both
@pytest.mark.parametrize("asked_s", [-1.0, True, "1", float("nan")])
def test_an_odd_wait_is_none(driver: Driver, asked_s: Any, tmp_path: Path) -> None:
    """A user's own model may say anything. The wait itself is not lived through: the machine's word for it is looked at."""
    waits: list[float] = []

    def stop(run: Run, _edge: object) -> None:
        if isinstance(run.effect, AskModel):
            waits.append(run.effect.delay_s)
            run.cancel()

    result = driver.run(model=Script(unavailable(asked_s)), hooks=[stop], trace=tmp_path / "t.jsonl")
    assert result.reason == "cancelled"
    assert waits == [0.0 if asked_s == -1.0 else 0.5]
    whole(tmp_path / "t.jsonl")


# --- calling off the wait --------------------------------------------------------------------------------------------


class Waiting(ModelUnavailable):
    """Asks for a wait that no test lives through."""

    def __init__(self) -> None:
        super().__init__("busy", 429, 59.0)


@both
def test_cancelling_ends_the_wait(driver: Driver, tmp_path: Path) -> None:
    runs: list[Run] = []
    waits = threading.Event()

    def hook(run: Run, _edge: object) -> None:
        runs.append(run)
        waits.set()

    def cancel() -> None:
        waits.wait(20)
        soon(lambda: isinstance(runs[0].effect, AskModel) and runs[0].effect.attempt == 2)
        runs[0].cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    result = driver.run(model=Script(Waiting()), hooks=[hook], trace=tmp_path / "t.jsonl")
    canceller.join()
    assert (result.reason, edges(result), result.steps) == ("cancelled", ["retry", "cancelled"], 1)
    last = result.trace.events[-1]
    assert isinstance(last, Cancelled)
    assert last.asked, "it had been asked once, which makes it a step"
    whole(tmp_path / "t.jsonl")


def test_ctrl_c_ends_the_wait(tmp_path: Path) -> None:
    waits = threading.Event()

    def interrupt() -> None:
        waits.wait(20)
        _thread.interrupt_main()

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        SYNC.run(model=Script(Waiting()), hooks=[lambda _run, _edge: waits.set()], trace=tmp_path / "t.jsonl")
    interrupter.join()
    run = whole(tmp_path / "t.jsonl")
    assert (run.reason, run.step) == ("cancelled", 1)


def test_cancelling_the_task_ends_the_wait(tmp_path: Path) -> None:
    async def main() -> None:
        waits = asyncio.Event()
        task = asyncio.create_task(
            arun(
                "t",
                model=Script(Waiting()),
                hooks=[lambda _run, _edge: waits.set()],
                trace=tmp_path / "t.jsonl",
                protocol="function_calling",
            )
        )
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    run = whole(tmp_path / "t.jsonl")
    assert (run.reason, run.step) == ("cancelled", 1)


# --- taking up -------------------------------------------------------------------------------------------------------


@both
def test_a_run_that_ended_in_a_wait_is_taken_up_with_the_retries_that_it_has_left(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    class Killed(Exception):
        pass

    def kill(_run: Run, _edge: object) -> None:
        raise Killed

    with pytest.raises(Killed):
        driver.run(model=Script(unavailable()), max_retries=1, trace=path, hooks=[kill])
    result = driver.resume(path, model=Script(unavailable()))
    assert (result.reason, edges(result)) == ("model_error", ["retry", "retries_exhausted"])
    whole(path)


def test_both_drivers_ask_alike() -> None:
    told: list[Any] = []
    for driver in (SYNC, ASYNC):
        watched = Questions()
        result = driver.run(model=Script(unavailable(0.001), unavailable(0.002), "done"), hooks=[watched])
        told.append((watched.asked, edges(result), failed(result)))
    assert told[0] == told[1]


def test_messages_of_a_retry_are_those_of_the_question() -> None:
    model = Script(unavailable(), "done")
    SYNC.run(model=model)
    first, second = model.asked
    assert first == second == [Message("system", first[0].content), Message("user", "task")]


def test_shown_is_a_sequence() -> None:
    """What a plain model is shown of a question that is put again."""
    shown: list[Sequence[Message]] = []

    def model(messages: Sequence[Message]) -> str:
        shown.append(messages)
        if len(shown) == 1:
            raise unavailable()
        return "done"

    assert SYNC.run(model=model, max_retries=1).answer == "done"
    assert list(shown[0]) == list(shown[1])

"""The last chance: at a cap, a budget or a loop the model may still answer, without tools; the reason stays, and the result has both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fsm_agent import Reply, Result, classic, tool
from fsm_agent.events import Usage
from fsm_agent.guards import ConsecutiveErrors, Deadline, MaxSteps, NoProgress, RepeatedCall, TokenBudget, ToolBudget
from fsm_agent.models.errors import ModelUnavailable
from tests.driving import Driver, Script, both, call, calls, edges, observed, whole


@tool
def look(n: int = 0) -> str:
    """Look."""
    return f"saw {n}"


def looks(*numbers: int) -> list[Reply]:
    return [calls(call("look", f'{{"n": {n}}}')) for n in numbers]


def stopped(driver: Driver, guards: Any, *says: Any, **options: Any) -> tuple[Result, Script]:
    model = Script(*says)
    return driver.run(model=model, tools=[look], guards=guards, last_chance=True, **options), model


LAST = "The run is being stopped: {}. No tool can be called any more. Give your final answer now."


@both
def test_at_a_cap_the_model_answers_once_more_and_the_reason_stays(driver: Driver, tmp_path: Path) -> None:
    result, model = stopped(driver, classic(max_steps=2), *looks(1, 2), "I saw 1 and 2.", trace=tmp_path / "t.jsonl")
    assert (result.reason, result.answer, result.steps) == ("max_steps", "I saw 1 and 2.", 3)
    assert result.message == "stopped: reached the cap of 2 steps, halted so that an endless loop cannot burn the budget"
    assert edges(result)[-4:] == ["last_chance", "model_replied", "last_word", "max_steps"]
    assert model.tools == [("look",), ("look",), ()]
    assert model.asked[-1][-1].content == LAST.format("max_steps")
    whole(tmp_path / "t.jsonl")


@both
@pytest.mark.parametrize(
    ("guards", "numbers", "reason"),
    [
        ((RepeatedCall(2), MaxSteps(9)), (1, 1, 1), "repeated_call"),
        ((NoProgress(6, 2), MaxSteps(9)), (1, 2, 1, 2), "no_progress"),
        ((ToolBudget(1), MaxSteps(9)), (1, 2), "tool_budget"),
        ((TokenBudget(10), MaxSteps(9)), (1,), "token_budget"),
    ],
    ids=["a repeat", "a cycle", "a tool budget", "a token budget"],
)
def test_at_a_loop_or_a_budget(driver: Driver, guards: Any, numbers: tuple[int, ...], reason: str, tmp_path: Path) -> None:
    says = [Reply(each.text, each.tool_calls, usage=Usage(20, 2)) for each in looks(*numbers)]
    result, model = stopped(driver, guards, *says, "enough", trace=tmp_path / "t.jsonl")
    assert (result.reason, result.answer) == (reason, "enough")
    assert len(model.asked) <= len(numbers) + 1
    assert model.tools[-1] == ()
    assert model.asked[-1][-1].content == LAST.format(reason)
    assert edges(result).count("last_chance") + edges(result).count("last_chance_parsing") == 1
    whole(tmp_path / "t.jsonl")


@both
def test_at_a_deadline(driver: Driver) -> None:
    result, model = stopped(driver, (Deadline(0.000001), MaxSteps(9)), *looks(1), "in time")
    assert (result.reason, result.answer, model.tools[-1]) == ("deadline", "in time", ())


@both
def test_after_errors_there_is_none(driver: Driver) -> None:
    bad = calls(call("look", '{"m": 1}'))
    result, _ = stopped(driver, (ConsecutiveErrors(2), MaxSteps(9)), bad, bad)
    assert (result.reason, result.answer) == ("consecutive_errors", None)


@both
def test_who_calls_a_tool_for_a_last_word_has_none(driver: Driver, tmp_path: Path) -> None:
    """Nothing is made any more, and each call has its observation."""
    result, _ = stopped(driver, classic(max_steps=1), *looks(1, 2), trace=tmp_path / "t.jsonl")
    assert (result.reason, result.answer, result.steps) == ("max_steps", None, 2)
    assert observed(result) == [[("look", "saw 1", "ok")]]
    run = whole(tmp_path / "t.jsonl")
    assert (run.history[-1].role, run.history[-1].content) == ("tool", "refused, the run was stopped first: max_steps")


@both
def test_a_model_that_fails_at_its_last_word_halts_the_run_for_its_own_reason(driver: Driver, tmp_path: Path) -> None:
    result, _ = stopped(driver, classic(max_steps=1), *looks(1), OSError("gone"), trace=tmp_path / "t.jsonl")
    assert (result.reason, result.answer, edges(result)[-3:]) == ("max_steps", None, ["no_last_word", "last_word", "max_steps"])
    whole(tmp_path / "t.jsonl")


@both
def test_a_last_word_may_be_asked_for_again(driver: Driver, tmp_path: Path) -> None:
    busy = ModelUnavailable("busy", 429, 0.0)
    result, model = stopped(driver, classic(max_steps=1), *looks(1), busy, "at last", trace=tmp_path / "t.jsonl")
    assert (result.reason, result.answer) == ("max_steps", "at last")
    assert model.tools == [("look",), (), ()]
    result, _ = stopped(driver, classic(max_steps=1), *looks(1), busy, busy, max_retries=1, trace=tmp_path / "t.jsonl")
    assert (result.reason, result.answer, edges(result)[-4:]) == (
        "max_steps",
        None,
        ["retry", "no_last_word_either", "last_word", "max_steps"],
    )
    whole(tmp_path / "t.jsonl")


@both
def test_without_it_the_run_just_halts(driver: Driver) -> None:
    model = Script(*looks(1))
    result = driver.run(model=model, tools=[look], guards=classic(max_steps=1))
    assert (result.reason, result.answer, len(model.asked)) == ("max_steps", None, 1)


@both
def test_a_run_that_ended_before_its_last_word_still_has_it(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    class Killed(Exception):
        pass

    def kill(run: Any, taken: Any) -> None:
        if taken.edge == "last_chance":
            raise Killed

    with pytest.raises(Killed):
        stopped(driver, classic(max_steps=1), *looks(1), trace=path, hooks=[kill])
    model = Script("at last")
    result = driver.resume(path, model=model, tools=[look])
    assert (result.reason, result.answer, model.tools) == ("max_steps", "at last", [()])
    whole(path)


@both
def test_a_plain_model_is_told_in_words(driver: Driver) -> None:
    said: list[str] = []

    def model(messages: Any) -> str:
        said.append(messages[-1].content)
        return "TOOL look n=1" if len(said) == 1 else "FINAL 1"

    result = driver.run(model=model, tools=[look], guards=classic(max_steps=1), last_chance=True, protocol="line")
    assert (result.reason, result.answer, said[1]) == ("max_steps", "1", LAST.format("max_steps"))

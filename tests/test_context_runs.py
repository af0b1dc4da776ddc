"""Contexts in whole runs: what the model is shown shrinks, the record keeps everything, and a summary outlives the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fsm_agent import DropOldObservations, KeepLast, Message, Reply, Summarise, tool
from fsm_agent.events import ContextCompacted, Usage
from fsm_agent.models.errors import ModelUnavailable
from tests.driving import Driver, Script, both, call, calls, edges, whole


@tool
def read(n: int) -> str:
    """Read page n."""
    return f"page {n}: " + "word " * 100


def reads(steps: int) -> list[Reply]:
    return [calls(call("read", f'{{"n": {n}}}', f"call_{n}")) for n in range(1, steps + 1)]


def contents(messages: list[Message]) -> list[str]:
    """The messages, shortened, without the system's."""
    return [f"{message.role}: {message.content[:30]}".strip() for message in messages if message.role != "system"]


PAGES = [f"tool: {read(n)[:30]}" for n in range(1, 5)]


@both
def test_of_old_steps_nothing_is_shown_and_the_record_keeps_them(driver: Driver, tmp_path: Path) -> None:
    model = Script(*reads(4), "done")
    result = driver.run(model=model, tools=[read], context=KeepLast(1), trace=tmp_path / "t.jsonl")
    assert [len(shown) for shown in model.asked] == [2, 4, 5, 5, 5]
    assert contents(model.asked[-1])[:2] == ["user: task", "user: (6 earlier messages are left o"]
    history = whole(tmp_path / "t.jsonl").history
    assert [message.content for message in history if message.role == "tool"] == [read(n) for n in range(1, 5)]
    assert result.trace.header.options.compaction is False


@both
def test_of_old_observations_a_line_is_shown_and_the_record_keeps_them(driver: Driver, tmp_path: Path) -> None:
    model = Script(*reads(4), "done")
    driver.run(model=model, tools=[read], context=DropOldObservations(450), trace=tmp_path / "t.jsonl")
    first, *_, last = [message.content for message in model.asked[-1] if message.role == "tool"]
    assert first == f"(This output of {len(read(1))} characters is left out, to save space.)"
    assert last == read(4)
    assert len(model.asked[-1]) == len(whole(tmp_path / "t.jsonl").history) - 1, "the same messages, but for the answer"
    assert [message.content for message in whole(tmp_path / "t.jsonl").history if message.role == "tool"] == [read(n) for n in range(1, 5)]


def summarising(*says: Any) -> tuple[Script, Summarise]:
    summariser = Script(*says)
    return summariser, Summarise(summariser, at_tokens=250)


@both
def test_a_summary_is_an_event_and_takes_the_place_of_what_it_covers(driver: Driver, tmp_path: Path) -> None:
    usage = Usage(300, 9)
    summariser, context = summarising(*(Reply(f"summary {n}", usage=usage) for n in range(1, 5)))
    model = Script(*reads(4), "done")
    result = driver.run(model=model, tools=[read], context=context, trace=tmp_path / "t.jsonl")
    made = [event for event in result.trace.events if isinstance(event, ContextCompacted)]
    assert made
    assert [(event.summary, event.usage) for event in made] == [(f"summary {n}", usage) for n in range(1, len(made) + 1)]
    assert [event.covers for event in made] == sorted({event.covers for event in made}), "each covers more than the one before"
    assert edges(result).count("compacted") == len(made) == len(summariser.asked)
    shown = contents(model.asked[-1])
    assert shown[:2] == ["user: task", "user: Summary of what you did so far"[:36]]
    assert shown[-1] == PAGES[3]
    assert PAGES[0] not in shown
    history = whole(tmp_path / "t.jsonl").history
    assert [message.content for message in history if message.role == "tool"] == [read(n) for n in range(1, 5)]


@both
@pytest.mark.parametrize("edge", ["compacted", "model_replied"])
def test_a_summary_survives_the_process(driver: Driver, edge: str, tmp_path: Path) -> None:
    """It is not made a second time, and the model is shown what it would have been shown."""
    path = tmp_path / "t.jsonl"

    def told(path: Path, *hooks: Any) -> tuple[Script, Script]:
        summariser, context = summarising("one", "two", "three", "four")
        model = Script(*reads(4), "done")
        driver.run(model=model, tools=[read], context=context, trace=path, hooks=hooks)
        return model, summariser

    whole_run, _ = told(tmp_path / "whole.jsonl")

    class Killed(Exception):
        pass

    def kill(run: Any, taken: Any) -> None:
        if run.summary is not None and taken.edge == edge:
            raise Killed

    with pytest.raises(Killed):
        told(path, kill)
    before = [event for event in whole(path).log if isinstance(event, ContextCompacted)]
    asked = sum(each.role == "assistant" for each in whole(path).history)
    _, context = summarising("two", "three", "four")
    model = Script(*reads(4)[asked:], "done")
    result = driver.resume(path, model=model, tools=[read], context=context)
    assert result.answer == "done"
    assert [event for event in result.trace.events if isinstance(event, ContextCompacted)][: len(before)] == before
    assert model.asked == whole_run.asked[asked:]
    whole(path)


@both
@pytest.mark.parametrize("fault", [ModelUnavailable("busy", 429, 0.0), "", ValueError("no")], ids=["busy", "says nothing", "raises"])
def test_where_no_summary_can_be_made_the_model_is_shown_all(driver: Driver, fault: Any, tmp_path: Path) -> None:
    _, context = summarising(*[fault] * 9)
    model = Script(*reads(3), "done")
    result = driver.run(model=model, tools=[read], context=context, trace=tmp_path / "t.jsonl")
    assert (result.answer, edges(result).count("compacted")) == ("done", 0)
    assert [len(shown) for shown in model.asked] == [2, 4, 6, 8]
    whole(tmp_path / "t.jsonl")


@both
@pytest.mark.parametrize("context", [5, KeepLast, "keep"])
def test_what_is_no_context_is_refused(driver: Driver, context: Any) -> None:
    with pytest.raises(TypeError, match=r"^context is .*; it must be a Context, such as KeepLast\(10\)$"):
        driver.run(model=Script(), context=context)

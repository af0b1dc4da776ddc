"""Text is shown as it arrives, and the machine sees the whole reply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fsm_agent import Reply, Watcher, tool
from fsm_agent.events import ModelReplied
from fsm_agent.models.errors import ModelUnavailable
from tests.driving import Driver, Script, both, call, calls, edges, whole


@tool
def quick() -> str:
    return "quick"


@both
@pytest.mark.parametrize("hooks", [[], [Watcher()]], ids=["plain", "watched"])
def test_pieces_are_shown_and_the_machine_sees_the_whole_reply(driver: Driver, hooks: list[Watcher], tmp_path: Path) -> None:
    shown: list[str] = []
    model = Script(calls(call("quick"), text="I look it up."), "It is so.")
    result = driver.run(model=model, tools=[quick], on_text=shown.append, hooks=hooks, trace=tmp_path / "t.jsonl")
    assert shown == ["I", "look", "it", "up.", "It", "is", "so."]
    replies = [event.reply for event in result.trace.events if isinstance(event, ModelReplied)]
    assert replies == [calls(call("quick"), text="I look it up."), Reply("It is so.")]
    whole(tmp_path / "t.jsonl")


@both
def test_the_same_run_without_anyone_to_show_it_to(driver: Driver) -> None:
    script = (calls(call("quick"), text="I look."), "so")
    streamed = driver.run(model=Script(*script), tools=[quick], on_text=lambda _: None)
    assert edges(streamed) == edges(driver.run(model=Script(*script), tools=[quick]))


@both
def test_a_plain_function_streams_nothing(driver: Driver) -> None:
    shown: list[str] = []
    result = driver.run(model=lambda messages: "done", on_text=shown.append)
    assert (result.answer, shown) == ("done", [])


class Torn(Script):
    """Breaks off in mid-reply, once."""

    def ask(self, messages: Any, tools: Any = (), *, on_text: Any = None) -> Reply:
        if not self.asked:
            self.asked.append(list(messages))
            on_text("It")
            raise ModelUnavailable("the connection was lost", None, 0.0)
        return super().ask(messages, tools, on_text=on_text)


@both
def test_a_reply_that_broke_off_is_streamed_anew(driver: Driver) -> None:
    shown: list[str] = []
    result = driver.run(model=Torn("It is so."), on_text=shown.append)
    assert (result.answer, shown) == ("It is so.", ["It", "It", "is", "so."])
    assert edges(result) == ["retry", "model_replied", "final_answer"]


@both
@pytest.mark.parametrize("hooks", [[], [Watcher()]], ids=["plain", "watched"])
def test_who_cannot_show_the_text_breaks_the_run_off_and_no_model_is_blamed(driver: Driver, hooks: list[Watcher], tmp_path: Path) -> None:
    """As a pipe does that nobody reads any more."""

    def on_text(text: str) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    path = tmp_path / "t.jsonl"
    with pytest.raises(BrokenPipeError):
        driver.run(model=Script("done"), on_text=on_text, hooks=hooks, trace=path, max_retries=3)
    assert whole(path).state == "Deciding"
    assert driver.resume(path, model=Script("done")).answer == "done"


@both
@pytest.mark.parametrize("on_text", [True, "print"])
def test_who_is_no_function_cannot_be_told(driver: Driver, on_text: Any) -> None:
    with pytest.raises(TypeError, match=r"^on_text is .*; it must be a plain function of text$"):
        driver.run(model=Script(), on_text=on_text)


@both
def test_an_async_function_would_never_be_awaited(driver: Driver) -> None:
    async def on_text(text: str) -> None:
        """Never called."""

    with pytest.raises(TypeError, match=r"^on_text is .*; it must be a plain function of text$"):
        driver.run(model=Script(), on_text=on_text)

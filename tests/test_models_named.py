"""Models by name, keys from the environment, and any callable as a model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fsm_agent.events import Message, Reply
from fsm_agent.models import ScriptedModel
from fsm_agent.models.anthropic_model import AnthropicModel
from fsm_agent.models.base import aask, ask
from fsm_agent.models.errors import Complaint, ModelSetupError, is_overflow, retry_after_s
from fsm_agent.models.named import model_from
from fsm_agent.models.openai_model import OpenAIModel

TASK = [Message("user", "What is 3 + 4?")]
VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


# --- names and keys ------------------------------------------------------------------------------------------------


def test_a_name_says_the_provider_and_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " sk-1\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-2")
    openai, anthropic = model_from("openai:gpt-5", temperature=0), model_from("anthropic:claude:x")
    assert isinstance(openai, OpenAIModel)
    assert isinstance(anthropic, AnthropicModel)
    assert (openai.name, openai.model, openai.base_url, openai.options) == (
        "openai:gpt-5",
        "gpt-5",
        "https://api.openai.com/v1",
        {"temperature": 0},
    )
    assert (anthropic.name, anthropic.model) == ("anthropic:claude:x", "claude:x")
    assert (anthropic.base_url, anthropic.max_tokens) == ("https://api.anthropic.com", 16_000)
    assert repr(openai) == "OpenAIModel('gpt-5', base_url='https://api.openai.com/v1')"


def test_a_server_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:8080/v1")
    model = model_from("openai:local", max_tokens=9)
    assert isinstance(model, OpenAIModel)
    assert (model.base_url, model.options) == ("http://localhost:8080/v1", {"max_tokens": 9})


def test_openais_own_server_is_told_the_limit_by_its_new_name() -> None:
    assert OpenAIModel("gpt-5", api_key="sk-1", max_tokens=9).options == {"max_completion_tokens": 9}


@pytest.mark.parametrize(
    ("name", "environ", "message"),
    [
        ("gpt-5", {}, "the model is 'gpt-5'; it must be one of openai:MODEL, anthropic:MODEL"),
        ("azure:gpt-5", {}, "the model is 'azure:gpt-5'; it must be one of openai:MODEL, anthropic:MODEL"),
        ("openai: ", {}, "the model is 'openai: '; after openai: its name must follow, such as openai:gpt-5"),
        ("openai:m", {}, "the model openai:m needs a key: set OPENAI_API_KEY (or OPENAI_BASE_URL, for a server without keys)"),
        ("anthropic:m", {"OPENAI_API_KEY": "sk-1"}, "the model anthropic:m needs a key: set ANTHROPIC_API_KEY"),
        ("openai:m", {"OPENAI_BASE_URL": "localhost:80"}, "OPENAI_BASE_URL is 'localhost:80'; it must begin with http:// or https://"),
        ("openai:m", {"OPENAI_BASE_URL": "ftp://u:p@h/v1"}, "OPENAI_BASE_URL is 'ftp://h/v1'; it must begin with http:// or https://"),
        ("openai:m", {"OPENAI_API_KEY": "sk-secret\nX: y"}, "the key for openai holds characters that no key has; copy it again, without quotes and line breaks"),
        ("anthropic:m", {"ANTHROPIC_API_KEY": "sk-sécret"}, "the key for anthropic holds characters that no key has; copy it again, without quotes and line breaks"),
    ],
)  # fmt: skip
def test_what_is_missing_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, name: str, environ: dict[str, str], message: str) -> None:
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(ModelSetupError) as caught:
        model_from(name)
    assert str(caught.value) == message


def test_a_missing_package_is_told_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    with pytest.raises(ModelSetupError) as caught:
        model_from("openai:m", api_key="sk-1")
    assert str(caught.value) == 'the model openai:m needs the package openai: pip install "fsm-agent[openai]"'


def test_a_token_stands_in_for_anthropics_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-1")
    assert isinstance(model_from("anthropic:m"), AnthropicModel)


# --- any callable --------------------------------------------------------------------------------------------------


def plain(messages: Sequence[Message]) -> str:
    return f"{messages[-1].content} in {threading.current_thread() is threading.main_thread()}"


async def awaited(messages: Sequence[Message]) -> Reply:
    await asyncio.sleep(0)
    return Reply(messages[-1].content)


def unmarked(messages: Sequence[Message]) -> object:
    return awaited(messages)


class AwaitedObject:
    async def __call__(self, messages: Sequence[Message]) -> str:
        return messages[-1].content


def test_a_callable_is_asked_from_sync_code() -> None:
    assert ask(plain, TASK) == Reply("What is 3 + 4? in True")
    assert ask(ScriptedModel(["7"]), TASK) == Reply("7")


@pytest.mark.parametrize("model", [awaited, AwaitedObject(), unmarked])
def test_an_async_callable_is_for_arun_and_leaves_nothing_behind(model: Any) -> None:
    with pytest.raises(TypeError, match=r"the model is async; run it with arun"):
        ask(model, TASK)


@pytest.mark.parametrize("model", [awaited, AwaitedObject(), unmarked])
def test_an_async_callable_is_awaited(model: Any) -> None:
    assert asyncio.run(aask(model, TASK)) == Reply("What is 3 + 4?")


def test_a_sync_callable_runs_in_a_thread_under_asyncio() -> None:
    assert asyncio.run(aask(plain, TASK)) == Reply("What is 3 + 4? in False")


def test_what_is_no_reply_is_refused() -> None:
    model: Callable[[Sequence[Message]], Any] = lambda _: None  # noqa: E731  # the shortest wrong model
    with pytest.raises(TypeError, match="the model returned NoneType"):
        ask(model, TASK)


# --- what headers and words mean -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon: never"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, now=100.0) == seconds


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens.",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "prompt is too long: 213462 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000, decrease input length or `max_tokens` and try again",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Please reduce the length of the messages or completion.",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        "Input is too long for requested model.",
        "prompt too long; exceeded max context length by 4 tokens",
    ],
)
def test_the_words_of_an_overflow(words: str) -> None:
    assert is_overflow(400, Complaint(words))
    assert not is_overflow(401, Complaint(words))


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens is too large: 99999",
        "Invalid value for 'content'",
        "model 'long-context' not found",
        "tools.0.name: String should match pattern",
    ],
)
def test_the_words_of_other_refusals(words: str) -> None:
    assert not is_overflow(400, Complaint(words))

"""What a reply cost: as the server says, by the user's prices, or by the list of genai-prices. What is not known is not zero."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from fsm_agent.events import Message, Reply, Usage
from fsm_agent.models import ModelSetupError, ScriptedModel, has_price, model_from, no_price
from fsm_agent.models.anthropic_model import AnthropicModel
from fsm_agent.models.openai_model import OpenAIModel
from fsm_agent.models.prices import PerMillion, Spent, price_of

from .asked import KEY, WAYS, Way
from .raw_server import Answer, RawServer, events, raw_server

__all__ = ["raw_server"]

TASK = [Message("user", "What is 3 + 4?")]
OPENAI, ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com"
every_way = pytest.mark.parametrize("way", WAYS, ids=str)


def answer(way: Way, usage: object) -> Answer:
    """Seven, and what it took."""
    if not way.streamed:
        return Answer(
            {
                "choices": [{"message": {"content": "7"}, "finish_reason": "stop"}],
                "content": [{"type": "text", "text": "7"}],
                "stop_reason": "end_turn",
                "usage": usage,
            }
        )
    if way.provider == "openai":
        return events({"choices": [{"index": 0, "delta": {"content": "7"}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage})
    return events(
        {"type": "message_start", "message": {"model": "some-model", "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "7"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
        named=True,
    )


def used(way: Way, prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion} if way.provider == "openai" else {"input_tokens": prompt, "output_tokens": completion}  # fmt: skip


@every_way
def test_the_users_prices_are_for_a_million_tokens(raw: RawServer, way: Way) -> None:
    raw.answer = answer(way, used(way, 1000, 100))
    assert way.ask(way.model(raw.url, prices=(2, 10)), TASK).usage == Usage(1000, 100, 0.003)
    assert way.ask(way.model(raw.url, prices=(0, 0)), TASK).usage == Usage(1000, 100, 0.0)


@every_way
def test_what_a_server_of_ones_own_costs_is_not_known(raw: RawServer, way: Way) -> None:
    raw.answer = answer(way, used(way, 1000, 100))
    model = way.model(raw.url)
    assert way.ask(model, TASK).usage == Usage(1000, 100, None)
    assert not has_price(model)


@every_way
@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 5, "input_tokens": 5}, {"completion_tokens": 5, "output_tokens": 5}])
def test_without_the_number_of_tokens_there_is_no_cost(raw: RawServer, way: Way, usage: object) -> None:
    raw.answer = answer(way, usage)
    reply = way.ask(way.model(raw.url, prices=(2, 10)), TASK)
    assert reply.usage is None or reply.usage.cost is None


def test_what_the_server_says_stands(raw: RawServer) -> None:
    way = WAYS[0]
    raw.answer = answer(way, {**used(way, 1000, 100), "cost": 0.5})
    assert way.ask(way.model(raw.url, prices=(2, 10)), TASK).usage == Usage(1000, 100, 0.5)


@every_way
def test_a_number_that_no_conversation_has_is_not_known(raw: RawServer, way: Way) -> None:
    raw.answer = answer(way, used(way, 2**53, 100))
    assert way.ask(way.model(raw.url, prices=(2, 10)), TASK).usage == Usage(None, 100, None)


# --- the list ------------------------------------------------------------------------------------------------------


def test_listed_prices_are_those_of_the_address() -> None:
    """Of models that are no longer sold anew, so that their prices stay."""
    for url, model, spent, cost in [
        (OPENAI, "gpt-4o", Spent(1000, 100), 0.0035),
        (OPENAI, "gpt-4o", Spent(1000, 100, cache_read=600), 0.00275),
        (ANTHROPIC, "claude-3-5-haiku-20241022", Spent(1000, 100), 0.0012),
        (ANTHROPIC, "claude-3-5-haiku-20241022", Spent(1000, 100, cache_read=500, cache_written=400), 0.00092),
    ]:
        price = price_of(url, model)
        assert price is not None
        assert price.cost_of(spent) == pytest.approx(cost)


@pytest.mark.parametrize(
    ("url", "model"),
    [
        ("http://localhost:11434/v1", "gpt-4o"),
        ("https://api.openai.com.evil.example/v1", "gpt-9000"),
        (OPENAI, "a model that nobody sells"),
        (OPENAI, ""),
        (OPENAI, "text-embedding-3-small"),
        ("", "gpt-4o"),
    ],
)
def test_what_is_not_listed_for_text_has_no_price(url: str, model: str) -> None:
    assert price_of(url, model) is None


def test_counts_that_contradict_each_other_cost_nobody_knows_what() -> None:
    price = price_of(OPENAI, "gpt-4o")
    assert price is not None
    assert price.cost_of(Spent(10, 1, cache_read=50)) is None


def test_an_adapter_charges_by_the_list_and_knows_of_the_cache() -> None:
    openai = OpenAIModel("gpt-4o", api_key=KEY)
    sent: dict[str, Any] = {"prompt_tokens_details": {"cached_tokens": 600}}
    assert openai._finished(Reply("7", usage=Usage(1000, 100)), sent, 0.0).usage == Usage(1000, 100, 0.00275)
    anthropic = AnthropicModel("claude-3-5-haiku-20241022", api_key=KEY)
    sent = {"cache_read_input_tokens": 500, "cache_creation_input_tokens": 400}
    assert anthropic._finished(Reply("7", usage=Usage(1000, 100)), sent, 0.0).usage == Usage(1000, 100, 0.00092)
    odd: object
    for odd in ({"cache_read_input_tokens": "all"}, {"cache_read_input_tokens": -1}, []):
        assert anthropic._finished(Reply("7", usage=Usage(1000, 100)), odd, 0.0).usage == Usage(1000, 100, 0.0012)


def test_a_name_that_is_not_listed_is_charged_by_the_one_in_the_answer() -> None:
    model = OpenAIModel("my-alias", api_key=KEY)
    assert model._finished(Reply("7", usage=Usage(1000, 100), model="gpt-4o-2024-08-06"), {}, 0.0).usage == Usage(1000, 100, 0.0035)
    assert not has_price(model)


# --- what a driver asks before a run -------------------------------------------------------------------------------


def test_a_price_is_known_where_it_is_given_listed_or_told() -> None:
    assert has_price(OpenAIModel("gpt-4o", api_key=KEY))
    assert has_price(OpenAIModel("anything", api_key=KEY, prices=(0, 0)))
    assert has_price(OpenAIModel("anything", api_key=KEY, base_url="https://openrouter.ai/api/v1"))
    assert has_price(ScriptedModel(["7"]))
    assert not has_price(OpenAIModel("anything", api_key=KEY))
    assert not has_price(OpenAIModel("gpt-4o", api_key=KEY, base_url="https://notopenrouter.ai/v1"))


def test_an_unknown_price_says_how_to_mend_it() -> None:
    told = "is not known, and a cost budget needs it: give it prices=(1.25, 10), in US dollars per million tokens read and written"
    assert no_price(OpenAIModel("anything", api_key=KEY)) == f"the price of openai:anything {told}"
    assert no_price(len) == f"the price of the model {told}"  # type: ignore[arg-type]  # a callable


@pytest.mark.parametrize("prices", [(1,), (1, 2, 3), (1, -2), (float("nan"), 1), (1, float("inf")), "free", 5, ("a", "b"), [None, 1]])
def test_prices_that_are_none_are_refused(prices: Sequence[float]) -> None:
    with pytest.raises(ModelSetupError, match=r"^prices is .*; it must be two numbers: US dollars per million tokens read, and written$"):
        model_from("openai:gpt-4o", api_key=KEY, prices=prices)


def test_prices_may_be_text_as_settings_hold_them() -> None:
    assert OpenAIModel("x", api_key=KEY, prices=("1.25", "10"))._given == PerMillion(1.25, 10.0)  # type: ignore[arg-type]  # see the name


def test_the_list_is_read_when_a_price_is_asked_for_and_nothing_is_fetched() -> None:
    """In a process of its own, where no socket can be opened."""
    program = """
import socket, sys
def refuse(*_, **__):
    raise SystemExit("a socket was opened")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from fsm_agent.models.openai_model import OpenAIModel
model = OpenAIModel("gpt-4o", api_key="sk-test")
assert "genai_prices" not in sys.modules
assert model.has_price
assert "genai_prices" in sys.modules
import threading
assert threading.active_count() == 1
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_the_package_prices_are_not_known_and_the_user_is_told_of_it() -> None:
    program = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "genai_prices":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import importlib.util
importlib.util.find_spec = lambda name: None if name == "genai_prices" else 1
from fsm_agent.models import has_price, no_price
from fsm_agent.models.openai_model import OpenAIModel
model = OpenAIModel("gpt-4o", api_key="sk-test")
print(has_price(model), no_price(model).rpartition(", ")[2])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ('False or install a list of prices: pip install "fsm-agent[prices]"\n', "")

"""What a reply cost, where its server does not say: by prices that the user gave, or by those that the package ``genai-prices`` lists.

The list is the one that came with the package; nothing is fetched. A model is looked up at the address where it is asked, so that one
on a machine of one's own is not charged for by its name. What is not known is None, and never zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import urlsplit

import attrs

from fsm_agent.models.base import AnyModel, ChatModel
from fsm_agent.models.errors import ModelSetupError

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

MILLION = 1_000_000

TELL_COSTS = ("openrouter.ai",)
"""Servers that tell with each reply what it cost."""


class Spent(NamedTuple):
    """The tokens of one reply."""

    prompt: int
    """All that were read, from the server's cache or not."""
    completion: int
    cache_read: int = 0
    """How many of those read were in the server's cache: they are cheaper."""
    cache_written: int = 0
    """How many of those read were put there: they may be dearer."""


class Price(Protocol):
    """The price of a model."""

    def cost_of(self, spent: Spent) -> float | None:
        """In US dollars; None where that cannot be told."""


@attrs.frozen
class PerMillion:
    """Prices that the user gave. The server's cache makes no difference."""

    prompt: float
    """US dollars for a million tokens that are read."""
    completion: float
    """The same for tokens that are written."""

    def cost_of(self, spent: Spent) -> float:
        return (spent.prompt * self.prompt + spent.completion * self.completion) / MILLION


@attrs.frozen
class Listed:
    """The prices of a model in the list of ``genai-prices``, at the time of the question."""

    base_url: str
    model: str

    def cost_of(self, spent: Spent) -> float | None:
        found = _calculated(self.base_url, self.model, spent)
        return None if found is None else float(found.total_price)


def per_million(prices: Sequence[float]) -> PerMillion:
    """Prices as an adapter takes them. Raises ``ModelSetupError`` for what is no pair of prices."""
    try:
        prompt, completion = map(float, prices)
    except (TypeError, ValueError):
        prompt = completion = math.nan
    if not (0 <= prompt < math.inf and 0 <= completion < math.inf):
        raise ModelSetupError(f"prices is {prices!r}; it must be two numbers: US dollars per million tokens read, and written")
    return PerMillion(prompt, completion)


@cache
def price_of(base_url: str, model: str) -> Price | None:
    """The listed price of a model at this address; None where it is not listed, or the package is not installed."""
    found = _calculated(base_url, model, Spent(1, 1))
    if found is None or found.model_price.input_mtok is None or found.model_price.output_mtok is None:
        return None
    return Listed(base_url, model)


def _calculated(base_url: str, model: str, spent: Spent) -> PriceCalculation | None:
    """What the package makes of it; None where it cannot tell."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    cached = {"cache_read_tokens": spent.cache_read, "cache_write_tokens": spent.cache_written}
    usage = {"input_tokens": spent.prompt, "output_tokens": spent.completion, **{name: count for name, count in cached.items() if count}}
    try:
        return calc_price(Usage(**usage), model, provider_api_url=base_url)
    except (LookupError, ValueError, ArithmeticError):
        return None


def tells_costs(base_url: str) -> bool:
    """Whether the server at this address tells the cost of each reply."""
    host = urlsplit(base_url).hostname or ""
    return any(host == known or host.endswith(f".{known}") for known in TELL_COSTS)


def has_price(model: AnyModel) -> bool:
    """Whether the cost of this model's replies will be known. A callable may tell it with each reply: it is believed that it does."""
    return model.has_price if isinstance(model, ChatModel) else True


def no_price(model: AnyModel) -> str:
    """For people: that the price of a model is not known, and how to mend it."""
    name = model.name if isinstance(model, ChatModel) else "the model"
    mend = "give it prices=(1.25, 10), in US dollars per million tokens read and written"
    install = "" if find_spec("genai_prices") else ', or install a list of prices: pip install "fsm-agent[prices]"'
    return f"the price of {name} is not known, and a cost budget needs it: {mend}{install}"

"""What the values of an agent's options mean: who agrees to calls, what is kept of a long conversation, prices, fields of a request.

They are text on the command line and in a file of settings alike. What cannot be meant so raises ``ValueError`` in one line.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, cast, get_args
from urllib.parse import urlsplit

import attrs
import msgspec

from fsm_agent.drivers.approvals import Policy
from fsm_agent.guards import Guard, guards_from, parse_limits
from fsm_agent.models.base import AnyModel

if TYPE_CHECKING:
    from fsm_agent.context import Context

Who = Literal["ask", "wait", "yes", "no"]

APPROVE = (
    "ask (on the terminal, before calls of tools with side effects), wait (the run waits for fsm-agent resume), yes (nobody is asked) "
    "or no (such calls are denied); ask:all and ask:TOOL,... are about all calls and about those tools alone, and so with wait"
)
CONTEXT = "keep-last:STEPS, drop:TOKENS or summarise:TOKENS"
PRICES = "two numbers, IN,OUT: US dollars per million tokens read, and written"

_OWN_OPTIONS = {
    "base_url": "--base-url",
    "timeout_s": "--timeout",
    "max_tokens": "--max-reply-tokens",
    "prices": "--prices",
}
"""Of an adapter's parameters, the option that gives it."""
_OURS = ("model", "messages", "tools", "stream", "stream_options", "system")
"""Fields of a request that the adapters fill in."""
_NONE = ("self", "name")
"""Names that no field of a request has."""

LONGEST_TIMEOUT_S = 1_000_000
"""Some systems cannot wait longer, and nobody does."""


@attrs.frozen
class Approving:
    """Who agrees to calls, and to which."""

    who: Who
    policy: Policy

    @property
    def tools(self) -> frozenset[str]:
        """The tools that are named."""
        return self.policy if isinstance(self.policy, frozenset) else frozenset()


def approving(text: str) -> Approving:
    """``--approve``."""
    who, colon, which = (part.strip() for part in text.partition(":"))
    names = frozenset(filter(None, map(str.strip, which.split(","))))
    if who not in get_args(Who) or (colon and (not names or who in {"yes", "no"})):
        raise ValueError(f"{text!r} says not who agrees to calls: {APPROVE}")
    policy: Policy = names or "side_effects"
    if names == {"all"}:
        policy = "always"
    return Approving(cast("Who", who), "never" if who == "yes" else policy)


def context_of(text: str) -> Callable[[AnyModel], Context]:
    """``--context``: what makes it, of the run's model, which makes the summaries, too."""
    kind, _, number = (part.strip() for part in text.partition(":"))
    if kind not in {"keep-last", "drop", "summarise"} or not (number.isascii() and number.isdigit() and int(number)):
        raise ValueError(f"{text!r} is no context: it is {CONTEXT}, with a whole number from 1")
    count = int(number)

    def make(model: AnyModel) -> Context:
        from fsm_agent.context import DropOldObservations, KeepLast, Summarise

        match kind:
            case "keep-last":
                return KeepLast(count)
            case "drop":
                return DropOldObservations(count)
            case _:
                return Summarise(model, count)

    return make


def prices_of(text: str) -> tuple[float, ...]:
    """``--prices``."""
    from fsm_agent.models.errors import ModelSetupError
    from fsm_agent.models.prices import per_million

    try:
        given = tuple(map(float, text.split(",")))
        per_million(given)
    except (ModelSetupError, ValueError):
        raise ValueError(f"{text!r} is no pair of prices: it is {PRICES}") from None
    return given


def guards_of(preset: str, limits: str) -> tuple[tuple[Guard, ...], bool]:
    """``--guards`` and ``--limits``, and whether a step cap was assumed, since ``production`` cannot know it."""
    from fsm_agent.proof.configuration import MAX_STEPS

    given = parse_limits(limits)
    assumed = preset == "production" and "max_steps" not in given
    if assumed:
        given["max_steps"] = MAX_STEPS
    return guards_from(preset, **given), assumed


def check_finite(number: float) -> None:
    """Raises ``ValueError`` for what no request can hold."""
    if not math.isfinite(number):
        raise ValueError(f"{number} is no number of a request")


def check_timeout(seconds: float) -> None:
    """Raises ``ValueError`` for a time that nobody can wait."""
    if not 0 < seconds <= LONGEST_TIMEOUT_S:
        raise ValueError(f"{seconds} is no number of seconds from above 0 to {LONGEST_TIMEOUT_S}")


def check_url(url: str) -> None:
    """Raises ``ValueError``, which does not show it, for an address that cannot be read."""
    try:
        parts = urlsplit(url)
        readable = url.isprintable() and " " not in url and bool(parts.hostname or not parts.scheme)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"the address cannot be read: {error}") from None
    if not readable:
        raise ValueError("the address cannot be read; it must be as in http://localhost:11434/v1")


def request_field(text: str) -> tuple[str, Any]:
    """``--model-option``: a further field of each request, and its value, which is JSON, or else text."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals):
        raise ValueError(f"{text!r} is not of the form NAME=VALUE, as in reasoning_effort=low")
    check_request_field(name)
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value
    except RecursionError:
        raise ValueError(f"{name}: its value is nested too deeply") from None


def check_request_field(name: str) -> None:
    """Raises ``ValueError`` for a field of a request that is given otherwise."""
    if is_key(name):
        raise ValueError(f"{name}: a key is given by the environment alone: set OPENAI_API_KEY or ANTHROPIC_API_KEY")
    if name in _OWN_OPTIONS:
        raise ValueError(f"{name}: give it with {_OWN_OPTIONS[name]}")
    if name in _NONE or not name.isprintable():
        raise ValueError(f"{name}: no request has a field of this name")
    if name in _OURS:
        raise ValueError(f"{name}: this field of a request is the run's own")


def is_key(name: str) -> bool:
    """Whether a setting's name is one of a key, as in ``api_key`` or ``openai-api-key``."""
    plain = name.lower().replace("-", "_")
    return plain.endswith(("api_key", "apikey", "auth_token")) or plain in {"key", "authorization"}

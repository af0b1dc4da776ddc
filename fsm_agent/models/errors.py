"""Why a model gave no reply: what is worth asking again for, what is not, and a context that is too long, told apart.

Adapters raise these and never ask again themselves: a retry is an event of the run. A user's own model may raise them too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fsm_agent.text import well_formed

WORDS = 500
"""So many characters of the server's words are kept."""


class ModelSetupError(ValueError):
    """A model cannot be set up: a package, a key or a name is missing. The message says how to mend it."""


class ModelError(Exception):
    """The model gave no reply, and nothing says that asking again would help."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status, where the server answered with one."""


class ModelUnavailable(ModelError):
    """No reply this time: too many requests, a fault of the server, a lost connection, a timeout. Worth asking again."""

    def __init__(self, message: str, status: int | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message, status)
        self.retry_after_s = retry_after_s
        """How long the server asks to wait, in seconds; None where it does not say."""


class ModelRefused(ModelError):
    """The server does not take this request (a wrong key, an unknown model, an empty account), and would not take it again."""


class ContextOverflow(ModelRefused):
    """The conversation is longer than the model's context."""


class NoReply(Exception):
    """An adapter's own: the server answered with something in which there is no reply."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer


class BrokenOff(Exception):
    """An adapter's own: a streamed answer ended before the reply did."""


class Complaint(NamedTuple):
    """What a server's error body says."""

    words: str = ""
    """Its message, for people."""
    codes: frozenset[str] = frozenset()
    """Its codes and types, for programs."""
    status: int | None = None
    """The HTTP status that the body stands for: errors also come within an answer that began well."""


def failure_of(who: str, status: int | None, complaint: Complaint, headers: Mapping[str, str]) -> ModelError:
    """The error to raise for a server that answered with an error; ``status`` is None, or below 400, where the answer began well."""
    if status is None or status < 400:
        status = complaint.status
    said = f"{who} answered {status}" if status else f"{who} broke off its answer"
    message = f"{said}: {complaint.words}" if complaint.words else said
    if is_overflow(status, complaint):
        return ContextOverflow(message, status)
    if is_worth_asking_again(status, complaint, headers):
        return ModelUnavailable(message, status, retry_after_s(headers))
    return ModelRefused(message, status)


# --- what a status means -------------------------------------------------------------------------------------------

_HOPELESS = frozenset(
    {"insufficient_quota", "enforced_spend_limit_reached", "contract_spend_limit_reached", "linked_organization_spend_limit_reached"}
)
"""Codes of a 429 that waiting does not help: the account is empty or at its limit."""


def is_worth_asking_again(status: int | None, complaint: Complaint, headers: Mapping[str, str]) -> bool:
    """429, 408, 409 and 5xx are, unless the server or its code says otherwise; so is an answer that broke off."""
    told = headers.get("x-should-retry")
    if told in {"true", "false"}:
        return told == "true"
    return (status is None or status in {408, 409, 429} or status >= 500) and not complaint.codes & _HOPELESS


_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
_OVERFLOW = re.compile(
    r"(?:prompt|input) (?:is )?too long|maximum (?:context|prompt|input) length|reduce the length of the|too many (?:input )?tokens"
    r"|(?:input|prompt) token count .{0,40}exceed|exceeds? .{0,40}context"
    r"|context .{0,60}exceed|(?:longer|larger|greater) than .{0,40}context",
    re.IGNORECASE,
)
"""How OpenAI, Anthropic, Google, Groq, xAI, OpenRouter, vLLM, llama.cpp, Ollama and LM Studio put it."""


def is_overflow(status: int | None, complaint: Complaint) -> bool:
    """Whether the conversation is too long for the model. A 400 says many things: its code tells, or else its words."""
    if complaint.codes & _OVERFLOW_CODES or status == 413:
        return True
    return status in {400, 422} and _OVERFLOW.search(complaint.words) is not None


def retry_after_s(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """How long the server asks to wait, in seconds: ``retry-after-ms``, else ``Retry-After`` in seconds or as a date."""
    for header, per_second in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(header, "")) / per_second
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    date = headers.get("retry-after", "")
    if ":" not in date:
        return None
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - (time.time() if now is None else now))
    except (ValueError, OverflowError):
        return None


# --- what a body says ----------------------------------------------------------------------------------------------


def complaint_of(body: object) -> Complaint:
    """What an error body says, whatever its form: ``{"error": {...}}``, ``{"message": ...}``, ``{"detail": ...}``, plain text."""
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(inner, Mapping):
        return Complaint(_words(inner))
    details = inner.get("details")
    named = [inner.get("code"), inner.get("type"), details.get("error_code") if isinstance(details, Mapping) else None]
    codes = frozenset(name for name in named if isinstance(name, str))
    message = next((inner[field] for field in ("message", "detail", "error") if inner.get(field)), None)
    code = inner.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else next((_STATUS[name] for name in codes if name in _STATUS), None)
    return Complaint(_words(message), codes, status)


_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status that an error type stands for, at Anthropic and OpenAI."""


def without_keys(text: str, keys: Iterable[str]) -> str:
    """``text`` without these keys, and without anything else that looks like one."""
    for key in keys:
        if key:
            text = text.replace(key, "***")
    return _KEY_LIKE.sub(r"\1***", text)


_KEY_LIKE = re.compile(r"\b(sk-|bearer )[\w*.-]{5,}[\w*-]", re.IGNORECASE)


def _words(said: Any) -> str:
    text = " ".join(well_formed(str(said)).split()) if said is not None else ""
    return text if len(text) <= WORDS else text[: WORDS - 1] + "…"

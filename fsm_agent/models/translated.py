"""An SDK's exceptions, as the errors of this package."""

from __future__ import annotations

from json import JSONDecodeError
from typing import Any

from fsm_agent.models.errors import BrokenOff, ModelError, ModelUnavailable, NoReply, complaint_of, failure_of


def translated(error: Exception, sdk: Any, who: str, where: str, timeout_s: float) -> ModelError | None:
    """The error of this package for one of ``sdk``, or of the HTTP library under it; None for one that is not the server's.

    ``who`` was asked, at ``where``. The server's words may still hold a key.
    """
    failure: ModelError | None = None
    match error:
        case NoReply(answer=answer) if (complaint := complaint_of(answer)).words:
            failure = failure_of(who, None, complaint, {})
        case NoReply() | sdk.APIResponseValidationError() | JSONDecodeError():
            failure = ModelError(f"{who} answered with something that is no reply of its protocol; is {where} the right address?")
        case BrokenOff():
            failure = ModelUnavailable(f"{who} broke off its answer")
        case sdk.APIStatusError():
            failure = failure_of(who, error.status_code, complaint_of(error.body), error.response.headers)
        case sdk.APITimeoutError():
            failure = ModelUnavailable(f"{who} said nothing for {timeout_s:g} s")
        case sdk.APIConnectionError():
            failure = ModelUnavailable(f"{who}: no connection to {where}, or it was lost ({_root(error)})")
        case sdk.APIError():
            failure = failure_of(who, None, complaint_of(error.body), {})
        case _ if _is_of_the_connection(error):
            failure = ModelUnavailable(f"{who}: the connection to {where} was lost ({_root(error)})")
    return failure


def _is_of_the_connection(error: Exception) -> bool:
    """Whether the HTTP library raised it: one of the SDKs lets its exceptions through while it streams."""
    return any(kind.__module__.startswith(("httpx", "httpcore")) for kind in type(error).__mro__)


def _root(error: BaseException) -> str:
    """The words of the cause at the bottom."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__

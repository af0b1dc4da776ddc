"""What the adapters share: one request an ask, its time, its clients, and its errors, told apart and without the key."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import msgspec

from fsm_agent.events import Message, Reply, ToolSpec
from fsm_agent.models.base import ChatModel, OnText
from fsm_agent.models.errors import (
    BrokenOff,
    ModelError,
    ModelSetupError,
    ModelUnavailable,
    NoReply,
    complaint_of,
    failure_of,
    without_keys,
)
from fsm_agent.models.reply import as_reply

if TYPE_CHECKING:
    import asyncio


class Reader(Protocol):
    """Puts a streamed answer together."""

    def take(self, chunk: Mapping[str, Any], /) -> str: ...

    def reply(self) -> Reply: ...


class ServerModel(ChatModel):
    """A model behind an SDK. The SDK's own retries are off, its exceptions do not get out, and neither does the key."""

    provider: ClassVar[str]
    """The first part of the model's name, the SDK's package, and the extra that installs it."""

    def __init__(self, model: str, *, base_url: str, keys: Sequence[str], timeout_s: float, options: Mapping[str, Any]) -> None:
        self.model = model
        """The name by which the server knows it."""
        self.name = f"{self.provider}:{model}"
        self.base_url = base_url
        self.timeout_s = timeout_s
        """So long a silence of the server, in seconds, is a timeout."""
        self.options = dict(options)
        """Further fields of each request, such as ``temperature``."""
        self._keys = tuple(key for key in keys if key)
        self._where = _without_secrets(base_url)
        self._sdk = self._import()
        self._lock = threading.Lock()
        self._client: Any = None
        self._aclients: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, base_url={self._where!r})"

    # --- what an adapter says ---

    @abstractmethod
    def _open(self) -> Any:
        """The SDK's sync client."""

    @abstractmethod
    def _aopen(self) -> Any:
        """The SDK's async client."""

    @abstractmethod
    def _create(self, client: Any, messages: Sequence[Message], tools: tuple[ToolSpec, ...], *, stream: bool) -> Any:
        """Send the request with either client."""

    @abstractmethod
    def _reader(self, tools: tuple[ToolSpec, ...]) -> Reader: ...

    @abstractmethod
    def _reply_of(self, answer: Mapping[str, Any], tools: tuple[ToolSpec, ...]) -> Reply: ...

    # --- asking ---

    def ask(self, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), *, on_text: OnText | None = None) -> Reply:
        began = time.perf_counter()
        failure: ModelError | None = None
        try:
            answer = self._create(self._sync_client(), messages, tools, stream=on_text is not None)
            if on_text is None:
                reply = self._reply_of(_plain(answer), tools)
            elif not _streams(answer):
                reply = self._reply_of(_decoded(answer.response.read()), tools)
                on_text(reply.text)
            else:
                reader = self._reader(tools)
                with answer:
                    for chunk in answer:
                        if text := reader.take(_plain(chunk)):
                            on_text(text)
                reply = reader.reply()
        except Exception as error:
            failure = self._failure(error)
            if failure is None:
                raise
        if failure is not None:  # raised here, so that it does not carry the SDK's exception along, which holds the key
            raise failure
        return _timed(reply, began)

    async def aask(self, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), *, on_text: OnText | None = None) -> Reply:
        began = time.perf_counter()
        failure: ModelError | None = None
        try:
            answer = await self._create(self._async_client(), messages, tools, stream=on_text is not None)
            if on_text is None:
                reply = self._reply_of(_plain(answer), tools)
            elif not _streams(answer):
                reply = self._reply_of(_decoded(await answer.response.aread()), tools)
                on_text(reply.text)
            else:
                reader = self._reader(tools)
                async with answer:
                    async for chunk in answer:
                        if text := reader.take(_plain(chunk)):
                            on_text(text)
                reply = reader.reply()
        except Exception as error:
            failure = self._failure(error)
            if failure is None:
                raise
        if failure is not None:
            raise failure
        return _timed(reply, began)

    # --- clients ---

    def _import(self) -> Any:
        try:
            return import_module(self.provider)
        except ImportError:
            raise ModelSetupError(
                f'the model {self.name} needs the package {self.provider}: pip install "fsm-agent[{self.provider}]"'
            ) from None

    def _sync_client(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._open()
            return self._client

    def _async_client(self) -> Any:
        """A client of its own for each event loop, as its connections belong to it."""
        import asyncio

        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._aclients:
                self._aclients[loop] = self._aopen()
            return self._aclients[loop]

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        import asyncio

        with self._lock:
            client = self._aclients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    # --- errors ---

    def _failure(self, error: Exception) -> ModelError | None:
        """The error to raise in place of this one; None for one that is not the server's."""
        failure = self._translated(error)
        if failure is not None:
            failure.args = (without_keys(str(failure), self._keys),)
        return failure

    def _translated(self, error: Exception) -> ModelError | None:
        sdk, who, where = self._sdk, self.name, self._where
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
                failure = ModelUnavailable(f"{who} said nothing for {self.timeout_s:g} s")
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


def _plain(sent: Any) -> Mapping[str, Any]:
    """What the SDK made of JSON, as JSON again: it checks nothing, and its types promise more than a server keeps."""
    if not hasattr(sent, "to_dict"):
        raise NoReply(sent if isinstance(sent, Mapping) else None)
    plain: Mapping[str, Any] = sent.to_dict(warnings=False)
    return plain


def _streams(answer: Any) -> bool:
    """Whether the server streams, as it was asked to: some answer in one piece."""
    return "event-stream" in answer.response.headers.get("content-type", "")


def _decoded(body: bytes) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NoReply(None) from None


def _timed(reply: Reply, began: float) -> Reply:
    return as_reply(msgspec.structs.replace(reply, latency_s=round(time.perf_counter() - began, 6)))


def _root(error: BaseException) -> str:
    """The words of the cause at the bottom."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


def _without_secrets(url: str) -> str:
    """``url`` without a user, a password and a query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def checked_url(url: str, source: str) -> str:
    """``url``. Raises ``ModelSetupError`` for one that is not of the web."""
    if not url.startswith(("http://", "https://")):
        shown = _without_secrets(url) if "://" in url else url
        raise ModelSetupError(f"{source} is {shown!r}; it must begin with http:// or https://")
    return url


def checked_key(key: str, source: str) -> str:
    """The key, without the white space around it. Raises ``ModelSetupError``, which does not show it, for one that no header can hold."""
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ModelSetupError(f"{source} holds characters that no key has; copy it again, without quotes and line breaks")
    return key

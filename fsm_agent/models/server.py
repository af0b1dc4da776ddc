"""What the adapters share: one request an ask, its time, its clients, and its errors, told apart and without the key."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from weakref import WeakKeyDictionary

import msgspec

from fsm_agent.events import Message, Reply, ToolSpec, Usage
from fsm_agent.models.base import ChatModel, OnText
from fsm_agent.models.errors import ModelError, ModelSetupError, NoReply, without_keys
from fsm_agent.models.prices import Price, Spent, per_million, price_of, tells_costs
from fsm_agent.models.reply import as_reply
from fsm_agent.models.settings import without_secrets
from fsm_agent.models.translated import translated
from fsm_agent.models.wary import as_mapping

if TYPE_CHECKING:
    import asyncio


class Reader(Protocol):
    """Puts a streamed answer together."""

    def take(self, chunk: Mapping[str, Any], /) -> str: ...

    def reply(self) -> Reply: ...

    @property
    def usage(self) -> object:
        """What the server said of tokens, as it came."""


class ServerModel(ChatModel):
    """A model behind an SDK. The SDK's own retries are off, its exceptions do not get out, and neither does the key."""

    provider: ClassVar[str]
    """The first part of the model's name, the SDK's package, and the extra that installs it."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        keys: Sequence[str],
        timeout_s: float,
        prices: Sequence[float] | None,
        options: Mapping[str, Any],
    ) -> None:
        self.model = model
        """The name by which the server knows it."""
        self.name = f"{self.provider}:{model}"
        self.base_url = base_url
        self.timeout_s = timeout_s
        """So long a silence of the server, in seconds, is a timeout."""
        self.options = dict(options)
        """Further fields of each request, such as ``temperature``."""
        self._keys = tuple(key for key in keys if key)
        self._where = without_secrets(base_url)
        self._given = None if prices is None else per_million(prices)
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
    def _cached(self, usage: Mapping[str, Any]) -> tuple[int, int]:
        """Tokens that were read from the server's cache, and written into it."""

    @abstractmethod
    def _reply_of(self, answer: Mapping[str, Any], tools: tuple[ToolSpec, ...]) -> Reply: ...

    # --- asking ---

    def ask(self, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), *, on_text: OnText | None = None) -> Reply:
        began = time.perf_counter()
        failure: ModelError | None = None
        try:
            answer = self._create(self._sync_client(), messages, tools, stream=on_text is not None)
            if on_text is None:
                whole = _plain(answer)
                reply, usage = self._reply_of(whole, tools), whole.get("usage")
            elif not _streams(answer):
                whole = _decoded(answer.response.read())
                reply, usage = self._reply_of(whole, tools), whole.get("usage")
                on_text(reply.text)
            else:
                reader = self._reader(tools)
                with answer:
                    for chunk in answer:
                        if text := reader.take(_plain(chunk)):
                            on_text(text)
                reply, usage = reader.reply(), reader.usage
        except Exception as error:
            failure = self._failure(error)
            if failure is None:
                raise
        if failure is not None:  # raised here, so that it does not carry the SDK's exception along, which holds the key
            raise failure
        return self._finished(reply, usage, began)

    async def aask(self, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), *, on_text: OnText | None = None) -> Reply:
        began = time.perf_counter()
        failure: ModelError | None = None
        try:
            answer = await self._create(self._async_client(), messages, tools, stream=on_text is not None)
            if on_text is None:
                whole = _plain(answer)
                reply, usage = self._reply_of(whole, tools), whole.get("usage")
            elif not _streams(answer):
                whole = _decoded(await answer.response.aread())
                reply, usage = self._reply_of(whole, tools), whole.get("usage")
                on_text(reply.text)
            else:
                reader = self._reader(tools)
                async with answer:
                    async for chunk in answer:
                        if text := reader.take(_plain(chunk)):
                            on_text(text)
                reply, usage = reader.reply(), reader.usage
        except Exception as error:
            failure = self._failure(error)
            if failure is None:
                raise
        if failure is not None:
            raise failure
        return self._finished(reply, usage, began)

    def _finished(self, reply: Reply, usage: object, began: float) -> Reply:
        """The reply with its latency, and with its cost where that can be told."""
        latency_s = round(time.perf_counter() - began, 6)
        return as_reply(msgspec.structs.replace(reply, usage=self._charged(reply, as_mapping(usage)), latency_s=latency_s))

    def _charged(self, reply: Reply, sent: Mapping[str, Any]) -> Usage | None:
        usage = reply.usage
        if usage is None or usage.cost is not None or usage.prompt_tokens is None or usage.completion_tokens is None:
            return usage
        price = self._price(reply.model)
        spent = Spent(usage.prompt_tokens, usage.completion_tokens, *self._cached(sent))
        return usage if price is None else msgspec.structs.replace(usage, cost=price.cost_of(spent))

    def _price(self, answered: str | None = None) -> Price | None:
        """By the name with which it is asked, or else by the one that it gives for itself."""
        return self._given or price_of(self._where, self.model) or (price_of(self._where, answered) if answered else None)

    @property
    def has_price(self) -> bool:
        return tells_costs(self.base_url) or self._price() is not None

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

    def _failure(self, error: Exception) -> ModelError | None:
        """The error to raise in place of this one, without the key; None for one that is not the server's."""
        failure = translated(error, self._sdk, self.name, self._where, self.timeout_s)
        if failure is not None:
            failure.args = (without_keys(str(failure), self._keys),)
        return failure


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

"""What can be a model, and how a driver asks it: an adapter with ``ask`` and ``aask``, or any callable, sync or async."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

from fsm_agent.events import Message, Reply, ToolSpec
from fsm_agent.models.reply import as_reply

OnText = Callable[[str], None]
"""Called with each piece of text as it arrives. The pieces of a call that failed are to be forgotten."""


class ChatModel(ABC):
    """A model behind a server. It is asked once a call, and never asks again by itself; several threads and tasks may ask it at a time."""

    name: str
    """Its name for people and records, such as ``openai:gpt-5``."""

    @property
    def has_price(self) -> bool:
        """Whether its replies will tell what they cost."""
        return True

    @abstractmethod
    def ask(self, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), *, on_text: OnText | None = None) -> Reply:
        """The complete reply to ``messages``. The model may call ``tools``; with none of them, it can but write.

        With ``on_text`` the reply is streamed. Raises ``ModelUnavailable`` where asking again may help, ``ContextOverflow`` where the
        conversation is too long, ``ModelRefused`` or another ``ModelError`` otherwise.
        """

    @abstractmethod
    async def aask(self, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), *, on_text: OnText | None = None) -> Reply:
        """As ``ask``, for asyncio. Cancelling the task ends the request."""

    def __call__(self, messages: Sequence[Message]) -> Reply:
        return self.ask(messages)

    def close(self) -> None:  # noqa: B027  # a model without connections has nothing to close
        """Close the connections of ``ask``."""

    async def aclose(self) -> None:  # noqa: B027  # as above
        """Close the connections that ``aask`` opened in this event loop."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


AnyModel = ChatModel | Callable[[Sequence[Message]], "str | Reply"] | Callable[[Sequence[Message]], Awaitable["str | Reply"]]
"""What ``run`` and ``arun`` take for a model, besides a name such as ``openai:gpt-5``."""


def ask(model: AnyModel, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), on_text: OnText | None = None) -> Reply:
    """Ask any model from sync code. A plain callable is shown the messages alone. Raises what the model raises, and ``TypeError`` for
    an async callable and for what is no reply.
    """
    if isinstance(model, ChatModel):
        return model.ask(messages, tools, on_text=on_text)
    said: Any = model(messages)
    if not isinstance(said, str | Reply) and inspect.isawaitable(said):
        if inspect.iscoroutine(said):
            said.close()
        raise TypeError("the model is async; run it with arun")
    return as_reply(said)


async def aask(model: AnyModel, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), on_text: OnText | None = None) -> Reply:
    """Ask any model from asyncio. A sync callable runs in a thread, so that it cannot hold up other tasks. Raises as ``ask`` does."""
    if isinstance(model, ChatModel):
        return await model.aask(messages, tools, on_text=on_text)
    said: Any
    if is_async(model):
        said = model(messages)
    else:
        import asyncio

        said = await asyncio.to_thread(model, messages)
    return as_reply(await said if inspect.isawaitable(said) else said)


def is_async(model: object) -> bool:
    """Whether calling the model, or another function, gives an awaitable, as far as that can be told beforehand."""
    return inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(getattr(model, "__call__", None))  # noqa: B004  # not whether it is callable

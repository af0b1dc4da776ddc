"""The ways to ask a model: of either provider, sync or async, whole or streamed. All must give the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import attrs

from fsm_agent.events import AskModel, CallTools, Message, ModelReplied, Reply, ToolSpec, ToolsReturned
from fsm_agent.guards import classic
from fsm_agent.machine import Run
from fsm_agent.models.base import ChatModel
from fsm_agent.models.named import model_from
from fsm_agent.protocols import FunctionCallingProtocol, Protocol
from fsm_agent.tools import Tool, observe

KEY = "sk-test-0123456789abcdef"


@attrs.frozen
class Way:
    """How a model is asked."""

    provider: str
    awaited: bool
    streamed: bool

    def __str__(self) -> str:
        return f"{self.provider}-{'async' if self.awaited else 'sync'}-{'stream' if self.streamed else 'whole'}"

    def model(self, url: str, **options: object) -> ChatModel:
        base_url = f"{url}/v1" if self.provider == "openai" else url
        return model_from(f"{self.provider}:some-model", base_url=base_url, api_key=KEY, **options)

    def ask(
        self, model: ChatModel, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), on_text: Callable[[str], None] | None = None
    ) -> Reply:
        """One reply, and the connections are closed again."""
        show = on_text or (lambda _: None)
        if self.awaited:
            return asyncio.run(self._await(model, messages, tools, show))
        with model:
            return model.ask(messages, tools, on_text=show if self.streamed else None)

    async def _await(
        self, model: ChatModel, messages: Sequence[Message], tools: tuple[ToolSpec, ...], show: Callable[[str], None]
    ) -> Reply:
        async with model:
            return await model.aask(messages, tools, on_text=show if self.streamed else None)

    def run(self, model: ChatModel, task: str, tools: Sequence[Tool], protocol: Protocol | None = None) -> Run:
        """A whole run with this model; the server is told of the tools where the protocol leaves that to it."""
        named = {tool.name: tool for tool in tools}
        form = protocol or FunctionCallingProtocol()
        sends_tools = isinstance(form, FunctionCallingProtocol)
        run = Run(task, protocol=form, guards=classic(), tools=tuple(tool.spec for tool in tools))
        while (effect := run.effect) is not None:
            if isinstance(effect, CallTools):
                run.feed(ToolsReturned(tuple(observe(named, call) for call in effect.calls)))
            elif isinstance(effect, AskModel):
                run.feed(ModelReplied(self.ask(model, effect.messages, effect.tools if sends_tools else ())))
        return run


WAYS = [Way(provider, awaited, streamed) for provider in ("openai", "anthropic") for awaited in (False, True) for streamed in (False, True)]

"""Anthropic's models, by its Messages API."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from fsm_agent.events import Message, Reply, ToolSpec
from fsm_agent.models import anthropic_wire
from fsm_agent.models.errors import ModelSetupError
from fsm_agent.models.server import Reader, ServerModel
from fsm_agent.models.settings import checked_key, checked_url

if TYPE_CHECKING:
    import anthropic

ANTHROPIC = "https://api.anthropic.com"


class AnthropicModel(ServerModel):
    """``AnthropicModel("claude-sonnet-5")``: the Messages API of Anthropic, or of a server that is compatible with it."""

    provider: ClassVar[str] = "anthropic"

    def __init__(
        self,
        /,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 600.0,
        max_tokens: int = 16_000,
        prices: Sequence[float] | None = None,
        **options: Any,
    ) -> None:
        """``base_url`` and ``api_key`` are by default those of the environment: ``ANTHROPIC_BASE_URL``, ``ANTHROPIC_API_KEY`` or, as a
        bearer token, ``ANTHROPIC_AUTH_TOKEN``.

        ``max_tokens`` limits a reply (the API demands a limit); ``prices`` are US dollars per million tokens read, and written (by default
        those that are listed in ``fsm-agent[prices]``); ``options`` are further fields of each request, such as
        ``thinking={"type": "disabled"}``. Raises ``ModelSetupError`` where the package or the key is missing.
        """
        given = base_url or os.environ.get("ANTHROPIC_BASE_URL", "").strip()
        url = checked_url(given, "base_url" if base_url else "ANTHROPIC_BASE_URL") if given else ANTHROPIC
        key = checked_key(os.environ.get("ANTHROPIC_API_KEY", "") if api_key is None else api_key, "the key for anthropic")
        token = "" if key or api_key is not None else checked_key(os.environ.get("ANTHROPIC_AUTH_TOKEN", ""), "ANTHROPIC_AUTH_TOKEN")
        if not key and not token and not given:
            raise ModelSetupError(f"the model anthropic:{model} needs a key: set ANTHROPIC_API_KEY")
        self.max_tokens = max_tokens
        """The limit of a reply, in tokens."""
        self._credential = {"auth_token": token} if token else {"api_key": key or "none"}  # the SDK would look for others elsewhere
        super().__init__(model, base_url=url, keys=[key, token], timeout_s=timeout_s, prices=prices, options=options)

    def _settings(self) -> dict[str, Any]:
        timeout = self._sdk.Timeout(self.timeout_s, connect=min(10.0, self.timeout_s))
        return {**self._credential, "base_url": self.base_url, "timeout": timeout, "max_retries": 0}

    def _open(self) -> anthropic.Anthropic:
        import anthropic

        return anthropic.Anthropic(**self._settings())

    def _aopen(self) -> anthropic.AsyncAnthropic:
        import anthropic

        return anthropic.AsyncAnthropic(**self._settings())

    def _create(self, client: Any, messages: Sequence[Message], tools: tuple[ToolSpec, ...], *, stream: bool) -> Any:
        request = {"model": self.model, **anthropic_wire.request_of(messages, tools), **({"stream": True} if stream else {})}
        return client.messages.create(**request, max_tokens=self.max_tokens, extra_body=self.options or None)

    def _reader(self, tools: tuple[ToolSpec, ...]) -> Reader:
        return anthropic_wire.StreamReader(tools)

    def _cached(self, usage: Mapping[str, Any]) -> tuple[int, int]:
        return anthropic_wire.cached(usage)

    def _reply_of(self, answer: Mapping[str, Any], tools: tuple[ToolSpec, ...]) -> Reply:
        return anthropic_wire.reply_of(answer, tools)

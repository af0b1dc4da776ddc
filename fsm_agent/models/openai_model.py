"""OpenAI's models, and those of every server that is compatible with it: vLLM, llama.cpp, Ollama, LM Studio, OpenRouter, ..."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from fsm_agent.events import Message, Reply, ToolSpec
from fsm_agent.models import openai_wire
from fsm_agent.models.errors import ModelSetupError
from fsm_agent.models.server import Reader, ServerModel
from fsm_agent.models.settings import checked_key, checked_url

if TYPE_CHECKING:
    import openai

OPENAI = "https://api.openai.com/v1"


class OpenAIModel(ServerModel):
    """``OpenAIModel("gpt-5")``, or ``OpenAIModel("qwen3", base_url="http://localhost:11434/v1")``: the chat completions of any server."""

    provider: ClassVar[str] = "openai"

    def __init__(
        self,
        /,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 600.0,
        max_tokens: int | None = None,
        prices: Sequence[float] | None = None,
        **options: Any,
    ) -> None:
        """``base_url`` and ``api_key`` are by default those of the environment: ``OPENAI_BASE_URL``, ``OPENAI_API_KEY``.

        ``max_tokens`` limits a reply; ``prices`` are US dollars per million tokens read, and written, where the server does not tell what
        a reply cost (by default those that are listed in ``fsm-agent[prices]``); ``options`` are further fields of each request, such as
        ``temperature=0``.
        Raises ``ModelSetupError`` where the package or the key is missing; a server other than OpenAI's may need none.
        """
        given = base_url or os.environ.get("OPENAI_BASE_URL", "").strip()
        url = checked_url(given, "base_url" if base_url else "OPENAI_BASE_URL") if given else OPENAI
        key = checked_key(os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key, "the key for openai")
        if not key and not given:
            raise ModelSetupError(
                f"the model openai:{model} needs a key: set OPENAI_API_KEY (or OPENAI_BASE_URL, for a server without keys)"
            )
        if max_tokens is not None:  # OpenAI's newer models know one name only, other servers the other
            options = {("max_completion_tokens" if url == OPENAI else "max_tokens"): max_tokens, **options}
        super().__init__(model, base_url=url, keys=[key], timeout_s=timeout_s, prices=prices, options=options)

    def _settings(self) -> dict[str, Any]:
        timeout = self._sdk.Timeout(self.timeout_s, connect=min(10.0, self.timeout_s))
        key = self._keys[0] if self._keys else "none"  # the SDK insists on one
        return {"api_key": key, "base_url": self.base_url, "timeout": timeout, "max_retries": 0}

    def _open(self) -> openai.OpenAI:
        import openai

        return openai.OpenAI(**self._settings())

    def _aopen(self) -> openai.AsyncOpenAI:
        import openai

        return openai.AsyncOpenAI(**self._settings())

    def _create(self, client: Any, messages: Sequence[Message], tools: tuple[ToolSpec, ...], *, stream: bool) -> Any:
        request = {"model": self.model, **openai_wire.request_of(messages, tools)}
        if stream:
            request |= {"stream": True, "stream_options": {"include_usage": True}}
        return client.chat.completions.create(**request, extra_body=self.options or None)

    def _reader(self, tools: tuple[ToolSpec, ...]) -> Reader:
        return openai_wire.StreamReader(tools)

    def _cached(self, usage: Mapping[str, Any]) -> tuple[int, int]:
        return openai_wire.cached(usage)

    def _reply_of(self, answer: Mapping[str, Any], tools: tuple[ToolSpec, ...]) -> Reply:
        return openai_wire.reply_of(answer, tools)

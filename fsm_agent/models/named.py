"""A model from its name: ``openai:gpt-5``, ``anthropic:claude-sonnet-5``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fsm_agent.models.base import ChatModel
from fsm_agent.models.errors import ModelSetupError

PROVIDERS = {"openai": "OpenAIModel", "anthropic": "AnthropicModel"}
"""By the first part of a name, the class, in the module that is named after it."""


def model_from(name: str, /, **options: Any) -> ChatModel:
    """The model of this name, ``PROVIDER:MODEL``; ``options`` are those of its class (``base_url``, ``timeout_s``, ``max_tokens``,
    ``temperature``, ...).

    Raises ``ModelSetupError``, in one line that says how to mend it, for an unknown provider and where the package, the key or the
    model's name is missing.
    """
    provider, _, model = name.partition(":")
    if provider not in PROVIDERS:
        raise ModelSetupError(f"the model is {name!r}; it must be one of {', '.join(f'{known}:MODEL' for known in PROVIDERS)}")
    if not model.strip():
        raise ModelSetupError(f"the model is {name!r}; after {provider}: its name must follow, such as {_EXAMPLES[provider]}")
    made: ChatModel = getattr(import_module(f"fsm_agent.models.{provider}_model"), PROVIDERS[provider])(model.strip(), **options)
    return made


_EXAMPLES = {"openai": "openai:gpt-5", "anthropic": "anthropic:claude-sonnet-5"}

"""Models: adapters to servers, a scripted one, and any callable from the messages so far to a reply."""

from fsm_agent.models.base import ChatModel, aask, ask
from fsm_agent.models.errors import ContextOverflow, ModelError, ModelRefused, ModelSetupError, ModelUnavailable
from fsm_agent.models.named import model_from
from fsm_agent.models.prices import has_price, no_price
from fsm_agent.models.reply import as_reply
from fsm_agent.models.scripted import ScriptedModel, ScriptEnded

__all__ = [
    "ChatModel",
    "ContextOverflow",
    "ModelError",
    "ModelRefused",
    "ModelSetupError",
    "ModelUnavailable",
    "ScriptEnded",
    "ScriptedModel",
    "aask",
    "as_reply",
    "ask",
    "has_price",
    "model_from",
    "no_price",
]

"""Models: callables from the messages so far to a reply."""

from fsm_agent.models.reply import as_reply
from fsm_agent.models.scripted import ScriptedModel, ScriptEnded

__all__ = ["ScriptEnded", "ScriptedModel", "as_reply"]

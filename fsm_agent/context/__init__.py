"""Contexts: what of a long conversation a model is shown. The record keeps everything."""

from fsm_agent.context.base import Context, Summary
from fsm_agent.context.drop_old_observations import DropOldObservations
from fsm_agent.context.keep_last import KeepLast
from fsm_agent.context.summarise import Summarise
from fsm_agent.context.tokens import Count, Tokens

__all__ = ["Context", "Count", "DropOldObservations", "KeepLast", "Summarise", "Summary", "Tokens"]

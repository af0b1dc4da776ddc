"""Whatever a model returned, as a ``Reply`` that a protocol can read and a record can hold."""

from __future__ import annotations

from typing import Any

import msgspec

from fsm_agent.events import Reply
from fsm_agent.text import well_formed

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Reply).decode


def as_reply(said: object) -> Reply:
    """The reply. Raises ``TypeError`` for what is neither text nor a ``Reply``, and for a ``Reply`` with a field of a wrong type.

    A user's model makes its ``Reply`` by hand, and nothing has checked it: None for text is a common slip.
    """
    if isinstance(said, str):
        return Reply(well_formed(str.__str__(said)))
    if not isinstance(said, Reply):
        raise TypeError(f"the model returned {type(said).__name__}; it must return text or a Reply")
    try:
        try:
            return _decode(_encode(said))
        except UnicodeEncodeError:
            return msgspec.convert(_well_formed(msgspec.to_builtins(said)), Reply)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise TypeError(f"the model returned a Reply that cannot be used: {error}") from None


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {name: _well_formed(item) for name, item in value.items()}
    return [_well_formed(item) for item in value] if isinstance(value, list | tuple) else value

"""What a ledger keeps of a recording beside its row, as bytes, and what makes two recordings the same run."""

from __future__ import annotations

import json
import zlib
from hashlib import blake2b
from typing import Any

import msgspec

from fsm_agent.events import Event, ToolSpec, Value
from fsm_agent.traces.ledger.errors import LedgerError
from fsm_agent.traces.recordings import Recording
from fsm_agent.traces.recordings.documents import MOST_BYTES


class _Body(Value, frozen=True):
    """The parts of a recording that are no columns."""

    events: tuple[Event, ...]
    tools: tuple[ToolSpec, ...] = ()
    extra: str = "{}"
    """JSON text: a format may tell anything."""


_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder(_Body).decode


def key_of(recording: Recording) -> str:
    """A digest of what the run is: its format and id, and all that the machine is fed. Not the file it stands in, nor how it was judged.

    Raises ``ValueError`` for what cannot be kept, such as text that is no Unicode.
    """
    identity = (recording.source, recording.id, recording.task, recording.model, recording.tools, recording.events)
    try:
        return blake2b(_encode(identity), digest_size=16).hexdigest()
    except (UnicodeEncodeError, OverflowError, TypeError, RecursionError) as error:
        raise ValueError(f"it cannot be kept: {error}") from None


def pack(recording: Recording) -> bytes:
    """The body. Raises ``ValueError`` as ``key_of`` does."""
    try:
        extra = json.dumps(dict(recording.extra), default=str)
        return zlib.compress(_encode(_Body(recording.events, recording.tools, extra)))
    except (UnicodeEncodeError, OverflowError, TypeError, RecursionError) as error:
        raise ValueError(f"it cannot be kept: {error}") from None


def unpack(body: bytes, key: str) -> tuple[tuple[Event, ...], tuple[ToolSpec, ...], dict[str, Any]]:
    """Events, tools and the rest. Raises ``LedgerError``, naming the run, for a body that is damaged."""
    try:
        whole = _decode(_inflated(body))
        return whole.events, whole.tools, json.loads(whole.extra)
    except (zlib.error, msgspec.DecodeError, ValueError, RecursionError) as error:
        raise LedgerError(f"the run {key} is damaged in the ledger ({error}); make the ledger again from the recordings") from None


def _inflated(body: bytes) -> bytes:
    inflater = zlib.decompressobj()
    data = inflater.decompress(body, MOST_BYTES)
    if not inflater.eof:
        raise ValueError("it is cut off, or larger than any recording that is read")
    return data

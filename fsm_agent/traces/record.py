"""The record of a run: a header, then events and the edges taken on them, in order. One line of JSON each.

A line is a header (``{"trace": 1, ...}``), an event (``{"event": "ModelReplied", ...}``), an edge (``{"edge": "go_on", ...}``) or a note
about a single call (``{"note": "CallStarted", ...}``), which is no part of the run's log.
Fields that have their default are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import msgspec

from fsm_agent.events import Event, ToolSpec, Value
from fsm_agent.guards import Guard, rebuild
from fsm_agent.language import language
from fsm_agent.machine import Run, Taken, UnexpectedEvent
from fsm_agent.options import OFF, Options
from fsm_agent.protocols import PROTOCOLS, Protocol
from fsm_agent.traces.notes import Note

FORMAT = 1
"""The version of the format that this module writes; it reads no other."""


class TraceError(ValueError):
    """A trace that cannot be read: what, where, and how to mend it, in one line."""


class GuardSpec(Value, frozen=True):
    """A guard as a record names it."""

    reason: str
    guard: str
    """The class's name."""
    limits: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Header(Value, frozen=True, tag_field="trace", tag=FORMAT):
    """What a run was set up with."""

    task: str
    protocol: str
    lang: str = "en"
    guards: tuple[GuardSpec, ...] = ()
    """In the order of the table."""
    tools: tuple[ToolSpec, ...] = ()
    title: str = ""
    """The run's name for people, such as a scenario's."""
    at: float | None = None
    """When it began, in seconds since 1970 UTC."""
    id: str = ""
    """The run's own name in the keys of its calls; empty: it has none."""
    options: Options = OFF


@attrs.frozen
class Trace:
    """A recorded run."""

    header: Header
    log: Sequence[Event | Taken]
    cut_off: bool = False
    """The file ended in the middle of a line, as after a kill: the whole lines are here."""
    notes: Sequence[tuple[int, Note]] = attrs.field(default=(), eq=False)
    """What was noted of single calls, each with the number of entries of the log that stood before it."""
    own_guards: tuple[Guard, ...] | None = attrs.field(default=None, eq=False, repr=False)
    """The run's own guards, in the process that ran it: what no file can hold of a user's guard."""
    own_protocol: Protocol | None = attrs.field(default=None, eq=False, repr=False)
    """The run's own protocol, likewise."""

    def line_of(self, index: int) -> int:
        """The number in the file of the line of an entry of the log, blank lines not counted; the header is line 1."""
        return index + 2 + sum(before <= index for before, _ in self.notes)

    @property
    def events(self) -> list[Event]:
        return [entry for entry in self.log if not isinstance(entry, Taken)]

    @property
    def edges(self) -> list[Taken]:
        return [entry for entry in self.log if isinstance(entry, Taken)]

    def new_run(self, guards: Sequence[Guard] | None = None, *, protocol: Protocol | None = None) -> Run:
        """A run set up as the recorded one, with nothing fed to it yet; ``guards`` replaces its guards, ``protocol`` its protocol.

        Raises ``TraceError`` for a guard, protocol or language that this package does not know, and for guards that do not go together.
        """
        header = self.header
        form = protocol or self.own_protocol or self._named_protocol()
        guards = self.own_guards if guards is None else guards
        setup: dict[str, Any] = {"protocol": form, "tools": header.tools, "options": header.options, "run_id": header.id, "at": header.at}
        if guards is not None:
            return Run(header.task, guards=guards, **setup)
        try:
            made = [rebuild(spec.reason, spec.guard, spec.limits) for spec in header.guards]
            return Run(header.task, guards=made, **setup)
        except ValueError as error:
            raise TraceError(str(error)) from None

    def _named_protocol(self) -> Protocol:
        name = self.header.protocol
        if name not in PROTOCOLS:
            known = ", ".join(PROTOCOLS)
            raise TraceError(f"the protocol {name!r} is not known; known are {known}; give any other to replay with")
        try:
            return PROTOCOLS[name](language(self.header.lang))
        except ValueError as error:
            raise TraceError(str(error)) from None

    def replay(self, guards: Sequence[Guard] | None = None, *, protocol: Protocol | None = None) -> Run:
        """The recorded events, fed to a new run. Raises ``TraceError`` as ``new_run`` does, and for events that no run can have had."""
        run = self.new_run(guards, protocol=protocol)
        try:
            for event in self.events:
                run.feed(event)
        except UnexpectedEvent as error:
            raise TraceError(f"these events belong to no run under these guards: {error}") from None
        return run


def header_of(run: Run, title: str = "") -> Header:
    """The header for a record of ``run``."""
    guards = tuple(GuardSpec(guard.reason, type(guard).__name__, guard.as_limits()) for guard in run.wiring.guards)
    return Header(
        run.task,
        _name_of(run.protocol),
        run.protocol.lang.code,
        guards,
        run.tools,
        title,
        run.at,
        run.id,
        run.options if run.options != OFF else OFF,
    )


def _name_of(protocol: Protocol) -> str:
    """The protocol's name; its class's where the name is that of a built-in one, which it inherits or has taken."""
    name = getattr(protocol, "name", "")
    kind = type(protocol)
    if PROTOCOLS.get(name) is kind or (name and name not in PROTOCOLS):
        return str(name)
    return kind.__name__ if kind.__name__ not in PROTOCOLS else f"{kind.__module__}.{kind.__name__}"


# --- lines -------------------------------------------------------------------------------------------------------

_encoder = msgspec.json.Encoder()
_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    "trace": msgspec.json.Decoder(Header),
    "edge": msgspec.json.Decoder(Taken),
    "event": msgspec.json.Decoder(Event),
    "note": msgspec.json.Decoder(Note),
}


class _Kind(msgspec.Struct):
    """Which line it is: the fields that tell."""

    trace: int | None = None
    event: str | None = None
    edge: str | None = None
    note: str | None = None


_kind = msgspec.json.Decoder(_Kind)


def encode(entry: Header | Event | Taken | Note) -> bytes:
    """One line, with its line break."""
    return _encoder.encode(entry) + b"\n"


def decode_header(line: bytes) -> Header:
    """Raises ``TraceError`` for a line that is no header, or of a newer format than this package's."""
    version = _decode(_kind, line).trace
    if version is None:
        raise TraceError('this is no trace: the first line has no "trace" field')
    if version != FORMAT:
        raise TraceError(f"the trace has format {version}, and this version of fsm_agent reads format {FORMAT}")
    header: Header = _decode(_decoders["trace"], line)
    return header


def decode_entry(line: bytes) -> Event | Taken | Note:
    """Raises ``TraceError`` for a line that is no event, edge or note."""
    kind = _decode(_kind, line)
    told = [field for field in ("event", "edge", "note") if getattr(kind, field) is not None]
    if len(told) != 1:
        raise TraceError('neither an event nor an edge: one of the fields "event" and "edge" is needed')
    entry: Event | Taken | Note = _decode(_decoders[told[0]], line)
    return entry


def _decode(decoder: msgspec.json.Decoder[Any], line: bytes) -> Any:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(str(error)) from None

"""What can happen to a run (events), what its replies mean (decisions), and what it asks of the world (effects).

All of them are frozen values: ``msgspec`` structs, which a run makes fifteen of in a step. They cost a sixth of an attrs class
to make, are out of the garbage collector's sight (none can hold a cycle), and are written to a record as they are.

Events are what the world said, and are all that a record has to keep: a decision is a
pure function of a reply (a protocol makes it), an effect a pure function of the events so far (the machine makes it).

The guards are shown the events and, after each reply, its decision; together they are the *facts* of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import msgspec

_canonical = msgspec.json.Encoder(order="sorted").encode

ERROR_PREFIX = "TOOL_ERROR:"
"""How the text of an observation that is an error begins."""


class Value(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A frozen value without cycles."""


# --- what a model says -------------------------------------------------------------------------------------------


class Usage(Value, frozen=True):
    """What one model call cost."""

    prompt_tokens: int | None = None
    """Tokens read by the model; None: not known."""
    completion_tokens: int | None = None
    """Tokens written by the model; None: not known."""
    cost: float | None = None
    """In US dollars; None: not known, which is not the same as free."""


class ToolRequest(Value, frozen=True):
    """A structured tool call as a model's server sends it, not yet checked."""

    id: str
    """The server's id of the call; it binds the result to the call."""
    name: str
    arguments: str
    """JSON text, as it came; it may be anything."""


class Reply(Value, frozen=True):
    """One answer of a model, as it came."""

    text: str = ""
    """What it said; empty where it only calls tools."""
    tool_calls: tuple[ToolRequest, ...] = ()
    finish_reason: str | None = None
    """The server's word for why it stopped writing; ``length`` means that it was cut off."""
    usage: Usage | None = None
    model: str | None = None
    """The name that the server gave for itself."""
    latency_s: float | None = None
    """From the question to the complete reply, in seconds."""
    taken_as: Literal["answer", "talk", "unparseable"] | None = None
    """Of a recorded reply: what the system that recorded it took it for. Live replies leave it to the protocol."""


# --- decisions: what a reply means -------------------------------------------------------------------------------


class ToolCall(Value, frozen=True):
    """A call that the model wants made: a tool's name and arguments that are JSON values."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""
    """The server's id, where it gave one. It is no part of the call's identity."""
    key: str = ""
    """Of a call that is being made: ``RUN/STEP/NUMBER``. It stays the same when the run is taken up again, so that by it a tool can do
    a thing once only."""

    @property
    def signature(self) -> tuple[str, bytes]:
        """The call's identity: tool and canonical arguments (keys sorted at every depth, JSON types kept)."""
        return self.name, _canonical(self.arguments)

    def __str__(self) -> str:
        return f"{self.name}{{{', '.join(f'{key}={_shown(value)}' for key, value in self.arguments.items())}}}"


def _shown(value: object) -> str:
    return value if isinstance(value, str) else _canonical(value).decode()


class Final(Value, frozen=True):
    """The reply is the answer."""

    answer: str


class ToolCalls(Value, frozen=True):
    """The reply asks for these calls, in this order."""

    calls: tuple[ToolCall, ...]
    thought: str = ""


class Said(Value, frozen=True):
    """The reply talks to a person and ends nothing: a turn of a conversation."""

    text: str


class Malformed(Value, frozen=True):
    """The reply cannot be used. ``problem`` goes back to the model, so that it can mend its reply."""

    problem: str
    kind: Literal["unparseable", "empty", "truncated"] = "unparseable"
    """``truncated``: the reply was cut off, and it held tool calls, which must not be run."""


Decision = Final | ToolCalls | Said | Malformed

# --- tools, as a model is told of them -----------------------------------------------------------------------------


class ToolSpec(Value, frozen=True):
    """A tool as a model is told of it."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """A JSON Schema of type ``object``."""
    polls: bool = False
    """Calling it again and again is how it is used: its repeats are no loop."""
    volatile: tuple[str, ...] = ()
    """Fields of its arguments and of its JSON observations that say nothing of progress, such as ``elapsed``."""
    idempotent: bool = False
    """A second run of the same call changes nothing."""
    side_effects: bool = False
    """It changes something in the world: a person is asked before it is run, unless a policy says otherwise."""


# --- events: what the world said ---------------------------------------------------------------------------------

ObservationKind = Literal["ok", "tool_error", "unknown_tool", "bad_arguments", "timeout", "denied", "refused", "cancelled", "interrupted"]


class Observation(Value, frozen=True):
    """What one tool call came to, as the model reads it."""

    tool: str
    """The name that was called, known or not."""
    text: str
    kind: ObservationKind = "ok"
    """``refused``: a guard halted the run before the call was made; ``denied``: a person did not agree to it; ``timeout``: it was
    given up, and what came of it is not known; ``interrupted``: the process ended while it ran, and what came of it is not known.
    Anything but ``ok`` is an error."""
    traceback: str | None = None
    """For people: where a tool raised. It is never shown to a model."""

    @property
    def is_error(self) -> bool:
        return self.kind != "ok"


class ModelReplied(Value, frozen=True, tag_field="event", tag=True):
    """The model answered."""

    reply: Reply
    at: float | None = None
    """When, in seconds since 1970 UTC; None: not known. So in every event."""


class ModelFailed(Value, frozen=True, tag_field="event", tag=True):
    """The model, or the way to it, raised instead of answering."""

    error: str
    """The exception's type."""
    message: str
    at: float | None = None


class AttemptFailed(Value, frozen=True, tag_field="event", tag=True):
    """The model could not be asked just now (too many requests, a fault of the server, a lost connection): asking again may help."""

    error: str
    """The exception's type."""
    message: str
    retry_after_s: float | None = None
    """So long the server asks to wait, in seconds."""
    at: float | None = None


class ContextCompacted(Value, frozen=True, tag_field="event", tag=True):
    """The conversation had grown long: from now on the model is shown a summary in place of its beginning. The history keeps it."""

    covers: int
    """How many messages, from the start, the summary stands for."""
    summary: str
    usage: Usage | None = None
    """What it cost to make it."""
    at: float | None = None


class ApprovalAsked(Value, frozen=True, tag_field="event", tag=True):
    """Before these calls are made, a person has to agree."""

    calls: tuple[int, ...]
    """Which of the reply's calls, counted from 0, in order."""
    at: float | None = None


class Approval(Value, frozen=True):
    """What a person said of one call."""

    verdict: Literal["yes", "no", "edit"]
    words: str = ""
    """With ``no``: why; the model reads it."""
    arguments: Mapping[str, Any] | None = None
    """With ``edit``: the arguments to call it with instead."""


class ApprovalGiven(Value, frozen=True, tag_field="event", tag=True):
    """A person decided about the calls that were asked about."""

    approvals: tuple[Approval, ...]
    """One for each call that was asked about, in that order."""
    at: float | None = None


class ToolsReturned(Value, frozen=True, tag_field="event", tag=True):
    """Every call that was asked for has its observation, in call order."""

    observations: tuple[Observation, ...]
    at: float | None = None


class ToolsFailed(Value, frozen=True, tag_field="event", tag=True):
    """What runs the tools is gone and did not come back: a server died twice."""

    observations: tuple[Observation, ...]
    """One a call, in call order."""
    error: str
    """The exception's type."""
    message: str
    """It names what is gone."""
    at: float | None = None


class UserSpoke(Value, frozen=True, tag_field="event", tag=True):
    """A person said something while the model was about to be asked."""

    text: str
    at: float | None = None


class Cancelled(Value, frozen=True, tag_field="event", tag=True):
    """A person stopped the run (Ctrl-C)."""

    observations: tuple[Observation, ...] = ()
    """While tools ran: what each call came to, in call order; those that did not end are ``cancelled``."""
    at: float | None = None
    asked: bool = True
    """While the model was waited for: it had been asked, which makes it a step. False: the run was stopped before that."""


class RecordingEnded(Value, frozen=True, tag_field="event", tag=True):
    """A recorded run simply ends here: nothing says why."""

    at: float | None = None


class Started(Value, frozen=True):
    """A run is set up: the first fact that its guards are shown. It is no event; a record's header says as much."""

    tools: tuple[ToolSpec, ...] = ()
    at: float | None = None


Event = (
    ModelReplied
    | ModelFailed
    | AttemptFailed
    | ContextCompacted
    | ApprovalAsked
    | ApprovalGiven
    | ToolsReturned
    | ToolsFailed
    | UserSpoke
    | Cancelled
    | RecordingEnded
)
Fact = Started | Event | Decision

# --- effects: what a run asks of the world -----------------------------------------------------------------------


class Message(Value, frozen=True):
    """One entry of the history that a model is shown."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolRequest, ...] = ()
    """With ``assistant``: the structured calls that it made."""
    tool: str = ""
    """With ``tool``: the name of the tool whose observation this is."""
    tool_call_id: str = ""
    """With ``tool``: the server's id of the call, where it gave one."""


class Messages(Sequence[Message]):
    """The first ``count`` messages of a history that only ever grows: a snapshot without a copy."""

    __slots__ = ("_all", "_count")

    def __init__(self, history: list[Message], count: int) -> None:
        self._all = history
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self._all[i] for i in range(*index.indices(self._count))]
        return self._all[range(self._count)[index]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # a view of a growing list, equal to lists

    def __repr__(self) -> str:
        return f"Messages({list(self)!r})"


class AskModel(Value, frozen=True):
    """Ask the model: show it the messages and the tools; feed ``ModelReplied``, ``ModelFailed`` or ``AttemptFailed``."""

    messages: Messages
    tools: tuple[ToolSpec, ...] = ()
    """Empty for the last word: the model can but answer."""
    attempt: int = 1
    """How often this question is put, with this time."""
    delay_s: float = 0.0
    """Wait so many seconds before."""


class AskApproval(Value, frozen=True):
    """Ask a person about some of the calls; feed ``ApprovalGiven`` with a word on each of them, in their order."""

    calls: tuple[ToolCall, ...]
    asked: tuple[int, ...]
    """Which of them, counted from 0."""


class CallTools(Value, frozen=True):
    """Make these calls; feed ``ToolsReturned`` with one observation a call, in this order."""

    calls: tuple[ToolCall, ...]
    settled: tuple[Observation | None, ...] = ()
    """What was settled without making the call, such as a person's no: its observation, in the call's place; empty: nothing was."""
    may_ask: bool = True
    """A person was not asked about them yet: ``ApprovalAsked`` can be fed instead."""


Effect = AskModel | AskApproval | CallTools

"""THE table: every edge of the agent's machine, one row an edge. Nothing else in the project restates it.

The theory
----------
An LLM agent is a guarded ``while`` loop: ask the model, run the tools that it named, write what they returned into
the history, and ask again, *unless* something says stop. Written as a loop, the interesting part (who may stop it,
when, and in what order they are asked) hides in ``if`` and ``break``. Written as a machine, it is this table.

**States.** Two of them wait for the world, two are pure, one is the end:

- ``Deciding`` waits for the model.
- ``Parsing`` is pure: a protocol has turned the reply into a decision, and the guards that must act *before* anything is
  executed are judged.
- ``Executing`` waits for the tools.
- ``Observing`` is pure: the observations (or the correction of a malformed reply) are in the history, and the other
  guards are judged.
- ``Halted`` has no edge out of it. Why it was entered is the edge's ``reason``; people write ``Halted(max_steps)``.

**Triggers.** From the waiting states a trigger is an event of the world. From the pure states it is the machine's own
(``parsed``, ``observed``): the run passes through them without stopping.

**A step** is one model call, with the attempts at it, and all that follows it until the next one. The rows with ``begins_step`` are those on
which the model was heard (or failed, or was called off), so *the number of steps is the number of model calls*.
A run that was cancelled before its model was asked begins none: the event says so.

**Guards.** An edge is taken when its guard holds. ``is_...`` are predicates over the decision. The others are the values
from ``fsm_agent.guards``, each of which folds the run's facts into a reading with a limit; its edge is there only in a
machine that has been given that guard.

Rules for whoever edits this file
---------------------------------
1. Rows with the same source and trigger form a group; within it the order is the priority, and **the last row of a group
   has no guard**. So no event is ever refused, and when several guards trip at once the first of them names the halt.
2. Every row into ``Halted`` has a reason, and only those have one. Nothing leaves ``Halted``.
3. Ids are unique and stable: traces hold them.
4. ``final_answer`` stands before every guard: an answer that came is never thrown away by a limit.
5. Every cycle takes an edge that spends something bounded (``spends``): a model call, hence a step before ``max_steps``; a retry, of
   which there are so many in a row; the one question to a person or the one summary that a step may have; the one last chance of a
   run. The exception is ``user_spoke``, which a person has to take each time. That is why a run with a step cap ends.
6. A row with ``needs`` is there only in a machine with that option (``fsm_agent.options``): what is off has no edge.

**The last chance.** At a cap, a budget or a loop the model may be asked once more, without tools. From then on the guards are
shown nothing more: what they judged stands, and whatever the model answers, the run halts with their reason.

What is not pretty: ``Cancelled`` and ``RecordingEnded`` can happen in both waiting states, which costs two rows each.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Literal

import attrs

from fsm_agent.options import Feature

State = Literal["Deciding", "Parsing", "Executing", "Observing", "Halted"]

DECIDING: State = "Deciding"
PARSING: State = "Parsing"
EXECUTING: State = "Executing"
OBSERVING: State = "Observing"
HALTED: State = "Halted"

STATES: tuple[State, ...] = (DECIDING, PARSING, EXECUTING, OBSERVING, HALTED)
INITIAL: State = DECIDING
PURE: frozenset[State] = frozenset({PARSING, OBSERVING})
"""The states that a run passes through without waiting for the world."""


@attrs.frozen
class Row:
    """One edge."""

    id: str
    source: State
    trigger: str
    guard: str | None
    """A predicate's or a guard class's name; None: taken when nothing before it in its group was."""
    dest: State
    label: str
    """The edge in a person's words, for diagrams (English; the catalogue has the rest)."""
    reason: str | None = None
    """Of an edge into Halted: the halt reason."""
    begins_step: bool = False
    """A model call was made: the step counter goes up before this edge is recorded."""
    spends: str = ""
    """What bounded thing the edge takes one of, besides a model call (``begins_step``); empty: nothing."""
    needs: Feature | None = None
    """The option without which the edge is not there; None: it always is."""
    chance: bool = False
    """Of a guard's edge: the model may have a last chance before it is taken."""


# fmt: off
ROWS: tuple[Row, ...] = (
    #   id                          source     trigger            guard                dest        label
    Row("model_replied",            DECIDING,  "model_replied",   None,                PARSING,    "model replied", begins_step=True),
    Row("no_last_word",             DECIDING,  "model_failed",    "is_last",           PARSING,    "no last word", begins_step=True, needs="last_chance"),
    Row("model_error",              DECIDING,  "model_failed",    None,                HALTED,     "model failed", reason="model_error", begins_step=True),
    Row("retry",                    DECIDING,  "attempt_failed",  "can_retry",         DECIDING,   "asked again", spends="a retry", needs="retries"),
    Row("no_last_word_either",      DECIDING,  "attempt_failed",  "is_last",           PARSING,    "no last word", begins_step=True, needs="last_chance"),
    Row("retries_exhausted",        DECIDING,  "attempt_failed",  None,                HALTED,     "no retry left", reason="model_error", begins_step=True, needs="retries"),
    Row("compacted",                DECIDING,  "context_compacted", None,              DECIDING,   "summed up", spends="a step's summary", needs="compaction"),
    Row("user_spoke",               DECIDING,  "user_spoke",      None,                DECIDING,   "a person spoke"),
    Row("cancelled",                DECIDING,  "cancelled",       None,                HALTED,     "cancelled", reason="cancelled", begins_step=True),
    Row("recording_ended",          DECIDING,  "recording_ended", None,                HALTED,     "recording ended", reason="recording_ended"),

    Row("last_word",                PARSING,   "parsed",          "is_last_word",      OBSERVING,  "last word", needs="last_chance"),
    Row("final_answer",             PARSING,   "parsed",          "is_final_answer",   HALTED,     "final answer", reason="final_answer"),
    Row("last_chance_parsing",      PARSING,   "parsed",          "has_last_chance",   DECIDING,   "last chance", spends="the last chance", needs="last_chance"),
    Row("repeated_call",            PARSING,   "parsed",          "RepeatedCall",      HALTED,     "repeats", reason="repeated_call"),
    Row("tool_budget",              PARSING,   "parsed",          "ToolBudget",        HALTED,     "calls", reason="tool_budget"),
    Row("token_budget",             PARSING,   "parsed",          "TokenBudget",       HALTED,     "tokens", reason="token_budget"),
    Row("cost_budget",              PARSING,   "parsed",          "CostBudget",        HALTED,     "cost", reason="cost_budget"),
    Row("malformed",                PARSING,   "parsed",          "is_malformed",      OBSERVING,  "malformed"),
    Row("said",                     PARSING,   "parsed",          "is_said",           OBSERVING,  "said to a person"),
    Row("call_tools",               PARSING,   "parsed",          None,                EXECUTING,  "tool call"),

    Row("tools_returned",           EXECUTING, "tools_returned",  None,                OBSERVING,  "tools returned"),
    Row("ask_approval",             EXECUTING, "approval_asked",  None,                EXECUTING,  "a person is asked", spends="a step's question", needs="approvals"),
    Row("approval_given",           EXECUTING, "approval_given",  None,                EXECUTING,  "a person decided", spends="a step's answer", needs="approvals"),
    Row("tools_failed",             EXECUTING, "tools_failed",    None,                HALTED,     "tools are gone", reason="tools_failed", needs="tool_servers"),
    Row("cancelled_executing",      EXECUTING, "cancelled",       None,                HALTED,     "cancelled", reason="cancelled"),
    Row("recording_ended_executing", EXECUTING, "recording_ended", None,               HALTED,     "recording ended", reason="recording_ended"),

    Row("last_chance",              OBSERVING, "observed",        "has_last_chance",   DECIDING,   "last chance", spends="the last chance", needs="last_chance"),
    Row("denied",                   OBSERVING, "observed",        "Denied",            HALTED,     "denials", reason="denied"),
    Row("truncated_reply",          OBSERVING, "observed",        "TruncatedReply",    HALTED,     "cut off", reason="truncated_reply"),
    Row("empty_reply",              OBSERVING, "observed",        "EmptyReply",        HALTED,     "empty", reason="empty_reply"),
    Row("error_streak",             OBSERVING, "observed",        "ErrorStreak",       HALTED,     "same errors", reason="error_streak"),
    Row("no_progress",              OBSERVING, "observed",        "NoProgress",        HALTED,     "cycle", reason="no_progress"),
    Row("malformed_streak",         OBSERVING, "observed",        "MalformedStreak",   HALTED,     "malformed", reason="malformed_streak"),
    Row("consecutive_errors",       OBSERVING, "observed",        "ConsecutiveErrors", HALTED,     "errors", reason="consecutive_errors"),
    Row("deadline",                 OBSERVING, "observed",        "Deadline",          HALTED,     "seconds", reason="deadline"),
    Row("max_steps",                OBSERVING, "observed",        "MaxSteps",          HALTED,     "steps", reason="max_steps"),
    Row("nudge",                    OBSERVING, "observed",        "is_warned",         DECIDING,   "nudge"),
    Row("go_on",                    OBSERVING, "observed",        None,                DECIDING,   "go on"),
)
# fmt: on

PREDICATES = frozenset(
    {"is_final_answer", "is_malformed", "is_said", "is_warned", "can_retry", "is_last", "is_last_word", "has_last_chance"}
)
"""The guards that are predicates over the run; every other name in the guard column is a guard class."""

GUARD_REASONS = frozenset(row.reason for row in ROWS if row.guard and row.guard not in PREDICATES)
"""The reasons that have a place in the table and are there only with their guard."""

UNGUARDED_REASONS = frozenset(row.reason for row in ROWS if row.reason) - GUARD_REASONS

LAST_GUARD: dict[State, str] = {PARSING: "malformed", OBSERVING: "max_steps"}
"""A user's own guard gets its edge before this row: after the measured ones, and before the cap, which is judged last."""


LONGEST_REASON = 60
"""Characters of a reason."""

LONGEST_PART = 128
"""Characters of a reason after a colon: the name of a tool, which the user does not choose."""

_REASON = re.compile(r"[^\s:]+(:\S+)?")


@attrs.frozen
class GuardEdge:
    """What the table has to know of a guard to give it an edge."""

    guard: str
    """The class's name."""
    reason: str
    watches: State
    """Parsing (before anything is executed) or Observing (after the observation was written)."""
    label: str
    chance: bool = False
    """Before it halts a run, the model may have a last chance."""
    warns: bool = False
    """It may warn before it halts; without such a guard the machine has no ``nudge``."""


def rows_for(guards: Iterable[GuardEdge], features: Collection[Feature] = ()) -> tuple[Row, ...]:
    """The rows of a machine with these guards and options, in order: built-in guards at their places, a user's own before ``LAST_GUARD``.

    A reason may have a part after a colon (``tool_budget:search``): its place is that of the part before it.
    Raises ``TypeError`` for a reason that is not text, and ``ValueError`` for one that is no word, when a guard watches a state in which none is judged, when two guards have the same reason, or when
    a guard takes the reason or the id of an edge that is no guard's, or that of a guard that is judged elsewhere.
    """
    wanted: dict[str, GuardEdge] = {}
    for guard in guards:
        if guard.watches not in LAST_GUARD:
            raise ValueError(f"{guard.guard}.watches is {guard.watches!r}; guards are judged in {' or '.join(LAST_GUARD)}")
        _check_reason(guard)
        if guard.reason in wanted:
            raise ValueError(
                f"{wanted[guard.reason].guard} and {guard.guard} both halt with the reason {guard.reason!r}; give one of them another"
            )
        if guard.reason in UNGUARDED_REASONS:
            raise ValueError(f"{guard.guard} halts with {guard.reason!r}, which is the machine's own reason; give it another")
        if any(guard.reason == row.id and (row.reason not in GUARD_REASONS or guard.watches != row.source) for row in ROWS):
            raise ValueError(f"{guard.guard} halts with {guard.reason!r}, which names another edge of the table; give it another reason")
        wanted[guard.reason] = guard
    rows: list[Row] = []
    for row in ROWS:
        here = [guard for guard in wanted.values() if _place(guard) == row.id]
        rows += [_row(guard, row) for guard in here if guard.reason.partition(":")[0] != row.id]
        rows += [attrs.evolve(row, guard=guard.guard, chance=guard.chance) for guard in here if guard.reason == row.id]
        rows += [_row(guard, row) for guard in here if guard.reason.startswith(f"{row.id}:")]
        if (row.guard is None or row.guard in PREDICATES) and _is_of_use(row, wanted.values(), features):
            rows.append(row)
    return tuple(rows)


def _is_of_use(row: Row, guards: Collection[GuardEdge], features: Collection[Feature]) -> bool:
    """Whether a machine with these guards and options can ever take the row, which is no guard's."""
    if row.guard == "is_warned":
        return any(guard.warns for guard in guards)
    if row.needs is None or row.needs not in features:
        return row.needs is None
    before_halt = {guard.watches for guard in guards if guard.chance}
    match row.guard:
        case "has_last_chance":
            return row.source in before_halt
        case "is_last_word":
            return OBSERVING in before_halt
        case "is_last":
            return bool(before_halt) and (row.trigger != "attempt_failed" or "retries" in features)
    return True


def _check_reason(guard: GuardEdge) -> None:
    reason: object = guard.reason
    if not isinstance(reason, str):
        raise TypeError(f"{guard.guard}.reason is {reason!r}; it must be text, such as 'too_many_searches'")
    family, _, part = reason.partition(":")
    if not _REASON.fullmatch(reason) or not reason.isprintable():
        raise ValueError(f"{guard.guard}.reason is {reason!r}; it must be one word, such as 'too_many_searches' or 'tool_budget:search'")
    if len(family) > LONGEST_REASON or len(part) > LONGEST_PART:
        most = f"at most {LONGEST_REASON} characters, and at most {LONGEST_PART} after a colon"
        raise ValueError(f"{guard.guard}.reason is {reason!r}; it must have {most} (a combined guard can be named(...))")


def _row(guard: GuardEdge, beside: Row) -> Row:
    """A row for a guard that has none of its own in the table."""
    return Row(guard.reason, beside.source, beside.trigger, guard.guard, HALTED, guard.label, guard.reason, chance=guard.chance)


def _place(guard: GuardEdge) -> str:
    """The id of the row whose place the guard takes, or before which it comes."""
    family = guard.reason.partition(":")[0]
    at_home = any(row.id == family and row.source == guard.watches and row.reason in GUARD_REASONS for row in ROWS)
    return family if at_home else LAST_GUARD[guard.watches]

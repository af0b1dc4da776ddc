"""Budgets: tokens, money, tool calls. They are judged in Parsing, when a reply has been charged and nothing of it was executed.

An answer that came is kept, since ``final_answer`` stands before every guard of that group.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from fsm_agent.events import ContextCompacted, Fact, ModelReplied, ToolCall, ToolCalls, Usage, Value
from fsm_agent.guards.base import Evidence, Guard, Reading, above_zero, at_least, one_of, shown
from fsm_agent.language import Language
from fsm_agent.table import PARSING, State

GO_ON, HALT = "go_on", "halt"


class _Spent(Value, frozen=True):
    """What was charged so far."""

    total: float = 0
    """Of what is known."""
    unknown: int = 0
    """Replies that did not tell all of it."""
    step: int = 0
    last: str = ""
    """The last charge, for people."""


@attrs.frozen
class TokenBudget(Guard):
    """``max_tokens`` tokens, read and written, were spent. A reply is charged when it arrives, before it is parsed; so is
    a summary of the conversation.

    What a reply did not tell is not zero: the known part is charged, and the reading says of how many replies something was not known,
    so that its value is the least that was spent. ``on_unknown="halt"`` ends the run on the first such reply.
    """

    reason: ClassVar[str] = "token_budget"
    watches: ClassVar[State] = PARSING
    label: ClassVar[str] = "tokens"
    chance: ClassVar[bool] = True
    folds: ClassVar[tuple[type, ...]] = (ModelReplied, ContextCompacted)

    max_tokens: int = attrs.field(validator=at_least(1))
    """Tokens of prompts and replies together, over the whole run."""
    on_unknown: Literal["go_on", "halt"] = attrs.field(default=GO_ON, validator=one_of(GO_ON, HALT))
    """What to do when a reply does not tell its tokens."""

    def start(self) -> _Spent:
        return _Spent()

    def fold(self, memory: _Spent, fact: Fact, step: int) -> _Spent:
        if not isinstance(fact, ModelReplied | ContextCompacted):
            return memory
        usage = _usage(fact)
        prompt, completion = _known(usage.prompt_tokens), _known(usage.completion_tokens)
        unknown = prompt is None or completion is None
        told = f"{'?' if prompt is None else prompt} + {'?' if completion is None else completion}"
        return _Spent(memory.total + (prompt or 0) + (completion or 0), memory.unknown + unknown, step, told)

    def judge(self, memory: _Spent) -> Reading:
        return _reading(self.reason, memory, self.max_tokens, self.on_unknown)

    def explain(self, reading: Reading, lang: Language) -> str:
        if reading.value < reading.limit:
            return lang.say("stopped: a reply did not tell its tokens, so the budget of {limit} cannot be kept", limit=reading.limit)
        return lang.say("stopped: {value} tokens spent, the budget is {limit}", value=reading.value, limit=reading.limit)


@attrs.frozen
class CostBudget(Guard):
    """``max_cost`` US dollars were spent. As with ``TokenBudget``, a reply is charged when it arrives, and an unknown price is not zero."""

    reason: ClassVar[str] = "cost_budget"
    watches: ClassVar[State] = PARSING
    label: ClassVar[str] = "cost"
    chance: ClassVar[bool] = True
    folds: ClassVar[tuple[type, ...]] = (ModelReplied, ContextCompacted)

    max_cost: float = attrs.field(validator=above_zero)
    """US dollars, over the whole run."""
    on_unknown: Literal["go_on", "halt"] = attrs.field(default=GO_ON, validator=one_of(GO_ON, HALT))
    """What to do when the price of a reply is not known."""

    def start(self) -> _Spent:
        return _Spent()

    def fold(self, memory: _Spent, fact: Fact, step: int) -> _Spent:
        if not isinstance(fact, ModelReplied | ContextCompacted):
            return memory
        cost = _known(_usage(fact).cost)
        told = "?" if cost is None else f"${shown(cost)}"
        return _Spent(memory.total + (cost or 0), memory.unknown + (cost is None), step, told)

    def judge(self, memory: _Spent) -> Reading:
        return _reading(self.reason, memory, self.max_cost, self.on_unknown)

    def explain(self, reading: Reading, lang: Language) -> str:
        value, limit = shown(reading.value), shown(reading.limit)
        if reading.value < reading.limit:
            return lang.say("stopped: the price of a reply is not known, so the budget of ${limit} cannot be kept", limit=limit)
        return lang.say("stopped: ${value} spent, the budget is ${limit}", value=value, limit=limit)


def _usage(fact: ModelReplied | ContextCompacted) -> Usage:
    """What a reply cost, or a summary: that is a model call, too."""
    return (fact.reply.usage if isinstance(fact, ModelReplied) else fact.usage) or Usage()


def _known(number: float | None) -> float | None:
    """The number; None where it cannot be what it says: below zero, or not a number."""
    return number if number is not None and number >= 0 else None


def _reading(reason: str, spent: _Spent, limit: float, on_unknown: str) -> Reading:
    evidence = (Evidence(spent.step, "usage", spent.last),) if spent.step else ()
    trips = spent.total >= limit or (on_unknown == HALT and spent.unknown > 0)
    return Reading(reason, spent.total, limit, trips, evidence, unknown=spent.unknown)


class _Called(Value, frozen=True):
    """The calls that were asked for."""

    count: int = 0
    step: int = 0
    last: tuple[ToolCall, ...] = ()
    """Those of the last step that has any."""


@attrs.frozen
class ToolBudget(Guard):
    """``max_calls`` calls of one tool, or of all tools together, were made, and one more is asked for.

    A batch is counted before any of it starts, and none of it is executed when it goes beyond the budget. So the value counts the calls
    that were asked for, and it trips *above* the limit. There may be one budget for all tools and one for each tool: its reason
    is then ``tool_budget:search``.
    """

    watches: ClassVar[State] = PARSING
    chance: ClassVar[bool] = True
    folds: ClassVar[tuple[type, ...]] = (ToolCalls,)

    max_calls: int = attrs.field(validator=at_least(1))
    """Calls that may be made."""
    tool: str | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.instance_of(str)))
    """The tool's name; None: all tools together."""

    @property
    def reason(self) -> str:
        return "tool_budget" if self.tool is None else f"tool_budget:{self.tool}"

    @property
    def label(self) -> str:
        return "calls" if self.tool is None else f"{self.tool} calls"

    def start(self) -> _Called:
        return _Called()

    def fold(self, memory: _Called, fact: Fact, step: int) -> _Called:
        if not isinstance(fact, ToolCalls):
            return memory
        calls = fact.calls if self.tool is None else tuple([call for call in fact.calls if call.name == self.tool])
        return _Called(memory.count + len(calls), step, calls) if calls else memory

    def judge(self, memory: _Called) -> Reading:
        trips = memory.count > self.max_calls
        evidence = tuple([Evidence(memory.step, "call", str(call)) for call in memory.last]) if trips else ()
        return Reading(self.reason, memory.count, self.max_calls, trips, evidence)

    def explain(self, reading: Reading, lang: Language) -> str:
        value, limit = reading.value, reading.limit
        if self.tool is None:
            return lang.say("stopped: {value} tool calls asked for, the budget is {limit}", value=value, limit=limit)
        return lang.say("stopped: {value} calls of {tool} asked for, the budget is {limit}", value=value, tool=self.tool, limit=limit)

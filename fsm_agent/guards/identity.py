"""When are two calls the same call, and two observations the same observation?

A call is its tool and its canonical arguments (``ToolCall.signature``), an observation that is no error is its text, and an error
is an error: its text may change with every try (a time, an address, an id) and says nothing of progress.

A tool can declare what makes its repeats legitimate: ``polls`` (calling it again and again is how it is used) and ``volatile``
(fields of its arguments and of its JSON observations that are left out of the comparison, at whatever depth they stand). A call
of a tool that declared neither is compared at the price of its canonical arguments, and these are computed once a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import msgspec

from fsm_agent.events import Observation, ToolCall, ToolSpec

Key = object
"""Equal keys, equal things. It can be hashed."""

_canonical = msgspec.json.Encoder(order="sorted").encode


@attrs.frozen
class Identity:
    """What the tools of a run declared of their repeats."""

    polls: frozenset[str] = frozenset()
    """Tools whose repeats are no loop."""
    volatile: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    """By tool, the fields that are left out of the comparison; only tools that have any."""

    @classmethod
    def of(cls, tools: Sequence[ToolSpec]) -> Identity:
        """What these tools declare."""
        volatile = {tool.name: frozenset(tool.volatile) for tool in tools if tool.volatile}
        polls = frozenset(tool.name for tool in tools if tool.polls)
        return cls(polls, volatile) if polls or volatile else UNDECLARED

    def call(self, call: ToolCall) -> Key:
        """The call's identity."""
        ignored = self.volatile.get(call.name)
        return call.signature if ignored is None else (call.name, _without(call.arguments, ignored))

    def calls(self, calls: Sequence[ToolCall]) -> Key:
        """A batch's identity: the set of its calls."""
        if len(calls) == 1:
            return self.call(calls[0])
        return one_or_set({self.call(call) for call in calls})

    def repeatable(self, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        """The calls without those of polling tools."""
        return [call for call in calls if call.name not in self.polls] if self.polls else calls

    def observation(self, observation: Observation) -> Key:
        """The observation's identity; None: an error."""
        if observation.is_error:
            return None
        ignored = self.volatile.get(observation.tool)
        if ignored is None:
            return observation.text
        try:
            return _without(msgspec.json.decode(observation.text), ignored)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return observation.text  # not JSON, so it has no fields


UNDECLARED = Identity()
"""Of a run whose tools declare nothing."""


def one_or_set(keys: set[Key]) -> Key:
    """The set, which can be hashed; of one thing, the thing itself, so that a batch of duplicates is the single call."""
    return next(iter(keys)) if len(keys) == 1 else frozenset(keys)


def _without(value: Any, ignored: frozenset[str]) -> str:
    return _canonical(_pruned(value, ignored)).decode()


def _pruned(value: Any, ignored: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _pruned(item, ignored) for name, item in value.items() if name not in ignored}
    return [_pruned(item, ignored) for item in value] if isinstance(value, list | tuple) else value

"""What guards can see, read from their code: from it the search derives which payloads it has to try.

A guard whose code has no word ``usage`` cannot see tokens, one without ``at`` cannot see time; for such guards, replies that differ in
that alone are one. Texts and numbers in the code of a user's own guard become names of tools and bounds of what is large, so that
``call.name == "search"`` meets a call of ``search``, and ``run.tokens > 2_000`` meets a reply of more tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any, get_args

import attrs
import msgspec

from fsm_agent import events
from fsm_agent.guards import Guard, Predicate
from fsm_agent.guards.combined import Combined
from fsm_agent.table import STATES

USAGE, TIME, CUT_OFF, POLLING, VERDICTS = "usage", "at", "finish_reason", "polls", "approvals"
SIGHTS = frozenset({USAGE, TIME, CUT_OFF, POLLING, VERDICTS})
"""The payloads that are tried only for guards that can see them."""

_ALSO = {
    "tokens": USAGE,
    "cost": USAGE,
    "now": TIME,
    "began": TIME,
    "elapsed_s": TIME,
    "verdict": VERDICTS,
    "ApprovalAsked": VERDICTS,
}
"""Other words that tell of what is seen: what a predicate sees in the summary, and what is seen of approvals."""

KINDS: tuple[events.ObservationKind, ...] = get_args(events.ObservationKind)
_OWN = "fsm_agent."
_MAX_TOOLS = 6
_NO_TOOLS = frozenset(
    {*STATES, *KINDS, *SIGHTS, *_ALSO, "length", "call", "error", "yes", "no"}
    | {
        name
        for kind in vars(events).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
        for name in kind.__struct_fields__
    }
)
"""Words of guards' code that are no names of tools."""


@attrs.frozen
class Sight:
    """What a set of guards can see."""

    sees: frozenset[str] = frozenset()
    """Of ``SIGHTS``."""
    tools: tuple[str, ...] = ()
    """Names of tools that they may know."""
    large: int = 1_000
    """A number beyond every limit."""
    kinds: tuple[events.ObservationKind, ...] = KINDS
    """Kinds of observations that they can tell apart; of those that their code does not name, two stand for all."""


def sight_of(guards: Iterable[Guard]) -> Sight:
    """What these guards can see together."""
    sees: set[str] = set()
    tools: dict[str, None] = {}
    largest = 100.0
    kinds: set[str] = {"ok"}
    for guard in _parts(guards):
        code = _Code(guard)
        kinds |= set(KINDS) if code.hidden else code.words.keys() & set(KINDS)
        sees |= SIGHTS if code.hidden else SIGHTS & {_ALSO.get(name, name) for name in code.names | code.words.keys()}
        for word in (*_limits(guard), *(code.words if code.is_users else ())):
            if isinstance(word, str) and word not in _NO_TOOLS | {guard.reason, guard.label} and word.replace("-", "_").isidentifier():
                tools[word] = None
            elif isinstance(word, int | float) and abs(word) < 1e12:
                largest = max(largest, abs(word))
    unnamed = [kind for kind in KINDS if kind not in kinds][:2]
    told_apart = tuple(kind for kind in KINDS if kind in kinds or kind in unnamed)
    return Sight(frozenset(sees), tuple(tools)[:_MAX_TOOLS], int(largest) * 10, told_apart)


def is_blind(guard: Guard) -> bool:
    """It is told that the model was heard, and looks at nothing of what was said: all that it can do is count."""
    code = _Code(guard)
    told = set(guard.folds)
    return bool(told) and told <= {events.ModelReplied, events.ModelFailed} and not code.hidden and not code.names & _REPLY


def _parts(guards: Iterable[Guard]) -> Iterator[Guard]:
    for guard in guards:
        if isinstance(guard, Combined):
            yield from _parts(guard.parts)
        else:
            yield guard


def _limits(guard: Guard) -> Iterator[Any]:
    """The limits; of this package's guards, no words that only choose how they work."""
    own = type(guard).__module__.startswith(_OWN)
    return (value for name, value in guard.as_limits().items() if name == "tool" or not (own and isinstance(value, str)))


_REPLY = frozenset({*events.ModelReplied.__struct_fields__, *events.ModelFailed.__struct_fields__, "getattr", "msgspec", "vars"})


class _Code:
    """What stands in the code of a guard, and in what it calls of its own package."""

    def __init__(self, guard: Guard) -> None:
        self.names: set[str] = set()
        """Names that the code uses."""
        self.words: dict[Any, None] = {}
        """Its texts and numbers."""
        self.hidden = False
        """There is code that cannot be read."""
        self.is_users = isinstance(guard, Predicate) or not type(guard).__module__.startswith(_OWN)
        self._seen: set[int] = set()
        if isinstance(guard, Predicate):
            self.hidden = not isinstance(guard.test, FunctionType)
            self._read(guard.test, guard.test.__module__)
            return
        for kind in type(guard).__mro__:
            if issubclass(kind, Guard) and kind is not Guard:
                for name, member in vars(kind).items():
                    if not name.startswith("__") and name not in {"reason", "label", "watches"}:
                        self._read(member, kind.__module__)

    def _read(self, value: Any, home: str) -> None:
        """A function or class is gone into, if it is of the same package; a text, a number or a collection of them is kept."""
        value = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, FunctionType):
            if _package(value.__module__) == _package(home):
                self._read_code(value.__code__)
                cells = [cell.cell_contents for cell in value.__closure__ or ()]
                for each in (*(value.__globals__.get(name) for name in value.__code__.co_names), *cells):
                    self._read(each, value.__module__)
        elif isinstance(value, type):
            if _package(value.__module__) == _package(home) and value.__module__ != events.__name__ and value is not Guard:
                for member in vars(value).values():
                    if isinstance(member, FunctionType | classmethod | staticmethod | property):
                        self._read(member, value.__module__)
        else:
            self._keep(value)

    def _read_code(self, code: CodeType) -> None:
        self.names.update(code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._read_code(constant)
            else:
                self._keep(constant)

    def _keep(self, value: Any) -> None:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            self.words[value] = None
        elif isinstance(value, tuple | list | set | frozenset | Mapping):
            for each in value:
                self._keep(each)


def _package(module: str | None) -> str:
    return (module or "").partition(".")[0]

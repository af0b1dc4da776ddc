"""Guards that are not this package's: whatever they do wrong is one clear error, and their readings can be written and read back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fsm_agent.events import Fact
from fsm_agent.guards import Evidence, Guard, Predicate, Reading
from fsm_agent.guards.combined import Combined
from fsm_agent.text import first_line, printable, well_formed

_LARGEST = 2**63 - 1
"""A larger whole number cannot be written to a record."""


class GuardError(RuntimeError):
    """A user's guard raised, or gave what is no reading: which guard, what, in which state and step."""

    def located(self, state: str, step: int) -> GuardError:
        """The same error with its place in the run."""
        return GuardError(f"{self} (in {state}, step {step})")


def is_foreign(guard: Guard) -> bool:
    """Whether code of a user's runs in the guard."""
    if isinstance(guard, Combined) and any(map(is_foreign, guard.parts)):
        return True
    return isinstance(guard, Predicate) or not type(guard).__module__.startswith("fsm_agent.")


class Checked:
    """A user's guard, watched: it is asked as a guard is, and answers with a reading that holds or with ``GuardError``."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._reason = guard.reason

    def start(self) -> Any:
        """As ``Guard.start``."""
        try:
            return self._guard.start()
        except Exception as error:
            raise self._raised("start", error) from error

    def fold(self, memory: Any, fact: Fact, step: int) -> Any:
        """As ``Guard.fold``."""
        try:
            return self._guard.fold(memory, fact, step)
        except Exception as error:
            raise self._raised("fold", error) from error

    def judge(self, memory: Any) -> Reading:
        """As ``Guard.judge``."""
        try:
            reading = self._guard.judge(memory)
        except Exception as error:
            raise self._raised("judge", error) from error
        problem = problem_of(reading)
        if not problem and reading.guard != self._reason:
            problem = f"guard is {_shown(reading.guard)}; it must be the guard's reason"
        if problem:
            raise GuardError(f"{self._named()}: judge returned a wrong reading: {problem}")
        return reading

    def _named(self) -> str:
        return f"the guard {type(self._guard).__name__} ({self._reason})"

    def _raised(self, what: str, error: Exception) -> GuardError:
        try:
            message = first_line(printable(str(error)))
        except Exception:  # noqa: BLE001  # a foreign exception's own code
            message = ""
        return GuardError(f"{self._named()}: {what} raised {type(error).__name__}{': ' if message else ''}{message}")


def problem_of(reading: Any) -> str:
    """What is wrong with a reading, field and value; empty: nothing."""
    if type(reading) is not Reading:
        return f"{_shown(reading)} is no Reading"
    for field, (holds, wanted) in _FIELDS.items():
        value = getattr(reading, field)
        if not holds(value):
            return f"{field} is {_shown(value)}; it must be {wanted}"
    return next((problem for part in reading.parts if (problem := problem_of(part))), "")


def _is_number(value: Any) -> bool:
    return (type(value) is int and abs(value) <= _LARGEST) or (type(value) is float and math.isfinite(value))


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) <= _LARGEST


def _is_text(value: Any) -> bool:
    return type(value) is str and well_formed(value) == value


def _shown(value: Any) -> str:
    try:
        return first_line(printable(repr(value)), 80)
    except Exception:  # noqa: BLE001  # a foreign value's own code
        return f"a {type(value).__name__}"


def _is_evidence(value: Any) -> bool:
    return type(value) is tuple and all(
        type(each) is Evidence and _is_whole(each.step) and _is_text(each.kind) and _is_text(each.text) for each in value
    )


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "guard": (_is_text, "text that a file can hold"),
    "value": (_is_number, "a finite number"),
    "limit": (_is_number, "a finite number"),
    "trips": (lambda value: type(value) is bool, "True or False"),
    "warns": (lambda value: type(value) is bool, "True or False"),
    "unknown": (_is_whole, "a whole number"),
    "period": (lambda value: value is None or _is_whole(value), "a whole number or None"),
    "evidence": (_is_evidence, "a tuple of Evidence that a file can hold"),
    "parts": (lambda value: type(value) is tuple, "a tuple of readings"),
    "omitted": (lambda value: type(value) is tuple, "a tuple of pairs"),
}
"""Of a reading: what each field must be."""

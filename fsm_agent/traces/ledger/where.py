"""Choosing runs of a ledger: ``outcome=success,steps>=10``. What a user writes becomes values and known columns, never SQL."""

from __future__ import annotations

import math
import re
from typing import Literal, cast

import attrs

from fsm_agent.traces.ledger.errors import LedgerError

Operator = Literal["=", "!=", "<", "<=", ">", ">="]

_TEXTS = {
    "key": "key",
    "source": "source",
    "file": "file",
    "id": "run_id",
    "model": "model",
    "outcome": "outcome",
    "ending": "ending",
    "reason": "reason",
}
_NUMBERS = {name: name for name in ("score", "steps", "model_calls", "tool_calls", "errors", "prompt_tokens", "completion_tokens", "cost")}
FIELDS = {**_TEXTS, **_NUMBERS}
"""What can be asked for, with its column of ``runs``."""

_CONDITION = re.compile(r'\s*(?P<field>\w+)\s*(?P<operator>!=|<=|>=|=|<|>)\s*(?:"(?P<quoted>[^"]*)"|(?P<bare>[^",]*?))\s*(?:,|\Z)')


@attrs.frozen
class Condition:
    """One thing that must hold of a run."""

    field: str
    """A name in ``FIELDS``."""
    operator: Operator
    value: str | float | None
    """None: not known."""


@attrs.frozen
class Where:
    """Conditions that must all hold; without any, every run is meant."""

    conditions: tuple[Condition, ...] = ()

    @classmethod
    def parse(cls, *texts: str) -> Where:
        """Conditions separated by commas, such as ``outcome=success, model!=gpt-4o``, ``steps>=10``.

        A value that holds a comma is put in double quotes; an empty value means that it is not known (``model=``). Raises ``LedgerError``.
        """
        return cls(tuple(condition for text in texts for condition in _conditions(text)))

    @classmethod
    def equal(cls, **values: str | float | None) -> Where:
        """The runs whose fields have these values. Raises ``LedgerError`` for a field that there is not."""
        return cls(tuple(Condition(_known(field), "=", value) for field, value in values.items()))

    def __str__(self) -> str:
        """As ``parse`` reads it."""
        return ", ".join(f"{each.field}{each.operator}{_written(each.value)}" for each in self.conditions)

    def sql(self) -> tuple[str, list[str | float | None]]:
        """The clause (empty, or with a leading ``WHERE``), made of known columns alone, and the values for its question marks."""
        terms, values = [], []
        for condition in self.conditions:
            equality = {"=": "IS", "!=": "IS NOT"}  # unlike the sign, they take NULL for a value
            terms.append(f"{FIELDS[condition.field]} {equality.get(condition.operator, condition.operator)} ?")
            values.append(condition.value)
        return (f" WHERE {' AND '.join(terms)}" if terms else ""), values


EVERYTHING = Where()


def _conditions(text: str) -> list[Condition]:
    conditions, at = [], 0
    while text[at:].strip():
        found = _CONDITION.match(text, at)
        if found is None:
            raise LedgerError(f"{text[at:].strip()!r} is no condition; write one like outcome=success, or steps>=10")
        conditions.append(
            _condition(found["field"], cast("Operator", found["operator"]), found["quoted"] if found["bare"] is None else found["bare"])
        )
        at = found.end()
    return conditions


def _condition(field: str, operator: Operator, text: str) -> Condition:
    if _known(field) in _TEXTS:
        if operator not in {"=", "!="}:
            raise LedgerError(f"{field}{operator}{text}: {field} is text, which is compared with = or !=")
        return Condition(field, operator, text or None)
    if not text and operator in {"=", "!="}:
        return Condition(field, operator, None)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise LedgerError(f"{field}{operator}{text}: {text!r} is no number")
    return Condition(field, operator, number)


def _written(value: str | float | None) -> str:
    if isinstance(value, str):
        return f'"{value}"' if "," in value or value != value.strip() else value
    return "" if value is None else f"{value:g}"


def _known(field: str) -> str:
    if field not in FIELDS:
        raise LedgerError(f"runs have no {field!r} that can be asked for; known are {', '.join(FIELDS)}")
    return field

"""Conditions on an audit's figures, for use in CI: ``false_kills > 0.5%``, ``near_misses[group=*, guard=no_progress] > 10``.

A condition names a figure, compares it with a number, and may choose, in brackets, which row is meant: the group (``*``: each of them; by
default all runs together), the guard, the plan (the what-if of this number, or a plan's name) and, of a halt, its reason and ending.
Of halts and near misses, ``outcome`` counts the runs of that outcome alone, out of all the runs of the group.
A per cent sign compares the share, none the count.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import attrs

from fsm_agent.audit.audit import Audit
from fsm_agent.audit.figures import ALL_GUARDS, ANY_GUARD, POOLED, Share, percent, shown
from fsm_agent.audit.tables import Tables
from fsm_agent.table import GUARD_REASONS, UNGUARDED_REASONS

EACH = "*"


class ConditionError(ValueError):
    """A condition that cannot be meant so: what, and how to mend it, in one line."""


@attrs.frozen
class Figure:
    """A figure that can be asked for."""

    table: str
    """The field of ``Tables`` whose rows hold it; empty: it is the audit's own."""
    meaning: str


FIGURES: Mapping[str, Figure] = {
    "runs": Figure("groups", "runs"),
    "successes": Figure("groups", "runs recorded as successes"),
    "failures": Figure("groups", "runs recorded as failures"),
    "unknown": Figure("groups", "runs of unknown outcome"),
    "model_calls": Figure("groups", "model calls of all runs"),
    "beyond": Figure("groups", "runs that would have gone on beyond their recording, of all"),
    "damaged": Figure("", "runs that could not be read"),
    "halts": Figure("halts", "runs that end for [reason=...], of all"),
    "median_steps": Figure("halts", "their steps"),
    "median_tokens": Figure("halts", "their tokens"),
    "tokens_unknown": Figure("halts", "those of which the tokens are not known"),
    "failures_stopped": Figure("guards", "failed runs halted before their last step, of the failed ones"),
    "calls_saved": Figure("guards", "model calls of failed runs after the halts, of all calls of failed runs"),
    "false_kills": Figure("guards", "successful runs halted before their last step, of the successful ones"),
    "median_kill_step": Figure("guards", "the step at which they were"),
    "capped_stopped_early": Figure("guards", "capped runs halted before their last step, of the capped ones"),
    "unknown_stopped": Figure("guards", "runs of unknown outcome halted before their last step, of these"),
    "let_beyond": Figure("guards", "runs not halted where their own system stopped them, of all"),
    "near_misses": Figure("near_misses", "runs that came within one of a limit, of all"),
    "capped": Figure("capped", "runs recorded to end at a cap, of all"),
    "no_guard_helped": Figure("capped", "capped runs that no guard halts before their last step, of the capped ones"),
}
_SELECTORS: Mapping[str, tuple[str, ...]] = {
    "": (),
    "groups": ("group", "plan"),
    "halts": ("group", "plan", "reason", "ending"),
    "guards": ("group", "plan", "guard"),
    "near_misses": ("group", "plan", "guard"),
    "capped": ("group", "plan"),
}
"""By table, what may stand in the brackets."""
_OUTCOMES: Mapping[str, str] = {"success": "successes", "failure": "failures", "unknown": "unknown"}
"""What ``outcome`` may be, and the column that counts these runs."""
_OF_OUTCOMES = frozenset({"halts", "near_misses"})
"""Figures that an outcome can be chosen of."""
_DEFAULT_GUARD = {"guards": ALL_GUARDS, "near_misses": ANY_GUARD}

_OPERATORS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_CONDITION = re.compile(
    r"\s*(?P<figure>\w+)\s*(?:\[(?P<chosen>[^\]]*)\])?\s*(?P<operator>>=|<=|==|!=|>|<|=)\s*(?P<number>\d{1,12}(?:\.\d{1,12})?)\s*(?P<percent>%?)\s*"
)
_CHOICE = re.compile(r'\s*(?P<name>\w+)\s*=\s*(?:"(?P<quoted>[^"]*)"|(?P<bare>[^",]*?))\s*(?:,|\Z)')


@attrs.frozen
class Condition:
    """A condition, read but not judged."""

    text: str
    figure: str
    chosen: Mapping[str, str]
    operator: str
    number: Fraction
    in_percent: bool


@attrs.frozen
class Verdict:
    """A condition judged on one row."""

    condition: Condition
    where: str
    """The row, where it is one of several."""
    value: str
    """The figure as people read it."""
    holds: bool | None
    """None: the figure is not known."""

    def __str__(self) -> str:
        at = f" in {self.where}" if self.where else ""
        return f"{self.condition.figure}{at} is {self.value}"


def parse(text: str) -> Condition:
    """Raises ``ConditionError``."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise ConditionError(f"{text!r} is no condition; write one like false_kills > 0.5%, or near_misses[guard=max_steps] > 10")
    figure = found["figure"]
    if figure not in FIGURES:
        raise ConditionError(f"{figure!r} is no figure of an audit; known are {', '.join(FIGURES)}")
    selectors = _SELECTORS[FIGURES[figure].table] + (("outcome",) if figure in _OF_OUTCOMES else ())
    chosen = _chosen(found["chosen"] or "", selectors, figure)
    if chosen.get("outcome", "success") not in _OUTCOMES:
        raise ConditionError(f"there is no outcome {chosen['outcome']!r}; there are {', '.join(_OUTCOMES)}")
    if FIGURES[figure].table == "halts" and "reason" not in chosen:
        raise ConditionError(f"{figure} is that of the runs that end for one reason; name it, as in {figure}[reason=max_steps]")
    return Condition(text.strip(), figure, chosen, found["operator"], Fraction(found["number"]), bool(found["percent"]))


def _chosen(text: str, known: tuple[str, ...], figure: str) -> dict[str, str]:
    chosen: dict[str, str] = {}
    at = 0
    while text[at:].strip():
        found = _CHOICE.match(text, at)
        if found is None:
            raise ConditionError(f"{text[at:].strip()!r} chooses no row; write name=value")
        if found["name"] not in known:
            raise ConditionError(f"{figure} has no {found['name']!r}; it can be chosen by {', '.join(known) or 'nothing'}")
        chosen[found["name"]] = found["bare"] if found["quoted"] is None else found["quoted"]
        at = found.end()
    return chosen


def judge(condition: Condition, audit: Audit) -> list[Verdict]:
    """The verdicts, one a group where each is asked for. Raises ``ConditionError`` for a row that there is not."""
    group = condition.chosen.get("group", POOLED)
    if group not in {POOLED, EACH, *audit.group_names}:
        raise ConditionError(
            f"{condition.text}: there is no group {group!r}; there are {', '.join((*audit.group_names, POOLED))}, and {EACH} for each"
        )
    groups = audit.group_names if group == EACH else (group,)
    return [
        _judged(condition, value, each if len(groups) > 1 or each != POOLED else "")
        for each in groups
        for value in _values(condition, audit, each)
    ]


def _judged(condition: Condition, value: Share | float | None, where: str) -> Verdict:
    if condition.in_percent and not isinstance(value, Share):
        raise ConditionError(f"{condition.text}: {condition.figure} is no share of anything; compare it without a per cent sign")
    exact: Fraction | None
    if isinstance(value, Share):
        share = value.share
        text = "not known (of none)" if condition.in_percent else f"{value.count:,} of none"
        if share is not None:
            text = f"{value.count:,} of {value.of:,} ({percent(share)})"
        exact = Fraction(value.count) if not condition.in_percent else Fraction(100 * value.count, value.of) if value.of else None
    else:
        text = "not known" if value is None else shown(value)
        exact = None if value is None else Fraction(value)
    return Verdict(condition, where, text, None if exact is None else _OPERATORS[condition.operator](exact, condition.number))


def _values(condition: Condition, audit: Audit, group: str) -> Iterator[Share | float | None]:
    table, chosen = FIGURES[condition.figure].table, condition.chosen
    if not table:
        yield float(len(audit.damaged))
        return
    found = _plan(condition, audit)
    wanted = {"group": group, **{name: value for name, value in chosen.items() if name in {"reason", "ending"}}}
    if table in _DEFAULT_GUARD:
        wanted["guard"] = chosen.get("guard", _DEFAULT_GUARD[table])
    rows = [row for row in getattr(found, table) if all(getattr(row, name) == value for name, value in wanted.items())]
    if table == "halts":
        yield _of_halts(condition, found, rows, group)
    elif rows:
        yield _of_outcome(condition, rows, rows[0].near_misses) if table == "near_misses" else getattr(rows[0], condition.figure)
    else:
        guards = dict.fromkeys(row.guard for row in getattr(found, table))
        raise ConditionError(f"{condition.text}: there is no guard {wanted['guard']!r}; there are {', '.join(guards)}")


def _of_halts(condition: Condition, found: Tables, rows: list[Any], group: str) -> Share | float | None:
    reason = condition.chosen["reason"]
    known = {*UNGUARDED_REASONS, *GUARD_REASONS, *(guard.reason for guard in found.plan.guards), *(row.reason for row in found.halts)} - {
        None
    }
    if reason not in known:
        raise ConditionError(f"{condition.text}: there is no halt reason {reason!r}; there are {', '.join(sorted(map(str, known)))}")
    if condition.figure == "halts":
        runs = next(row.runs for row in found.groups if row.group == group)
        return _of_outcome(condition, rows, Share(sum(row.halts.count for row in rows), runs))
    if condition.figure == "tokens_unknown":
        return float(sum(row.tokens_unknown for row in rows))
    if len(rows) > 1:
        raise ConditionError(
            f"{condition.text}: such runs end in several ways; add ending={' or ending='.join(row.ending for row in rows)}"
        )
    return getattr(rows[0], condition.figure) if rows else None


def _of_outcome(condition: Condition, rows: list[Any], every: Share) -> Share:
    """Of what the rows count, ``every``, the runs of the outcome that is asked for, if one is."""
    outcome = condition.chosen.get("outcome")
    return every if outcome is None else Share(sum(getattr(row, _OUTCOMES[outcome]) for row in rows), every.of)


def _plan(condition: Condition, audit: Audit) -> Tables:
    wanted = condition.chosen.get("plan")
    if wanted is None:
        return audit.base
    if wanted.isascii() and wanted.isdigit() and 0 < int(wanted) <= len(audit.what_ifs):
        return audit.what_ifs[int(wanted) - 1]
    points = (point.tables for sweep in audit.sweeps for point in sweep.points)
    plans = {found.plan.name: found for found in (*points, *audit.what_ifs, audit.base)}
    if wanted not in plans:
        raise ConditionError(
            f"{condition.text}: there is no plan {wanted!r}; there are {', '.join(plans)}, and the numbers of the what-ifs"
        )
    return plans[wanted]

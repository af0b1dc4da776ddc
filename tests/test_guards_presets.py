"""The presets, limits as people write them, and limits as a record keeps them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fsm_agent import ScriptedModel, run
from fsm_agent.events import ModelReplied, Reply, ToolSpec
from fsm_agent.guards import (
    BUILT_IN,
    AnyOf,
    ConsecutiveErrors,
    CostBudget,
    Deadline,
    Denied,
    EmptyReply,
    ErrorStreak,
    Guard,
    LimitsError,
    MalformedStreak,
    MaxSteps,
    NoProgress,
    RepeatedCall,
    TokenBudget,
    ToolBudget,
    TruncatedReply,
    classic,
    guards_from,
    known_limits,
    limits,
    parse_limits,
    predicate,
    production,
    rebuild,
)
from fsm_agent.table import GUARD_REASONS, ROWS
from fsm_agent.tools import add, tool
from fsm_agent.traces.load import load
from fsm_agent.traces.record import Trace, TraceError, encode, header_of
from fsm_agent.traces.verify import verify
from tests.guard_steps import FINAL, did, end, failed, play

ALL: tuple[Guard, ...] = (
    *production(30),
    RepeatedCall(3),
    TokenBudget(50_000, "halt"),
    CostBudget(0.5),
    ToolBudget(20),
    ToolBudget(5, "search"),
    Deadline(60.5),
)
"""One of every built-in guard, and a tool's own budget."""

COMBINED = (NoProgress(compare="call") & ~MaxSteps(20), AnyOf((ToolBudget(3, "rm"), Denied(1)), "too_bold"))


def test_production_is_the_measured_rules_and_a_cap_that_must_be_given() -> None:
    assert production(30) == (
        Denied(2),
        TruncatedReply(2),
        EmptyReply(3),
        ErrorStreak(3),
        NoProgress(max_period=6, max_cycles=2, min_steps=4, compare="call+observation"),
        MalformedStreak(10, warn_at=4),
        ConsecutiveErrors(8, count_malformed=False, warn_at=4),
        MaxSteps(30),
    )
    with pytest.raises(TypeError, match="max_steps"):
        production()  # type: ignore[call-arg]  # wrong on purpose


def test_production_takes_other_limits_and_drops_a_warning_that_is_not_below_its_limit() -> None:
    made = limits(production(9, max_same_errors=2, max_empty=1))
    assert (made["max_steps"], made["max_same_errors"], made["max_empty"]) == (9, 2, 1)
    assert production(9, max_errors=4, max_malformed=5)[5:7] == (MalformedStreak(5, 4), ConsecutiveErrors(4, count_malformed=False))
    assert production(9, warn_at=None)[5:7] == (MalformedStreak(10), ConsecutiveErrors(8, count_malformed=False))


def test_the_built_in_guards_are_those_of_the_table_in_its_order() -> None:
    assert list(BUILT_IN) == [row.reason for row in ROWS if row.reason in GUARD_REASONS]
    assert [kind.__name__ for kind in BUILT_IN.values()] == [row.guard for row in ROWS if row.reason in GUARD_REASONS]
    labels = {guard.reason: guard.label for guard in ALL}
    assert {row.reason: row.label for row in ROWS if row.reason in GUARD_REASONS} == {reason: labels[reason] for reason in BUILT_IN}


def test_production_in_a_live_run_warns_and_then_halts(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    model = ScriptedModel([], then="TOOL add a=three,b={n}")
    result = run("3 + 4", model=model, tools=[add], guards=production(max_steps=20), lang="en", trace=path)
    assert (result.reason, result.steps, result.message) == (
        "consecutive_errors",
        8,
        "stopped: 8 failed tool calls in a row, circuit breaker tripped",
    )
    assert [taken.edge for taken in result.trace.edges if taken.edge in {"go_on", "nudge"}] == ["go_on"] * 3 + ["nudge"] + ["go_on"] * 3
    assert (verify(load(path)).line, verify(load(path)).run.reason) == (None, "consecutive_errors")


# --- limits as people write them ------------------------------------------------------------------------------------


def test_limits_are_names_and_values() -> None:
    text = " max_errors = 3 , max_steps=30,,max_cost=0.5,compare=call,count_malformed=false,max_denials=off,max_calls:web search=2,"
    assert parse_limits(text) == {
        "max_errors": 3,
        "max_steps": 30,
        "max_cost": 0.5,
        "compare": "call",
        "count_malformed": False,
        "max_denials": None,
        "max_calls:web search": 2,
    }
    assert parse_limits("") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_errors", "'max_errors' is not of the form name=value"),
        ("max_errors=", "'max_errors=' is not of the form name=value"),
        ("=3", "'=3' is not of the form name=value"),
        ("max_errors=3,max_errors=4", "max_errors is given twice"),
        ("warn_at=3", "warn_at is a limit of several guards; write malformed_streak.warn_at or consecutive_errors.warn_at"),
        ("max_erors=3", f"'max_erors' is not the name of a limit; known are {', '.join(known_limits())}"),
        ("max_errors:search=3", f"'max_errors:search' is not the name of a limit; known are {', '.join(known_limits())}"),
        ("max_steps.max_errors=3", f"'max_steps.max_errors' is not the name of a limit; known are {', '.join(known_limits())}"),
        ("tool=search", f"'tool' is not the name of a limit; known are {', '.join(known_limits())}"),
    ],
)
def test_what_is_no_limit_is_said_in_one_line(text: str, message: str) -> None:
    with pytest.raises(LimitsError) as error:
        parse_limits(text)
    assert str(error.value) == message


def test_every_known_name_is_taken() -> None:
    for name in known_limits():
        assert list(parse_limits(f"{name.replace('TOOL', 'search')}=3")) == [name.replace("TOOL", "search")]


def test_a_preset_with_other_limits_and_further_guards() -> None:
    assert guards_from() == classic()
    assert guards_from("classic", max_steps=3, max_repeats=None) == (ConsecutiveErrors(2), MaxSteps(3))
    assert guards_from("production", max_steps=30) == production(30)
    assert guards_from("production", **parse_limits("max_steps=30,max_tokens=500,max_calls=9,max_calls:search=2")) == (
        *production(30),
        TokenBudget(500),
        ToolBudget(9),
        ToolBudget(2, "search"),
    )
    assert guards_from("none") == ()
    assert guards_from("none", max_errors=3) == (ConsecutiveErrors(3),)
    assert guards_from("none", **{"consecutive_errors.warn_at": 2, "max_errors": 3}) == (ConsecutiveErrors(3, warn_at=2),)
    assert guards_from("none", deadline_s=2.5, max_cost=1) == (Deadline(2.5), CostBudget(1))


def test_a_lower_limit_drops_the_presets_warning_and_a_warning_that_was_given_is_checked() -> None:
    assert ConsecutiveErrors(3, count_malformed=False) in guards_from("production", max_steps=9, max_errors=3)
    assert ConsecutiveErrors(5, count_malformed=False, warn_at=4) in guards_from("production", max_steps=9, max_errors=5)
    with pytest.raises(LimitsError, match=r"^warn_at is 4; it must be below max_errors, which is 3$"):
        guards_from("production", max_steps=9, max_errors=3, **{"consecutive_errors.warn_at": 4})


@pytest.mark.parametrize(
    ("preset", "given", "message"),
    [
        ("productive", {}, "the preset 'productive' is not known; known are classic, production, none"),
        ("production", {}, "the production preset needs max_steps: how many steps a task may take, no preset can know"),
        ("production", {"max_steps": None}, "the production preset needs max_steps: how many steps a task may take, no preset can know"),
        ("classic", {"max_steps": 0}, "max_steps is 0; it must be at least 1"),
        ("classic", {"max_steps": "x"}, "max_steps is 'x'; it must be a whole number"),
        ("none", {"token_budget.on_unknown": "halt"}, "token_budget needs max_tokens"),
        ("none", {"max_calls:search": 0}, "max_calls is 0; it must be at least 1"),
    ],
)
def test_a_preset_or_value_that_cannot_be_meant_is_said_in_one_line(preset: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(LimitsError) as error:
        guards_from(preset, **given)
    assert str(error.value) == message


# --- limits as a record keeps them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [*ALL, *COMBINED], ids=lambda guard: guard.reason)
def test_a_guard_is_made_again_from_json(guard: Guard) -> None:
    spec = msgspec.json.decode(msgspec.json.encode([guard.reason, type(guard).__name__, guard.as_limits()]))
    assert rebuild(*spec) == guard


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (("mine", "Mine", {}), "the guard Mine (mine) is not one of this package's; give the guards to replay with"),
        (("max_steps", "MaxSteps", {"max_steps": 0}), "the guard MaxSteps (max_steps): max_steps is 0; it must be at least 1"),
        (("max_errors", "MaxSteps", {"max_steps": 3}), "the guard MaxSteps has the reason 'max_steps', not 'max_errors'"),
        (("a_or_b", "AnyOf", {}), "the guard AnyOf (a_or_b): the field 'parts' is missing"),
        (("a_or_b", "AnyOf", {"parts": [3, 4]}), "the guard AnyOf (a_or_b): 3 is not a guard"),
        (("a_or_b", "AnyOf", {"parts": 3}), "the guard AnyOf (a_or_b): 'int' object is not iterable"),
        (("a", "AnyOf", {"parts": [{"reason": "a"}] * 2}), "the guard AnyOf (a): the field 'guard' is missing"),
        (("a", "Not", {"parts": [{"reason": "a", "guard": "A"}]}), "the guard Not (a): the guard A (a) is not one of this package's; give the guards to replay with"),
    ],
)  # fmt: skip
def test_what_is_no_guard_in_a_record_is_said_in_one_line(spec: tuple[str, str, dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        rebuild(*spec)


def test_limits_of_a_thousand_layers_are_refused() -> None:
    spec: dict[str, Any] = {"reason": "max_steps", "guard": "MaxSteps", "limits": {"max_steps": 3}}
    for _ in range(3_000):
        spec = {"reason": "x", "guard": "Not", "limits": {"parts": [spec], "name": "x"}}
    with pytest.raises(ValueError, match="the guard Not"):
        rebuild(spec["reason"], spec["guard"], spec["limits"])


def test_a_trace_of_every_guard_is_verified_from_its_file_alone(tmp_path: Path) -> None:
    tools = [ToolSpec("wait", polls=True), ToolSpec("look", volatile=("pid",), idempotent=True)]
    made = play((*ALL, *COMBINED), did(pid=1), failed("search", q="x"), did("wait"), (ModelReplied(Reply("hm")),), FINAL, tools=tools)
    trace = Trace(header_of(made), made.log)
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(map(encode, (trace.header, *trace.log))))
    read = load(path)
    assert (read.header, read.log) == (trace.header, trace.log)
    verdict = verify(read)
    assert (verdict.line, verdict.run.wiring.guards) == (None, made.wiring.guards)


def test_a_predicate_is_named_in_the_record_and_has_to_be_given_again() -> None:
    guard = predicate(lambda run: run.calls > 1, reason="two_calls")
    made = play(guard, did(), did())
    trace = Trace(header_of(made), made.log)
    assert trace.header.guards[0].limits == {
        "test": "tests.test_guards_presets.test_a_predicate_is_named_in_the_record_and_has_to_be_given_again.<locals>.<lambda>"
    }
    with pytest.raises(
        TraceError, match=r"^the guard Predicate \(two_calls\) is not one of this package's; give the guards to replay with$"
    ):
        trace.replay()
    assert end(trace.replay((guard,))) == ("two_calls", 2)


# --- what a tool declares -------------------------------------------------------------------------------------------


def test_a_tool_declares_what_makes_its_repeats_legitimate() -> None:
    def job_status(job: int) -> str:
        """How far it is."""
        return f"{job}"

    status = tool(polls=True, volatile=["pid", "elapsed"], idempotent=True)(job_status)
    assert (status.spec.polls, status.spec.volatile, status.spec.idempotent) == (True, ("pid", "elapsed"), True)
    assert status(7) == "7"


@pytest.mark.parametrize("volatile", ["pid", (1,)])
def test_volatile_fields_are_names_in_a_list(volatile: Any) -> None:
    with pytest.raises(TypeError, match=r"volatile is .*; it must be a tuple of field names"):
        tool(volatile=volatile)

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fsm_agent.audit.case import Case, Ended, case_of_recording
from fsm_agent.audit.certificate import certify
from fsm_agent.audit.changes import Change, changes
from fsm_agent.cli import cli
from fsm_agent.events import ModelReplied, Reply, ToolRequest, Usage
from fsm_agent.guards import (
    ConsecutiveErrors,
    CostBudget,
    ErrorStreak,
    Guard,
    MaxSteps,
    NoProgress,
    RepeatedCall,
    TokenBudget,
    ToolBudget,
    classic,
    predicate,
    production,
)
from fsm_agent.traces.recordings import Recording
from tests.scripted_recordings import FILES, of_file, recorded
from tests.test_cli_audit import RUNS, squeezed


def explain(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["explain", *map(str, arguments), "--lang", "en"])


def case(script: str, *guards: Guard, **told: Any) -> Case:
    return case_of_recording(recorded("r", script, **told), guards, "the case")


def found(script: str, *guards: Guard, **told: Any) -> list[tuple[str, object, Ended]]:
    return [(change.limit, change.value, change.ended) for change in changes(case(script, *guards, **told)).changes]


def test_the_certificate_of_a_scenario_as_people_read_it() -> None:
    result = explain("c")

    assert result.exit_code == 0
    assert (
        squeezed(result.output)
        == """\
Scenario c
Halted(consecutive_errors) at step 2, 2 model calls
stopped: 2 failed tool calls in a row, circuit breaker tripped

Evidence
step  kind  what
1  bad_arguments  add expected an integer, got a=三, b=四
2  unknown_tool  unknown tool search

Every guard, with its limits
guard  limits  last reading  closest before  verdict
repeated_call  max_repeats=2  0 of 2 at step 2  0 of 2 at step 1  let it pass
consecutive_errors  max_errors=2, count_malformed=true  2 of 2 at step 2  1 of 2 at step 1  halted the run
max_steps  max_steps=10  2 of 10 at step 2  2 of 10 at step 2  let it pass

The smallest change of each limit that changes the end
limit  was  then
max_errors=1  2  Halted(consecutive_errors) at step 1
max_errors=3  2  it would have gone on, beyond the recording
max_steps=1  10  Halted(max_steps) at step 1

No other value of these limits changes the end: max_repeats, count_malformed."""
    )


def test_in_a_pipe_long_calls_are_shortened_and_lines_wrapped_and_the_json_has_them_whole(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    words = json.dumps({"query": "one word after the other " * 40})
    messages: list[dict[str, Any]] = [{"role": "user", "content": "a task"}]
    for i in range(4):
        call = {"id": str(i), "type": "function", "function": {"name": "search", "arguments": words}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(i), "content": "Error: nothing was found"})
    path.write_text(json.dumps({"id": "1", "messages": messages}), encoding="utf-8")
    result = explain(path)

    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 130
    assert result.stdout.splitlines()[1:4] == [
        "Halted(error_streak) at step 3, 3 model calls",
        "stopped: the same call failed 3 times in a row (search{query=one word after the other one word after",
        "the ot…)",
    ]
    message = json.loads(explain(path, "--json").stdout)["message"]
    assert message.startswith("stopped: the same call failed 3 times in a row (search{")
    assert len(message) > 200


def test_the_certificate_of_a_trace_is_that_of_the_scenario_it_recorded(tmp_path: Path) -> None:
    trace = tmp_path / "b.jsonl"
    assert CliRunner().invoke(cli, ["run", "b", "--lang", "en", "--trace", str(trace)]).exit_code == 3

    assert explain(trace).output == explain("b").output
    assert json.loads(explain(trace, "--json").output)["changes"] == [
        {"limit": "max_repeats", "value": 1, "was": 2, "reason": "repeated_call", "step": 2, "beyond_recording": False},
        {"limit": "max_repeats", "value": 3, "was": 2, "reason": None, "step": 3, "beyond_recording": True},
        {"limit": "max_steps", "value": 2, "was": 10, "reason": "max_steps", "step": 2, "beyond_recording": False},
    ]


def test_a_trace_under_looser_guards_goes_beyond_its_recording(tmp_path: Path) -> None:
    trace = tmp_path / "d.jsonl"
    CliRunner().invoke(cli, ["run", "d", "--lang", "en", "--trace", str(trace)])

    certificate = json.loads(explain(trace, "--guards", "classic", "--limits", "max_steps=30", "--json").output)
    assert (certificate["reason"], certificate["step"], certificate["beyond_recording"]) == (None, 6, True)
    output = explain(trace, "--guards", "classic", "--limits", "max_steps=30").output
    assert "what would have come is beyond the recording" in output.replace("\n", " ")


def test_a_false_kill_is_called_one() -> None:
    certificate = certify(case("a! a! a! b =", ErrorStreak(), ConsecutiveErrors(3), MaxSteps(9), outcome="success"))

    assert certificate.ended == Ended("error_streak", 3)
    assert (certificate.false_kill, certificate.saved, certificate.recorded_steps) == (True, 2, 5)
    assert certificate.message == "stopped: the same call failed 3 times in a row (a{}: it failed)"
    assert [(evidence.step, evidence.text) for evidence in certificate.evidence] == [
        (1, "a{}: it failed"),
        (2, "a{}: it failed"),
        (3, "a{}: it failed"),
    ]
    assert [(counter.guard, counter.halted, counter.let_pass) for counter in certificate.counters] == [
        ("error_streak", True, False),
        ("consecutive_errors", False, False),
        ("max_steps", False, True),
    ]


def test_a_guard_that_would_have_halted_the_run_too_is_the_one_after_it() -> None:
    assert found("a! a! a! b =", ErrorStreak(), ConsecutiveErrors(3)) == [
        ("max_same_errors", 2, Ended("error_streak", 2)),
        ("max_same_errors", 4, Ended("consecutive_errors", 3)),
        ("max_errors", 2, Ended("consecutive_errors", 2)),
    ]


def test_a_run_that_was_stopped_at_a_cap_goes_beyond_it_and_one_that_answered_does_not() -> None:
    assert found("a a a", RepeatedCall(), ending="cap")[1] == ("max_repeats", 3, Ended("recording_ended", 3, beyond=True))
    assert found("a a a =", RepeatedCall())[1] == ("max_repeats", 3, Ended("final_answer", 4))
    assert certify(case("a b c d", *production(99), ending="cap")).ended == Ended("recording_ended", 4, beyond=True)


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_the_smallest_change_is_the_smallest_whatever_the_limit_was(limit: int) -> None:
    assert (
        found("a b c d e f g h i j =", MaxSteps(limit))
        == {
            1: [("max_steps", 2, Ended("max_steps", 2))],
            7: [("max_steps", 6, Ended("max_steps", 6)), ("max_steps", 8, Ended("max_steps", 8))],
            1000: [("max_steps", 10, Ended("max_steps", 10))],
        }[limit]
    )


def test_every_limit_of_a_guard_is_tried_and_those_without_effect_are_told() -> None:
    tried = changes(case("a! a! a! a! a! =", NoProgress(), ConsecutiveErrors(9, warn_at=4)))

    assert [(change.limit, change.was, change.value, change.ended) for change in tried.changes] == [
        ("max_cycles", 2, 5, Ended("no_progress", 5)),
        ("min_steps", 4, 3, Ended("no_progress", 3)),
        ("min_steps", 4, 5, Ended("no_progress", 5)),
        ("max_errors", 9, 3, Ended("consecutive_errors", 3)),
    ]
    assert tried.without == ("max_period", "count_malformed")


def test_a_truth_value_is_turned_over() -> None:
    assert found("? ? a =", ConsecutiveErrors(2, count_malformed=True)) == [
        ("max_errors", 1, Ended("consecutive_errors", 1)),
        ("max_errors", 3, Ended("final_answer", 4)),
        ("count_malformed", False, Ended("final_answer", 4)),
    ]


def test_budgets_change_at_what_was_spent() -> None:
    spending = Recording(
        "r", "made", "a task", tuple(ModelReplied(Reply("", (ToolRequest("", "a", "{"),), usage=Usage(100, 20, cost=0.0123456))) for _ in range(4))
    )  # fmt: skip

    def of(guard: Guard) -> list[Change]:
        return list(changes(case_of_recording(spending, [guard], "r")).changes)

    assert [(change.value, change.ended) for change in of(TokenBudget(240))] == [
        (120, Ended("token_budget", 1)),
        (241, Ended("token_budget", 3)),
    ]
    assert [(change.value, change.ended) for change in of(CostBudget(0.02))] == [
        (0.01234, Ended("cost_budget", 1)),
        (0.0247, Ended("cost_budget", 3)),
    ]


def test_the_limits_of_one_tool_of_combined_guards_and_of_ones_own_have_names() -> None:
    both = (RepeatedCall(1) & MaxSteps(9)).named("both")
    failing = predicate(lambda run: run.failed_calls > 1, reason="failing")

    assert found("a a a =", ToolBudget(2, "a"), both, failing) == [
        ("max_calls:a", 1, Ended("tool_budget:a", 2)),
        ("max_calls:a", 3, Ended("final_answer", 4)),
        ("both.max_steps", 2, Ended("both", 2)),
    ]


@pytest.mark.parametrize("name", FILES)
def test_the_changes_of_published_runs_are_the_smallest(name: str) -> None:
    """One value short of the change, the run still ends as it did."""
    for run in of_file(name)[::60]:
        tried = case_of_recording(run, production(25), run.id)
        ended = tried.ended(tried.play(tried.guards))
        for change in changes(tried).changes:
            assert change.ended != ended
            short = change.value + (1 if change.value < change.was else -1)
            if isinstance(change.value, int) and not isinstance(change.value, bool) and short != change.was:
                other = production(**{"max_steps": 25, "warn_at": None, change.limit: short})
                assert tried.ended(tried.play(other)) == ended, (run.id, change)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in RUNS), encoding="utf-8")
    assert CliRunner().invoke(cli, ["import", "runs.jsonl", "--ledger", "runs.db"]).exit_code == 0
    return "runs.jsonl"


def test_a_recorded_run_is_named_by_its_id_in_a_file_and_in_a_ledger(runs: str) -> None:
    of_file = explain(runs, "--run", "2", "--json")
    assert of_file.exit_code == 0
    certificate = json.loads(of_file.output)
    assert (certificate["title"], certificate["reason"], certificate["step"], certificate["false_kill"]) == (
        "runs.jsonl 2",
        "error_streak",
        3,
        True,
    )

    for arguments in ((runs, "--run", "openai:2"), ("runs.db", "--run", "2"), ("runs.db", "--run", "openai:2")):
        again = json.loads(explain(*arguments, "--json").output)
        assert {**again, "title": certificate["title"]} == certificate


def test_the_guards_of_a_recorded_run_can_be_chosen(runs: str) -> None:
    result = explain(runs, "--run", "2", "--guards", "classic", "--limits", "max_repeats=9,max_errors=9,max_steps=9")
    assert "Halted(final_answer) at step 5, 5 model calls\nanswer: done\nrecorded outcome: success\n" in result.output
    without = explain(runs, "--run", "2", "--guards", "classic").output
    assert without.endswith("There is no cap on steps among these guards; give max_steps to try one out.\n")


def test_a_file_of_one_run_needs_no_id(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(RUNS[2]), encoding="utf-8")
    said = "Halted(final_answer) at step 3, 3 model calls\nanswer: done\n"
    assert explain(path).output.startswith(f"one.json 3\n{said}")

    ledger = tmp_path / "one.db"
    assert CliRunner().invoke(cli, ["import", str(path), "--ledger", str(ledger)]).exit_code == 0
    assert explain(ledger).output.startswith(f"one.db 3\n{said}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nosuch",), "Error: there is no scenario 'nosuch'; there are a, b, c, d"),
        (("nosuch.jsonl",), "Error: nosuch.jsonl: No such file or directory"),
        (("nosuch.toml",), "Error: nosuch.toml: No such file or directory"),
        ((".",), "Error: . is a directory; give a file"),
        (
            ("runs.jsonl",),
            "Error: runs.jsonl holds 4 runs; name one with --run (`fsm-agent replay runs.jsonl --json` lists them)",
        ),
        (("mixed.jsonl",), "Error: mixed.jsonl holds 1 run and 2 damaged ones; name one with --run ("),
        (("bad.jsonl", "--format", "openai"), "Error: bad.jsonl: no run in it can be read (line 1: this is not JSON"),
        (("mixed.jsonl", "--run", "2"), "Error: mixed.jsonl holds no run '2' that can be read; line 2: this is not JSON"),
        (
            ("mixed.jsonl", "--run", "9"),
            "Error: mixed.jsonl holds no run '9'; `fsm-agent replay mixed.jsonl --json` lists them. It may be a damaged one: line 2: this is",
        ),
        (("runs.jsonl", "--run", "9"), "Error: runs.jsonl holds no run '9'; `fsm-agent replay runs.jsonl --json` lists them"),
        (("runs.db",), "Error: runs.db holds 4 runs; name one with --run"),
        (("runs.db", "--run", "9"), "Error: runs.db holds no run '9'"),
        (("c", "--run", "1"), "Error: c is one run; leave --run out"),
        (("c", "--limits", "max_errors=3"), "Error: this run has guards of its own; give --guards too, to have others with these limits"),
        (("c", "--guards", "classic", "--limits", "max_errors=0"), "Error: max_errors is 0; it must be at least 1"),
        (("broken.jsonl",), "Error: broken.jsonl, line 2: "),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(runs: str, arguments: tuple[str, ...], message: str) -> None:
    Path("broken.jsonl").write_text('{"trace":1,"task":"t","protocol":"line"}\nbroken\n{}\n', encoding="utf-8")
    Path("mixed.jsonl").write_text(f"{json.dumps(RUNS[0])}\n{{broken\n{{broken\n", encoding="utf-8")
    Path("bad.jsonl").write_text("{broken\n", encoding="utf-8")
    result = explain(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1


def test_events_that_belong_to_no_run_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text('{"trace":1,"task":"t","protocol":"line"}\n{"event":"ToolsReturned","observations":[]}\n', encoding="utf-8")
    result = explain(path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {path}, line 2: these events belong to no run: ToolsReturned in Deciding (step 0)")


def test_classic_guards_are_judged_in_the_order_of_the_table() -> None:
    certificate = certify(case("a a a", *reversed(classic(3)), ending="cap"))
    assert [counter.guard for counter in certificate.counters] == ["repeated_call", "consecutive_errors", "max_steps"]

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fsm_agent.audit.audit import audit_runs
from fsm_agent.audit.pages import pages
from fsm_agent.audit.plan import plan_of
from fsm_agent.cli import cli
from fsm_agent.language import ENGLISH
from fsm_agent.traces.ledger import Importer, Ledger, Tally
from tests.scripted_recordings import recorded


def chat(ident: str, script: str, **told: object) -> dict[str, Any]:
    """A run as OpenAI chat messages: ``a`` calls the tool a, ``a!`` does so in vain, ``=`` is the answer."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "a task"}]
    for i, step in enumerate(script.split()):
        if step == "=":
            messages.append({"role": "assistant", "content": "done"})
            continue
        name = step.rstrip("!")
        call = {"id": str(i), "type": "function", "function": {"name": name, "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(i), "content": "Error: no" if step.endswith("!") else name})
    return {"id": ident, "messages": messages, **told}


RUNS = (
    chat("1", "a! a! a! a! a! b =", outcome="failure", model="weak"),
    chat("2", "a! a! a! b =", outcome="success", model="weak"),
    chat("3", "a b =", outcome="success", model="strong"),
    chat("4", "a b a c", model="strong"),
)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(run) + "\n" for run in RUNS), encoding="utf-8")
    return Path("runs.jsonl")


def audit(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["audit", *map(str, arguments), "--lang", "en"])


def squeezed(text: str) -> str:
    """Without the spaces that line up the columns."""
    return "\n".join("  ".join(filter(None, map(str.strip, line.split("  ")))) for line in text.splitlines())


def test_the_whole_audit_of_a_file(runs: Path) -> None:
    result = audit(runs, "--guards", "classic", "--by", "model", "--what-if", "max_steps=2,max_errors=4")

    assert result.exit_code == 0
    assert (
        squeezed(result.output)
        == """\
Runs
model  runs  succeeded  failed  unknown  model calls  beyond the recording
strong  2  1  0  1  7  0 (0.0%)
weak  2  1  1  0  12  0 (0.0%)
all  4  2  1  1  19  0 (0.0%)

Halt reasons under classic
model  halt reason  runs  succeeded  failed  unknown  median steps  median tokens
strong  final_answer  1 (50.0%)  1  0  0  3  ?
strong  recording_ended (unknown)  1 (50.0%)  0  0  1  4  ?
weak  consecutive_errors  2 (100.0%)  1  1  0  2  ?
all  consecutive_errors  2 (50.0%)  1  1  0  2  ?
all  final_answer  1 (25.0%)  1  0  0  3  ?
all  recording_ended (unknown)  1 (25.0%)  0  0  1  4  ?

Each guard alone, and all together: what they stop and what they kill
model  guard  failed runs stopped  their calls saved  successful runs killed  at step (median)  capped runs stopped early
strong  all guards  -  -  0 (0.0%)  -
weak  repeated_call  1 (100.0%)  4 (57.1%)  1 (100.0%)  3  -
weak  consecutive_errors  1 (100.0%)  5 (71.4%)  1 (100.0%)  2  -
weak  all guards  1 (100.0%)  5 (71.4%)  1 (100.0%)  2  -
all  repeated_call  1 (100.0%)  4 (57.1%)  1 (50.0%)  3  -
all  consecutive_errors  1 (100.0%)  5 (71.4%)  1 (50.0%)  2  -
all  all guards  1 (100.0%)  5 (71.4%)  1 (50.0%)  2  -

What if
model  classic  max_steps=2,max_errors=4
strong  failed runs stopped  -  -
strong  their calls saved  -  -
strong  successful runs killed  0 (0.0%)  1 (100.0%)
strong  at step (median)  2
strong  capped runs stopped early  -  -
strong  beyond the recording  0 (0.0%)  0 (0.0%)
strong  final_answer  1 (50.0%)  -
strong  recording_ended (unknown)  1 (50.0%)  -
strong  max_steps  -  2 (100.0%)
weak  failed runs stopped  1 (100.0%)  1 (100.0%)
weak  their calls saved  5 (71.4%)  5 (71.4%)
weak  successful runs killed  1 (100.0%)  1 (100.0%)
weak  at step (median)  2  2
weak  capped runs stopped early  -  -
weak  beyond the recording  0 (0.0%)  0 (0.0%)
weak  consecutive_errors  2 (100.0%)  -
weak  max_steps  -  2 (100.0%)
all  failed runs stopped  1 (100.0%)  1 (100.0%)
all  their calls saved  5 (71.4%)  5 (71.4%)
all  successful runs killed  1 (50.0%)  2 (100.0%)
all  at step (median)  2  2
all  capped runs stopped early  -  -
all  beyond the recording  0 (0.0%)  0 (0.0%)
all  consecutive_errors  2 (50.0%)  -
all  final_answer  1 (25.0%)  -
all  recording_ended (unknown)  1 (25.0%)  -
all  max_steps  -  4 (100.0%)

max_steps is not given, so no cap on steps is tried out (classic).
Most savings come from weak models: set limits by the rows of runs like yours, not by those of all runs. Here 100.0% of the calls saved are of weak.
Of 1 run nobody said whether it succeeded: it is no success and no failure here.
Tokens are those of the runs that tell them, whose number stands beside them; ? means that none does."""
    )


def test_a_median_of_tokens_that_few_runs_tell_says_of_how_many() -> None:
    runs = [recorded(f"{i}", "a =", tokens=1387 if i < 3 else None) for i in range(9)]
    found = audit_runs([*runs, recorded("x", "a a a", tokens=5)], plan_of("classic", {}))
    halts = next(page for page in pages(found, ENGLISH, "source") if page.title == "Halt reasons under classic")

    assert [(row[1], row[-1]) for row in halts.rows] == [("final_answer", "2,774 (of 3)"), ("repeated_call", "15")]


def test_a_ledger_is_audited_as_the_file_that_was_imported_into_it(runs: Path) -> None:
    assert CliRunner().invoke(cli, ["import", str(runs), "--ledger", "runs.db"]).exit_code == 0

    for options in ((), ("--where", "outcome!=failure,steps>=4"), ("--by", "file"), ("--limits", "max_steps=3")):
        of_file, of_ledger = audit(runs, "--json", *options), audit("runs.db", "--json", *options)
        assert of_file.exit_code == of_ledger.exit_code == 0
        assert json.loads(of_ledger.output) == json.loads(of_file.output)


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("outcome=success", 2),
        ("outcome!=success", 2),
        ("steps>4", 2),
        ("steps<=3,model=strong", 1),
        ("score=", 4),
        ("score>0", 0),
        ("id=4", 1),
        ("model=weak,id=3", 0),
    ],
)
def test_conditions_choose_runs_of_a_file(runs: Path, where: str, count: int) -> None:
    assert json.loads(audit(runs, "--json", "--where", where).output)["runs"] == count


def test_the_json_names_every_kill_and_tells_each_share(runs: Path) -> None:
    found = json.loads(
        audit(runs, "--json", "--limits", "max_steps=9", "--sweep", "max_same_errors=3,4", "--fail-if", "false_kills > 0").stdout
    )

    together = found["base"]["guards"][-1]
    assert found["base"]["plan"]["limits"]["max_steps"] == {"max_steps": 9}
    assert together == {
        "group": "all",
        "guard": "all guards",
        "failures_stopped": {"count": 1, "of": 1, "share": 1.0},
        "calls_saved": {"count": 4, "of": 7, "share": 4 / 7},
        "false_kills": {"count": 1, "of": 2, "share": 0.5},
        "median_kill_step": 3.0,
        "kills": [{"run": "openai:2", "step": 3}],
        "capped_stopped_early": {"count": 0, "of": 0, "share": None},
        "unknown_stopped": {"count": 0, "of": 1, "share": 0.0},
        "let_beyond": {"count": 0, "of": 4, "share": 0.0},
    }
    swept = [(row["value"], row["scope"], row["false_kills"]["count"]) for row in found["sweeps"][0]["rows"] if row["group"] == "all"]
    assert swept == [(3, "alone", 1), (3, "together", 1), (4, "alone", 0), (4, "together", 0)]
    assert found["fail_if"] == [{"condition": "false_kills > 0", "where": "", "value": "1 of 2 (50.0%)", "holds": True}]


def test_every_table_is_written_as_csv_and_no_cell_is_a_formula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs.jsonl").write_text(json.dumps(chat("1", "a! a! a! a! =", outcome="success", model="=1+1")), encoding="utf-8")

    assert audit("runs.jsonl", "--by", "model", "--sweep", "max_same_errors=3,4", "--csv", "out/tables").exit_code == 0
    tables = {path.stem: list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) for path in Path("out/tables").iterdir()}
    assert {name: len(rows) for name, rows in tables.items()} == {
        "groups": 2, "halts": 2, "guards": 16, "near_misses": 16, "capped": 2, "kills": 3, "sweeps": 8, "notes": 2,
    }  # fmt: skip
    assert tables["kills"][0] == {"plan": "production", "group": "'=1+1", "guard": "error_streak", "run": "openai:1", "step": "3"}
    assert tables["groups"][0] == {
        "plan": "production", "group": "'=1+1", "runs": "1", "successes": "1", "failures": "0", "unknown": "0", "model_calls": "5",
        "beyond": "0", "beyond_of": "1", "beyond_share": "0.0",
    }  # fmt: skip


def test_runs_that_came_near_a_limit_and_capped_ones_that_no_guard_helps_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Ledger.create_or_open("runs.db") as ledger:
        importer, tally = Importer(ledger, lambda _: ()), Tally()
        for i in range(4):
            importer.take(recorded(f"{i}", "a! a! b c", ending="cap"), "runs.jsonl", tally)
        importer.flush(tally)
    result = audit("runs.db", "--limits", "max_tokens=99", "--csv", "out")

    assert result.exit_code == 0
    named = ", ".join(f"made:{i} (2 of 3 at step 2)" for i in range(3))
    assert f"""\
Near misses
source  guard  runs within one of the limit  succeeded  failed  unknown  which runs
made  error_streak  4 (100.0%)  0  0  4  {named}, ...
made  any guard  4 (100.0%)  0  0  4  {named}, ...

Runs that ended at a cap
source  ended at a cap  halted before it  no guard would have helped  which runs
made  4 (100.0%)  0 (0.0%)  4 (100.0%)  made:0, made:1, made:2, ...

`fsm-agent explain FILE --run ID` tells all of a run; --json and --csv name every run that the tables count.
""" in squeezed(result.output)
    assert "\nNear a limit of tokens, cost or seconds is from 90% of it; near any other, within one.\n" in result.output
    assert "Near a limit of tokens" not in audit("runs.db").output

    texts = {name: Path(f"out/{name}.csv").read_text(encoding="utf-8") for name in ("near_runs", "capped_runs")}
    rows = {name: list(csv.DictReader(text.splitlines())) for name, text in texts.items()}
    assert len(rows["near_runs"]) == 4
    assert rows["near_runs"][0] == {
        "plan": "production, max_tokens=99", "group": "made", "run": "made:0", "guard": "error_streak", "value": "2", "limit": "3",
        "step": "2",
    }  # fmt: skip
    assert rows["capped_runs"] == [{"plan": "production, max_tokens=99", "group": "made", "run": f"made:{i}"} for i in range(4)]
    near = json.loads(audit("runs.db", "--json").output)["base"]["near_misses"][-1]["runs"]
    assert near[3] == {"run": "made:3", "guard": "error_streak", "value": 2, "limit": 3, "step": 2}


def test_fail_if_makes_the_exit_code_1_and_names_the_figure_and_its_value(runs: Path) -> None:
    result = audit(
        runs, "--fail-if", "false_kills > 0.5%", "--fail-if", "damaged > 0", "--fail-if", "no_guard_helped > 0", "--fail-if", "runs >= 4"
    )

    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "--fail-if false_kills > 0.5% holds: false_kills is 1 of 2 (50.0%)",
        "--fail-if runs >= 4 holds: runs is 4",
    ]
    assert audit(runs, "--fail-if", "false_kills > 50%").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "lines", "code"),
    [
        (
            ("--fail-if", "no_guard_helped > 0%", "--fail-if", "runs >= 4"),
            [
                "--fail-if no_guard_helped > 0% cannot be judged: no_guard_helped is not known (of none)",
                "--fail-if runs >= 4 holds: runs is 4",
            ],
            2,
        ),
        (
            ("--where", "model=stron", "--fail-if", "false_kills > 0", "--fail-if", "damaged > 0"),
            [
                "--fail-if false_kills > 0 cannot be judged: no run is chosen",
                "--fail-if damaged > 0 cannot be judged: no run is chosen",
            ],
            2,
        ),
        (
            ("--fail-if", "median_kill_step[group=*, guard=denied] > 1"),
            [
                "--fail-if median_kill_step[group=*, guard=denied] > 1 cannot be judged: median_kill_step in strong is not known",
                "--fail-if median_kill_step[group=*, guard=denied] > 1 cannot be judged: median_kill_step in weak is not known",
            ],
            2,
        ),
        (
            ("--fail-if", "failures_stopped[group=*] < 1%"),
            ["--fail-if failures_stopped[group=*] < 1%: failures_stopped in strong is not known (of none), so it does not hold there"],
            0,
        ),
    ],
)
def test_a_gate_is_not_passed_by_what_cannot_be_judged(runs: Path, arguments: tuple[str, ...], lines: list[str], code: int) -> None:
    result = audit(runs, "--by", "model", *arguments)
    assert (result.exit_code, result.stderr.splitlines()) == (code, lines)


@pytest.mark.parametrize("command", ["audit", "explain", "draw", "report", "replay"])
@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("runs.db", b"no ledger", "is of no format that is known; name one: "),
        ("runs.SQLITE", b"", "is empty"),
        ("runs", b"\x89PNG\r\n", "is "),
        ("runs.jsonl", b"a\0b", "is "),
    ],
)
def test_what_is_no_recording_and_no_ledger_either_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, name: str, content: bytes, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    result = CliRunner().invoke(cli, [command, f"./{name}", *(["-o", "page.html"] if command == "report" else [])])

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {name} {problem}")
    assert result.stderr.endswith(", and it is no ledger (not an SQLite file)\n")


def test_recordings_may_be_in_a_file_that_is_named_like_a_ledger(runs: Path) -> None:
    runs.rename("runs.db")
    assert json.loads(audit("runs.db", "--json").output)["runs"] == 4


@pytest.mark.parametrize("options", [(), ("--json",), ("--fail-if", "damaged > 0")])
def test_a_file_in_which_no_run_can_be_read_is_bad_input(tmp_path: Path, options: tuple[str, ...]) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text("{broken\n", encoding="utf-8")
    result = audit(path, "--format", "openai", *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"damaged: {path}, line 1: this is not JSON")
    assert result.stderr.splitlines()[1:] == [f"Error: {path}: no run in it can be read"]


def test_a_file_in_which_no_run_can_be_read_does_not_keep_others_from_being_audited(runs: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{broken\n", encoding="utf-8")
    result = audit(broken, runs, "--format", "openai", "--json", "--where", "model=weak", "--fail-if", "runs > 1")

    assert (result.exit_code, json.loads(result.stdout)["runs"]) == (2, 2)
    assert result.stderr.splitlines()[1:] == [
        f"Error: {broken}: no run in it can be read",
        "--fail-if runs > 1 holds: runs is 2",
    ]


def test_damaged_runs_are_named_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(RUNS[2]) + "\n{broken\n", encoding="utf-8")
    result = audit(path, "--json", "--fail-if", "damaged > 0")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["runs"] == 1
    assert result.stderr.splitlines()[0].startswith(f"damaged: {path}, line 2: this is not JSON")


def test_a_sweep_is_printed_and_drawn(runs: Path) -> None:
    pytest.importorskip("matplotlib", reason="charts need the extra charts")
    result = audit(runs, "--guards", "none", "--sweep", "max_errors=3..5..2", "--chart", "sweep.svg")

    assert result.exit_code == 0
    assert (
        squeezed(result.output)
        .partition("max_errors: its guard alone\n")[2]
        .startswith("""\
max_errors  source  failed runs stopped  their calls saved  successful runs killed  at step (median)  capped runs stopped early  beyond the recording
3  openai  1 (100.0%)  4 (57.1%)  1 (50.0%)  3  -  0 (0.0%)
5  openai  1 (100.0%)  2 (28.6%)  0 (0.0%)  -  0 (0.0%)

max_steps is not given, so no cap on steps is tried out (none).""")
    )
    assert Path("sweep.svg").read_text(encoding="utf-8").count("max_errors: what each value saves and kills") >= 1


def test_where_nothing_is_chosen_there_is_nothing_to_audit(runs: Path) -> None:
    result = audit(runs, "--where", "outcome=success,steps>99")
    assert (result.exit_code, result.output) == (0, "There are no runs to audit.\n")


def test_the_audit_speaks_chinese(runs: Path) -> None:
    result = CliRunner().invoke(cli, ["audit", str(runs), "--lang", "zh"])
    assert result.exit_code == 0
    assert "final_answer" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.jsonl",), "Error: missing.jsonl: No such file or directory"),
        ((".",), "Error: . is a directory; give a file"),
        (("empty",), "Error: empty is empty"),
        (("other.db",), "Error: other.db is no SQLite file, so it is no ledger"),
        (("runs.jsonl", "--limits", "max_errors"), "Error: 'max_errors' is not of the form name=value"),
        (("runs.jsonl", "--what-if", "max_errors=0"), "Error: max_errors is 0; it must be at least 1"),
        (("runs.jsonl", "--sweep", "max_errors=6..1"), "Error: 'max_errors=6..1' has no values"),
        (("runs.jsonl", "--chart", "x.svg"), "Error: --chart draws a sweep; give one, such as --sweep max_errors=1..6"),
        (("runs.jsonl", "--sweep", "max_errors=1..2", "--chart", "x.pdf"), "Error: x.pdf: a chart is written as .svg or .png"),
        (("runs.jsonl", "--where", "foo=1"), "Error: runs have no 'foo' that can be asked for"),
        (("runs.jsonl", "--fail-if", "false_kills"), "Error: 'false_kills' is no condition"),
        (("runs.jsonl", "--fail-if", "false_kills[group=x] > 1"), "Error: false_kills[group=x] > 1: there is no group 'x'"),
        (("runs.jsonl", "--format", "nope"), "Error: the format 'nope' is not known"),
        (("runs.jsonl", "--error-pattern", "("), "Error: the error pattern '(' is no regular expression"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(runs: Path, arguments: tuple[str, ...], message: str) -> None:
    Path("empty").touch()
    Path("other.db").write_bytes(b"SQLite format 3\0 and then nothing that SQLite would take" * 20)
    result = audit(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1

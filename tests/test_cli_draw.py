"""``fsm-agent draw`` of recorded runs: one of many, the heat map, comparisons; and what is said of wrong use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fsm_agent.cli import cli
from fsm_agent.traces.record import encode, header_of
from tests.browser.runs import optional_run


def chat(ident: str, script: str, **told: object) -> dict[str, Any]:
    """A run as OpenAI chat messages: ``a`` calls the tool a, ``a!`` does so in vain, ``=`` is the answer."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "a task"}]
    for i, step in enumerate(script.split()):
        if step == "=":
            messages.append({"role": "assistant", "content": "done"})
            continue
        call = {"id": str(i), "type": "function", "function": {"name": step.rstrip("!"), "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(i), "content": "Error: no" if step.endswith("!") else step})
    return {"id": ident, "messages": messages, **told}


RUNS = (
    chat("1", "a! a! a! b =", outcome="failure"),
    chat("2", "a b =", outcome="success"),
    chat("3", "a c b =", outcome="success"),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files of runs and a ledger of them, and in it is where the command runs."""
    monkeypatch.chdir(tmp_path)
    Path("runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in RUNS), encoding="utf-8")
    Path("one.json").write_text(json.dumps(RUNS[0]), encoding="utf-8")
    Path("two.json").write_text(json.dumps(RUNS[1]), encoding="utf-8")
    assert CliRunner().invoke(cli, ["import", "runs.jsonl", "--ledger", "runs.db"]).exit_code == 0
    return tmp_path


def draw(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["draw", *map(str, arguments), "--lang", "en"])


def title(*arguments: object) -> str:
    result = draw(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.partition("\n")[0]


# --- one run -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["runs.db", "runs.jsonl"])
@pytest.mark.parametrize("name", ["1", "openai:1"])
def test_one_run_of_a_ledger_or_a_file(source: str, name: str) -> None:
    assert title(source, "--run", name) == "runs 1: Halted(final_answer) at step 5, 5 model calls"


def test_a_file_of_one_run_needs_no_name() -> None:
    assert title("one.json") == "one 1: Halted(final_answer) at step 5, 5 model calls"


def test_a_recorded_run_under_guards() -> None:
    assert title("runs.db", "--run", "1", "--guards", "production") == "runs 1: Halted(error_streak) at step 3, 3 model calls"
    assert title("runs.db", "--run", "1", "--limits", "max_steps=2") == "runs 1: Halted(max_steps) at step 2, 2 model calls"


def test_a_trace_and_a_scenario_under_other_guards() -> None:
    assert CliRunner().invoke(cli, ["run", "a", "--trace", "a.jsonl"]).exit_code == 0
    for source in ("a", "a.jsonl"):
        assert title(source) == "Scenario a: Halted(final_answer) at step 4, 4 model calls"
        assert title(source, "--guards", "none", "--limits", "max_steps=2") == "Scenario a: Halted(max_steps) at step 2, 2 model calls"


def test_the_machine_of_a_ledger_has_the_guards_that_are_asked_for() -> None:
    assert title("runs.db", "--view", "machine") == "The machine: 5 states, 13 edges, 4 halt reasons"
    assert title("runs.db", "--view", "machine", "--guards", "classic") == "The machine: 5 states, 15 edges, 6 halt reasons"
    assert title("machine", "--guards", "classic") == "The machine: 5 states, 15 edges, 6 halt reasons"


def test_the_machine_of_a_trace_has_the_edges_of_its_options() -> None:
    run = optional_run()
    Path("options.jsonl").write_bytes(b"".join(encode(entry) for entry in (header_of(run, "Options"), *run.log)))
    assert title("options.jsonl", "--view", "machine") == "The machine: 5 states, 27 edges, 8 halt reasons"
    assert title("options.jsonl") == "Options: Halted(max_steps) at step 4, 4 model calls"
    assert draw("options.jsonl", "-o", "options.html").exit_code == 0
    assert 'aria-label="The machine: 5 states, 27 edges, 8 halt reasons"' in Path("options.html").read_text(encoding="utf-8")


def test_labels_are_in_the_language_that_is_asked_for_whatever_that_of_the_run_is() -> None:
    assert CliRunner().invoke(cli, ["run", "a", "--trace", "a.jsonl", "--lang", "zh"]).exit_code == 0
    assert title("a.jsonl") == "Scenario a: Halted(final_answer) at step 4, 4 model calls"
    assert title("a.jsonl", "--view", "unrolled") == "Scenario a: Halted(final_answer) at step 4, 4 model calls"
    for form, lang in (("html", '<html lang="en">'), ("mermaid", "tool call")):
        assert lang in draw("a.jsonl", "--format", form).stdout
    chinese = CliRunner().invoke(cli, ["draw", "runs.db", "--run", "1", "--lang", "zh"]).stdout
    assert "第 1 步\n  Deciding  -> Parsing    模型回复" in chinese


# --- many runs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "name"), [("runs.db", "runs.db"), ("runs.jsonl", "runs.jsonl")])
def test_many_runs_are_a_heat_map(source: str, name: str) -> None:
    assert title(source) == f"{name}, as recorded: 3 runs, 12 model calls"
    assert title(source, "--where", "outcome=success") == f"{name}, outcome=success, as recorded: 2 runs, 7 model calls"
    assert title(source, "--view", "heat", "--guards", "production", "--limits", "max_steps=9") == (
        f"{name}, under production, max_steps=9: 3 runs, 10 model calls"
    )


def test_several_files_are_one_heat_map() -> None:
    assert title("one.json", "two.json") == "one.json, two.json, as recorded: 2 runs, 8 model calls"
    assert title("one.json", "--view", "heat") == "one.json, as recorded: 1 run, 5 model calls"


def test_two_groups() -> None:
    assert title("runs.db", "--where", "outcome=success", "--against", "outcome=failure") == (
        "runs.db, as recorded: A is outcome=success (2 runs), B is outcome=failure (1 run)"
    )
    assert title("runs.db", "--view", "diff", "--against", "id=1", "--guards", "production") == (
        "runs.db, under production: A is all runs (3 runs), B is id=1 (1 run)"
    )
    assert title("runs.db", "--against", "runs.jsonl", "--where", "outcome=success") == (
        "outcome=success, as recorded: A is runs.db (2 runs), B is runs.jsonl (2 runs)"
    )


def test_two_runs() -> None:
    both = "A is runs 1 (Halted(final_answer) at step 5), B is runs 2 (Halted(final_answer) at step 3)"
    assert title("runs.db", "--run", "1", "--against", "2") == both
    assert title("one.json", "--against", "two.json") == both.replace("runs 1", "one 1").replace("runs 2", "two 2")
    assert title("runs.db", "--run", "1", "--against", "one.json") == (
        "A is runs 1 (Halted(final_answer) at step 5), B is one 1 (Halted(final_answer) at step 5)"
    )
    assert title("a", "--against", "b") == (
        "A is Scenario a (Halted(final_answer) at step 4), B is Scenario b (Halted(repeated_call) at step 3)"
    )


@pytest.mark.parametrize(
    ("ending", "magic"),
    [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("dot", b"digraph"), ("mmd", b"---\n"), ("txt", b"runs.db")],
)
@pytest.mark.parametrize("more", [(), ("--against", "outcome=failure")])
def test_every_format(ending: str, magic: bytes, more: tuple[str, ...]) -> None:
    path = Path(f"x.{ending}")
    result = draw("runs.db", *more, "-o", path)
    assert (result.exit_code, result.output) == (0, "")
    assert path.read_bytes().startswith(magic)


def test_damaged_runs_are_named_and_left_out() -> None:
    with Path("runs.jsonl").open("a", encoding="utf-8") as file:
        file.write("{\n")
    result = draw("runs.jsonl")
    assert result.exit_code == 0
    assert result.stdout.startswith("runs.jsonl, as recorded: 3 runs, 12 model calls\n")
    assert "\n1 damaged run was left out.\n" in result.stdout
    assert result.stderr.startswith("damaged: runs.jsonl, line 4: ")


# --- wrong use ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["runs.db", "--view", "path"], "runs.db holds 3 runs; name one with --run"),
        (["runs.jsonl", "--view", "path"], "runs.jsonl holds 3 runs; name one with --run (`fsm-agent replay runs.jsonl --json` lists them)"),
        (["runs.jsonl", "--run", "9"], "runs.jsonl holds no run '9'; `fsm-agent replay runs.jsonl --json` lists them"),
        (["runs.db", "--run", "9"], "runs.db holds no run '9'; a run is named by its id, by source:id or by the beginning of its key"),
        (["runs.db", "--where", "outcome=unknown"], "runs.db holds no run with outcome=unknown that can be drawn"),
        (["runs.db", "--where", "steps>"], "steps>: '' is no number"),
        (["runs.db", "--against", "no.db"], "'no.db' is no condition; write one like outcome=success, or steps>=10"),
        (["runs.db", "--view", "diff"], "--view diff compares with what --against names: a condition such as outcome=failure, another file, or with --run the id of another run"),
        (["runs.db", "--view", "heat", "--against", "outcome=failure"], "--against is for --view diff"),
        (["runs.db", "--view", "heat", "--run", "1"], "--run names one run; a heat map is of many, which --where chooses"),
        (["runs.db", "one.json", "--view", "path"], "a path is of one run: give one SOURCE, with --run where it holds several, and no --where"),
        (["a", "--view", "heat"], "a is a scenario; a heat map is of recorded runs: give a ledger, or files of recordings"),
        (["a", "--run", "1"], "a is one run; leave --run out"),
        (["a", "--limits", "max_steps=2"], "this run has guards of its own; give --guards too, to have others with these limits"),
        (["machine", "--view", "heat"], "the machine has no runs; name a ledger, or files of recordings"),
        (["machine", "--view", "path"], "the machine has no path; name a scenario or a trace"),
        (["runs.db", "--limits", "max_step=2"], None),
        (["no.db"], "no.db: No such file or directory"),
        (["runs.db", "-o", "x.gif"], None),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line_and_exit_code_2(arguments: list[str], line: str | None) -> None:
    result = draw(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    if line is not None:
        assert result.stderr == f"Error: {line}\n"

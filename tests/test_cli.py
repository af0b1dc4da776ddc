"""The command line as a user meets it: exit codes, JSON, one clear line for what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fsm_agent.cli import cli
from fsm_agent.table import ROWS
from fsm_agent.traces.ledger import Importer, Ledger, Tally
from tests.scripted_recordings import recorded
from tests.test_cli_audit import RUNS

TAU = Path(__file__).parent.parent.parent / "shared" / "data" / "tau-bench-airline-gpt-4o.json"
needs_tau = pytest.mark.skipif(not TAU.exists(), reason="the recorded runs in ../shared/data are not here")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], env={"LC_ALL": "C"})


def process(*arguments: object, **environ: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "fsm_agent", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8", **environ}, check=False, timeout=60)


# --- run ---------------------------------------------------------------------------------------------------------


def test_run_json_is_one_object() -> None:
    result = call("run", "c", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout) == {
        "reason": "consecutive_errors",
        "answer": None,
        "message": "stopped: 2 failed tool calls in a row, circuit breaker tripped",
        "steps": 2,
        "model_calls": 2,
        "path": [
            "model_replied",
            "call_tools",
            "tools_returned",
            "go_on",
            "model_replied",
            "call_tools",
            "tools_returned",
            "consecutive_errors",
        ],
    }


def test_a_final_answer_exits_with_0() -> None:
    result = call("run", "f", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["answer"] == "7"


def test_a_scenario_that_ends_otherwise_than_it_says_exits_with_1(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("title='t'\ntask='t'\nscript=['FINAL x']\n[expect]\nreason='max_steps'\nmodel_calls=1\nanswer='y'\n")
    result = call("run", mine)
    assert result.exit_code == 1
    assert (
        result.stderr
        == "not as expected: reason: expected 'max_steps', got 'final_answer'\nnot as expected: answer: expected 'y', got 'x'\n"
    )


def test_a_script_that_runs_out_halts_as_model_error_with_the_step(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("title='t'\ntask='t'\ntools=['now']\nscript=['TOOL now']\n")
    result = call("run", mine, "--json")
    assert result.exit_code == 3
    told = json.loads(result.stdout)
    assert told["reason"] == "model_error"
    assert told["message"] == "stopped: the model failed (ScriptEnded: the script ran out at step 2: it has 1 replies and no template)"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "z"], "Error: there is no scenario 'z'; there are a, b, c, d, e, f, or give the path of a .toml file\n"),
        (["run", ""], "Error: no scenario is named; name one of a, b, c, d, e, f, or give the path of a .toml file\n"),
        (["run", "no.json"], "Error: no.json: No such file or directory\n"),
        (["run", "a", "--trace", "x.dot", "--draw", "./x.dot"], "Error: --trace x.dot and --draw x.dot are one file; name two\n"),
        (["run", "no/such.toml"], "Error: no/such.toml: No such file or directory\n"),
        (["run", "a", "--trace", "no/such/dir/t.jsonl"], "Error: no/such/dir/t.jsonl: No such file or directory\n"),
        (["run", "a", "--draw", "a.gif"], "Error: a.gif: the ending names no format; known are .svg, .png, .pdf, .dot, .gv, .mmd, .mermaid, .txt, .html, or give --format\n"),
        (["verify", "no.jsonl"], "Error: no.jsonl: No such file or directory\n"),
        (["draw", "no.jsonl"], "Error: no.jsonl: No such file or directory\n"),
        (["draw", "machine", "--view", "path"], "Error: the machine has no path; name a scenario or a trace\n"),
        (["replay", "x.json", "--draw", "x.svg"], "Error: --draw draws one run; name it with --run\n"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line_and_exit_code_2(arguments: list[str], line: str) -> None:
    result = process(*arguments)
    assert (result.returncode, result.stdout.decode(), result.stderr.decode()) == (2, "", line)


def test_an_unknown_option_exits_with_2_without_a_traceback() -> None:
    result = process("run", "a", "--colour")
    assert result.returncode == 2
    assert b"Traceback" not in result.stderr
    assert b"No such option" in result.stderr


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('title="t"\ntask="t"\nscript=["FINAL \\u001b[2Jred \\u202eback"]\n')
    assert "\\x1b[2Jred \\u202eback" in call("run", mine).stdout


def test_output_in_a_terminal_without_chinese_is_escaped_not_broken() -> None:
    result = process("run", "c", PYTHONIOENCODING="latin-1")
    assert result.returncode == 3
    assert b"TOOL add a=\\u4e09,b=\\u56db" in result.stdout


def test_there_is_no_colour_in_a_pipe() -> None:
    assert b"\x1b" not in process("run", "c").stdout


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a POSIX thing")
@pytest.mark.parametrize(("environ", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_there_is_colour_on_a_terminal_unless_no_color_is_set(environ: dict[str, str], coloured: bool) -> None:
    import pty

    leader, follower = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm-256color"}
    subprocess.run(
        [sys.executable, "-m", "fsm_agent", "run", "c"], stdout=follower, stderr=follower, env=clean | environ, check=False, timeout=60
    )
    os.close(follower)
    written = os.read(leader, 65536)
    os.close(leader)
    assert (b"\x1b[" in written) is coloured


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to a child there")
def test_ctrl_c_records_the_halt_and_exits_with_130(tmp_path: Path) -> None:
    mine, trace = tmp_path / "mine.toml", tmp_path / "t.jsonl"
    mine.write_text("title='t'\ntask='t'\ntools=['add']\nthen='TOOL add a=1,b={n}'\n[limits]\nmax_steps=10000000\n")
    child = subprocess.Popen(
        [sys.executable, "-m", "fsm_agent", "run", str(mine), "--trace", str(trace)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert child.stdout is not None
    assert b"[step 1]" in child.stdout.readline()
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert err == b"\ncancelled\n"
    assert b"final answer: stopped: cancelled by the user\n" in out
    verified = call("verify", trace)
    assert verified.exit_code == 0
    assert "; halted: cancelled\n" in verified.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to a child there")
def test_ctrl_c_still_draws_the_path(tmp_path: Path) -> None:
    picture = tmp_path / "path.txt"
    child = endless(tmp_path, "--draw", str(picture))
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (130, b"\ncancelled\n")
    assert "Halted(cancelled) at step" in picture.read_text(encoding="utf-8").partition("\n")[0]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL there")
def test_a_run_that_was_killed_leaves_a_record_that_holds(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    child = endless(tmp_path, "--trace", str(trace))
    child.kill()
    out, _ = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    verified = call("verify", trace)
    assert verified.exit_code == 0
    assert " edges hold; the run did not end" in verified.stdout
    steps = sum(entry["event"] == "ModelReplied" for entry in map(json.loads, trace.read_text().splitlines()) if "event" in entry)
    assert steps >= out.count(b"] LLM output: ") > 0


def endless(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """A run that goes on and on, and is in the midst of it."""
    mine = folder / "mine.toml"
    mine.write_text("title='t'\ntask='t'\ntools=['add']\nthen='TOOL add a=1,b={n}'\n[limits]\nmax_steps=10000000\n")
    child = subprocess.Popen(
        [sys.executable, "-m", "fsm_agent", "run", str(mine), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert child.stdout is not None
    assert b"[step 1]" in child.stdout.readline()
    time.sleep(0.2)
    return child


# --- files that are read and written -----------------------------------------------------------------------------


def test_no_command_writes_over_what_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text("title='t'\ntask='t'\nscript=['FINAL x']\n")
    Path("link.svg").hardlink_to("my.toml")
    assert call("run", "my.toml", "--trace", "my.jsonl").exit_code == 0
    Path("t.svg").write_bytes(Path("my.jsonl").read_bytes())
    before = {path: path.read_bytes() for path in Path().iterdir()}
    for arguments, message in (
        (["run", "my.toml", "--trace", "my.toml"], "--trace my.toml would overwrite my.toml, which is read"),
        (["run", "./my.toml", "--draw", "link.svg"], "--draw link.svg would overwrite ./my.toml, which is read"),
        (["draw", "t.svg", "-o", "t.svg"], "--output t.svg would overwrite t.svg, which is read"),
        (["draw", "my.jsonl", "--against", "t.svg", "-o", "t.svg"], "--output t.svg would overwrite t.svg, which is read"),
        (["draw", "my.jsonl", "-o", "my.jsonl", "--format", "svg"], "--output my.jsonl would overwrite my.jsonl, which is read"),
        (["replay", "t.svg", "--run", "t", "--draw", "t.svg"], "--draw t.svg would overwrite t.svg, which is read"),
        (["audit", "t.svg", "--sweep", "max_errors=1..2", "--chart", "t.svg"], "--chart t.svg would overwrite t.svg, which is read"),
        (["check", "link.svg", "-o", "link.svg"], "--output link.svg would overwrite link.svg, which is read"),
    ):
        result = call(*arguments)
        assert (result.exit_code, result.stderr) == (2, f"Error: {message}; name another file\n")
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_a_file_that_is_named_like_a_scenario_does_not_hide_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert call("run", "f", "--trace", "f").exit_code == 0
    assert call("verify", "f").exit_code == 0


def test_pictures_have_one_list_of_formats() -> None:
    from fsm_agent.diagrams import FORMATS
    from fsm_agent.formats import ENDINGS, PICTURES

    assert FORMATS == PICTURES
    assert set(ENDINGS.values()) == {*PICTURES, "html"}


# --- verify ------------------------------------------------------------------------------------------------------


def test_verify_says_what_holds(tmp_path: Path) -> None:
    trace = tmp_path / "c.jsonl"
    call("run", "c", "--trace", trace)
    result = call("verify", trace)
    assert (result.exit_code, result.stdout) == (0, f"{trace}: 4 events and 8 edges hold; halted: consecutive_errors\n")


def test_verify_names_the_first_line_that_differs(tmp_path: Path) -> None:
    trace = tmp_path / "c.jsonl"
    call("run", "c", "--trace", trace)
    text = trace.read_text(encoding="utf-8")
    trace.write_text(text.replace('"edge":"go_on"', '"edge":"max_steps"'), encoding="utf-8")
    result = call("verify", trace)
    assert result.exit_code == 1
    first, recorded, replayed = result.stdout.splitlines()
    assert first == f"{trace}, line 7 differs"
    assert recorded.startswith('  recorded: {"edge":"max_steps","step":1,')
    assert replayed.startswith('  replayed: {"edge":"go_on","step":1,')


def test_a_trace_cut_off_in_a_line_loads_and_did_not_end(tmp_path: Path) -> None:
    trace = tmp_path / "c.jsonl"
    call("run", "c", "--trace", trace)
    trace.write_bytes(trace.read_bytes()[:-30])
    result = call("verify", trace)
    assert result.exit_code == 0
    assert result.stdout.endswith("hold; the run did not end, the last line is cut off\n")


def test_a_file_that_is_no_trace_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\x00\xff\n")
    result = call("verify", path)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {path}, line 1: ")
    assert result.stderr.count("\n") == 1


HEADER = '{"trace":1,"task":"t","protocol":"line"%s}\n'
REPLY = '{"event":"ModelReplied","reply":{"text":"FINAL x"}}\n'


@pytest.mark.parametrize("command", ["verify", "draw", "explain", "step"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (HEADER.replace("line", "lines") % "", "line 1: the protocol 'lines' is not known"),
        (HEADER % ',"lang":"xx"', "line 1: lang is 'xx'; it must be one of en, zh"),
        (HEADER % ',"guards":[{"reason":"r","guard":"Mine"}]', "line 1: the guard Mine (r) is not one of this package's"),
        (
            HEADER % ',"guards":[{"reason":"max_steps","guard":"MaxSteps","limits":{"max_step":3}}]',
            "line 1: the guard MaxSteps (max_steps) has no limit 'max_step'; it has max_steps",
        ),
        (HEADER % ',"guards":[{"reason":"token_budget","guard":"TokenBudget"}]', "line 1: the guard TokenBudget (token_budget) needs the limit "),
        ("\n" + HEADER % "" + "[]\n", "line 3: Expected `object`, got `array`"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_trace_is_told_with_file_and_line(tmp_path: Path, command: str, content: str, problem: str) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text(content, encoding="utf-8")
    result = call(command, trace)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {trace}, {problem}")
    assert result.stderr.count("\n") == 1
    assert "__init__" not in result.stderr


def test_replay_names_the_file_of_a_trace_that_makes_no_run(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text(HEADER.replace("line", "lines") % "", encoding="utf-8")
    result = call("replay", trace)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {trace}: the protocol 'lines' is not known; known are ")


@pytest.mark.parametrize("command", ["draw", "explain", "step"])
def test_events_of_no_run_are_told_with_file_and_line(tmp_path: Path, command: str) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text(HEADER % "" + REPLY + "\n" + REPLY, encoding="utf-8")
    result = call(command, trace)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {trace}, line 4: these events belong to no run: ")


def test_draw_tells_of_a_forged_edge_and_draws_what_the_events_give(tmp_path: Path) -> None:
    trace = tmp_path / "c.jsonl"
    call("run", "c", "--trace", trace)
    drawn = call("draw", trace)
    assert drawn.stderr == ""
    lines = trace.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[-1] = lines[-1].replace("consecutive_errors", "max_steps")
    trace.write_text("".join(lines), encoding="utf-8")
    forged = call("draw", trace)
    assert (forged.exit_code, forged.stdout) == (0, drawn.stdout)
    assert forged.stderr == f"{trace}: line {len(lines)} differs from what its events give; drawn as replayed\n"


def test_draw_and_verify_tell_of_edges_that_are_missing(tmp_path: Path) -> None:
    trace = tmp_path / "c.jsonl"
    call("run", "c", "--trace", trace)
    drawn = call("draw", trace)
    trace.write_text("".join(trace.read_text(encoding="utf-8").splitlines(keepends=True)[:-2]), encoding="utf-8")
    short = call("draw", trace)
    assert (short.exit_code, short.stdout) == (0, drawn.stdout)
    assert short.stderr == f"{trace}: the last 2 of the edges that its events give are not there; drawn as replayed\n"
    assert call("verify", trace).stdout.endswith("; the run did not end, the last 2 of the edges that its events give are not there\n")


# --- draw --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "magic"),
    [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("dot", b"digraph"), ("mmd", b"---\n"), ("txt", b"Scenario b")],
)
def test_draw_writes_the_format_of_the_ending(tmp_path: Path, ending: str, magic: bytes) -> None:
    path = tmp_path / f"b.{ending}"
    result = call("draw", "b", "-o", path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert path.read_bytes().startswith(magic)


def test_draw_of_a_trace_is_the_drawing_of_its_run(tmp_path: Path) -> None:
    trace = tmp_path / "b.jsonl"
    call("run", "b", "--trace", trace, "--draw", tmp_path / "run.dot")
    call("draw", trace, "-o", tmp_path / "trace.dot")
    call("draw", "b", "-o", tmp_path / "scenario.dot")
    pictures = {name: (tmp_path / f"{name}.dot").read_text(encoding="utf-8") for name in ("run", "trace", "scenario")}
    assert pictures["run"] == pictures["trace"] == pictures["scenario"]


def test_draw_prints_a_timeline_where_no_file_is_named() -> None:
    assert call("draw", "b").stdout.startswith("Scenario b: Halted(repeated_call) at step 3, 3 model calls\n")


# --- table, scenarios --------------------------------------------------------------------------------------------


def test_table_prints_every_row() -> None:
    printed = [line.split()[0] for line in call("table").stdout.splitlines()[1:]]
    assert printed == [row.id for row in ROWS]
    assert [row["id"] for row in json.loads(call("table", "--format", "json").stdout)] == [row.id for row in ROWS]


def test_scenarios_lists_them_with_their_ends() -> None:
    listed = json.loads(call("scenarios", "--json").stdout)
    assert {name: scenario["expect"]["reason"] for name, scenario in listed.items()} == {
        "a": "final_answer",
        "b": "repeated_call",
        "c": "consecutive_errors",
        "d": "max_steps",
        "e": "consecutive_errors",
        "f": "final_answer",
    }
    assert call("scenarios", "--only", "b").stdout == (
        "b. The same call for ever. The third identical call in a row is not executed: the model goes in circles.\n"
    )


def test_the_module_runs_as_the_command() -> None:
    assert process("--version").stdout.startswith(b"fsm-agent ")


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_every_command_has_help(command: str) -> None:
    result = call(command, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: cli {command} ")


# --- replay ------------------------------------------------------------------------------------------------------


@needs_tau
def test_replay_counts_every_recorded_run() -> None:
    told = json.loads(call("replay", TAU, "--json").stdout)
    assert told["runs"] == len(told["by_run"]) == sum(told["reasons"].values()) == 200
    assert set(told["by_run"]) == {f"{task}/{trial}" for task in range(50) for trial in range(4)}
    assert told["damaged"] == []


@needs_tau
def test_replay_without_a_cap_ends_with_the_recording() -> None:
    told = json.loads(call("replay", TAU, "--json", "--guards", "none").stdout)
    assert told["reasons"] == {"recording_ended": 200}


@needs_tau
def test_replay_draws_one_run(tmp_path: Path) -> None:
    picture = tmp_path / "out.svg"
    result = call("replay", TAU, "--run", "9/2", "--limits", "max_steps=30", "--draw", picture)
    assert result.exit_code == 0
    assert "Halted(max_steps)" in picture.read_text(encoding="utf-8")


def test_replay_reads_a_ledger_as_the_file_that_was_imported_into_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs.jsonl").write_text(json.dumps(RUNS[0]) + "\n" + json.dumps(RUNS[2]) + "\n", encoding="utf-8")
    assert call("import", "runs.jsonl", "--ledger", "runs.db").exit_code == 0

    for options in ((), ("--json",), ("--run", "3"), ("--run", "openai:1", "--json")):
        of_file, of_ledger = call("replay", "runs.jsonl", *options), call("replay", "runs.db", *options)
        assert (of_file.exit_code, of_ledger.exit_code) == (0, 0)
        assert of_ledger.stdout == of_file.stdout.replace("runs.jsonl", "runs.db")


def test_replay_tells_runs_of_one_id_in_a_ledger_apart(tmp_path: Path) -> None:
    book = tmp_path / "runs.db"
    with Ledger.create_or_open(book) as ledger:
        importer, tally = Importer(ledger, lambda _: ()), Tally()
        for source, script in (("one", "a ="), ("other", "a a ="), ("other", "a a a =")):
            importer.take(recorded("7", script, source=source), f"{source}.json", tally)
        importer.flush(tally)

    told = json.loads(call("replay", book, "--json").stdout)
    assert told["runs"] == 3
    assert told["by_run"] == {"7": "final_answer", "other:7": "final_answer", "other:7#2": "repeated_call"}


def test_replay_counts_one_run_as_one(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RUNS[2]), encoding="utf-8")
    assert call("replay", path).stdout.startswith("run.json: 1 run under classic\n")


def test_replay_of_a_file_in_which_no_run_can_be_read_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text("{broken\n", encoding="utf-8")
    result = call("replay", path, "--format", "openai")

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[1:] == [f"Error: {path}: no run in it can be read"]


@needs_tau
def test_replay_of_a_run_that_is_not_there_says_so() -> None:
    result = call("replay", TAU, "--run", "99/9")
    assert (result.exit_code, result.stderr) == (2, f"Error: {TAU} holds no run '99/9'; `fsm-agent replay {TAU} --json` lists them\n")

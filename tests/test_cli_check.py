"""``fsm-agent check`` as a user meets it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fsm_agent.cli import cli


def call(*arguments: object) -> Result:
    result = CliRunner().invoke(cli, ["check", *map(str, arguments)], env={"LC_ALL": "C"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def lines(result: Result) -> list[str]:
    return [line.rstrip() for line in result.stdout.splitlines()]


CLASSIC = """\
classic (max_repeats=2, max_errors=2, max_steps=3)
PROVED: every run halts.
  at most 3 model calls, each with up to 3 retries
  at most 3 rounds of tool calls, each with as many calls as the reply holds
  that rests on: max_steps
  each cycle of the machine spends something bounded: a model call (model_replied), a retry (retry), a step's summary (compacted), \
a step's question (ask_approval), a step's answer (approval_given); user_spoke is a person's own doing

halt reason         model calls  shortest run
model_error         1            the model fails
cancelled           0            cancelled
recording_ended     0            the recording ends
final_answer        1            the answer
repeated_call       3            a call: ok; the same call: ok; the same call
tools_failed        1            a call: the tools are gone
consecutive_errors  2            a call: tool_error; another call: tool_error
max_steps           3            a call: ok; 2 × another call: ok

"""


def test_a_proof_is_told_verdict_first() -> None:
    result = call("--limits", "max_steps=3")
    assert result.exit_code == 0
    *told, states = lines(result)
    assert "\n".join(told) + "\n" == CLASSIC
    assert states.endswith(" states searched, with retries=3, approvals, compaction, tool_servers")


NONE = """\
none (no guards)
REFUTED: a run need not halt.
  step 1: a call: ok
  step 1 can follow itself for ever

N states searched{on}
"""


@pytest.mark.parametrize(("on", "told"), [("none", ""), ("tool_servers", ", with tool_servers")])
def test_what_does_not_halt_is_refuted_with_the_run_that_goes_on(on: str, told: str) -> None:
    result = call("--preset", "none", "--with", on, "--batch", 1)
    assert (result.exit_code, re.sub(r"\d+ states", "N states", result.stdout)) == (1, NONE.format(on=told))


def test_in_chinese_the_reasons_stay_what_they_are() -> None:
    result = call("--limits", "max_steps=2", "--lang", "zh")
    assert result.exit_code == 0
    assert "max_steps" in result.stdout


def test_a_warning_names_a_guard_that_does_nothing() -> None:
    result = call("--limits", "max_steps=1", "--batch", 1)
    assert result.exit_code == 0
    assert lines(result)[-4:-1] == [
        "warning: repeated_call can never trip: max_steps ends every run before.",
        "warning: consecutive_errors can never trip: max_steps ends every run before.",
        "",
    ]


def test_production_without_a_cap_is_checked_with_one_and_says_so() -> None:
    result = call("--preset", "production", "--batch", 1, "--json")
    assert result.exit_code == 0
    values = json.loads(result.stdout)
    assert values["assumed"] == ["max_steps=30"]
    assert values["model_calls"] == {"most": 30, "exact": True, "each_message": False}
    assert values["judged_in_part"] == ["denied", "no_progress"]
    heading = lines(call("--preset", "production", "--limits", "max_steps=1,max_period=1", "--batch", 1))[0]
    assert heading.endswith(", max_steps=1)")


def test_a_space_that_is_too_big_exits_with_1_and_is_not_proved() -> None:
    result = call("--max-states", 10)
    assert result.exit_code == 1
    assert lines(result)[1].startswith("NOT PROVED: the search came to --max-states. Every run of fewer than ")
    assert "PROVED: every run halts" not in result.stdout
    assert json.loads(call("--max-states", 10, "--json").stdout)["verdict"] == "undecided"


# --- what is on besides --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "calls", "footing"),
    [
        ("none", "at most 2 model calls", ""),
        ("retries=1", "at most 2 model calls, each with up to 1 retry", ", with retries=1"),
        ("retries=0, approvals", "at most 2 model calls", ", with approvals"),
        (
            "last_chance,retries",
            "at most 3 model calls, the last word among them, each with up to 3 retries",
            ", with retries=3, last_chance",
        ),
        (
            "all",
            "at most 3 model calls, the last word among them, each with up to 3 retries",
            ", with retries=3, approvals, compaction, last_chance, tool_servers",
        ),
    ],
)
def test_what_is_on_is_chosen_by_name(on: str, calls: str, footing: str) -> None:
    result = call("--limits", "max_steps=2", "--batch", 1, "--with", on)
    assert result.exit_code == 0
    assert lines(result)[2] == f"  {calls}"
    assert lines(result)[-1].endswith(f" states searched{footing}")


def test_a_last_chance_is_in_the_witness(tmp_path: Path) -> None:
    picture = tmp_path / "witness.dot"
    result = call("--limits", "max_steps=1", "--with", "last_chance", "--witness", "max_steps", "-o", picture)
    assert result.exit_code == 0
    assert lines(result)[0].startswith("classic: Halted(max_steps) at step 2, 2 model calls")
    assert "last word" in picture.read_text(encoding="utf-8")


def test_an_edge_that_is_not_named_like_its_reason_has_a_witness_too() -> None:
    result = call("--limits", "max_steps=1", "--with", "retries=2", "--witness", "retries_exhausted")
    assert result.exit_code == 0
    assert lines(result)[0] == "classic: Halted(model_error) at step 1, 1 model call"
    values = json.loads(call("--limits", "max_steps=1", "--with", "retries=2", "--json").stdout)
    assert {ending["reason"]: ending["path"] for ending in values["further_edges"]} == {
        "retries_exhausted": ["retries_exhausted"],
        "cancelled_executing": ["model_replied", "call_tools", "cancelled_executing"],
        "recording_ended_executing": ["model_replied", "call_tools", "recording_ended_executing"],
    }


def test_a_file_says_what_is_on_and_the_option_says_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('preset = "none"\nwith = ["retries=2", "last_chance"]\n[limits]\nmax_steps = 1\n')
    assert lines(call(file))[2] == "  at most 2 model calls, the last word among them, each with up to 2 retries"
    assert lines(call(file, "--with", "none"))[2] == "  at most 1 model call"
    assert lines(call("d", "--with", "none"))[-1].endswith(" states searched")


# --- what is checked ---------------------------------------------------------------------------------------------


def test_a_scenario_by_name_and_by_file(tmp_path: Path) -> None:
    assert lines(call("d"))[0] == "d (max_repeats=2, max_errors=2, max_steps=6)"
    file = tmp_path / "mine.toml"
    file.write_text('title = "t"\ntask = "t"\nscript = ["FINAL 1"]\n[limits]\nmax_steps = 2\n')
    assert lines(call(file))[0] == "mine (max_repeats=2, max_errors=2, max_steps=2)"


def test_a_file_with_a_preset_limits_and_guards(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('preset = "none"\nguards = ["tests.proof_guards:TooManySearches"]\n[limits]\nmax_steps = 3\n"max_calls:search" = 1\n')
    assert lines(call(file))[0] == "mine (max_steps=3, max_calls=1, max_searches=2)"


@pytest.mark.parametrize(
    ("path", "heading"),
    [
        ("tests.proof_guards:TooManySearches", "max_searches=2"),
        ("tests.proof_guards:long_winded", "long_winded"),
        ("tests.proof_guards:PAIR", "max_searches=1, max_steps=4"),
        ("tests.proof_guards:make", "max_searches=3"),
    ],
)
def test_guards_of_a_user_by_import_path(path: str, heading: str) -> None:
    result = call("--preset", "none", "--guard", path, "--max-states", 1)
    assert result.exit_code == 1
    assert lines(result)[0] == f"none ({heading})"


def test_a_module_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_guards_here.py").write_text("from fsm_agent.guards import MaxSteps\nCAP = MaxSteps(2)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    result = call("--preset", "none", "--guard", "own_guards_here:CAP")
    assert result.exit_code == 0
    assert lines(result)[2] == "  at most 2 model calls, each with up to 3 retries"


def test_a_guard_that_raises_is_refuted_in_one_line() -> None:
    result = call("--guard", "tests.proof_guards:Divides", "--preset", "none", "--limits", "max_steps=4")
    assert result.exit_code == 1
    assert lines(result)[1:5] == [
        "REFUTED: the guard Divides (divides) raised ZeroDivisionError in judge: division by zero",
        "  step 1: a call: tool_error",
        "  step 2: another call",
        "  then: the guard Divides (divides) raised ZeroDivisionError in judge: division by zero",
    ]


# --- pictures ----------------------------------------------------------------------------------------------------


def test_a_witness_is_shown_and_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "witness.dot"
    result = call("--limits", "max_steps=2", "--witness", "consecutive_errors", "-o", picture)
    assert result.exit_code == 0
    assert lines(result)[0] == "classic: Halted(consecutive_errors) at step 2, 2 model calls"
    assert "classic: Halted(consecutive_errors) at step 2" in picture.read_text(encoding="utf-8")


def test_a_witness_is_in_the_language_that_is_asked_for(tmp_path: Path) -> None:
    result = call("--witness", "repeated_call", "--lang", "zh", "-o", tmp_path / "w.txt")
    assert result.stdout.splitlines()[:4] == [
        "classic：第 3 步 Halted(repeated_call)，3 次模型调用",
        "",
        "第 1 步",
        '  Deciding  -> Parsing    模型回复: work({"n":"work#0"})',
    ]
    assert (tmp_path / "w.txt").read_text(encoding="utf-8") == result.stdout


def test_what_refutes_is_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "endless.txt"
    assert call("--preset", "none", "-o", picture).exit_code == 1
    assert "not ended, in Deciding" in picture.read_text(encoding="utf-8")


# --- wrong use ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--limits", "max_steps"], "'max_steps' is not of the form name=value"),
        (["--limits", "max_steps=0"], "max_steps is 0; it must be at least 1"),
        (["--preset", "odd"], "'odd' is not one of"),
        (["no_such.toml"], "no_such.toml: No such file or directory"),
        (["d", "--limits", "max_steps=3"], "d brings its own limits; leave --preset and --limits away"),
        (
            ["--with", "retry"],
            "'retry' is nothing that can be on; there are retries, approvals, compaction, last_chance, tool_servers, all and none",
        ),
        (["--with", "approvals=2"], "'approvals=2' is nothing that can be on"),
        (["--with", "retries=x"], "retries=x: it must be a whole number from 0 to 100"),
        (["--with", "retries=101"], "retries=101: it must be a whole number from 0 to 100"),
        (["--with", ""], "'' is nothing that can be on"),
        (["--guard", "tests.proof_guards"], "is not of the form module:ATTRIBUTE"),
        (["--guard", "no_such_module_here:X"], "cannot be imported: ModuleNotFoundError"),
        (["--guard", "tests.proof_guards:Nothing"], "has no attribute 'Nothing'"),
        (["--guard", "tests.proof_guards:NUMBER"], "makes no guard: TypeError"),
        (["--guard", "tests.proof_guards:Mutates"], "the guard Mutates (mutates) changes its memory in fold"),
        (["--guard", "fsm_agent.guards:MaxSteps"], "both halt with the reason 'max_steps'"),
        (["--limits", "max_steps=1", "--witness", "odd"], "'odd' is no halt reason of this machine; there are model_error, cancelled"),
        (["--limits", "max_steps=1", "--witness", "repeated_call"], "no run that ends with repeated_call was found"),
        (["--limits", "max_steps=1", "-o", "x.svg"], "there is no counterexample to draw; name a run with --witness REASON"),
        (["--preset", "none", "-o", "x.gif"], "x.gif: the ending names no format"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(arguments: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = call(*arguments)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("preset = [", "not TOML"),
        ("presett = 'none'", "unknown field `presett`"),
        ("[limits]\nmax_stepss = 1", "'max_stepss' is not the name of a limit"),
        ("preset = 'odd'", "the preset 'odd' is not known"),
        ("with = ['retry']", "'retry' is nothing that can be on"),
        ("with = 'retries'", "Expected `array | null`, got `str`"),
        ("limits = 3", "Expected `object`, got `int`"),
        ("title = 't'\ntask = 't'\n[limits]\nmax_steps = 0", "max_steps is 0"),
    ],
)
def test_a_file_that_cannot_be_meant_so(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    result = call(file)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert str(file) in result.stderr

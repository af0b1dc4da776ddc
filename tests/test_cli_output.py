"""Where the command's output goes: pipes whose reader leaves, streams that are closed, terminals without colour, Ctrl-C at any time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_cli import call, process

COMMAND = [sys.executable, "-m", "fsm_agent"]
UTF8 = {**os.environ, "LC_ALL": "C.UTF-8"}
on_posix = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals and closed descriptors are POSIX things")


# --- pipes -------------------------------------------------------------------------------------------------------


def left_by_its_reader(*arguments: object) -> tuple[int, bytes]:
    """The exit code and stderr of a command whose stdout nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([*COMMAND, *map(str, arguments)], stdout=writing, stderr=subprocess.PIPE, env=UTF8, check=False, timeout=60)
    finally:
        os.close(writing)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["run", "d"], 3), (["run", "f"], 0), (["run", "d", "--json"], 3), (["table"], 0), (["scenarios", "--json"], 0), (["draw", "b"], 0)],
)
def test_a_reader_that_leaves_is_no_error(arguments: list[str], code: int) -> None:
    assert left_by_its_reader(*arguments) == (code, b"")


def test_a_picture_into_a_pipe_that_was_left_is_no_error() -> None:
    assert left_by_its_reader("draw", "b", "--format", "png") == (0, b"")


def test_a_run_goes_on_without_its_reader_and_its_record_is_whole(tmp_path: Path) -> None:
    trace = tmp_path / "d.jsonl"
    assert left_by_its_reader("run", "d", "--trace", trace) == (3, b"")
    verified = call("verify", trace)
    assert (verified.exit_code, verified.stdout.partition(";")[2]) == (0, " halted: max_steps\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_one_line_and_exit_code_2() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*COMMAND, "table"], stdout=full, stderr=subprocess.PIPE, env=UTF8, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (2, b"Error: No space left on device\n")


# --- closed streams ----------------------------------------------------------------------------------------------


@on_posix
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("arguments", "code"), [("table", 0), ("run c", 3), ("run no-such", 2)])
def test_closed_streams_leave_the_exit_code_as_it_is(arguments: str, code: int, closed: str) -> None:
    command = f'"{sys.executable}" -m fsm_agent {arguments} {closed}'
    done = subprocess.run(["sh", "-c", command], capture_output=True, env=UTF8, check=False, timeout=60)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


# --- colour ------------------------------------------------------------------------------------------------------


def on_a_terminal(*arguments: str, **environ: str) -> bytes:
    """What a command sends to a terminal."""
    import pty

    leader, follower = pty.openpty()
    clean = {name: value for name, value in UTF8.items() if name not in {"NO_COLOR", "FORCE_COLOR"}} | {"TERM": "xterm-256color"}
    child = subprocess.Popen([*COMMAND, *arguments], stdout=follower, stderr=follower, env=clean | environ)
    os.close(follower)
    written = b""
    try:
        while piece := os.read(leader, 65536):
            written += piece
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(leader)
    child.wait(60)
    return written


@on_posix
@pytest.mark.parametrize("arguments", [["run", "c"], ["table"], ["scenarios"], ["learn"], ["learn", "1"]])
@pytest.mark.parametrize(
    ("environ", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False)],
)
def test_escape_codes_are_for_terminals_that_want_them(arguments: list[str], environ: dict[str, str], coloured: bool) -> None:
    assert (b"\x1b" in on_a_terminal(*arguments, **environ)) is coloured


@pytest.mark.parametrize("arguments", [["run", "c"], ["table"], ["scenarios"], ["learn", "1"]])
def test_force_color_colours_no_pipe(arguments: list[str]) -> None:
    assert b"\x1b" not in process(*arguments, FORCE_COLOR="1", TERM="xterm-256color").stdout


# --- narrow terminals --------------------------------------------------------------------------------------------


@on_posix
def test_scenarios_are_a_list_in_a_narrow_terminal() -> None:
    lines = on_a_terminal("scenarios", "--lang", "en", COLUMNS="40", NO_COLOR="1").decode().splitlines()
    assert [line.rstrip() for line in lines[:8]] == [
        "a",
        "  title: Three tools, then the answer",
        "  must end as: final_answer",
        "  model calls: 4",
        "  teaches: The loop ends because the",
        "  model answers: the first of the four",
        "  layers.",
        "b",
    ]
    assert max(map(len, lines)) <= 40


@on_posix
def test_scenarios_are_a_table_in_a_wide_terminal() -> None:
    lines = on_a_terminal("scenarios", "--lang", "en", COLUMNS="150", NO_COLOR="1").decode().splitlines()
    assert any(line.split()[:5] == ["name", "title", "must", "end", "as"] for line in lines)


# --- Ctrl-C while the commands are imported ----------------------------------------------------------------------

INTERRUPTED = """
import runpy, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv = ["fsm-agent", "table"]
{start}
"""


@pytest.mark.parametrize("module", ["fsm_agent.cli.streams", "click", "fsm_agent.cli.table"])
@pytest.mark.parametrize(
    "start", ["from fsm_agent.cli import main; sys.exit(main())", "runpy.run_module('fsm_agent', run_name='__main__')"]
)
def test_ctrl_c_during_the_imports_is_a_cancelled_command(module: str, start: str) -> None:
    code = INTERRUPTED.format(module=module, start=start)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=UTF8, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.replace(b"\r\n", b"\n")) == (130, b"", b"cancelled\n")

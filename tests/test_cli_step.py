"""``fsm-agent step`` as a user meets it: in a pseudo-terminal of several sizes, and without a terminal."""

from __future__ import annotations

import codecs
import os
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from fsm_agent.cli import cli
from fsm_agent.drivers import run
from fsm_agent.models import ScriptedModel
from fsm_agent.tools import add

needs_pty = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a POSIX thing")

WAIT_S = 60
"""For what is bound to come, on the slowest machine."""
HERE = re.compile(r"\x1b\[(\d+);(\d+)H")
COLOURS = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|4[0-7]|9[0-7]|38|48)[;m]")


class Seen:
    """A program in a pseudo-terminal, and what its screen shows."""

    def __init__(self, leader: int, child: subprocess.Popen[bytes]) -> None:
        self._leader = leader
        self.child = child
        self.raw = ""
        self._since = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def rows(self) -> dict[int, str]:
        """What was written at each row since the last key."""
        pieces = HERE.split(self.raw[self._since :])
        assert set(pieces[2::3]) <= {"1"}
        rows: dict[int, str] = {}
        for row, written in zip(pieces[1::3], pieces[3::3], strict=True):
            rows[int(row)] = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
        return rows

    def until(self, text: str) -> list[str]:
        """Wait until the screen shows ``text`` in its last row or elsewhere; give its rows."""
        end = time.monotonic() + WAIT_S
        while not any(text in row for row in self.rows.values()):
            assert time.monotonic() < end, f"{text!r} did not come; the screen shows {self.screen}, raw {self.raw[-500:]!r}"
            self._read()
        return self.screen

    @property
    def screen(self) -> list[str]:
        rows = self.rows
        return [rows[row].rstrip() for row in sorted(rows)]

    def press(self, keys: str, until: str) -> list[str]:
        """Press keys; wait until the screen that is drawn then shows ``until``."""
        self.send(keys)
        return self.until(until)

    def send(self, keys: str) -> None:
        self._since = len(self.raw)
        os.write(self._leader, keys.encode())

    def until_filled(self, count: int) -> dict[int, str]:
        """Wait until so many rows were written; give them."""
        end = time.monotonic() + WAIT_S
        while len(self.rows) < count:
            assert time.monotonic() < end, self.raw
            self._read()
        return self.rows

    def resize(self, rows: int, columns: int) -> None:
        resize(self._leader, rows, columns)

    def leave(self, keys: str = "q") -> int:
        """Press keys on which the program ends; give its exit code."""
        os.write(self._leader, keys.encode())
        end = time.monotonic() + WAIT_S
        while self.child.poll() is None:
            assert time.monotonic() < end, self.raw[-2000:]
            self._read()
        return self.child.returncode

    def _read(self) -> None:
        if not select.select([self._leader], [], [], 0.1)[0]:
            return
        try:
            self.raw += self._decoder.decode(os.read(self._leader, 65536))
        except OSError:  # the program has ended
            return


def resize(descriptor: int, rows: int, columns: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@contextmanager
def terminal(*arguments: str, rows: int = 24, columns: int = 80, **environ: str) -> Iterator[Seen]:
    import fcntl
    import pty
    import termios

    leader, follower = pty.openpty()
    resize(leader, rows, columns)
    clean = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR"}}
    child = subprocess.Popen(
        [sys.executable, "-m", "fsm_agent", "step", *arguments],
        stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # Ctrl-C needs a controlling terminal
        env={**clean, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environ},
    )  # fmt: skip
    os.close(follower)
    try:
        yield Seen(leader, child)
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
        os.close(leader)


def call(*arguments: object, keys: str = "") -> Result:
    return CliRunner().invoke(cli, ["step", *map(str, arguments)], input=keys, env={"LC_ALL": "C"})


# --- in a terminal -----------------------------------------------------------------------------------------------


@needs_pty
def test_a_key_press_is_an_edge_forwards_and_backwards() -> None:
    with terminal("c") as seen:
        assert seen.until("q quit")[0] == "Scenario c                                                 before the first edge"
        assert [row for row in seen.press("n", "q quit") if row] == [
            "Scenario c                                                        edge 1, step 1",
            "Deciding - [Parsing] - Executing - Observing - Halted",
            "Deciding -> Parsing  model replied",
            "the model said: TOOL add a=三,b=四",
            "n next, p back, g/G ends, t be the model, m messages, b branch, ? help, q quit",
        ]
        assert "edge 2, step 1" in seen.press("\x1b[C", "q quit")[0]
        assert "edge 1, step 1" in seen.press("\x1b[D", "q quit")[0]
        assert [row for row in seen.press("G", "q quit") if row][:5] == [
            "Scenario c                                                   edge 8 of 8, step 2",
            "Deciding - Parsing - Executing - Observing - [Halted(consecutive_errors)]",
            "Observing -> Halted(consecutive_errors)  errors",
            "  [##########] errors 2/2 (trips)",
            "  [##--------] steps 2/10",
        ]
        assert seen.press(" ", "no edge leads out")[-1] == "the run has halted: no edge leads out of Halted"
        assert "before the first edge" in seen.press("g", "q quit")[0]
        assert seen.press("p", "beginning")[-1] == "this is the beginning"
        assert seen.leave() == 0
    assert "\x1b[?1049h" in seen.raw, "the screen is another one than the shell's"
    assert seen.raw.rstrip().endswith(("\x1b[?1049l\x1b[?25h", "\x1b[?25h", "\x1b[?1049l")), "and the shell gets its own back"


@needs_pty
def test_keys_pressed_in_a_row_are_all_taken() -> None:
    with terminal("d") as seen:
        seen.until("q quit")
        assert "edge 12, step 3" in seen.press("n" * 12, "edge 12")[0]
        assert seen.leave() == 0


@needs_pty
def test_a_person_can_be_the_model_and_branch() -> None:
    with terminal("c") as seen:
        seen.until("q quit")
        assert [row for row in seen.press("t", "> ") if row] == [
            "What the model is shown last",
            "user: 今天天气怎么样？",
            "You are the model (empty: never mind)",
            "TOOL name key=value,... or FINAL answer",
            ">",
        ]
        typed = seen.press("TOOL mul a=6,b=7\r", "q quit")
        assert typed[0] == "Scenario c                                         branch 2 of 2: edge 1, step 1"
        assert "you said, as the model: TOOL mul a=6,b=7" in typed
        assert "mul returned: 42" in seen.press("nn", "mul returned")
        seen.press("n", "t: answer in its place")
        seen.press("t", "> ")
        assert "branch 2 of 2: edge 5 of 6, step 2" in seen.press("FINAL 晴\r", "q quit")[0]
        assert "answer: 晴" in seen.press("n", "answer: 晴")
        assert seen.press("t", "has halted")[-1].startswith("the run has halted")
        assert "branch 1 of 2: before the first edge" in seen.press("b", "q quit")[0]
        assert seen.leave() == 0


@needs_pty
@pytest.mark.parametrize("keys", ["\r", "\x03", "\x04"], ids=["an empty line", "Ctrl-C", "Ctrl-D"])
def test_typing_can_be_left(keys: str) -> None:
    with terminal("c") as seen:
        seen.until("q quit")
        seen.press("t", "> ")
        assert "before the first edge" in seen.press(keys, "q quit")[0]
        assert seen.leave() == 0


@needs_pty
def test_a_typed_line_is_edited_pasted_into_and_brought_back() -> None:
    with terminal("c", columns=30) as seen:
        seen.until("? q")
        seen.press("t", "> ")
        seen.press("FINAL x", "> FINAL x")
        seen.press("\x1b[D\x7f天\x1b[200~气\x1b[201~", "> FINAL天气x")
        seen.press("\x15TOOL mul a=1234567,b=1234567\x1b[F", "> …L mul a=1234567,b=1234567x")
        assert "branch 2 of 2" in seen.press("\x7f\r", "? q")[0]
        seen.press("g", "? q")
        seen.press("t", "> ")
        seen.press("\x1b[A", "> …OL mul a=1234567,b=1234567")
        assert "branch 2 of 2: before" in seen.press("\x03", "? q")[0]
        assert seen.leave() == 0
    assert (seen.raw.count("\x1b[?2004h"), seen.raw.count("\x1b[?2004l")) == (2, 2), "pasting is as it was before"


@needs_pty
def test_a_reply_of_several_lines_can_be_typed_and_pasted(tmp_path: Path) -> None:
    trace = tmp_path / "react.jsonl"
    model = ScriptedModel(['Thought: add\nAction: add\nAction Input: {"a": 1, "b": 2}', "Final Answer: 3"])
    run("1+2?", model=model, tools=[add], protocol="react", lang="en", trace=trace)
    with terminal(str(trace)) as seen:
        seen.until("q quit")
        assert seen.press("t", "> ")[-2] == "Alt-Enter begins a new line"
        pasted = "\x1b[200~Thought: mine\rAction: add\x1b[201~"
        seen.press(f'{pasted}\x1b\rAction Input: {{"a": 4, "b": 5}}', '> Thought: mine↵Action: add↵Action Input: {"a": 4, "b": 5}')
        assert "branch 2 of 2: edge 3, step 1" in seen.press("\rnn", "add returned: 9")[0]
        assert seen.leave() == 0


@needs_pty
def test_keys_that_come_with_a_reply_are_all_taken() -> None:
    with terminal("c") as seen:
        seen.until("q quit")
        assert "branch 2 of 2: edge 3" in seen.press("tTOOL mul a=6,b=7\rnn", "mul returned: 42")[0]
        assert seen.leave() == 0


@needs_pty
def test_ctrl_c_leaves_with_130_and_gives_the_terminal_back() -> None:
    with terminal("c") as seen:
        seen.until("q quit")
        assert seen.leave("\x03") == 130
    assert "\x1b[?1049l" in seen.raw
    assert "cancelled" in seen.raw


@needs_pty
def test_help_and_messages_are_lists_that_any_key_leaves() -> None:
    with terminal("c", rows=30) as seen:
        seen.until("q quit")
        assert [row for row in seen.press("?", "any other key") if row] == [
            "Keys",
            "n → space: the next edge",
            "p ←: the edge before",
            "g Home, G End: the beginning, the end",
            "t: be the model: type its reply, where it is asked; going back and typing again",
            "makes a branch",
            "b: the next branch",
            "m: the messages that the model is shown",
            "↑ ↓: scroll",
            "q: leave",
            "any other key: back",
        ]
        seen.press("x", "q quit")
        assert seen.press("m", "any other key")[0] == "What the model is shown"
        assert "before the first edge" in seen.press("n", "q quit")[0], "that key was for the list"
        assert seen.leave() == 0


@needs_pty
@pytest.mark.parametrize(("rows", "columns"), [(10, 40), (5, 20), (3, 12), (50, 200), (1, 1)])
def test_every_window_size_is_filled_and_never_exceeded(rows: int, columns: int) -> None:
    with terminal("c", rows=rows, columns=columns) as seen:
        seen.until_filled(rows)
        for keys in ("n", "n", "n", "G", "\x1b[B"):
            seen.send(keys)
            written = seen.until_filled(rows)
            assert sorted(written) == list(range(1, rows + 1))
            assert max(cell_len(row) for row in written.values()) <= columns
        assert seen.leave() == 0
    assert "\n" not in seen.raw.partition("\x1b[?1049l")[0], "nothing scrolls"


@needs_pty
def test_a_window_that_changes_is_drawn_anew_at_the_next_key() -> None:
    with terminal("c", rows=24, columns=80) as seen:
        seen.until("q quit")
        seen.resize(10, 40)
        assert seen.press("n", "q quit") == [
            "Scenario c                edge 1, step 1",
            "Dec [Parsing] Exe Obs Hal",
            "Deciding -> Parsing  model replied",
            "the model said: TOOL add a=三,b=四",
            "",
            "",
            "",
            "",
            "",
            "n next p back t type ? help q quit",
        ]
        seen.resize(24, 80)
        assert len(seen.press("n", "q quit")) == 24
        assert seen.leave() == 0


@needs_pty
@pytest.mark.parametrize("no_color", ["", "1"])
def test_colour_is_left_out_where_no_color_is_set(no_color: str) -> None:
    with terminal("c", NO_COLOR=no_color) as seen:
        seen.until("q quit")
        assert "[Halted(consecutive_errors)]" in seen.press("G", "q quit")[2], "brackets, not colour, mark the current state"
        assert seen.leave() == 0
    assert bool(COLOURS.search(seen.raw)) is not bool(no_color)


@needs_pty
def test_a_dumb_terminal_is_stepped_through_by_lines() -> None:
    with terminal("c", TERM="dumb") as seen:
        assert seen.leave("\n\nq\n") == 0
    assert "\x1b" not in seen.raw
    assert "[edge 2, step 1] Parsing -> Executing  tool call" in seen.raw


@needs_pty
def test_hostile_text_does_not_reach_the_terminal(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('title="t"\ntask="\\u001b[31mred \\u202e"\nscript=["FINAL \\u001b]0;owned\\u0007"]\n', encoding="utf-8")
    with terminal(str(mine)) as seen:
        assert "the task: \\x1b[31mred \\u202e" in seen.until("q quit")
        assert "answer: \\x1b]0;owned\\x07" in seen.press("G", "q quit")
        assert seen.leave() == 0
    assert "\x1b]" not in seen.raw
    assert "\x07" not in seen.raw


# --- without a terminal ------------------------------------------------------------------------------------------


def test_without_a_terminal_a_line_of_input_is_an_edge() -> None:
    result = call("f", keys="\n" * 12)
    assert result.exit_code == 0
    edges = [line for line in result.stdout.splitlines() if line.startswith("[")]
    assert edges == [
        "[before the first edge] start -> Deciding  start",
        "[edge 1, step 1] Deciding -> Parsing  model replied",
        "[edge 2, step 1] Parsing -> Executing  tool call",
        "[edge 3, step 1] Executing -> Observing  tools returned",
        "[edge 4, step 1] Observing -> Deciding  go on",
        "[edge 5, step 2] Deciding -> Parsing  model replied",
        "[edge 6, step 2] Parsing -> Executing  tool call",
        "[edge 7, step 2] Executing -> Observing  tools returned",
        "[edge 8, step 2] Observing -> Deciding  go on",
        "[edge 9 of 10, step 3] Deciding -> Parsing  model replied",
        "[edge 10 of 10, step 3] Parsing -> Halted(final_answer)  final answer",
    ]
    assert result.stdout.endswith("the run has halted: no edge leads out of Halted\nthe run has halted: no edge leads out of Halted\n")


def test_it_can_begin_at_any_edge() -> None:
    assert call("b", "--at", 10).stdout == (
        "[edge 10 of 10, step 3] Parsing -> Halted(repeated_call)  repeats\n"
        "  call: add{a=3, b=4}\n"
        "  guards: repeats 2/2 (trips)\n"
        "  why: stopped: repeated call add{a=3, b=4}, the model is going in circles\n"
        "  step 1: add{a=3, b=4}\n"
        "  step 2: add{a=3, b=4}\n"
        "  step 3: add{a=3, b=4}\n"
    )
    result = call("b", "--at", 11)
    assert (result.exit_code, result.stderr) == (2, "Error: --at is 11, and this run has 10 edges\n")


def test_a_trace_is_stepped_through(tmp_path: Path) -> None:
    trace = tmp_path / "c.jsonl"
    CliRunner().invoke(cli, ["run", "c", "--trace", str(trace)], env={"LC_ALL": "C"})
    assert call(trace, "--at", 8).stdout == call("c", "--at", 8).stdout


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("no.jsonl", None, "no.jsonl: No such file or directory"),
        ("empty.jsonl", b"", "empty.jsonl: the file is empty"),
        ("binary.jsonl", b"\xff\xfe\x00", "binary.jsonl, line 1: "),
        ("lie.jsonl", b'{"trace":1,"task":"t","protocol":"line"}\n{"event":"ToolsReturned","observations":[]}\n', "these events belong to no run"),
        ("bad.toml", b"x", "bad.toml: not TOML: "),
    ],
)  # fmt: skip
def test_what_cannot_be_stepped_through_is_one_line_and_exit_code_2(tmp_path: Path, name: str, content: bytes | None, error: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = call(tmp_path / name)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert error in result.stderr


def test_input_that_is_not_utf8_ends_nothing() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "fsm_agent", "step", "c"],
        input=b"t FINAL \xff\xfe\n\n", capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"}, check=False, timeout=60,
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, b"")
    assert "answer: \ufffd\ufffd" in result.stdout.decode()
    assert b"\x1b" not in result.stdout

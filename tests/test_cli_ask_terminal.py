"""``fsm-agent ask`` on a terminal: the machine is seen to move, a person is asked, and Ctrl-C leaves all in order."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fsm_agent.events import ApprovalGiven, Cancelled
from fsm_agent.traces import load, verify
from tests.agent_server import Seen, call, desk_fixture, needs_pty, of_model, said, streamed, terminal
from tests.raw_server import Answer, RawServer, raw_server

__all__ = ["desk_fixture", "raw_server"]

pytestmark = needs_pty

WAIT = """
import time
from pathlib import Path

from fsm_agent import tool


@tool
def wait() -> str:
    print("waiting here")
    while not Path("go").exists():
        time.sleep(0.01)
    return "it came"
"""

KEYS = "y yes, n no, e edit, w why, Ctrl-D later: "


@contextmanager
def asking(raw: RawServer, *more: object, **settings: int | str) -> Iterator[Seen]:
    """A run that comes to ask whether it may write."""
    raw.first = [
        said("I look.", call("read_note", name="list.txt")),
        said("Eggs are missing.", call("write_note", name="list.txt", text="eggs\n")),
        *raw.first,
    ]
    arguments = ["Put eggs on the list", *of_model(raw), "--tools", "my_tools.py", "--trace", "run.jsonl", *more]
    with terminal("ask", *arguments, **settings) as seen:  # type: ignore[arg-type]  # rows and columns are whole numbers
        yield seen


def last_of_tools(raw: RawServer) -> str:
    """What the model was told of its last call."""
    content: str = [message["content"] for message in raw.requests[-1][1]["messages"] if message["role"] == "tool"][-1]
    return content


# --- the live view -------------------------------------------------------------------------------------------------


def test_the_machine_the_guards_and_the_streamed_text_are_seen(raw: RawServer, desk: Path) -> None:
    (desk / "wait.py").write_text(WAIT)
    raw.first = [streamed("I ", "wait.", calls=(call("wait"),)), streamed("It is there.")]
    with terminal("ask", "Wait", *of_model(raw), "--tools", "wait.py", "--stream") as seen:
        seen.until("waiting here")
        seen.until("Deciding - Parsing - [Executing] - Observing - Halted                     step 1")
        seen.until("wait: running, ")
        assert "[#-------] steps 1/30" in seen.text
        (desk / "go").touch()
        assert seen.ends() == 0
    assert "[step 2] LLM output: It is there.\n" in seen.text
    assert seen.text.rstrip().splitlines()[-3:] == [
        "Deciding - Parsing - Executing - Observing - [Halted(final_answer)]       step 2",
        "final answer: It is there.",
        "LLM calls: 2",
    ]


def test_a_retry_is_seen_to_be_waited_for(raw: RawServer, desk: Path) -> None:
    raw.first = [Answer({"error": {"message": "slow down"}}, 429, {"retry-after": "1"}), said("Here I am.")]
    with terminal("ask", "Say", *of_model(raw)) as seen:
        seen.until("the model could not be asked: ModelUnavailable: openai:m answered 429")
        seen.until("the model is asked again in ")
        assert seen.ends() == 0
    assert "final answer: Here I am." in seen.text


@pytest.mark.parametrize(("rows", "columns"), [(10, 40), (2, 8), (60, 200)])
def test_a_terminal_of_any_size_will_do(raw: RawServer, desk: Path, rows: int, columns: int) -> None:
    raw.first = [streamed(*["word "] * 200, calls=(call("read_note", name="list.txt"),)), streamed("三个字 " * 50)]
    with terminal("ask", "Say", *of_model(raw), "--tools", "my_tools.py", "--stream", rows=rows, columns=columns) as seen:
        assert seen.ends() == 0
    assert "Traceback" not in seen.text
    assert "LLM calls: 2" in seen.text.replace("\n", "")


def test_hostile_text_cannot_steer_the_terminal(raw: RawServer, desk: Path) -> None:
    (desk / "list.txt").write_text("\x1b[2J\x1b]0;title\x07[red]x[/red]\r\u202e")
    raw.first = [streamed("\x1b[31;1mHi", " [bold]", calls=(call("read_note", name="list.txt"),)), said("Done.")]
    with terminal("ask", "Say \x1b[2J", *of_model(raw), "--tools", "my_tools.py", "--stream") as seen:
        assert seen.ends() == 0
    assert "[step 1] LLM output: \\x1b[31;1mHi [bold]\n" in seen.text
    assert "[step 1] tool read_note returned: \\x1b[2J\\x1b]0;title\\x07[red]x[/red]\n\\u202e\n" in seen.text
    for steering in ("\x1b[2J", "\x1b[31;1m", "\x1b]0;", "\u202e"):
        assert steering not in seen.raw


def test_no_color_is_kept_to(raw: RawServer, desk: Path) -> None:
    raw.first = [said("Done.")]
    with terminal("ask", "Say", *of_model(raw), NO_COLOR="1") as seen:
        assert seen.ends() == 0
    assert "\x1b[1m" not in seen.raw
    assert "m[step" not in seen.raw


def test_with_json_the_view_is_beside_the_object(raw: RawServer, desk: Path) -> None:
    raw.first = [said("Done.")]
    with terminal("ask", "Say", *of_model(raw), "--json") as seen:
        assert seen.ends() == 0
    assert "[step 1] LLM output: Done.\n" in seen.text
    assert '{\n  "reason": "final_answer",\n' in seen.text


# --- a person is asked ---------------------------------------------------------------------------------------------


def test_yes_calls_the_tool(raw: RawServer, desk: Path) -> None:
    raw.first = [said("They are on it.")]
    with asking(raw) as seen:
        seen.until("May write_note be called?\n  name: list.txt\n  text: eggs\n    \n")
        seen.answers(KEYS, "y\r")
        assert seen.ends() == 0
    assert (desk / "list.txt").read_text() == "milk\neggs\n"
    for line in ("[step 2] a person decided: agreed\n", "[step 2] tool write_note returned: 5 characters written\n"):
        assert line in seen.text


def test_no_asks_why_and_the_model_reads_it(raw: RawServer, desk: Path) -> None:
    raw.first = [said("As you wish.")]
    with asking(raw) as seen:
        seen.answers(KEYS, "maybe\r")
        seen.until("please answer y or n, or e to change the arguments, or w to see why")
        seen.answers(KEYS, "no\r")
        seen.answers("Why not? The model reads it (or nothing): ", "no eggs\x1b[D\x1b[D\x1b[D\x1b[Dblue \r")
        assert seen.ends() == 0
    assert "denied by a person: no blue eggs" in last_of_tools(raw)
    assert (desk / "list.txt").read_text() == "milk\n"


def test_why_shows_how_the_model_came_to_it(raw: RawServer, desk: Path) -> None:
    raw.first = [said("As you wish.")]
    with asking(raw) as seen:
        seen.answers(KEYS, "w\r")
        seen.until(
            "  the task: Put eggs on the list\n"
            '  assistant: I look.\n    read_note({"name": "list.txt"})\n'
            "  tool read_note: milk\n    \n"
            "  thought: Eggs are missing.\n"
        )
        seen.answers(KEYS, "n\r")
        seen.answers("Why not? The model reads it (or nothing): ", "\r")
        assert seen.ends() == 0
    assert "denied by a person" in last_of_tools(raw)


def test_edit_changes_the_arguments_until_they_fit_and_asks_again(raw: RawServer, desk: Path) -> None:
    raw.first = [said("Tea is on it.")]
    with asking(raw) as seen:
        seen.answers(KEYS, "e\r")
        seen.until("change the arguments (an empty line: never mind)")
        seen.answers('> {"name": "list.txt", "text": "eggs\\n"}', '\x15{"name": 3\r')
        seen.until("that is no JSON object: ")
        seen.answers('> {"name": 3', ', "more": 1}\r')
        seen.until("write_note has no parameter more")
        seen.answers("> ", '\x15{"name": "list.txt", "text": "tea\\n"}\r')
        seen.until("May write_note be called so?\n  name: list.txt\n  text: tea\n    \n")
        seen.answers(KEYS, "y\r")
        assert seen.ends() == 0
    assert (desk / "list.txt").read_text() == "milk\ntea\n"
    given = next(event for event in load(desk / "run.jsonl").events if isinstance(event, ApprovalGiven))
    assert (given.approvals[0].verdict, given.approvals[0].arguments) == ("edit", {"name": "list.txt", "text": "tea\n"})


def test_edit_opens_the_editor_of_the_environment(raw: RawServer, desk: Path) -> None:
    (desk / "editor.py").write_text(
        "import sys\nfrom pathlib import Path\nfile = Path(sys.argv[-1])\nassert file.suffix == '.json'\n"
        "text = file.read_text()\nfile.write_text(text.replace('eggs', 'tea') if '\"list.txt\",\\n' in text else 'not opened as it should be')\n"
    )
    raw.first = [said("Tea is on it.")]
    with asking(raw, EDITOR=f"{sys.executable} {desk / 'editor.py'}") as seen:
        seen.answers(KEYS, "e\r")
        seen.until("May write_note be called so?")
        seen.answers(KEYS, "y\r")
        assert seen.ends() == 0
    assert (desk / "list.txt").read_text() == "milk\ntea\n"


def test_later_leaves_the_run_waiting(raw: RawServer, desk: Path) -> None:
    with asking(raw) as seen:
        seen.answers(KEYS, "\x04")
        assert seen.ends() == 4
    assert "waits for a person to agree to 1 call:\n" in seen.text
    raw.first = [said("They are on it.")]
    with terminal("resume", "run.jsonl", *of_model(raw), "--tools", "my_tools.py", "--approve", "ask") as seen:
        seen.answers(KEYS, "y\r")
        assert seen.ends() == 0
    assert (desk / "list.txt").read_text() == "milk\neggs\n"


def test_what_was_typed_before_the_question_is_no_answer(raw: RawServer, desk: Path) -> None:
    (desk / "wait.py").write_text(WAIT)
    raw.first = [said("", call("wait")), said("", call("write_note", name="list.txt", text="eggs\n")), said("As you wish.")]
    with terminal("ask", "Put eggs on it", *of_model(raw), "--tools", "my_tools.py", "--tools", "wait.py") as seen:
        seen.answers("wait: running, ", "y\ry\r")
        (desk / "go").touch()
        seen.answers(KEYS, "n\r")
        seen.answers("Why not? The model reads it (or nothing): ", "\r")
        assert seen.ends() == 0
    assert (desk / "list.txt").read_text() == "milk\n"


def test_several_calls_are_asked_about_one_by_one(raw: RawServer, desk: Path) -> None:
    calls = [call("write_note", name="list.txt", text=f"{each}\n") for each in ("eggs", "tea")]
    raw.first = [said("", *calls), said("Only tea.")]
    with terminal("ask", "Complete it", *of_model(raw), "--tools", "my_tools.py") as seen:
        seen.until("May write_note be called? (1 of 2)\n  name: list.txt\n  text: eggs\n    \n")
        seen.answers(KEYS, "n\r")
        seen.answers("Why not? The model reads it (or nothing): ", "\r")
        seen.until("May write_note be called? (2 of 2)\n  name: list.txt\n  text: tea\n    \n")
        seen.answers(KEYS, "y\r")
        assert seen.ends() == 0
    assert (desk / "list.txt").read_text() == "milk\ntea\n"


def test_a_terminal_that_cannot_be_drawn_on_has_plain_lines_and_questions(raw: RawServer, desk: Path) -> None:
    raw.first = [said("As you wish.")]
    with asking(raw, TERM="dumb") as seen:
        seen.answers(KEYS, "e\n")
        seen.answers("> ", "\n")
        seen.answers(KEYS, "n\n")
        seen.answers("Why not? The model reads it (or nothing): ", "not now\n")
        assert seen.ends() == 0
    assert "\x1b" not in seen.raw
    assert "denied by a person: not now" in last_of_tools(raw)


# --- Ctrl-C --------------------------------------------------------------------------------------------------------


def in_order(desk: Path, seen: Seen) -> None:
    """Exit code 130, a whole record of a run that was cancelled, and a picture."""
    assert seen.ends() == 130
    assert seen.text.rstrip().endswith("cancelled")
    assert "\nstopped: cancelled by the user\n" in seen.text
    trace = load(desk / "run.jsonl")
    assert isinstance(trace.events[-1], Cancelled)
    assert verify(trace).line is None
    assert (desk / "run.svg").exists()


def test_ctrl_c_while_the_model_is_asked(raw: RawServer, desk: Path) -> None:
    raw.first = [Answer(said("too late").body, wait_s=60)]
    with terminal("ask", "Say", *of_model(raw), "--trace", "run.jsonl", "--draw", "run.svg") as seen:
        seen.answers("asking the model: ", "\x03")
        in_order(desk, seen)
    raw.closing.set()


def test_ctrl_c_while_a_tool_runs(raw: RawServer, desk: Path) -> None:
    (desk / "sleepy.py").write_text("import time\nfrom fsm_agent import tool\n@tool\ndef sleep() -> None:\n    time.sleep(600)\n")
    raw.first = [said("", call("sleep"))]
    with terminal("ask", "Sleep", *of_model(raw), "--tools", "sleepy.py", "--trace", "run.jsonl", "--draw", "run.svg") as seen:
        seen.answers("sleep: running, ", "\x03")
        in_order(desk, seen)


@pytest.mark.parametrize("number", [signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)])
def test_a_process_that_is_killed_while_a_person_is_asked_gives_the_terminal_back(raw: RawServer, desk: Path, number: int) -> None:
    with asking(raw) as seen:
        seen.until(KEYS)
        seen.child.send_signal(number)
        assert seen.ends() == -number
    assert load(desk / "run.jsonl").replay().reason is None


@pytest.mark.parametrize("keys", [[], ["n\r"], ["e\r"]], ids=["the question", "why not", "the arguments"])
def test_ctrl_c_while_a_person_is_asked(raw: RawServer, desk: Path, keys: list[str]) -> None:
    prompts = {"n\r": "Why not? The model reads it (or nothing): ", "e\r": '"eggs\\n"}'}
    with asking(raw, "--draw", "run.svg") as seen:
        seen.until(KEYS)
        for each in keys:
            seen.press(each)
            seen.until(prompts[each])
        seen.press("\x03")
        in_order(desk, seen)
    assert (desk / "list.txt").read_text() == "milk\n"

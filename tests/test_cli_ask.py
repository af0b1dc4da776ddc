"""``fsm-agent ask`` in a pipe: what it prints, what it sends, what it refuses, and how it waits for a person."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fsm_agent.events import ApprovalAsked
from fsm_agent.options import Options
from fsm_agent.traces import load, verify
from tests.agent_server import asked, call, desk_fixture, of_model, resumed, said, streamed
from tests.mcp_servers import TIME
from tests.raw_server import Answer, RawServer, raw_server

__all__ = ["desk_fixture", "raw_server"]

ADD_EGGS = (
    said("I look.", call("read_note", name="list.txt")),
    said("Eggs are missing.", call("write_note", name="list.txt", text="eggs\n")),
    said("Eggs are on the list."),
)


# --- a whole run ---------------------------------------------------------------------------------------------------


def test_a_run_is_told_line_by_line_and_recorded_and_drawn(raw: RawServer, desk: Path) -> None:
    raw.first = [*ADD_EGGS]
    result = asked(
        "Put eggs on the list", *of_model(raw), "--tools", "my_tools.py", "--approve", "yes", "--trace", "run.jsonl", "--draw", "run.svg"
    )
    assert result.stdout.splitlines() == [
        "[step 1] LLM output: I look.",
        'read_note({"name": "list.txt"})',
        "[step 1] tool read_note returned: milk",
        "",
        "[step 2] LLM output: Eggs are missing.",
        'write_note({"name": "list.txt", "text": "eggs\\n"})',
        "[step 2] tool write_note returned: 5 characters written",
        "[step 3] LLM output: Eggs are on the list.",
        "[step 3] FINAL received, the loop ends normally",
        "final answer: Eggs are on the list.",
        "LLM calls: 3 · tokens: 300 read, 30 written",
    ]
    assert result.stderr == "openai:m · 2 tools (read_note, write_note) · guards production, max_steps=30\n"
    assert result.exit_code == 0
    assert (desk / "list.txt").read_text() == "milk\neggs\n"
    trace = load(desk / "run.jsonl")
    assert verify(trace).line is None
    assert trace.header.title == "Put eggs on the list"
    assert trace.header.options == Options(max_retries=3, max_observation_chars=20_000)
    assert {spec.reason for spec in trace.header.guards} >= {"max_steps", "no_progress"}
    assert (desk / "run.svg").read_text().startswith("<?xml")


def test_the_options_reach_the_model_and_the_run(raw: RawServer, desk: Path) -> None:
    raw.first = [said("9")]
    result = asked(
        "How much?", *of_model(raw), "--temperature", "0", "--max-reply-tokens", "50", "--model-option", 'thinking={"type": "off"}',
        "--model-option", "effort=low", "--guards", "classic", "--limits", "max_tokens=500,deadline_s=60", "--protocol", "json_text", "--last-chance",
        "--max-retries", "0", "--max-observation-chars", "100", "--context", "summarise:5000", "--approve", "ask:all", "--trace", "t.jsonl",
    )  # fmt: skip
    assert result.exit_code == 3, result.output
    _, sent = raw.requests[0]
    assert {name: sent[name] for name in ("temperature", "max_tokens", "thinking", "effort", "model")} == {
        "temperature": 0,
        "max_tokens": 50,
        "thinking": {"type": "off"},
        "effort": "low",
        "model": "m",
    }
    header = load(desk / "t.jsonl").header
    assert header.protocol == "json_text"
    assert header.options == Options(approvals=True, compaction=True, last_chance=True, max_observation_chars=100)
    assert [spec.reason for spec in header.guards] == ["repeated_call", "token_budget", "consecutive_errors", "deadline", "max_steps"]


def test_json_is_one_object_and_what_tools_print_is_not_in_it(raw: RawServer, desk: Path) -> None:
    (desk / "loud.py").write_text(
        "from fsm_agent import tool\nprint('imported')\n@tool\ndef shout() -> str:\n    print('AAH')\n    return 'done'\n"
    )
    raw.first = [said("", call("shout")), said("It shouted.")]
    result = asked("Shout", *of_model(raw), "--tools", "loud.py", "--json", "--prices", "1,10")
    assert json.loads(result.stdout) == {
        "reason": "final_answer",
        "answer": "It shouted.",
        "message": "It shouted.",
        "steps": 2,
        "model_calls": 2,
        "path": ["model_replied", "call_tools", "tools_returned", "go_on", "model_replied", "final_answer"],
        "usage": {"prompt_tokens": 200, "completion_tokens": 20, "cost": 0.0004},
    }
    assert "AAH" in result.stderr
    assert "imported" in result.stderr


def test_a_streamed_run_prints_the_same_as_one_that_is_not(raw: RawServer, desk: Path) -> None:
    arguments = ("Read", *of_model(raw), "--tools", "my_tools.py")
    raw.first = [said("I look\nat it.", call("read_note", name="list.txt")), said("Milk.")]
    whole = asked(*arguments)
    raw.first = [streamed("I lo", "ok\nat ", "it.", calls=(call("read_note", name="list.txt"),)), streamed("Mi", "lk.")]
    pieces = asked(*arguments, "--stream")
    assert pieces.stdout.replace("LLM calls: 2", "LLM calls: 2 · tokens: 200 read, 20 written") == whole.stdout
    assert raw.requests[-1][1]["stream"] is True


def test_a_stream_that_breaks_off_is_a_line_of_its_own(raw: RawServer, desk: Path) -> None:
    broken = Answer(
        f"{streamed('Half an ans').body!s}".partition("data: [DONE]")[0].rpartition("data:")[0],
        headers={"Content-Type": "text/event-stream"},
        cut=True,
    )
    raw.first = [broken, streamed("A whole one.")]
    result = asked("Say", *of_model(raw), "--stream", "--max-retries", "1")
    lines = result.stdout.splitlines()
    assert lines[0] == "[step 1] LLM output: Half an ans"
    assert lines[1].startswith("[step 1] the model could not be asked: ModelUnavailable: ")
    assert lines[2:] == [
        "[step 1] LLM output: A whole one.",
        "[step 1] FINAL received, the loop ends normally",
        "final answer: A whole one.",
        "LLM calls: 1",
    ]


def test_hostile_text_cannot_steer_the_terminal(raw: RawServer, desk: Path) -> None:
    (desk / "list.txt").write_text("\x1b[2J\u202e[red]x[/red]")
    raw.first = [streamed("\x1b[H[bo", "ld]", calls=(call("read_note", name="list.txt"),)), said("\x07done\x9b31m")]
    result = asked("Read", *of_model(raw), "--tools", "my_tools.py", "--stream")
    assert result.stdout.splitlines()[:3] == [
        "[step 1] LLM output: \\x1b[H[bold]",
        'read_note({"name": "list.txt"})',
        "[step 1] tool read_note returned: \\x1b[2J\\u202e[red]x[/red]",
    ]
    assert "\x1b" not in result.stdout
    assert "\x9b" not in result.stdout


def test_the_task_may_come_from_stdin(raw: RawServer, desk: Path) -> None:
    raw.first = [said("Yes.")]
    assert asked("-", *of_model(raw), keys="Is it so?\nReally?\n").exit_code == 0
    assert raw.requests[0][1]["messages"][-1]["content"] == "Is it so?\nReally?\n"


def test_async_tools_are_awaited(raw: RawServer, desk: Path) -> None:
    (desk / "later.py").write_text(
        "import asyncio\nfrom fsm_agent import tool\n@tool\nasync def later(n: int) -> int:\n    await asyncio.sleep(0)\n    return n + 1\n"
    )
    raw.first = [said("", call("later", n=1), call("later", n=5)), said("2 and 6")]
    result = asked("Count", *of_model(raw), "--tools", "later.py")
    assert [line for line in result.stdout.splitlines() if "returned" in line] == [
        "[step 1] tool later returned: 2",
        "[step 1] tool later returned: 6",
    ]


def test_tools_of_an_mcp_server(raw: RawServer, desk: Path) -> None:
    raw.first = [said("", call("get_current_time", timezone="UTC")), said("It is late.")]
    result = asked("How late is it?", *of_model(raw), "--tools", "my_tools.py", "--mcp", TIME, "--mcp-env", "PATH", "--approve", "yes")
    assert result.exit_code == 0, result.output
    assert '"timezone": "UTC"' in result.stdout
    assert result.stderr.startswith("openai:m · 4 tools (read_note, write_note, get_current_time, convert_time) · guards ")


def test_a_last_word_stands_beside_the_reason(raw: RawServer, desk: Path) -> None:
    raw.first = [said("", call("read_note", name="list.txt")), said("As far as I got: milk.")]
    result = asked("Read", *of_model(raw), "--tools", "my_tools.py", "--limits", "max_steps=1", "--last-chance")
    assert result.exit_code == 3
    assert result.stdout.splitlines()[-3:-1] == [
        "stopped: reached the cap of 1 steps, halted so that an endless loop cannot burn the budget",
        "its last word: As far as I got: milk.",
    ]


def test_a_model_that_refuses_halts_the_run_at_once(raw: RawServer, desk: Path) -> None:
    raw.answer = Answer({"error": {"message": "Incorrect API key"}}, 401)
    result = asked("Say", *of_model(raw), "--draw", "run.txt")
    assert result.exit_code == 3
    assert result.stdout.splitlines() == [
        "[step 1] the model failed: ModelRefused: openai:m answered 401: Incorrect API key",
        "stopped: the model failed (ModelRefused: openai:m answered 401: Incorrect API key)",
        "LLM calls: 1",
    ]
    assert (desk / "run.txt").exists()


# --- a person is waited for ----------------------------------------------------------------------------------------


def test_without_a_terminal_the_run_waits_and_says_how_to_go_on(raw: RawServer, desk: Path) -> None:
    raw.first = [*ADD_EGGS]
    result = asked("Put eggs on it", *of_model(raw), "--tools", "my_tools.py", "--no-stream", "--trace", "run.jsonl", "--draw", "run.svg")
    assert result.exit_code == 4
    assert result.stdout.splitlines()[-5:] == [
        "[step 2] a person is asked about call 1",
        "waits for a person to agree to 1 call:",
        '  2/1  write_note {"name": "list.txt", "text": "eggs\\n"}',
        "to go on (or with --no KEY=WHY, --edit KEY=JSON, --approve ask):",
        f"  fsm-agent resume run.jsonl --model openai:m --base-url {raw.url} --tools my_tools.py --no-stream --yes 2/1",
    ]
    assert isinstance(load(desk / "run.jsonl").events[-1], ApprovalAsked)
    assert (desk / "run.svg").exists()
    assert (desk / "list.txt").read_text() == "milk\n"


def test_a_run_that_waits_is_never_lost(raw: RawServer, desk: Path) -> None:
    raw.first = [*ADD_EGGS]
    result = asked("Put eggs on it", *of_model(raw), "--tools", "my_tools.py", "--json")
    object_ = json.loads(result.stdout)
    assert (result.exit_code, object_["reason"], object_["answer"]) == (4, "awaiting_approval", None)
    (record,) = desk.glob("fsm-agent-*.jsonl")
    assert object_["awaiting"] == [
        {"key": f"{load(record).header.id}/2/1", "tool": "write_note", "arguments": {"name": "list.txt", "text": "eggs\n"}}
    ]
    assert object_["resume"] == f"fsm-agent resume {record.name} --model openai:m --base-url {raw.url} --tools my_tools.py --yes 2/1"


def test_the_record_of_a_run_that_waits_is_not_overwritten(raw: RawServer, desk: Path) -> None:
    raw.first = [*ADD_EGGS]
    arguments = ("Put eggs on it", *of_model(raw), "--tools", "my_tools.py", "--trace", "run.jsonl")
    assert asked(*arguments).exit_code == 4
    second = asked(*arguments)
    assert second.exit_code == 2
    assert second.stderr == (
        "Error: --trace run.jsonl: the run in it has not halted (fsm-agent resume run.jsonl goes on with it); name another file, or remove it\n"
    )


def test_the_record_of_a_killed_run_is_not_overwritten(raw: RawServer, desk: Path) -> None:
    raw.first = [said("", call("read_note", name="list.txt")), said("Milk.")]
    arguments = ("Read", *of_model(raw), "--tools", "my_tools.py", "--trace", "run.jsonl")
    assert asked(*arguments).exit_code == 0
    lines = (desk / "run.jsonl").read_bytes().splitlines(keepends=True)
    killed = b"".join(lines[:3])
    (desk / "run.jsonl").write_bytes(killed + lines[3][:10])
    second = asked(*arguments)
    assert (second.exit_code, second.stdout) == (2, "")
    assert "the run in it has not halted (fsm-agent resume run.jsonl goes on with it)" in second.stderr
    (desk / "run.jsonl").write_bytes(killed)
    assert asked(*arguments).exit_code == 2
    assert (desk / "run.jsonl").read_bytes() == killed
    (desk / "run.jsonl").write_bytes(b"".join(lines))
    raw.first = [said("Milk.")]
    assert asked(*arguments).exit_code == 0, "a run that has halted may be overwritten"


@pytest.mark.parametrize("content", [b"buy milk\n", b"\xff\xfe\x00", b"{}\n", b'model = "openai:m"\n'])
def test_a_file_that_is_no_record_is_not_overwritten(raw: RawServer, desk: Path, content: bytes) -> None:
    (desk / "notes.txt").write_bytes(content)
    result = asked("Do it", *of_model(raw), "--trace", "notes.txt")
    assert (result.exit_code, result.stderr) == (
        2,
        "Error: --trace notes.txt: there is something in it that is no record of a run; name another file, or remove it\n",
    )
    assert (desk / "notes.txt").read_bytes() == content


def test_the_settings_are_not_overwritten(raw: RawServer, desk: Path) -> None:
    (desk / "my.txt").write_text("stream = false\n")
    for option in ("--trace", "--draw"):
        result = asked("Do it", *of_model(raw), "--config", "my.txt", option, "my.txt")
        assert (result.exit_code, result.stderr) == (
            2,
            f"Error: {option} my.txt would overwrite my.txt, which is read; name another file\n",
        )


def test_a_tool_that_changes_the_working_directory_moves_no_file(raw: RawServer, desk: Path) -> None:
    (desk / "deep").mkdir()
    (desk / "wander.py").write_text(
        "import os\nfrom fsm_agent import tool\nos.chdir('deep')\n@tool(side_effects=True)\ndef wander() -> None:\n    os.chdir('/')\n"
    )
    arguments = ("Wander", *of_model(raw), "--tools", "wander.py")
    raw.first = [said("", call("wander")), said("There.")]
    assert asked(*arguments, "--approve", "yes", "--trace", "run.jsonl", "--draw", "run.txt").exit_code == 0
    os.chdir(desk)
    raw.first = [said("", call("wander"))]
    assert asked(*arguments).exit_code == 4
    os.chdir(desk)
    assert list((desk / "deep").iterdir()) == []
    assert len(list(desk.glob("*.jsonl"))) == 2
    assert (desk / "run.txt").exists()
    (record,) = desk.glob("fsm-agent-*.jsonl")
    raw.first = [said("There.")]
    assert resumed(record.name, *arguments[1:], "--yes", "all", "--draw", "second.txt").exit_code == 0
    assert load(record).replay().reason == "final_answer"
    assert (desk / "second.txt").exists()


def test_a_record_whose_name_looks_like_an_option_can_be_taken_up(raw: RawServer, desk: Path) -> None:
    raw.first = [*ADD_EGGS]
    result = asked("Put eggs on it", *of_model(raw), "--tools", "my_tools.py", "--trace=-t.jsonl", "--json")
    words = shlex.split(json.loads(result.stdout)["resume"])
    assert words[2] == os.path.join(".", "-t.jsonl")  # noqa: PTH118  # a Path has no ./
    assert resumed(*words[2:]).exit_code == 0


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="names of files are text on this system")
def test_the_name_of_a_record_may_be_no_text(raw: RawServer, desk: Path) -> None:
    raw.first = [*ADD_EGGS]
    name = os.fsdecode(b"\xff.jsonl")
    result = asked("Put eggs on it", *of_model(raw), "--tools", "my_tools.py", "--trace", name, "--json")
    assert json.loads(result.stdout)["resume"].startswith("fsm-agent resume '\\udcff.jsonl' --model ")
    assert load(desk / name).replay().reason is None


@pytest.mark.skipif(sys.platform == "win32", reason="the folder that one works in cannot be removed on Windows")
def test_a_record_that_cannot_be_written_here_is_put_among_the_temporary_files(
    raw: RawServer, desk: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    (desk / "vanish.py").write_text(
        "from pathlib import Path\nfrom fsm_agent import tool\n@tool\ndef vanish() -> None:\n    Path.cwd().rmdir()\n"
        "@tool(side_effects=True)\ndef change() -> None: ''\n"
    )
    (desk / "gone").mkdir()
    os.chdir(desk / "gone")
    raw.first = [said("", call("vanish")), said("", call("change")), said("Changed.")]
    result = asked("Change it", *of_model(raw), "--tools", desk / "vanish.py")
    os.chdir(desk)
    assert result.exit_code == 4
    (record,) = elsewhere.iterdir()
    assert result.stdout.splitlines()[-1].startswith(f"  fsm-agent resume {record} --model ")
    assert resumed(*shlex.split(result.stdout.splitlines()[-1])[2:]).exit_code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are a POSIX thing")
def test_a_record_that_can_be_written_nowhere_leaves_what_waits_told_and_no_file(raw: RawServer, desk: Path) -> None:
    raw.first = [*ADD_EGGS]
    program = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); from fsm_agent.cli import main; main()"
    arguments = ["ask", "Put eggs on it", *of_model(raw), "--tools", "my_tools.py"]
    before = sorted(desk.iterdir())
    environ = {
        **os.environ,
        "LC_ALL": "C",
        "TMPDIR": str(desk),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(Path(__file__).parent.parent),
    }
    ended = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, env=environ)
    assert ended.stdout.splitlines()[-2:] == [
        "waits for a person to agree to 1 call:",
        '  2/1  write_note {"name": "list.txt", "text": "eggs\\n"}',
    ]
    assert ended.stderr.splitlines()[-1].startswith("Error: the record cannot be written, and nothing can go on with the run: ")
    assert "Traceback" not in ended.stderr
    assert sorted(desk.iterdir()) == before


@pytest.mark.parametrize(
    ("approve", "code", "told"),
    [
        ("yes", 0, "[step 2] tool write_note returned: 5 characters written"),
        ("no", 0, "[step 2] tool write_note returned: denied by a person: nobody may agree to such calls in this run"),
        ("wait", 4, "[step 2] a person is asked about call 1"),
        ("ask:all", 4, "[step 1] a person is asked about call 1"),
        ("ask:read_note", 4, "[step 1] a person is asked about call 1"),
        ("wait: write_note, read_note", 4, "[step 1] a person is asked about call 1"),
    ],
)
def test_who_agrees_and_to_what(raw: RawServer, desk: Path, approve: str, code: int, told: str) -> None:
    raw.first = [*ADD_EGGS]
    result = asked("Put eggs on it", *of_model(raw), "--tools", "my_tools.py", "--approve", approve, "--trace", "run.jsonl")
    assert result.exit_code == code
    assert told in result.stdout.splitlines()


# --- wrong use -----------------------------------------------------------------------------------------------------

PYTHON = {
    "none.py": "x = 1\n",
    "torn.py": "x = (\n",
    "wrong.py": "y = 1\n\nx = undefined\n",
    "exits.py": "import sys\nsys.exit('no')\n",
    "silent.py": "class E(Exception):\n    def __str__(self):\n        raise OSError\nraise E\n",
    "two.py": "from fsm_agent import tool\n@tool(name='a')\ndef one(): ''\n@tool(name='a')\ndef two(): ''\n",
    "other.py": "from fsm_agent import tool\n@tool\ndef read_note(): ''\n",
}

NO_TOOL = "there is no tool in it; decorate a function with @tool (from fsm_agent import tool)"
GIVE = "give one of them another with @tool(name=...)"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--tools", "none.py"], f"--tools none.py: {NO_TOOL}"),
        (["--tools", "json"], f"--tools json: {NO_TOOL}"),
        (["--tools", "nowhere.py"], "--tools nowhere.py: No such file or directory"),
        (["--tools", "no_such_module"], "--tools no_such_module cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        (["--tools", "torn.py"], "--tools torn.py cannot be imported: SyntaxError: '(' was never closed (torn.py, line 1)"),
        (["--tools", "wrong.py"], "--tools wrong.py cannot be imported: NameError: name 'undefined' is not defined (line 3)"),
        (["--tools", "exits.py"], "--tools exits.py cannot be imported: SystemExit: no (line 2)"),
        (["--tools", "silent.py"], "--tools silent.py cannot be imported: E: (its message raised OSError) (line 4)"),
        (["--tools", "two.py"], f"two tools have the name 'a' (two of them in two.py); {GIVE}"),
        (["--tools", "my_tools.py", "--tools", "other.py"], f"two tools have the name 'read_note' (one in my_tools.py, one in other.py); {GIVE}"),
        (["--tools", "my_tools.py", "--approve", "ask:nope"], "--approve names the tool 'nope'; there are read_note, write_note"),
        (["--limits", "max_cost=1"], "the price of openai:m is not known, and a cost budget needs it: give --prices 1.25,10, in US dollars per million tokens read and written"),
        (["--limits", "max_steps"], "--limits: 'max_steps' is not of the form name=value"),
        (["--limits", "max_steps=0"], "--limits: max_steps is 0; it must be at least 1"),
        (["--prices", "1"], "--prices: '1' is no pair of prices: it is two numbers, IN,OUT: US dollars per million tokens read, and written"),
        (["--context", "keep-last"], "--context: 'keep-last' is no context: it is keep-last:STEPS, drop:TOKENS or summarise:TOKENS, with a whole number from 1"),
        (["--context", "drop:0"], "--context: 'drop:0' is no context: it is keep-last:STEPS, drop:TOKENS or summarise:TOKENS, with a whole number from 1"),
        (["--temperature", "nan"], "--temperature: nan is no number of a request"),
        (["--model-option", "api_key=x"], "--model-option: api_key: a key is given by the environment alone: set OPENAI_API_KEY or ANTHROPIC_API_KEY"),
        (["--model-option", "max_tokens=5"], "--model-option: max_tokens: give it with --max-reply-tokens"),
        (["--model-option", "stream=true"], "--model-option: stream: this field of a request is the run's own"),
        (["--model-option", "name=x"], "--model-option: name: no request has a field of this name"),
        (["--model-option", "self=1"], "--model-option: self: no request has a field of this name"),
        (["--model-option", f"stop={'[' * 5000}"], "--model-option: stop: its value is nested too deeply"),
        (["--timeout", "inf"], "--timeout: inf is no number of seconds from above 0 to 1000000"),
        (["--timeout", "nan"], "--timeout: nan is no number of seconds from above 0 to 1000000"),
        (["--timeout", "1e300"], "--timeout: 1e+300 is no number of seconds from above 0 to 1000000"),
        (["--base-url", "http://[::1"], "--base-url: the address cannot be read: Invalid IPv6 URL"),
        (["--base-url", "http://"], "--base-url: the address cannot be read; it must be as in http://localhost:11434/v1"),
        (["--model-option", "effort"], "--model-option: 'effort' is not of the form NAME=VALUE, as in reasoning_effort=low"),
        (["--draw", "x.xyz"], "--draw x.xyz: the ending names no format; known are .svg, .png, .pdf, .dot, .gv, .mmd, .mermaid, .txt, .html"),
        (["--draw", "no/x.svg"], "--draw no/x.svg: there is no folder no"),
        (["--trace", "my_tools.py", "--tools", "my_tools.py"], "--trace my_tools.py would overwrite my_tools.py, which is read; name another file"),
        (["--trace", "x.svg", "--draw", "x.svg"], "--trace x.svg and --draw x.svg are one file; name two"),
        (["--trace", "no/run.jsonl"], "--trace no/run.jsonl: there is no folder no"),
        (["--mcp-env", "NO_SUCH_VARIABLE", "--mcp", "x"], "--mcp-env NO_SUCH_VARIABLE: the environment has no variable of this name"),
        (["--mcp", "no-such-command x"], "--mcp: the MCP server 'no-such-command x' did not start: the command no-such-command is not found; install it, or give its whole path"),
        (["--model", "who:m"], "the model is 'who:m'; it must be one of openai:MODEL, anthropic:MODEL"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else None,
)  # fmt: skip
def test_wrong_use_is_one_line_and_nothing_is_asked(raw: RawServer, desk: Path, arguments: list[str], line: str) -> None:
    for name, text in PYTHON.items():
        (desk / name).write_text(text)
    result = asked("Do it", *of_model(raw), *arguments)
    assert result.stderr.splitlines()[-1] == f"Error: {line}"
    assert (result.exit_code, result.stdout, raw.requests) == (2, "", [])


def test_what_is_missing_is_named(desk: Path) -> None:
    assert asked("Do it").stderr == "Error: --model is missing: openai:MODEL or anthropic:MODEL, here or as `model` in fsm-agent.toml\n"
    assert asked("Do it", "--model", "openai:gpt-5").stderr == (
        "Error: the model openai:gpt-5 needs a key: set OPENAI_API_KEY (or OPENAI_BASE_URL, for a server without keys)\n"
    )
    assert asked("  ", "--model", "openai:gpt-5").stderr == "Error: the task is empty; say what is to be done\n"


@pytest.mark.parametrize("approve", ["always", "never", "ask:", "yes:all", "no:x", "read_note", ""])
def test_words_that_could_mean_the_opposite_are_refused(raw: RawServer, desk: Path, approve: str) -> None:
    result = asked("Do it", *of_model(raw), "--tools", "my_tools.py", "--approve", approve)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: --approve: {approve!r} says not who agrees to calls: ask (on the terminal, ")


def test_a_tool_that_is_imported_twice_is_one_tool(raw: RawServer, desk: Path) -> None:
    (desk / "more.py").write_text("from fsm_agent.tools import add\nplus = add\n")
    raw.first = [said("7")]
    assert asked("3 + 4", *of_model(raw), "--tools", "more.py", "--tools", "./more.py", "--tools", "fsm_agent.tools.builtin").exit_code == 0
    names = [each["function"]["name"] for each in raw.requests[0][1]["tools"]]
    assert sorted(names) == ["add", "mul", "now"]


def test_tools_find_what_stands_beside_them(raw: RawServer, desk: Path) -> None:
    (desk / "deep").mkdir()
    (desk / "deep" / "beside_them.py").write_text("WORD = 'x'\n")
    (desk / "deep" / "tools.py").write_text("from beside_them import WORD\nfrom fsm_agent import tool\n@tool(name=WORD)\ndef f(): ''\n")
    raw.first = [said("done")]
    assert asked("Do", *of_model(raw), "--tools", "deep/tools.py").exit_code == 0


def test_help_tells_the_default_cap() -> None:
    from fsm_agent.proof.configuration import MAX_STEPS

    assert f"a cap of {MAX_STEPS} steps" in " ".join(asked("--help").stdout.split())

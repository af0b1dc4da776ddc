"""``fsm-agent resume``: a run that waits for a person, one whose process died, and what is shown when nothing is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fsm_agent.traces import load, verify
from tests.agent_server import asked, call, desk_fixture, of_model, resumed, said
from tests.raw_server import RawServer, raw_server

__all__ = ["desk_fixture", "raw_server"]


@pytest.fixture(name="waiting")
def a_run_that_waits(raw: RawServer, desk: Path) -> Path:
    """Two calls of its second step wait; the server is ready for what comes after."""
    eggs, tea = call("write_note", name="list.txt", text="eggs\n"), call("write_note", name="list.txt", text="tea\n")
    raw.first = [said("I look.", call("read_note", name="list.txt")), said("Eggs and tea are missing.", eggs, tea)]
    assert asked("Complete the list", *of_model(raw), "--tools", "my_tools.py", "--trace", "run.jsonl").exit_code == 4
    raw.requests.clear()
    raw.first = [said("It is complete.")]
    return desk / "run.jsonl"


SHOWN = [
    "the task: Complete the list",
    "[step 2] LLM output: Eggs and tea are missing.",
    "waits for a person to agree to 2 calls:",
    '  2/1  write_note {"name": "list.txt", "text": "eggs\\n"}',
    '  2/2  write_note {"name": "list.txt", "text": "tea\\n"}',
    "to go on (or with --no KEY=WHY, --edit KEY=JSON, --approve ask):",
]


def test_without_a_word_it_is_shown_what_waits(raw: RawServer, waiting: Path) -> None:
    before = waiting.read_bytes()
    result = resumed("run.jsonl")
    assert result.stdout.splitlines() == [
        *SHOWN,
        "  fsm-agent resume run.jsonl --yes 2/1 --yes 2/2",
        "and with --model, --tools and --mcp as they were",
    ]
    assert (result.exit_code, waiting.read_bytes(), raw.requests) == (4, before, [])


def test_the_command_line_that_is_shown_goes_on(raw: RawServer, waiting: Path) -> None:
    shown = resumed("run.jsonl", *of_model(raw), "--tools", "my_tools.py").stdout.splitlines()
    assert shown[:-1] == SHOWN
    words = shown[-1].split()
    assert words[:3] == ["fsm-agent", "resume", "run.jsonl"]
    result = resumed(*words[2:], "--draw", "run.svg")
    assert result.stdout.splitlines() == [
        "[step 2] a person decided: agreed",
        "[step 2] tool write_note returned: 5 characters written",
        "[step 2] tool write_note returned: 4 characters written",
        "[step 3] LLM output: It is complete.",
        "[step 3] FINAL received, the loop ends normally",
        "final answer: It is complete.",
        "LLM calls: 3 · tokens: 300 read, 30 written",
    ]
    assert result.exit_code == 0, result.output
    assert sorted(Path("list.txt").read_text().split()) == ["eggs", "milk", "tea"]
    assert len(raw.requests) == 1
    assert verify(load("run.jsonl")).line is None
    assert Path("run.svg").exists()


def test_yes_no_and_edit_of_single_calls(raw: RawServer, waiting: Path) -> None:
    key = f"{load(waiting).header.id}/2/1"
    result = resumed(
        "run.jsonl",
        *of_model(raw),
        "--tools",
        "my_tools.py",
        "--no",
        f"{key}=no eggs = today",
        "--edit",
        '2/2={"name": "list.txt", "text": "coffee\\n"}',
    )
    assert result.exit_code == 0, result.output
    assert Path("list.txt").read_text() == "milk\ncoffee\n"
    told = [message["content"] for message in raw.requests[0][1]["messages"] if message["role"] == "tool"]
    assert "denied by a person: no eggs = today" in told[1]
    assert "(a person changed the call; it was made as write_note{name=list.txt, text=coffee\n})" in told[2]


def test_json_says_what_waits(raw: RawServer, waiting: Path) -> None:
    object_ = json.loads(resumed("run.jsonl", "--json").stdout)
    assert object_["reason"] == "awaiting_approval"
    assert [each["arguments"]["text"] for each in object_["awaiting"]] == ["eggs\n", "tea\n"]
    assert object_["resume"] == "fsm-agent resume run.jsonl --yes 2/1 --yes 2/2"


def test_approve_answers_all_that_wait(raw: RawServer, waiting: Path) -> None:
    result = resumed("run.jsonl", *of_model(raw), "--tools", "my_tools.py", "--approve", "no")
    assert result.exit_code == 0, result.output
    assert Path("list.txt").read_text() == "milk\n"


def test_a_run_that_waits_again_says_so_again(raw: RawServer, waiting: Path) -> None:
    raw.first = [said("One more.", call("write_note", name="list.txt", text="salt\n"))]
    result = resumed("run.jsonl", *of_model(raw), "--tools", "my_tools.py", "--yes", "all")
    assert result.exit_code == 4
    assert result.stdout.splitlines()[-3:] == [
        '  3/1  write_note {"name": "list.txt", "text": "salt\\n"}',
        "to go on (or with --no KEY=WHY, --edit KEY=JSON, --approve ask):",
        f"  fsm-agent resume run.jsonl --model openai:m --base-url {raw.url} --tools my_tools.py --yes 3/1",
    ]


def test_a_run_that_has_halted_is_told_with_its_exit_code(raw: RawServer, waiting: Path) -> None:
    resumed("run.jsonl", *of_model(raw), "--tools", "my_tools.py", "--yes", "all")
    result = resumed("run.jsonl")
    assert result.stdout.splitlines() == [
        "the run has halted (final_answer); there is nothing to go on with",
        "final answer: It is complete.",
    ]
    assert result.exit_code == 0, result.output
    assert json.loads(resumed("run.jsonl", "--json").stdout)["reason"] == "final_answer"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--yes", "9/9"], "no call with the key '9/9' waits; there is 2/1, 2/2"),
        (["--yes", "2/1"], "the call 2/2 waits, too: say --yes, --no or --edit of it, or give --approve ask"),
        (["--yes", "all", "--no", "2/2"], "the call 2/2 is answered twice"),
        (["--edit", "2/1=[1]"], "--edit 2/1: after KEY= stands a JSON object, the arguments: Expected `object`, got `array`"),
        (["--yes", "2/2", "--edit", '2/1={"name": 3}', "--tools", "my_tools.py", "MODEL"], "--edit 2/1: write_note needs the argument text: text; write_note expected text, got name=3"),
        (["--yes", "all"], "--model is missing: openai:MODEL or anthropic:MODEL, here or as `model` in fsm-agent.toml"),
        (["--yes", "all", "MODEL"], "the run was begun with the tool 'read_note'; give it, too, with --tools or --mcp"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)  # fmt: skip
def test_wrong_use_is_one_line_and_nothing_happens(raw: RawServer, waiting: Path, arguments: list[str], line: str) -> None:
    before = waiting.read_bytes()
    given = [word for each in arguments for word in (of_model(raw) if each == "MODEL" else [each])]
    result = resumed("run.jsonl", *given)
    assert (result.stderr, result.exit_code) == (f"Error: {line}\n", 2)
    assert (waiting.read_bytes(), raw.requests) == (before, [])


def test_what_is_no_trace_is_refused(desk: Path) -> None:
    (desk / "x.jsonl").write_text("{}\n")
    assert resumed("x.jsonl").stderr == 'Error: x.jsonl, line 1: this is no trace: the first line has no "trace" field\n'
    assert resumed("none.jsonl").exit_code == 2


# --- a process that died -------------------------------------------------------------------------------------------


def killed_in(record: Path, note: str) -> None:
    """Leave of a whole record what a process that was killed leaves: all up to the first of these notes."""
    lines = record.read_text().splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if note in line)
    record.write_text("".join(lines[: at + 1]))


@pytest.fixture(name="killed")
def a_run_whose_process_died(raw: RawServer, desk: Path) -> Path:
    """It died while a note was written."""
    raw.first = [said("Eggs are missing.", call("write_note", name="list.txt", text="eggs\n")), said("Done.")]
    assert asked("Complete the list", *of_model(raw), "--tools", "my_tools.py", "--trace", "run.jsonl", "--approve", "yes").exit_code == 0
    killed_in(desk / "run.jsonl", "CallStarted")
    raw.requests.clear()
    raw.first = [said("All is well.")]
    return desk / "run.jsonl"


def test_a_call_that_nobody_knows_of_is_shown_and_not_made(raw: RawServer, killed: Path) -> None:
    for more in ([], ["--approve", "yes", *of_model(raw), "--tools", "my_tools.py"]):
        result = resumed("run.jsonl", *more)
        assert result.stdout.splitlines()[:5] == [
            "the task: Complete the list",
            "[step 1] LLM output: Eggs are missing.",
            "1 call was running when the process ended, and nobody knows what came of it:",
            '  1/1  write_note {"name": "list.txt", "text": "eggs\\n"}',
            "to make such a call again (or with --no KEY, and the model is told that its outcome is unknown):",
        ]
        assert result.exit_code == 4
    assert Path("list.txt").read_text() == "milk\neggs\n"
    assert resumed("run.jsonl", "--edit", "1/1={}").stderr == (
        "Error: --edit 1/1: this call was running when the process ended; say --yes to make it again, or --no\n"
    )


@pytest.mark.parametrize(
    ("word", "told", "file"),
    [
        ("--yes", "5 characters written", "milk\neggs\neggs\n"),
        ("--no", "TOOL_ERROR: the process ended while write_note ran; whether it took effect is not known", "milk\neggs\n"),
    ],
)
def test_a_word_on_such_a_call_goes_on(raw: RawServer, killed: Path, word: str, told: str, file: str) -> None:
    result = resumed("run.jsonl", *of_model(raw), "--tools", "my_tools.py", "--approve", "yes", word, "1/1")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == f"[step 1] tool write_note returned: {told}"
    assert Path("list.txt").read_text() == file


def test_a_run_that_waits_for_nobody_simply_goes_on(raw: RawServer, killed: Path) -> None:
    killed_in(killed, '"event":"ModelReplied"')
    result = resumed("run.jsonl", *of_model(raw), "--tools", "my_tools.py", "--approve", "yes")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "[step 1] tool write_note returned: 5 characters written"
    assert resumed("run.jsonl", "--yes", "1/1").stdout.startswith("the run has halted")

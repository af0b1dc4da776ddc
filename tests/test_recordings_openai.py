"""Recordings of OpenAI chat messages, plain and in tau-bench's result files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fsm_agent.events import Observation, RecordingEnded, ToolSpec, ToolsReturned, UserSpoke
from fsm_agent.traces.recordings import Damaged, Recording, RecordingError, detect, read
from fsm_agent.traces.recordings.transcript import NO_RESULT
from tests.fixtures import FOLDER, both, called, edges, returned, said


def written(folder: Path, *messages: dict[str, object]) -> Path:
    path = folder / "chat.json"
    path.write_text(json.dumps(list(messages)), encoding="utf-8")
    return path


def test_a_list_of_messages_is_one_run() -> None:
    path = FOLDER / "openai_chat.json"
    assert detect(path) == "openai"
    assert both(path) == (
        [
            Recording(
                id="openai_chat",
                source="openai",
                task="What is the weather\n[image_url]",
                events=(
                    called("", ("weather", '{"city": "Bern"}', "call_1"), ("weather", '{"city": "Chur"}', "call_2")),
                    returned(("weather", "sunny"), ("weather!", "Error: no such place")),
                    called("I ask the other service.", ("forecast", "", "call_1")),
                    returned(("forecast", "")),
                    said("Sunny in Bern.", "answer"),
                ),
                ending="answer",
                extra={"system": "Be brief."},
            )
        ],
        [],
    )


def test_json_lines_hold_a_run_each_and_the_damaged_ones_are_told() -> None:
    path = FOLDER / "openai_chats.jsonl"
    assert detect(path) == "openai"
    runs, damaged = both(path)
    assert damaged == [
        Damaged("line 4", "the JSON is cut off at column 49"),
        Damaged("line 7", "message 1 has the role 'robot'; known are assistant, developer, function, system, tool, user"),
        Damaged("line 8", "there are no messages"),
    ]
    asked, old, twice, lost, again = runs
    assert asked == Recording(
        id="ask",
        source="openai",
        task="Look.",
        events=(
            called("A look will do.", ("look", '{"far":true}', "x")),
            returned(("look", "a tree")),
            UserSpoke("And?"),
            said("A tree."),
            RecordingEnded(),
        ),
        tools=(ToolSpec("look", "Looks.", {"type": "object"}),),
        outcome="success",
        score=0.5,
        model="small-1",
    )
    assert old == Recording(
        id="2",
        source="openai",
        task="Old.",
        events=(called("", ("look", "{}")), returned(("look!", '{"error": "dark"}')), said("I will not.", "answer")),
        ending="answer",
    )
    assert twice == Recording(
        id="4",
        source="openai",
        task="Twice.",
        events=(called("", ("a", "{}", "same"), ("b", "{}", "same")), returned(("a", "first"), ("b", "second")), RecordingEnded()),
        extra={"unmatched": ["message 5: same: third"]},
    )
    assert lost == Recording(
        id="5",
        source="openai",
        task="Lost.",
        events=(
            called("", ("a", "{}", "y"), ("b", "{}", "z")),
            ToolsReturned((Observation("a", "here"), Observation("b", NO_RESULT, "cancelled"))),
            called("", ("a", "{}", "w")),
            RecordingEnded(),
        ),
        extra={"unmatched": ["message 5: z: late"], "missing": ["b (z)"]},
    )
    assert edges(lost)[-1] == "recording_ended_executing"
    assert again == Recording(
        id="ask#2", source="openai", task="Again.\ufffd", events=(said(""), UserSpoke("Hello?"), RecordingEnded()), outcome="failure"
    )


def test_a_list_of_runs_holds_runs(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    chat = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    path.write_text(json.dumps([{"messages": chat}, {"messages": chat, "id": 7}, {"messages": 3}]), encoding="utf-8")
    runs, damaged = both(path)
    assert [run.id for run in runs] == ["1", "7"]
    assert damaged == [Damaged("item 3", "Expected `array`, got `int` - at `$.messages`")]
    path.write_text(json.dumps([chat, chat]), encoding="utf-8")
    assert [run.id for run in both(path)[0]] == ["1", "2"]


def test_one_damaged_run_alone_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, {"role": "user", "content": 7})
    with pytest.raises(RecordingError, match=r"chat\.json: Expected `str \| array \| null`, got `int` - at `\$\[0\]\.content`"):
        list(read(path))


def test_arguments_that_are_no_object_make_a_malformed_reply_and_its_result_is_noted(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "bad JSON"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "b", "function": {"name": "f", "arguments": "{}"}}]},
    )
    [run], _ = both(path)
    assert run.events == (called("", ("f", "{", "a")), called("", ("f", "{}", "b")), RecordingEnded())
    assert run.extra == {"unmatched": ["message 3: a: bad JSON"]}
    assert edges(run) == [
        *("model_replied", "malformed", "go_on"),
        *("model_replied", "call_tools", "recording_ended_executing"),
    ]


def test_a_text_is_no_answer_where_several_turns_are_a_persons(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"role": "assistant", "content": "How can I help?"},
        {"role": "user", "content": "q"},
        {"role": "user", "content": "and r"},
        {"role": "assistant", "content": "a"},
    )
    [run], _ = both(path)
    assert run.task == "q"
    assert run.events == (said("How can I help?"), UserSpoke("q"), UserSpoke("and r"), said("a"), RecordingEnded())


def test_the_users_rule_for_errors_replaces_the_formats(tmp_path: Path) -> None:
    path = FOLDER / "openai_chat.json"
    [run], _ = both(path, None, "^sun")
    assert run.events[1] == returned(("weather!", "sunny"), ("weather", "Error: no such place"))
    with pytest.raises(RecordingError, match=r"the error pattern '\(' is no regular expression: "):
        list(read(path, None, "("))


def test_anthropic_blocks_are_not_taken_for_silence(tmp_path: Path) -> None:
    path = written(tmp_path, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]})
    with pytest.raises(
        RecordingError, match="a message holds a tool_result block, which is Anthropic's form; read it with the format anthropic"
    ):
        list(read(path, "openai"))


def test_tau_bench_files() -> None:
    path = FOLDER / "tau_bench.json"
    assert detect(path) == "tau-bench"
    assert both(path) == (
        [
            Recording(
                id="4/0",
                source="tau-bench",
                task="A seat, please.",
                events=(
                    called("I look.", ("find", '{"n":1}', "c1")),
                    returned(("find!", "Error: no seat 1")),
                    called("", ("find", '{"n":2}', "c1")),
                    returned(("find", "An Error is not at the start here")),
                    said("Seat 2 is yours."),
                    UserSpoke("Thanks. ###STOP###"),
                    RecordingEnded(),
                ),
                outcome="success",
                score=1.0,
                ending="user_stop",
                extra={"system": "Policy.", "instruction": "You want a seat."},
            ),
            Recording(
                id="4/1",
                source="tau-bench",
                task="A refund.",
                events=(
                    called("", ("transfer_to_human_agents", "{}", "c9")),
                    returned(("transfer_to_human_agents", "Transfer successful")),
                    RecordingEnded(),
                ),
                outcome="failure",
                score=0.0,
                ending="transfer",
            ),
            Recording(id="6/0", source="tau-bench", task="Hm.", events=(said("Yes?"), RecordingEnded())),
        ],
        [Damaged("item 3 (5/0)", "Expected `str | array | null`, got `int` - at `$.traj[0].content`")],
    )


def test_thirty_assistant_messages_without_an_end_are_tau_benchs_cap(tmp_path: Path) -> None:
    path = tmp_path / "tau.json"
    turns = [{"role": "user", "content": "go on"}, {"role": "assistant", "content": "yes"}] * 30
    path.write_text(json.dumps([{"task_id": 1, "trial": n, "traj": turns[: 2 * n]} for n in (29, 30)]), encoding="utf-8")
    assert [(run.id, run.ending) for run in both(path)[0]] == [("1/29", "unknown"), ("1/30", "cap")]

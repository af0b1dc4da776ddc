"""Recordings of Anthropic messages."""

from __future__ import annotations

import json
from pathlib import Path

from fsm_agent.events import ModelReplied, RecordingEnded, Reply, ToolRequest, ToolSpec, Usage, UserSpoke
from fsm_agent.traces.recordings import Damaged, Recording, detect
from tests.fixtures import FOLDER, both, edges, returned, said


def test_an_object_with_messages_is_one_run() -> None:
    path = FOLDER / "anthropic.json"
    assert detect(path) == "anthropic"
    calls = (ToolRequest("t1", "weather", '{"city":"Bern"}'), ToolRequest("t2", "weather", '{"city":"Chur"}'))
    assert both(path) == (
        [
            Recording(
                id="anthropic",
                source="anthropic",
                task="The weather in Bern and Chur?",
                events=(
                    ModelReplied(Reply("Two calls.\nI look.", calls, "tool_calls", Usage(20, 9))),
                    returned(("weather", "sunny"), ("weather!", "no such place")),
                    ModelReplied(Reply("Sunny in Bern.", finish_reason="stop", taken_as="answer")),
                ),
                tools=(ToolSpec("weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}}),),
                ending="answer",
                model="big-1",
                extra={"system": "Be brief.", "thoughts": ["That will do."], "unmatched": ["message 3: t7: whose?"]},
            )
        ],
        [],
    )


def test_a_conversation_in_json_lines_with_a_call_that_was_cut_off() -> None:
    path = FOLDER / "anthropic_talk.jsonl"
    assert detect(path) == "anthropic"
    runs, damaged = both(path)
    assert runs == [
        Recording(
            id="1",
            source="anthropic",
            task="Hi.",
            events=(
                said("Hello."),
                UserSpoke("Look at this.\n[image]"),
                ModelReplied(Reply("", (ToolRequest("a", "look", "{}"),), "length")),
                UserSpoke("Go on."),
                RecordingEnded(),
            ),
            extra={"unmatched": ["message 5: a: "]},
        )
    ]
    assert edges(runs[0]) == [
        *("model_replied", "said", "go_on", "user_spoke"),
        *("model_replied", "malformed", "go_on", "user_spoke"),
        "recording_ended",
    ]
    assert damaged == [
        Damaged("line 2", "message 3: the content of a tool_result: Expected `array`, got `int`"),
        Damaged("line 3", "message 1 has the role 'tool'; known are user and assistant"),
    ]


def test_a_rule_for_errors_adds_to_the_formats_own_mark() -> None:
    [run], _ = both(FOLDER / "anthropic.json", None, "sun")
    assert run.events[1] == returned(("weather!", "sunny"), ("weather!", "no such place"))


def test_messages_without_a_sign_of_anthropic_are_openais(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    chat: list[dict[str, object]] = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "text", "text": "a"}]}]
    path.write_text(json.dumps(chat), encoding="utf-8")
    assert detect(path) == "openai"
    path.write_text(json.dumps({"system": "Be brief.", "messages": chat}), encoding="utf-8")
    assert detect(path) == "anthropic"
    [run], _ = both(path)
    assert (run.task, run.events, run.extra) == ("q", (said("a", "answer"),), {"system": "Be brief."})

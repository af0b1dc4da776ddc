"""Recordings of InterCode: parallel arrays."""

from __future__ import annotations

import json
from pathlib import Path

from fsm_agent.events import RecordingEnded
from fsm_agent.traces.recordings import Damaged, Recording, detect
from tests.fixtures import FOLDER, both, called, returned, said


def test_a_map_of_parallel_arrays() -> None:
    path = FOLDER / "intercode.json"
    assert detect(path) == "intercode"
    no_code = "Error executing query: Your last `execute` action did not contain sql code"
    assert both(path) == (
        [
            Recording(
                id="0",
                source="intercode",
                task="How many?",
                events=(
                    called("I look.", ("execute", '{"input":"SHOW TABLES"}')),
                    returned(("execute", "[('t',)]")),
                    said("I count.\nAction: SELECT COUNT", "unparseable"),
                    called("I count.", ("execute", '{"input":"SELECT COUNT(*)\\nFROM t"}')),
                    returned(("execute!", "Error executing query: gone")),
                    said("Error executing query: gone", "answer"),
                ),
                outcome="failure",
                score=0.25,
                ending="answer",
                extra={
                    "thoughts": ["Done."],
                    "corrections": [no_code],
                    "rewards": [0, 0, 0, 0.25],
                    "environment": "ic_sql",
                    "hardness": "easy",
                },
            ),
            Recording(  # the harness's own submit, after the cap
                id="1",
                source="intercode",
                task="Which?",
                events=(called("I try.", ("execute", '{"input":"SELECT 1"}')), returned(("execute!", "[[1]]")), RecordingEnded()),
                outcome="success",
                score=1.0,
                ending="cap",
                extra={"rewards": [0, 1.0]},
            ),
            Recording(
                id="3",
                source="intercode",
                task="Who?",
                events=(
                    called("", ("submit", "{}")),
                    returned(("submit", "")),
                    called("", ("execute", '{"input":"ls"}')),
                    returned(("execute", "a.txt")),
                    RecordingEnded(),
                ),
            ),
        ],
        [Damaged("run 2", "its arrays are not parallel: actions 2, observations 2, thoughts 1, rewards 2, valid_action 2")],
    )


def test_the_users_rule_for_errors_does_not_unmark_an_invalid_action(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    history = {
        "actions": ["execute[a]", "execute[b]", "execute[c]"],
        "observations": ["Error executing a", "oh no", "fine"],
        "valid_action": [True, True, False],
    }
    path.write_text(json.dumps({"0": {"turn_history": history}}), encoding="utf-8")

    def results(error_pattern: str | None) -> list[object]:
        [run], _ = both(path, None, error_pattern)
        return list(run.events[1::2])

    assert results(None) == [returned(("execute!", "Error executing a")), returned(("execute", "oh no")), returned(("execute!", "fine"))]
    assert results("^oh") == [returned(("execute", "Error executing a")), returned(("execute!", "oh no")), returned(("execute!", "fine"))]

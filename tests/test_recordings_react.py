"""Recordings of ReAct text logs: the paper's form, Reflexion's files, and notebooks that print them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fsm_agent.events import RecordingEnded
from fsm_agent.traces.recordings import Damaged, Recording, RecordingError, detect, read, remarks
from fsm_agent.traces.recordings.reflexion import Counts, TrialSummary, summaries
from tests.fixtures import FOLDER, both, called, edges, returned, said


def test_the_papers_form() -> None:
    path = FOLDER / "react.txt"
    assert detect(path) == "react"
    runs, damaged = both(path)
    older, claim, cut = runs
    assert older == Recording(
        id="1",
        source="react",
        task="Which is older, A or B?",
        events=(
            called("I search A.\nI think of two lines.", ("Search", r'{"input":"A [the \"first\"]"}')),
            returned(("Search", "A is old.\nIt says of itself:\nThought 7: this is a quotation\nAction 1: Search[none]")),
            called("Now B.", ("Search", '{"input":"B"}')),
            returned(("Search!", "Could not find [B]. Similar: ['A']")),
            said("A", "answer"),
        ),
        outcome="success",
        ending="answer",
        extra={"thoughts": ["I have it."], "verdict": "Answer is CORRECT", "facts": {"wanted": "A"}},
    )
    assert claim == Recording(
        id="17",
        source="react",
        task="C is D.",
        events=(
            said("I do not know how\nAction 1", "unparseable"),
            called("I do not know how", ("Finish", '{"input":"SUPPORTS"}')),
            returned(("Finish!", "Invalid action: Finish[SUPPORTS]")),
            called("Again.", ("Lookup", '{"input":"C] on the site"}')),
            returned(("Lookup!", "Invalid action: lookup[C] on the site")),
            said("Hm.\nAction: Login", "unparseable"),
            RecordingEnded(),
        ),
        outcome="failure",
        score=0.0,
        ending="cap",
        extra={
            "corrections": ["Invalid action: login"],
            "facts": {"steps": 4, "answer": "", "gt_answer": "REFUTES", "em": 0, "reward": 0},
        },
    )
    assert cut == Recording(
        id="5",
        source="react",
        task="What ends in the middle?",
        events=(called("I search.", ("Search", '{"input":"it"}')), RecordingEnded()),
    )
    assert edges(cut) == ["model_replied", "call_tools", "recording_ended_executing"]
    assert damaged == [
        Damaged("line 42", "no step follows the task 'And this one, which was never begun?'"),
        Damaged("line 45", "Thought 3 comes where Thought 2 is expected"),
    ]


def test_logs_without_numbers() -> None:
    path = FOLDER / "react_unnumbered.txt"
    assert detect(path) == "react"
    assert both(path, None, "^Error") == (
        [
            Recording(
                id="1",
                source="react",
                task="What is 2 times 21?",
                events=(
                    called("I calculate.", ("multiply", '{"a": 2, "b": 21}')),
                    returned(("multiply", "42\nand no remainder")),
                    said("42", "answer"),
                ),
                ending="answer",
                extra={"thoughts": ["I am sure."]},
            ),
            Recording(
                id="2",
                source="react",
                task="And what is it in words?",
                events=(
                    called("", ("say", '{"input":"42"}')),
                    returned(("say!", "Error 5")),
                    called("", ("say", '{"input":"42"}')),
                    returned(("say", "forty-two")),
                    RecordingEnded(),
                ),
            ),
        ],
        [],
    )


def test_logs_without_thoughts_or_tasks(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    step = "Action {k}: Search[{k}]\nObservation {k}: found {k}\n"
    path.write_bytes("".join(step.format(k=k) for k in (1, 2, 1)).replace("\n", "\r\n").encode())
    runs, damaged = both(path, "react")
    assert [[type(event).__name__ for event in run.events] for run in runs] == [
        ["ModelReplied", "ToolsReturned", "ModelReplied", "ToolsReturned", "RecordingEnded"],
        ["ModelReplied", "ToolsReturned", "RecordingEnded"],
    ]
    assert damaged == []


def test_a_finish_that_more_steps_follow_is_a_call(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(
        "Question: q\nThought 1: a\nAction 1: Finish[x]\nObservation 1: Answer is INCORRECT\nThought 2: b\nAction 2: finish[y]\n", "utf-8"
    )
    [run], _ = both(path)
    assert run.events == (called("a", ("Finish", '{"input":"x"}')), returned(("Finish", "Answer is INCORRECT")), said("y", "answer"))


@pytest.mark.parametrize("facts", ["{'em': float(1)}", "{'em': '\\ud800'}", "{1, 2}", "{'em': }", "{'\\d': 1j}"])
def test_facts_that_cannot_be_read_are_kept_as_text(tmp_path: Path, facts: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(f"Claim: c\nThought 1: a\nAction 1: Finish[x]\nObservation 1: Episode finished, reward = 1\n{facts}\n", "utf-8")
    [run], _ = both(path)
    assert (run.outcome, run.score, run.extra["facts"]) == ("success", 1.0, {"text": facts})


def test_reflexions_files() -> None:
    path = FOLDER / "reflexion.txt"
    assert detect(path) == "reflexion"
    runs, damaged = both(path)
    assert damaged == [Damaged("2/incorrect/1 (line 64)", "no step follows the task 'Five?'")]
    assert [(run.id, run.outcome, run.ending) for run in runs] == [
        ("1/correct/1", "success", "answer"),
        ("1/incorrect/1", "failure", "answer"),
        ("1/incorrect/2", "failure", "answer"),
        ("1/halted/2", "failure", "cap"),
        ("2/correct/1", "success", "answer"),
        ("2/incorrect/2", "failure", "answer"),
    ]
    assert runs[1] == Recording(
        id="1/incorrect/1",
        source="reflexion",
        task="Two?",
        events=(
            called("I search.", ("Search", '{"input":"2"}')),
            returned(("Search", "Question: who is two?\nNobody.")),
            said("3", "answer"),
        ),
        outcome="failure",
        ending="answer",
        extra={
            "thoughts": ["I guess."],
            "verdict": "Answer is INCORRECT",
            "facts": {"wanted": "2"},
            "trial": 1,
            "also_listed": "1/halted/1",
        },
    )
    assert runs[3].events == (
        called("I search.", ("Search", '{"input":"4"}')),
        returned(("Search!", "The last page Searched, cannot be found")),
        RecordingEnded(),
    )
    assert runs[4].extra["printed_before"] == "1/correct/1"


def test_reflexions_summary_lines_stand_beside_what_the_trials_hold() -> None:
    path = FOLDER / "reflexion.txt"
    assert summaries(path) == [
        TrialSummary(1, Counts(1, 2, 1), Counts(1, 2, 1)),
        TrialSummary(2, Counts(1, 0, 1), Counts(1, 2, 0)),
    ]
    assert remarks(path) == (
        "trial 2: its summary line says 1 correct, 0 incorrect, 1 halted (2 runs); it holds 1 correct, 2 incorrect, 0 halted (3 runs)",
    )
    assert remarks(FOLDER / "react.txt") == ()


def test_notebooks_have_their_chunks_joined() -> None:
    path = FOLDER / "notebook.ipynb"
    assert detect(path) == "notebook"
    runs, damaged = both(path)
    assert damaged == [Damaged("cell 2, line 28 of its output", "no step follows the task 'nothing'")]
    assert [(run.id, run.task, run.outcome, run.score, run.ending) for run in runs] == [
        ("3", "A is B.", "success", 1.0, "answer"),
        ("9", "C is D.", "failure", 0.0, "cap"),
        ("1", "", "failure", 0.5, "unknown"),
        ("2", "", "success", 1.0, "unknown"),
    ]
    assert runs[0].events == (
        called("I look.", ("Search", '{"input":"A"}')),
        returned(("Search", "A is B.")),
        said("SUPPORTS", "answer"),
    )
    assert runs[3].events == (
        called("", ("think", '{"input":"well"}')),
        returned(("think", "OK.")),
        called("", ("click", '{"input":"Buy"}')),
        returned(("click", "Your score (min 1.0): 1.0")),
        RecordingEnded(),
    )


@pytest.mark.parametrize(
    ("form", "text", "problem"),
    [
        ("react", "hello", "is no ReAct log: no line begins with Action: or Action 1:"),
        ("reflexion", "hello", "is no Reflexion log: no line says BEGIN TRIAL"),
        ("notebook", json.dumps({"cells": []}), "no cell has printed a ReAct log"),
        ("notebook", "hello", "this is not JSON (Expecting value at column 1)"),
    ],
)
def test_what_is_no_log_is_told_in_a_line(tmp_path: Path, form: str, text: str, problem: str) -> None:
    path = tmp_path / "log"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordingError) as caught:
        list(read(path, form))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)

"""Two groups of runs, and two runs, side by side."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path

import pytest

from fsm_agent.diagrams import render
from fsm_agent.diagrams.diff import diff_view
from fsm_agent.diagrams.graph import START, Edge, Line, View
from fsm_agent.diagrams.heat import THINNEST, WIDEST, heat_of
from fsm_agent.diagrams.run_diff import Parting, parting, run_diff_view
from fsm_agent.events import ModelReplied, Observation, RecordingEnded, Reply, ToolRequest, ToolsReturned
from fsm_agent.guards import ConsecutiveErrors, Guard, MaxSteps
from fsm_agent.machine import Run
from fsm_agent.traces.recordings import Recording
from fsm_agent.traces.replay import replay
from tests.scripted_recordings import recorded

GOOD = (recorded("1", "a b =", "success"), recorded("2", "a =", "success"))
BAD = (recorded("3", "a! a! a! b =", "failure"), recorded("4", "a ? a a", "failure", "cap"), recorded("5", "a =", "failure"))
HOSTILE = '</text><script>alert(1)</script>"]]>\u202e\u2028\x00\\N\ud800'


def view(first: Iterable[Recording] = GOOD, second: Iterable[Recording] = BAD, guards: tuple[Guard, ...] = ()) -> View:
    return diff_view(heat_of(first, guards), heat_of(second, guards), ("good", "bad"), "made")


def played(script: str, *guards: Guard, task: str = "") -> Run:
    recording = recorded("x", script)
    return replay(Recording("x", "made", task or recording.task, recording.events), guards)


# --- groups ------------------------------------------------------------------------------------------------------


def test_the_whole_text_of_two_groups() -> None:
    assert view(guards=(ConsecutiveErrors(3),)).text == (
        """\
made: A is good (2 runs), B is bad (3 runs)
Beside an arrow: how often it is taken in a run, or, into a double box, by which part of the runs.
+ and solid: more in A. − and dashed: more in B. The wider, the greater the difference. Without a sign: none, or neither.

 −0.50 a run  Deciding  -> Parsing                      model replied: A 2.50 · B 3.00 a run
    − only B  Deciding  -> Halted(recording_ended)      recording ended: A 0.0% · B 33.3%
+66.7 points  Parsing   -> Halted(final_answer)         final answer: A 100.0% · B 33.3%
    − only B  Parsing   -> Observing                    malformed: A 0.00 · B 0.33 a run
 −0.83 a run  Parsing   -> Executing                    tool call: A 1.50 · B 2.33 a run
 −0.83 a run  Executing -> Observing                    tools returned: A 1.50 · B 2.33 a run
    − only B  Observing -> Halted(consecutive_errors)   errors: A 0.0% · B 33.3%
 −0.83 a run  Observing -> Deciding                     go on: A 1.50 · B 2.33 a run

Halted(final_answer)         A 2 of 2 runs, 100.0% · B 1 of 3 runs, 33.3%
Halted(consecutive_errors)   A 0 of 2 runs, 0.0% · B 1 of 3 runs, 33.3%
Halted(recording_ended)      A 0 of 2 runs, 0.0% · B 1 of 3 runs, 33.3%
"""
    )


def test_the_whole_dot_text_of_two_groups() -> None:
    """It is in ``fixtures/diff.dot``, which is written anew when the look of drawings changes."""
    found = view([recorded("1", "a =", "success")], [recorded("2", "a a", "failure")])
    assert render(found, "dot").decode() == (Path(__file__).parent / "fixtures" / "diff.dot").read_text(encoding="utf-8")


def test_what_differs_is_told_by_sign_dash_and_width() -> None:
    edges = {edge.id: edge for edge in view().graph.edges}

    assert edges["final_answer"] == Edge(
        "final_answer",
        "Parsing",
        "Halted_final_answer",
        "more",
        (Line("+33.3 points", "steps"), Line("final answer"), Line("A 100.0% · B 66.7%", "reading")),
        4,
        5.19,
    )
    assert edges["go_on"].kind == "less"
    assert edges["go_on"].width == WIDEST
    assert edges["malformed"].lines[0] == Line("− only B", "steps")
    assert edges["said"] == Edge("said", "Parsing", "Observing", "untaken", (Line("said to a person"),))
    assert edges[START].lines == ()


def test_equal_groups_have_no_sign() -> None:
    found = view(GOOD, GOOD)

    assert {edge.kind for edge in found.graph.edges if edge.times} == {"taken"}
    assert {edge.width for edge in found.graph.edges if edge.times} == {THINNEST}
    assert "\nequal  Deciding  -> Parsing                      model replied: A 2.50 · B 2.50 a run\n" in found.text


def test_a_difference_that_does_not_show_in_the_figures_is_none() -> None:
    many = [recorded(str(i), "a =") for i in range(2000)]
    odd = [*many[1:], recorded("odd", "a a =")]
    edges = {edge.id: edge for edge in view(many, odd).graph.edges}

    assert edges["go_on"].kind == "taken"


def test_a_group_without_runs_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="there are no runs in one of the groups that are to be compared"):
        view(GOOD, [])


def test_damaged_runs_are_told_of_their_group() -> None:
    impossible = Recording("x", "made", "t", (ToolsReturned(()),))
    assert "\nB: 1 damaged run was left out.\n" in view(GOOD, [*BAD, impossible]).text


# --- two runs ----------------------------------------------------------------------------------------------------


def test_the_whole_text_of_two_runs() -> None:
    assert run_diff_view(played("a b a! ="), played("a b a c ? ="), ("one", "two")).text == (
        """\
A is one (Halted(final_answer) at step 4), B is two (Halted(final_answer) at step 6)
They part at step 3, by what was called, returned or answered:
A: a it failed
B: a a
Beside an arrow: how often it was taken. Solid with +: only in A. Dashed with −: only in B. With A and B: in both.

A ×4, B ×6   Deciding  -> Parsing                      model replied
A ×1, B ×1   Parsing   -> Halted(final_answer)         final answer
− only B ×1  Parsing   -> Observing                    malformed
A ×3, B ×4   Parsing   -> Executing                    tool call
A ×3, B ×4   Executing -> Observing                    tools returned
A ×3, B ×5   Observing -> Deciding                     go on

A: well

B: well
"""
    )


def test_edges_of_either_run_alone_and_of_both() -> None:
    graph = run_diff_view(played("a b =", MaxSteps(2)), played("a ? a"), ("one", "two")).graph
    kinds = {edge.id: edge.kind for edge in graph.edges}

    assert kinds == {
        "start": "taken", "model_replied": "taken", "recording_ended": "less", "malformed": "less", "said": "untaken", "call_tools": "taken",
        "tools_returned": "taken", "max_steps": "more", "go_on": "taken",
    }  # fmt: skip
    assert [node.lines for node in graph.nodes[5:]] == [
        (
            Line("Halted(max_steps)", "name"),
            Line("A at step 2: stopped: reached the cap of 2 st…"),
        ),
        (Line("Halted(recording_ended)", "name"), Line("B at step 3: the recording ends here")),
    ]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a b =", "a b =", None),
        ("a b =", "a c =", Parting(2, "b{}", "c{}")),
        ("a b:1 =", "a b:2 =", Parting(2, "b 1", "b 2")),
        ("a b =", "a b b =", Parting(3, "well", "b{}")),
        ("a b", "a b b", Parting(3, "", "b{}")),
        ('" a', '" b', Parting(2, "a{}", "b{}")),
        ("", "a =", Parting(1, "", "a{}")),
    ],
)
def test_the_first_step_at_which_they_part(first: str, second: str, expected: Parting | None) -> None:
    assert parting(played(first), played(second)) == expected


def test_words_of_talk_do_not_part_runs_but_answers_do() -> None:
    def says(text: str, taken_as: str) -> Run:
        reply = Reply(text, taken_as=taken_as)  # type: ignore[arg-type]  # one of the words
        return replay(Recording("x", "made", "t", (ModelReplied(reply), *([RecordingEnded()] if taken_as == "talk" else []))), ())

    assert parting(says("hello", "talk"), says("good day", "talk")) is None
    assert parting(says("4", "answer"), says("5", "answer")) == Parting(1, "4", "5")


def test_guards_part_runs_that_did_the_same() -> None:
    assert parting(played("a! a! =", ConsecutiveErrors(2)), played("a! a! =")) == Parting(2, "consecutive_errors", "go_on")


def test_runs_that_are_the_same_say_so_and_other_tasks_are_told() -> None:
    same = run_diff_view(played("a ="), played("a =", task="another"), ("one", "two"))
    assert same.graph.notes[:2] == ("They are the same at every step.", "They had different tasks.")


@pytest.mark.parametrize("form", ["svg", "dot", "mermaid", "text", "png"])
def test_hostile_runs_are_text(form: str) -> None:
    def run(text: str) -> Run:
        call = ModelReplied(Reply("", (ToolRequest("", text, "{}"),)))
        events = (call, ToolsReturned((Observation(text, text + "x" * 1_000_000),)), ModelReplied(Reply(text, taken_as="answer")))
        return replay(Recording("x", "made", text, events), ())

    drawn = render(run_diff_view(run(HOSTILE), run(HOSTILE + "2"), (HOSTILE, HOSTILE)), form)
    assert len(drawn) < 200_000
    if form != "png":
        assert not {"\u202e", "\u2028", "\x00"} & set(drawn.decode())
    if form == "svg":
        assert not [node for node in ET.fromstring(drawn.decode()).iter() if node.tag.endswith("script")]

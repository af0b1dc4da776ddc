"""The heat map of many runs: what is counted, and what is drawn of it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from fsm_agent.diagrams import render
from fsm_agent.diagrams.graph import START, Edge, Line, Node
from fsm_agent.diagrams.heat import THINNEST, WIDEST, Heat, heat_of, heat_view, width
from fsm_agent.events import ModelReplied, Reply, ToolRequest, ToolsReturned
from fsm_agent.guards import ConsecutiveErrors, Guard, MaxSteps
from fsm_agent.traces.recordings import Damaged, Recording
from tests.scripted_recordings import recorded

RUNS = (
    recorded("1", "a b =", "success"),
    recorded("2", "a =", "success"),
    recorded("3", "a! a! a! b =", "failure"),
    recorded("4", "a ? a a", "failure", "cap"),
    recorded("5", "a"),
)
GUARDS: tuple[Guard, ...] = (ConsecutiveErrors(3),)
FIXTURES = Path(__file__).parent / "fixtures"


def test_edges_halts_and_endings_are_counted() -> None:
    heat = heat_of(RUNS, GUARDS)

    assert (heat.runs, heat.model_calls) == (5, 13)
    assert heat.times == {
        "model_replied": 13, "recording_ended": 2, "final_answer": 2, "malformed": 1, "call_tools": 10, "tools_returned": 10,
        "consecutive_errors": 1, "go_on": 10,
    }  # fmt: skip
    assert heat.taken_by == {
        "model_replied": 5, "recording_ended": 2, "final_answer": 2, "malformed": 1, "call_tools": 5, "tools_returned": 5,
        "consecutive_errors": 1, "go_on": 5,
    }  # fmt: skip
    assert heat.halts == {
        ("final_answer", "success"): 2,
        ("consecutive_errors", "failure"): 1,
        ("recording_ended", "failure"): 1,
        ("recording_ended", "unknown"): 1,
    }
    assert heat.endings == {"cap": 1, "unknown": 1}
    assert heat.reasons == ["final_answer", "recording_ended", "consecutive_errors"]


def test_as_recorded_there_are_no_guards() -> None:
    heat = heat_of(RUNS)

    assert heat.reasons == ["final_answer", "recording_ended"]
    assert heat.model_calls == 3 + 2 + 5 + 4 + 1


def test_the_whole_text() -> None:
    assert heat_view(heat_of(RUNS, GUARDS), "made").text == (
        """\
made: 5 runs, 13 model calls
Beside an arrow: how often it was taken, and its share of all that left the state. The wider, the more often.
In a double box: how many of the runs ended so. Dashed: never taken.

       13   86.7%  Deciding  -> Parsing                      model replied, in 5 runs
        2   13.3%  Deciding  -> Halted(recording_ended)      recording ended, in 2 runs
        2   15.4%  Parsing   -> Halted(final_answer)         final answer, in 2 runs
        1    7.7%  Parsing   -> Observing                    malformed, in 1 run
       10   76.9%  Parsing   -> Executing                    tool call, in 5 runs
       10  100.0%  Executing -> Observing                    tools returned, in 5 runs
        1    9.1%  Observing -> Halted(consecutive_errors)   errors, in 1 run
       10   90.9%  Observing -> Deciding                     go on, in 5 runs

        2   40.0%  Halted(final_answer)         2 succeeded
        2   40.0%  Halted(recording_ended)      1 failed, 1 unknown
                     cap 1 (20.0%)
                     unknown 1 (20.0%)
        1   20.0%  Halted(consecutive_errors)   1 failed

never taken: Halted(model_error), a person spoke, Halted(cancelled), said to a person
"""
    )


def test_the_whole_graph() -> None:
    graph = heat_view(heat_of(RUNS, GUARDS), "made").graph

    def label(times: str, what: str, share: str) -> tuple[Line, ...]:
        return Line(times, "steps"), Line(what), Line(share, "reading")

    assert (graph.name, graph.title) == ("heat", "made: 5 runs, 13 model calls")
    assert graph.nodes == (
        Node("start", "start", 0),
        Node("Deciding", "state", 1, (Line("Deciding", "name"),)),
        Node("Parsing", "state", 2, (Line("Parsing", "name"),)),
        Node("Executing", "state", 3, (Line("Executing", "name"),)),
        Node("Observing", "state", 4, (Line("Observing", "name"),)),
        Node(
            "Halted_final_answer",
            "halted",
            5,
            (Line("Halted(final_answer)", "name"), Line("2 of 5 runs, 40.0%"), Line("2 succeeded")),
            "final_answer",
        ),
        Node(
            "Halted_recording_ended",
            "halted",
            5,
            (
                Line("Halted(recording_ended)", "name"),
                Line("2 of 5 runs, 40.0%"),
                Line("1 failed, 1 unknown"),
                Line("cap 1 (20.0%)", "evidence"),
                Line("unknown 1 (20.0%)", "evidence"),
            ),
            "recording_ended",
        ),
        Node(
            "Halted_consecutive_errors",
            "halted",
            5,
            (Line("Halted(consecutive_errors)", "name"), Line("1 of 5 runs, 20.0%"), Line("1 failed")),
            "consecutive_errors",
        ),
    )
    assert graph.edges == (
        Edge(START, START, "Deciding", "taken", (Line("5 runs", "steps"),), 5, 6.27),
        Edge("model_replied", "Deciding", "Parsing", "taken", label("13", "model replied", "86.7% of Deciding"), 13, 9),
        Edge(
            "recording_ended", "Deciding", "Halted_recording_ended", "halting", label("2", "recording ended", "13.3% of Deciding"), 2, 4.62
        ),
        Edge("final_answer", "Parsing", "Halted_final_answer", "halting", label("2", "final answer", "15.4% of Parsing"), 2, 4.62),
        Edge("malformed", "Parsing", "Observing", "taken", label("1", "malformed", "7.7% of Parsing"), 1, 3.8),
        Edge("said", "Parsing", "Observing", "untaken", (Line("said to a person"),)),
        Edge("call_tools", "Parsing", "Executing", "taken", label("10", "tool call", "76.9% of Parsing"), 10, 8.11),
        Edge("tools_returned", "Executing", "Observing", "taken", label("10", "tools returned", "100.0% of Executing"), 10, 8.11),
        Edge("consecutive_errors", "Observing", "Halted_consecutive_errors", "halting", label("1", "errors", "9.1% of Observing"), 1, 3.8),
        Edge("go_on", "Observing", "Deciding", "taken", label("10", "go on", "90.9% of Observing"), 10, 8.11),
    )


def test_the_whole_dot_text() -> None:
    """It is in ``fixtures/heat.dot``, which is written anew when the look of drawings changes."""
    two = [recorded("1", "a =", "success"), recorded("2", "a a", "failure")]
    assert render(heat_view(heat_of(two), "made"), "dot").decode() == (FIXTURES / "heat.dot").read_text(encoding="utf-8")


def test_what_is_rare_is_seen_and_what_is_frequent_has_bounds() -> None:
    assert width(0, 1_000_000) == THINNEST
    assert THINNEST < width(1, 100) < width(2, 100) < width(100, 100) == WIDEST
    assert width(0, 0) == THINNEST


def test_damaged_runs_are_counted_and_in_no_figure() -> None:
    impossible = Recording("x", "made", "t", (ToolsReturned(()),))
    heat = heat_of([*RUNS, Damaged("line 3", "no JSON"), impossible])

    assert heat.runs == 5
    assert [(each.place, each.problem.partition(":")[0]) for each in heat.damaged] == [
        ("line 3", "no JSON"),
        ("made:x", "ToolsReturned in Deciding (step 0)"),
    ]
    assert "2 damaged runs were left out." in heat_view(heat).text


def test_a_run_without_an_end_did_not_end() -> None:
    heat = heat_of([Recording("x", "made", "t", (ModelReplied(Reply("", (ToolRequest("", "a", "{}"),))),))])

    assert heat.halts == {(None, "unknown"): 1}
    assert "        1  100.0%  not ended                    1 unknown\n" in heat_view(heat).text


def test_a_title_that_nobody_gave_is_left_out() -> None:
    assert heat_view(heat_of(RUNS[:1])).graph.title == "1 run, 3 model calls"


def test_runs_are_not_kept() -> None:
    alive: list[int] = []

    def runs() -> Iterator[Recording]:
        for i in range(200):
            alive.append(i)
            yield recorded(str(i), "a =")

    heat = heat_of(runs(), (MaxSteps(5),))
    assert len(alive) == heat.runs == 200
    assert heat == Heat(
        (MaxSteps(5),), 200, 400,
        heat.times, heat.taken_by, heat.halts, heat.endings, [],
    )  # fmt: skip
    assert all(len(counter) < 10 for counter in (heat.times, heat.taken_by, heat.halts, heat.endings))


HOSTILE = '</title><script>alert(1)</script>"]]>\u202e\u2028\x00&#33;"\\N'


@pytest.mark.parametrize("form", ["svg", "dot", "mermaid", "text", "png"])
def test_hostile_titles_and_endings_are_text(form: str) -> None:
    heat = heat_of(RUNS[3:])
    heat.endings[HOSTILE] = 1
    drawn = render(heat_view(heat, HOSTILE * 3), form)

    if form == "png":
        assert drawn.startswith(b"\x89PNG")
        return
    for steering in ("\u202e", "\u2028", "\x00"):
        assert steering not in drawn.decode()
    if form == "svg":
        assert not [node for node in ET.fromstring(drawn.decode()).iter() if node.tag.endswith("script")]


def test_the_same_runs_give_the_same_bytes() -> None:
    for form in ("svg", "dot", "mermaid", "text"):
        assert render(heat_view(heat_of(RUNS, GUARDS), "made"), form) == render(heat_view(heat_of(RUNS, GUARDS), "made"), form)

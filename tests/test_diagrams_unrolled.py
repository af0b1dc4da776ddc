"""Runs unrolled: every visit is a node, what repeats is folded, and any run is one screen."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from fsm_agent.cli import cli
from fsm_agent.diagrams import View, render, unrolled_view
from fsm_agent.diagrams.unrolled import turns_of
from fsm_agent.drivers import run
from fsm_agent.events import UserSpoke
from fsm_agent.guards import classic
from fsm_agent.language import language
from fsm_agent.machine import Run, Taken
from fsm_agent.scenarios import load_all
from tests.drawn import laid, played, talk


@cache
def scenario(name: str) -> Run:
    told = load_all()[name]
    return run(told.task, model=told.model, tools=told.named_tools.values(), guards=told.guards, lang="en").trace.replay()


def mixed(steps: int) -> Run:
    """Steps good and bad in no order that repeats."""
    replies = ["no form" if step * step % 7 == 1 or step % 5 == 0 else f"TOOL add a=1,b={step}" for step in range(steps)]
    return played(*replies, guards=classic(steps, 2, 9))


@cache
def shown() -> dict[str, View]:
    runs = {
        **{name: scenario(name) for name in load_all()},
        "talk": talk(),
        "open": played(steps=2),
        "new": Run("a task", guards=classic()),
        "loop": played(guards=classic(400, 2, 3)),
        "mixed": mixed(400),
        "in turn": played(*("no form" if step % 3 == 0 else f"TOOL add a=1,b={step}" for step in range(400)), guards=classic(400, 2, 3)),
    }
    return {name: unrolled_view(each, name) for name, each in runs.items()}


def test_a_run_unrolled_as_text() -> None:
    assert (
        render(shown()["d"], "text").decode()
        == """\
d: Halted(max_steps) at step 6, 6 model calls

×5, steps 1–5
  Deciding  -> Parsing    model replied
  Parsing   -> Executing  tool call · repeats 0/2
  Executing -> Observing  tools returned
  Observing -> Deciding   go on · errors 0/2 · steps 5/6
step 6
  Deciding  -> Parsing    model replied
  Parsing   -> Executing  tool call · repeats 0/2
  Executing -> Observing  tools returned
  Observing -> Halted(max_steps)  steps 6/6 · errors 0/2

stopped: reached the cap of 6 steps, halted so that an endless loop cannot burn the budget
"""
    )


def test_each_visit_is_a_node_and_says_what_was_said_there() -> None:
    nodes = [(node.row, [line.text for line in node.lines]) for node in shown()["c"].graph.nodes]
    assert nodes[1:-1] == [
        (0, ["Deciding", "step 1"]),
        (0, ["Parsing", "add{a=三, b=四}"]),
        (0, ["Executing"]),
        (0, ["Observing", "add TOOL_ERROR: add", "expected an integer, go…"]),
        (1, ["Deciding", "step 2"]),
        (1, ["Parsing", "search{q=天气}"]),
        (1, ["Executing"]),
        (1, ["Observing", "search TOOL_ERROR:", "unknown tool search"]),
    ]
    assert nodes[-1][1][0] == "Halted(consecutive_errors)"


@pytest.mark.parametrize("name", list(load_all()))
def test_the_edges_join_the_visits_in_order(name: str) -> None:
    edges = shown()[name].graph.edges
    assert all(before.dest == after.source for before, after in pairwise(edges[1:]))
    assert edges[-1].kind == "halting"


def test_steps_of_one_shape_in_a_row_are_one_row_and_so_are_loops_of_several() -> None:
    def rows(run: Run) -> list[str]:
        return [turn.heading(language("en")) for turn in turns_of(run)]

    assert rows(played(guards=classic(400, 2, 3))) == ["×399, steps 1–399", "step 400"]
    assert rows(played(*("no form" if step % 2 else f"TOOL add a=1,b={step}" for step in range(9)), guards=classic(9, 2, 3))) == [
        "×4, steps 1–8, 1 of 2 in turn",
        "×4, steps 1–8, 2 of 2 in turn",
        "step 9",
    ]
    assert rows(Run("a task")) == []


def test_every_step_of_a_run_is_in_exactly_one_row() -> None:
    for each in (mixed(60), talk(), scenario("f")):
        steps = sorted(step[0].taken.step for turn in turns_of(each) for step in turn.steps)
        assert steps == sorted({entry.step for entry in each.log if isinstance(entry, Taken)})


def test_rows_that_are_too_many_are_counted_in_one_box() -> None:
    (box,) = (node for node in shown()["mixed"].graph.nodes if node.kind == "folded")
    assert [line.text for line in box.lines] == [
        "… steps 8 to 396:",
        "×222 model replied, tool call, tools returned, go on",
        "×167 model replied, malformed, go on",
    ]


@pytest.mark.parametrize("name", list(shown()))
def test_a_run_unrolled_is_one_screen_and_nothing_in_it_touches(name: str) -> None:
    drawn = laid(render(shown()[name], "dot").decode())
    assert drawn.collisions(gap=1) == []
    assert drawn.width < 1500
    assert drawn.height < 750


@pytest.mark.parametrize("name", list(shown()))
def test_the_rows_stand_in_order(name: str) -> None:
    drawn = laid(render(shown()[name], "dot").decode()).nodes
    firsts = {node.row: drawn[node.id] for node in reversed(shown()[name].graph.nodes) if node.kind != "start"}
    assert all(firsts[row].high > firsts[row + 1].high for row in sorted(firsts)[:-1])


def test_a_run_that_did_not_end_shows_where_it_stands() -> None:
    assert [line.text for line in shown()["open"].graph.nodes[-1].lines] == ["Deciding", "not ended"]
    assert [line.text for line in shown()["new"].graph.nodes[-1].lines] == ["Deciding", "not ended"]
    assert shown()["new"].graph.nodes[-1].current
    spoken = Run("a task")
    spoken.feed(UserSpoke("hello"))
    assert [line.text for node in unrolled_view(spoken).graph.nodes for line in node.lines] == [
        "Deciding",
        "before step 1",
        "a person spoke",
        "Deciding",
        "not ended",
    ]


def test_it_is_drawn_in_every_format_and_in_chinese() -> None:
    view = unrolled_view(scenario("d"), lang=language("zh"))
    assert "×5" in ET.tostring(ET.fromstring(render(view, "svg")), encoding="unicode")
    assert render(view, "png").startswith(b"\x89PNG")
    assert "Deciding_0_1 ==>" in render(view, "mermaid").decode()


def test_the_command_draws_it() -> None:
    result = CliRunner().invoke(cli, ["draw", "d", "--view", "unrolled", "--lang", "en"])
    assert (result.exit_code, result.stdout.splitlines()[2]) == (0, "×5, steps 1–5")
    assert CliRunner().invoke(cli, ["draw", "--view", "unrolled"]).exit_code == 2

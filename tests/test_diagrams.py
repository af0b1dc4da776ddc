"""What the drawings say: views, DOT text, Mermaid text and timelines, each as a whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import attrs
import pytest
from graphviz import Digraph

from fsm_agent.diagrams import FORMATS, View, draw_machine, draw_path, machine_view, path_view, render
from fsm_agent.diagrams.gallery import main as gallery
from fsm_agent.diagrams.gallery import not_current, views
from fsm_agent.diagrams.graph import Edge
from fsm_agent.diagrams.text import columns, one_line, wrapped
from fsm_agent.drivers import run
from fsm_agent.events import Cancelled, Fact, ModelFailed, ModelReplied, Observation, Reply
from fsm_agent.guards import Guard, Reading, classic
from fsm_agent.machine import Run
from fsm_agent.models import ScriptedModel
from fsm_agent.options import FEATURES
from fsm_agent.table import ROWS
from fsm_agent.tools import add
from fsm_agent.traces import Trace
from tests.drawn import played, talk

DIAGRAMS = Path(__file__).parent.parent / "diagrams"


def edges(view: View) -> dict[str, Edge]:
    return {edge.id: edge for edge in view.graph.edges}


def told(edge: Edge) -> list[str]:
    return [line.text for line in edge.lines]


def halt(view: View) -> list[str]:
    return [line.text for node in view.graph.nodes if node.kind == "halted" for line in node.lines]


# --- the gallery ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(views()))
def test_the_dot_text_of_the_gallery_is_the_committed_one(name: str) -> None:
    assert render(views()[name], "dot").decode() == (DIAGRAMS / f"{name}.dot").read_text(encoding="utf-8")


def test_the_gallery_is_written_and_found_current(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gallery([str(tmp_path)]) == 0
    assert gallery(["--check", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.{form}" for name in views() for form in ("dot", "svg"))
    assert capsys.readouterr().err == ""


def test_the_gallery_names_files_that_are_not_current(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gallery([str(tmp_path)])
    (tmp_path / "c.dot").write_text("digraph {}")
    (tmp_path / "d.dot").unlink()
    (tmp_path / "e.svg").unlink()
    (tmp_path / "old.dot").write_text("digraph {}")
    assert gallery(["--check", str(tmp_path)]) == 1
    assert [path.name for path in not_current(tmp_path)] == ["c.dot", "d.dot", "e.svg", "old.dot"]
    assert [line.split(" is not current")[0] for line in capsys.readouterr().err.splitlines()] == [
        str(path) for path in not_current(tmp_path)
    ]


# --- the machine ---------------------------------------------------------------------------------------------------


def test_the_machine_shows_every_row_of_the_table_and_every_halt_reason_once() -> None:
    graph = machine_view(features=FEATURES).graph
    assert [edge.id for edge in graph.edges] == ["start", *(row.id for row in ROWS)]
    assert [edge.id for edge in machine_view().graph.edges] == ["start", *(row.id for row in ROWS if row.needs is None)]
    halts = [node.reason for node in graph.nodes if node.kind == "halted"]
    assert halts == list(dict.fromkeys(row.reason for row in ROWS if row.reason))
    for row in ROWS:
        assert told(edges(machine_view(features=FEATURES))[row.id])[-1] == (f"{row.trigger} [{row.guard}]" if row.guard else row.trigger)


def test_the_machine_of_some_guards_has_their_edges_only_and_a_users_own() -> None:
    @attrs.frozen
    class TooManySearches(Guard):
        reason = "too_many_<searches>"

        def start(self) -> int:
            return 0

        def fold(self, memory: int, fact: Fact, step: int) -> int:
            return memory

        def judge(self, memory: int) -> Reading:
            return Reading(self.reason, memory, 1, memory >= 1)

    graph = machine_view((*classic(), TooManySearches())).graph
    reasons = [node.reason for node in graph.nodes if node.kind == "halted"]
    assert reasons == [
        "model_error",
        "cancelled",
        "recording_ended",
        "final_answer",
        "repeated_call",
        "consecutive_errors",
        "too_many_<searches>",
        "max_steps",
    ]
    assert graph.node("Halted_too_many__searches_").lines[0].text == "Halted(too_many_<searches>)"
    assert b"Halted(too_many_&lt;searches&gt;)" in render(machine_view((TooManySearches(),)), "svg")


def test_the_machine_as_text() -> None:
    assert (
        render(machine_view(classic()), "text").decode()
        == """\
The machine: 5 states, 16 edges, 7 halt reasons

Deciding (a run starts here)
  model_replied                 -> Parsing                     model replied
  model_failed                  -> Halted(model_error)         model failed
  user_spoke                    -> Deciding                    a person spoke
  cancelled                     -> Halted(cancelled)           cancelled
  recording_ended               -> Halted(recording_ended)     recording ended

Parsing
  parsed [is_final_answer]      -> Halted(final_answer)        final answer
  parsed [RepeatedCall]         -> Halted(repeated_call)       repeats
  parsed [is_malformed]         -> Observing                   malformed
  parsed [is_said]              -> Observing                   said to a person
  parsed                        -> Executing                   tool call

Executing
  tools_returned                -> Observing                   tools returned
  cancelled                     -> Halted(cancelled)           cancelled
  recording_ended               -> Halted(recording_ended)     recording ended

Observing
  observed [ConsecutiveErrors]  -> Halted(consecutive_errors)  errors
  observed [MaxSteps]           -> Halted(max_steps)           steps
  observed                      -> Deciding                    go on

Halted (the end)
"""
    )


# --- paths ---------------------------------------------------------------------------------------------------------


def test_a_path_as_text_is_a_timeline() -> None:
    assert (
        render(views()["c"], "text").decode()
        == """\
Scenario c: Halted(consecutive_errors) at step 2, 2 model calls

step 1
  Deciding  -> Parsing    model replied: TOOL add a=三,b=四
  Parsing   -> Executing  tool call: add{a=三, b=四}  [repeats 0/2]
  Executing -> Observing  tools returned: add TOOL_ERROR: add expected an integer, got a=三, b=四
  Observing -> Deciding   go on  [errors 1/2 · steps 1/10]
step 2
  Deciding  -> Parsing    model replied: TOOL search q=天气
  Parsing   -> Executing  tool call: search{q=天气}  [repeats 0/2]
  Executing -> Observing  tools returned: search TOOL_ERROR: unknown tool search
  Observing -> Halted(consecutive_errors)  errors 2/2  [steps 2/10]

stopped: 2 failed tool calls in a row, circuit breaker tripped
step 1  add expected an integer, got a=三, b=四
step 2  unknown tool search
"""
    )


def test_a_path_as_mermaid() -> None:
    lines = render(views()["c"], "mermaid").decode().splitlines()
    assert [line for line in lines if "accDescr" not in line and "classDef" not in line] == [
        "---",
        'title: "Scenario c: Halted(consecutive_errors) at step 2, 2 model calls"',
        "---",
        "flowchart LR",
        "  accTitle: Scenario c: Halted(consecutive_errors) at step 2, 2 model calls",
        '  start((" ")):::start',
        '  Deciding("<b>Deciding</b>")',
        '  Parsing("<b>Parsing</b>")',
        '  Executing("<b>Executing</b>")',
        '  Observing("<b>Observing</b>")',
        (
            '  Halted_consecutive_errors[["<b>Halted(consecutive_errors)</b><br/>stopped: 2 failed tool calls in a row, circuit<br/>breaker tripped'
            '<br/>step 1  add expected an integer, got a=三,<br/>        b=四<br/>step 2  unknown tool search"]]:::stop'
        ),
        "  start ==> Deciding",
        '  Deciding ==>|"<b>1, 2</b><br/>model replied"| Parsing',
        '  Parsing -.->|"malformed"| Observing',
        '  Parsing -.->|"said to a person"| Observing',
        '  Parsing ==>|"<b>1, 2</b><br/>tool call<br/>repeats 0/2"| Executing',
        '  Executing ==>|"<b>1, 2</b><br/>tools returned"| Observing',
        '  Observing ==>|"<b>2</b><br/>errors 2/2<br/>steps 2/10"| Halted_consecutive_errors',
        '  Observing ==>|"<b>1</b><br/>go on<br/>errors 1/2 · steps 1/10"| Deciding',
        "  linkStyle 2 stroke:#566070,color:#566070",
        "  linkStyle 3 stroke:#566070,color:#566070",
        "  linkStyle 6 stroke:#8a3f00,color:#8a3f00",
    ]


def test_two_edges_between_the_same_two_states_stay_two_edges() -> None:
    view = path_view(played("no form", "no form", guards=classic(max_errors=3), steps=3))
    between = [(edge.id, edge.kind, told(edge)) for edge in view.graph.edges if (edge.source, edge.dest) == ("Parsing", "Observing")]
    assert between == [("malformed", "taken", ["1, 2", "malformed", "repeats 0/2"]), ("said", "untaken", ["said to a person"])]
    assert render(view, "dot").decode().count("Parsing -> Observing") == 2


def test_up_to_twelve_step_numbers_are_listed_and_more_are_counted() -> None:
    guards = classic(max_steps=20)
    assert told(edges(path_view(played(guards=guards, steps=12)))["model_replied"]) == [
        "1, 2, 3, 4, 5, 6,",
        "7, 8, 9, 10, 11, 12",
        "model replied",
    ]
    assert told(edges(path_view(played(guards=guards, steps=13)))["model_replied"]) == ["×13, steps 1–13", "model replied"]


def test_an_edge_shows_the_closest_reading_of_each_guard_that_let_it_pass() -> None:
    same = ["TOOL add a=3,b=4"] * 2
    view = path_view(played(*same, "no form", guards=classic(max_steps=6), steps=5))
    assert told(edges(view)["call_tools"]) == ["1, 2, 4, 5", "tool call", "repeats 1/2"]
    assert told(edges(view)["go_on"]) == ["1, 2, 3, 4, 5", "go on", "errors 1/2 · steps 5/6"]
    assert told(edges(view)["tools_returned"]) == ["1, 2, 4, 5", "tools returned"]


def test_the_edge_into_the_halt_shows_what_tripped_and_what_was_asked_before() -> None:
    view = path_view(played(guards=classic(max_steps=3)))
    assert (edges(view)["max_steps"].kind, told(edges(view)["max_steps"])) == ("halting", ["3", "steps 3/3", "errors 0/2"])
    assert [edge.id for edge in view.graph.edges if edge.dest.startswith("Halted")] == ["max_steps"]


def test_guards_that_tripped_as_well_are_named() -> None:
    view = path_view(played(guards=classic(max_steps=2), failing=True))
    assert halt(view) == [
        "Halted(consecutive_errors)",
        "stopped: 2 failed tool calls in a row, circuit",
        "breaker tripped",
        "step 1  result 1",
        "step 2  result 2",
        "also tripped: steps 2/2",
    ]


def test_of_much_evidence_the_first_and_the_last_is_shown() -> None:
    view = path_view(played(guards=classic(max_steps=50, max_errors=20), failing=True))
    evidence = [line for line in halt(view) if line.startswith(("step", "…"))]
    assert evidence == [
        *(f"step {k}  result {k}" for k in (1, 2, 3, 4)),
        "… and 13 more …",
        *(f"step {k}  result {k}" for k in (18, 19, 20)),
    ]


def test_what_a_reading_does_not_keep_of_its_evidence_is_counted_with_what_is_not_shown() -> None:
    view = path_view(played(*["TOOL add a=1,b=1"] * 30, guards=classic(max_steps=50, max_repeats=20)))
    assert [line.split("  ")[0] for line in halt(view)[3:]] == [
        *(f"step {k}" for k in (1, 2, 3, 4)),
        "… and 14 more …",
        *(f"step {k}" for k in (19, 20, 21)),
    ]


def test_a_final_answer_is_the_evidence_and_is_cut() -> None:
    assert halt(path_view(played("FINAL 35"))) == ["Halted(final_answer)", "35"]
    _, *answer = halt(path_view(played("FINAL " + "word " * 100)))
    assert len(answer) == 3
    assert answer[-1].endswith("word…")
    assert all(columns(line) <= 46 for line in answer)


def test_a_run_that_did_not_end_says_so_and_marks_where_it_is() -> None:
    view = path_view(played(steps=2), "Run 7")
    assert view.graph.title == "Run 7: not ended, in Deciding at step 2, 2 model calls"
    assert [(node.id, [line.text for line in node.lines]) for node in view.graph.nodes if node.current] == [
        ("Deciding", ["Deciding", "not ended"])
    ]
    assert not halt(view)
    assert view.text.endswith("not ended, in Deciding\n")


def test_a_run_that_has_not_begun_can_be_drawn() -> None:
    view = path_view(Run("a task", guards=classic()))
    assert view.graph.title == "not ended, in Deciding at step 0, 0 model calls"
    assert {edge.kind for edge in view.graph.edges if edge.id != "start"} == {"untaken"}


def test_a_model_that_failed_and_a_cancelled_tool_are_told() -> None:
    failed = Run("a task", guards=classic())
    failed.feed(ModelFailed("TimeoutError", "no answer within 60 s"))
    assert halt(path_view(failed)) == ["Halted(model_error)", "stopped: the model failed (TimeoutError: no", "answer within 60 s)"]
    cancelled = Run("a task", guards=classic())
    cancelled.feed(ModelReplied(Reply("TOOL add a=1,b=2")))
    cancelled.feed(Cancelled((Observation("add", "?", "cancelled"),)))
    assert told(edges(path_view(cancelled))["cancelled_executing"]) == ["1", "cancelled"]


def test_a_talk_with_a_person_has_its_edges_and_other_runs_have_no_self_loop() -> None:
    view = path_view(talk())
    assert told(edges(view)["user_spoke"]) == ["before step 1", "1, 8", "a person spoke"]
    assert told(edges(view)["said"]) == ["1, 8", "said to a person", "repeats 0/2"]
    assert "user_spoke" not in edges(path_view(played("FINAL 1")))
    assert "before step 1\n  Deciding  -> Deciding   a person spoke: Hi, I want to change my flight.\n" in view.text


def test_the_timeline_of_400_steps_stays_one_screen() -> None:
    replies = ["no form" if step % 7 == 0 else f"TOOL add a=1,b={step}" for step in range(400)]
    text = path_view(played(*replies, guards=classic(max_steps=400, max_errors=3))).text
    assert len(text.splitlines()) < 50
    assert (
        "… steps 5 to 396:\n  ×336  model replied, tool call, tools returned, go on\n  ×56   model replied, malformed, go on\nstep 397\n"
        in text
    )


def test_a_trace_is_replayed_with_its_own_title() -> None:
    result = run("add", model=ScriptedModel(["TOOL add a=1,b=2", "FINAL 3"]), tools=[add], lang="en", title="Sum")
    assert path_view(result.trace).graph.title == "Sum: Halted(final_answer) at step 2, 2 model calls"
    assert draw_path(result.trace).source == draw_path(result.trace.replay(), "Sum").source
    assert isinstance(result.trace, Trace)


def test_the_description_tells_the_path_without_the_picture() -> None:
    assert (
        views()["d"].graph.description
        == """\
Scenario d: Halted(max_steps) at step 6, 6 model calls
Edges taken, with their step numbers: Deciding to Parsing (1, 2, 3, 4, 5, 6; model replied), \
Parsing to Executing (1, 2, 3, 4, 5, 6; tool call; repeats 0/2), Executing to Observing (1, 2, 3, 4, 5, 6; tools returned), \
Observing to Halted(max_steps) (6; steps 6/6; errors 0/2), Observing to Deciding (1, 2, 3, 4, 5; go on; errors 0/2 · steps 5/6)
Edges not taken: Parsing to Observing (malformed), Parsing to Observing (said to a person)
stopped: reached the cap of 6 steps, halted so that an endless loop cannot burn the budget"""
    )


# --- the Python interface -------------------------------------------------------------------------------------------


def test_the_python_calls_return_digraphs() -> None:
    assert isinstance(draw_machine(classic()), Digraph)
    assert isinstance(draw_path(played("FINAL 1")), Digraph)
    assert draw_machine(classic()).source.encode() == render(machine_view(classic()), "dot")


def test_an_unknown_format_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"^the format 'gif' is not known; known are svg, png, pdf, dot, mermaid, text, scxml, xstate$"):
        render(machine_view(), "gif")
    assert FORMATS == ("svg", "png", "pdf", "dot", "mermaid", "text")


def test_views_and_their_text_load_no_graphviz() -> None:
    script = (
        "import sys, fsm_agent, fsm_agent.diagrams as d; v = d.machine_view(); d.render(v, 'text'); d.render(v, 'mermaid'); "
        "assert not {'graphviz', 'pygraphviz'} & set(sys.modules); d.render(v, 'dot'); assert 'pygraphviz' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=DIAGRAMS.parent)


# --- text ----------------------------------------------------------------------------------------------------------


def test_one_line_holds_no_line_break_no_control_and_no_turn_of_direction() -> None:
    assert one_line("a\r\n\tb\x00\x1b[31m\u202ec\u2028d\ufeff\ufffe", 80) == r"a b\x00\x1b[31m\u202ec d\ufeff\ufffe"
    assert one_line("三四五六七", 6) == "三四…"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"
    assert one_line("e" + "\u0301" * 1000, 10) == "e" + "\u0301" * 39 + "…"


def test_wrapped_text_breaks_at_spaces_and_is_cut_after_its_lines() -> None:
    assert wrapped("one two three four", 9, 3) == ["one two", "three", "four"]
    assert wrapped("one two three four five six seven", 9, 2) == ["one two", "three…"]
    assert wrapped("一二三四五六七八九十", 8, 2) == ["一二三四", "五六七…"]
    assert wrapped("", 9, 2) == []

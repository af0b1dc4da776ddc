"""The stepper: a cursor over a run's edges, branches where replies are typed, and a screen of any size."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from fsm_agent.cli.sources import new_run, play
from fsm_agent.drivers import run as run_agent
from fsm_agent.events import Reply, ToolRequest
from fsm_agent.guards import Deadline, Guard, classic
from fsm_agent.language import ENGLISH
from fsm_agent.machine import Taken
from fsm_agent.models import ScriptedModel
from fsm_agent.scenarios import built_in, names, parse
from fsm_agent.stepper import Stepper, of_scenario, of_trace
from fsm_agent.stepper.lines import play as play_lines
from fsm_agent.stepper.lines import shown
from fsm_agent.stepper.page import page_of, shown_messages
from fsm_agent.stepper.screen import list_frame, page_frame
from fsm_agent.stepper.wrapping import wrapped
from fsm_agent.tools import add, now, tool
from fsm_agent.traces import Trace
from fsm_agent.traces.record import header_of


def of_text(text: str) -> Stepper:
    """A stepper over a built-in scenario, or over one written here."""
    scenario = built_in(text) if text in names() else parse(text, "mine")
    return Stepper(of_scenario(f"Scenario {scenario.name}", new_run(scenario, ENGLISH), scenario.model, scenario.named_tools))


def traced(replies: list[str | Reply], *tools: object, guards: tuple[Guard, ...] = (), protocol: str = "line") -> Trace:
    """The record of a run."""
    result = run_agent("task", model=ScriptedModel(replies), tools=tools, guards=guards or classic(), protocol=protocol, lang="en")  # type: ignore[arg-type]
    return result.trace


def over(trace: Trace) -> Stepper:
    return Stepper(of_trace(trace, "mine", ENGLISH))


def path(each: Stepper) -> list[str]:
    """The edges of the branch that is looked at, all the way to its end."""
    here = each.cursor
    each.last()
    each.cursor = here
    return [moment.row.id for moment in each.branch.moments]


# --- the cursor --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_stepping_takes_the_edges_that_the_run_takes(name: str) -> None:
    run = play(built_in(name))
    each = of_text(name)
    stepped = []
    while each.next() is None:
        assert each.moment is not None
        stepped.append(each.moment.taken)
    assert [(taken.edge, taken.step, taken.readings) for taken in stepped] == [
        (entry.edge, entry.step, entry.readings) for entry in run.log if isinstance(entry, Taken)
    ]


def test_nothing_is_played_before_it_is_looked_at() -> None:
    each = of_text("d")
    assert each.branch.moments == []
    each.next()
    assert [moment.row.id for moment in each.branch.moments] == ["model_replied", "call_tools"]
    assert each.known_end is None


def test_back_and_forth_shows_the_same_again_and_runs_no_tool_twice() -> None:
    each = of_text("a")
    each.last()
    seen = list(each.branch.moments)
    while each.back():
        pass
    assert (each.cursor, each.moment) == (0, None)
    each.last()
    assert all(mine is other for mine, other in zip(each.branch.moments, seen, strict=True))


def test_the_ends_are_reached_at_once() -> None:
    each = of_text("d")
    assert each.last() == "halted"
    assert (each.cursor, each.known_end) == (24, 24)
    assert each.next() == "halted"
    each.first()
    assert each.cursor == 0
    assert each.back() is False


def test_a_run_without_end_is_played_a_bounded_stretch_at_a_time() -> None:
    each = of_text('title="t"\ntask="t"\ntools=["add"]\nthen="TOOL add a=1,b={n}"\n[limits]\nmax_steps=1000000\n')
    assert each.last() is None
    assert each.cursor == 10_000


def test_a_script_that_runs_out_fails_as_it_does_when_it_is_run() -> None:
    each = of_text('title="t"\ntask="t"\ntools=["now"]\nscript=["TOOL now"]\n')
    assert path(each)[-1] == "model_error"


# --- being the model ---------------------------------------------------------------------------------------------


def test_a_typed_reply_goes_through_the_machine_with_real_tools() -> None:
    each = of_text("c")
    each.type_reply("TOOL mul a=6,b=7")
    assert [each.next() for _ in range(3)] == [None, None, None]
    assert [message.content for message in each.branch.run.history[-2:]] == ["TOOL mul a=6,b=7", "42"]


def test_after_a_typed_reply_the_script_goes_on_with_its_reply_of_the_next_step() -> None:
    each = of_text("f")
    each.type_reply("TOOL add a=1,b=1")
    each.last()
    assert [message.content for message in each.branch.run.history if message.role == "assistant"] == [
        "TOOL add a=1,b=1",
        "TOOL add a=3,b=4",
        "FINAL 7",
    ]
    assert each.branch.run.reason == "final_answer"


def test_where_the_script_has_no_reply_one_must_be_typed() -> None:
    each = of_text("f")
    each.last()
    while not (each.asks_model and each.cursor < 9):
        each.back()
    each.type_reply("TOOL add a=1,b=1")
    assert each.last() == "script_ended"
    assert each.branch.run.reason is None
    each.type_reply("FINAL 2")
    assert each.last() == "halted"
    assert each.branch.run.reason == "final_answer"


def test_the_model_can_be_made_to_loop() -> None:
    each = of_text("a")
    for _ in range(2):
        each.type_reply("TOOL add a=3,b=4")
        for _ in range(3):
            each.next()
    each.type_reply("TOOL add a=3,b=4")
    each.next()
    assert each.branch.run.reason == "repeated_call"


def test_going_back_and_typing_again_branches_and_loses_nothing() -> None:
    each = of_text("a")
    each.type_reply("FINAL one")
    each.last()
    each.first()
    each.type_reply("TOOL add a=1,b=1")
    assert [each.number, len(each.branches)] == [2, 3]
    assert [path_of.moments[0].typed for path_of in each.branches if path_of.moments] == [True, True]
    each.first()
    assert each.switch()
    assert path(each)[-1] == "final_answer"
    assert each.branch.is_script
    each.switch()
    assert path(each) == ["model_replied", "final_answer"]


def test_typing_on_at_the_end_of_a_typed_branch_makes_no_further_one() -> None:
    each = of_text("a")
    each.type_reply("TOOL add a=1,b=1")
    for _ in range(3):
        each.next()
    each.type_reply("FINAL 2")
    assert len(each.branches) == 2


def test_a_branch_remembers_what_was_typed_before_it_forked() -> None:
    each = of_text("a")
    for text in ("TOOL add a=1,b=1", "TOOL add a=2,b=2"):
        each.type_reply(text)
        for _ in range(3):
            each.next()
    while each.cursor > 4:
        each.back()
    each.type_reply("FINAL 2")
    assert [moment.typed for moment in each.branch.moments] == [True] * 6
    assert each.branch.typed == {1, 2}


def test_switching_goes_to_the_last_edge_that_both_branches_share() -> None:
    each = of_text("a")
    for _ in range(8):
        each.next()
    each.type_reply("FINAL x")
    each.last()
    assert each.switch()
    assert (each.number, each.cursor) == (0, 8)
    assert of_text("a").switch() is False


def test_nothing_can_be_typed_where_the_model_is_not_asked() -> None:
    each = of_text("c")
    each.next()
    assert each.why_not_type(ENGLISH) == "the model is not asked here: a reply can be typed in Deciding"
    with pytest.raises(ValueError, match="the model is not asked here"):
        each.type_reply("FINAL x")
    each.last()
    assert each.why_not_type(ENGLISH) == "the run has halted: nothing is asked any more; go back to a place where the model is asked"
    assert len(each.branches) == 1


def test_the_clock_stands_still_while_a_person_thinks() -> None:
    trace = traced(["TOOL add a=1,b=2", "TOOL add a=1,b=3", "FINAL x"], add, guards=(Deadline(60),))
    past = Trace(header_of(trace.replay(), "old"), trace.log)
    assert past.header.at is not None
    each = over(past)
    each.type_reply("TOOL add a=1,b=1")
    each.last()
    assert each.branch.run.reason == "final_answer"
    times = [event.at for event in each.branch.events]
    assert times == sorted(times, key=lambda at: at or 0)
    assert max(at or 0 for at in times) - past.header.at < 60


# --- traces ------------------------------------------------------------------------------------------------------


def test_a_trace_is_stepped_through_as_it_was_recorded() -> None:
    trace = traced(["TOOL now", "FINAL x"], now)
    each = over(trace)
    assert path(each) == [entry.edge for entry in trace.edges]
    assert each.branch.events == trace.events


def test_a_trace_that_was_cut_off_ends_where_it_ends() -> None:
    trace = traced(["TOOL now", "FINAL x"], now)
    each = over(Trace(trace.header, trace.log[:3]))
    assert each.last() == "recording_ended"
    assert each.cursor == 2


def test_typing_in_a_trace_goes_on_with_the_built_in_tools_and_the_other_recorded_replies() -> None:
    each = over(traced(["TOOL add a=1,b=1", "TOOL add a=2,b=2", "FINAL x"], add))
    each.type_reply("TOOL add a=5,b=5")
    assert each.last() == "halted"
    assert [message.content for message in each.branch.run.history[2:]] == ["TOOL add a=5,b=5", "10", "TOOL add a=2,b=2", "4", "FINAL x"]
    while not (each.asks_model and each.cursor < 9):
        each.back()
    each.type_reply("TOOL add a=6,b=6")
    assert each.last() == "script_ended"


def test_a_trace_with_other_tools_says_why_nothing_can_be_typed() -> None:
    @tool
    def weather(city: str) -> str:
        """The weather."""
        return city

    @tool(name="add")
    def other(a: str) -> str:
        """Not the built-in one."""
        return a

    for foreign in (weather, other):
        each = over(traced(["FINAL x"], foreign))
        assert each.why_not_type(ENGLISH) == (
            f"no reply can be typed here: the tool {foreign.name} is not one of the package's own, so what it would return is not known"
        )
        assert page_of(each, ENGLISH).asked == "next, the model is asked; it is shown 2 messages (m)"


def test_a_line_stands_for_a_structured_call_where_the_model_makes_those() -> None:
    call = Reply(tool_calls=(ToolRequest("id-1", "add", '{"a":1,"b":2}'),))
    each = over(traced([call, Reply("3")], add, protocol="function_calling"))
    each.type_reply("TOOL add a=20,b=3")
    for _ in range(3):
        each.next()
    assert each.branch.run.history[-1].content == "23"
    each.type_reply("FINAL done")
    each.next()
    assert (each.branch.run.reason, each.branch.run.history[-1].content) == ("final_answer", "done")
    each.first()
    each.type_reply("plain text is an answer there")
    each.next()
    assert each.branch.run.reason == "final_answer"


# --- the page in lines -------------------------------------------------------------------------------------------


def test_a_position_in_lines() -> None:
    each = of_text("c")
    each.last()
    assert shown(each, ENGLISH) == [
        "[edge 8 of 8, step 2] Observing -> Halted(consecutive_errors)  errors",
        "  guards: errors 2/2 (trips) · steps 2/10",
        "  why: stopped: 2 failed tool calls in a row, circuit breaker tripped",
        "  step 1: add expected an integer, got a=三, b=四",
        "  step 2: unknown tool search",
    ]


def test_commands_by_the_line() -> None:
    written: list[str] = []
    play_lines(of_text("d"), ["\n", "p\n", "p", "t", "t FINAL x", "G", "n", "b", "dance", "q", "n"], ENGLISH, written.append)
    assert written == [
        "Scenario d",
        "[before the first edge] start -> Deciding  start",
        "  the task: 一直加下去",
        "  next, the model is asked; it is shown 2 messages (m); t: answer in its place",
        "[edge 1, step 1] Deciding -> Parsing  model replied",
        "  the model said: TOOL add a=1,b=1",
        "Scenario d",
        "[before the first edge] start -> Deciding  start",
        "  the task: 一直加下去",
        "  next, the model is asked; it is shown 2 messages (m); t: answer in its place",
        "this is the beginning",
        "after t comes the model's reply, as in: t TOOL add a=3,b=4",
        "[branch 2 of 2: edge 1 of 2, step 1] Deciding -> Parsing  model replied",
        "  you said, as the model: FINAL x",
        "[branch 2 of 2: edge 2 of 2, step 1] Parsing -> Halted(final_answer)  final answer",
        "  answer: x",
        "  guards: repeats 0/2",
        "the run has halted: no edge leads out of Halted",
        "Scenario d",
        "[branch 1 of 2: before the first edge] start -> Deciding  start",
        "  the task: 一直加下去",
        "  next, the model is asked; it is shown 2 messages (m); t: answer in its place",
        "'dance' is no command; ? lists them",
    ]


HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202eback\u2028line\x00[bold]\ud800"


def test_hostile_text_steers_nothing() -> None:
    written: list[str] = []
    play_lines(of_text("a"), [f"t FINAL {HOSTILE}", "n", "m"], ENGLISH, written.append)
    told = "\n".join(written)
    assert "\\x1b[2J\\x1b]0;owned\\x07\\u202eback\\u2028line\\x00[bold]" in told
    assert not any(char in told for char in "\x1b\x07\u202e\u2028\x00\ud800")


def test_a_megabyte_is_cut_and_counted() -> None:
    each = of_text("a")
    each.type_reply("FINAL " + "x" * 1_000_000)
    assert page_of(each, ENGLISH).items[0].text.endswith("xxx\n… and 996006 more characters")


def test_of_a_long_history_the_last_messages_are_shown() -> None:
    each = of_text('title="t"\ntask="t"\ntools=["add"]\nthen="TOOL add a=1,b={n}"\n[limits]\nmax_steps=40\n')
    each.last()
    items = shown_messages(each, ENGLISH)
    assert (len(items), items[0].text, items[-1].text) == (51, "32 earlier messages", "41")


# --- the screen --------------------------------------------------------------------------------------------------


def test_a_narrow_terminal_has_all_that_matters() -> None:
    each = of_text("c")
    each.last()
    frame = page_frame(page_of(each, ENGLISH), 40, 10, ENGLISH)
    assert [line.plain for line in frame.lines] == [
        "Scenario c           edge 8 of 8, step 2",
        "D P E O [Halted(consecutive_errors)]",
        "Observing -> Halted(consecutive_errors)",
        "errors",
        "errors 2/2 (trips) · steps 2/10",
        "why: stopped: 2 failed tool calls in a",
        "row, circuit breaker tripped",
        "step 1: add expected an integer, got",
        "… 2 more lines (down)",
        "n next p back t type ? help q quit",
    ]
    below = page_frame(page_of(each, ENGLISH), 40, 10, ENGLISH, scroll=99)
    assert [line.plain for line in below.lines[-3:-1]] == ["a=三, b=四", "step 2: unknown tool search"]


def test_a_wide_terminal_has_a_gauge_for_each_guard() -> None:
    each = of_text("d")
    for _ in range(8):
        each.next()
    frame = page_frame(page_of(each, ENGLISH), 80, 20, ENGLISH, notice="a notice")
    assert [line.plain for line in frame.lines if line.plain] == [
        "Scenario d                                                        edge 8, step 2",
        "[Deciding] - Parsing - Executing - Observing - Halted",
        "Observing -> Deciding  go on",
        "  [----------] errors 0/2",
        "  [###-------] steps 2/6",
        "next, the model is asked; it is shown 6 messages (m); t: answer in its place",
        "a notice",
    ]


texts = st.text(st.characters(codec="utf-8") | st.sampled_from("三四天气😀é\u0301\u200d\t\n"), max_size=60)


@given(texts, st.integers(1, 100), st.integers(1, 40), st.integers(0, 50))
def test_a_frame_fits_into_every_terminal(text: str, width: int, height: int, scroll: int) -> None:
    each = of_text("e")
    each.type_reply(f"FINAL {text}")
    each.next()
    frames = [
        page_frame(page_of(each, ENGLISH), width, height, ENGLISH, scroll=scroll),
        list_frame("title", shown_messages(each, ENGLISH), width, height, ENGLISH, scroll),
    ]
    for frame in frames:
        assert len(frame.lines) == height
        assert all(cell_len(line.plain) <= width for line in frame.lines)
        assert not any("\n" in line.plain for line in frame.lines)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two ", "three"]),
        ("连续两次失败，熔断退出。", ["连续两次", "失败，熔", "断退出。"]),
        ("add 的参数（整数）", ["add 的参", "数（整", "数）"]),
        ("abcdefghijkl", ["abcdefgh", "ijkl"]),
        ("12345678   next", ["12345678   ", "next"]),
        ("", [""]),
    ],
)
def test_lines_break_at_spaces_and_between_chinese_characters(text: str, lines: list[str]) -> None:
    assert [piece.plain for piece in wrapped(Text(text), 8)] == lines


@given(texts, st.integers(2, 40))
def test_nothing_is_lost_where_lines_break(text: str, width: int) -> None:
    assert "".join(piece.plain for piece in wrapped(Text(text), width)) == Text(text).plain


def test_a_scenario_file_is_stepped_through_by_its_path(tmp_path: Path) -> None:
    from fsm_agent.cli.step import is_trace, script_from

    mine = tmp_path / "mine.toml"
    mine.write_text('title="t"\ntask="do it"\nscript=["FINAL x"]\n', encoding="utf-8")
    assert script_from(str(mine), ENGLISH).pristine.task == "do it"
    assert [is_trace("c"), is_trace("x.jsonl"), is_trace(str(tmp_path / "run"))] == [False, True, True]

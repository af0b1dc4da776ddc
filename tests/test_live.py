"""The panel of a live view, and text that is cut for it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from fsm_agent.events import ModelReplied, Reply, Usage
from fsm_agent.guards import guards_from
from fsm_agent.language import ENGLISH, language
from fsm_agent.live import PlainView
from fsm_agent.live.panel import Panel, gauges_of
from fsm_agent.live.view import shortened
from fsm_agent.machine import Run

GUARDS = guards_from("production", max_steps=4, max_tokens=1000, max_cost=0.5, deadline_s=60, **{"max_calls:add": 2})


def run_in_its_second_step() -> Run:
    """Three of four steps have been made."""
    run = Run("task", guards=GUARDS, at=0.0)
    for at in range(3):
        run.feed(ModelReplied(Reply(f"??? {at}", usage=Usage(100, 20, 0.001)), 9.6 * (at + 1)))
    return run


def drawn(width: int, height: int, **changed: str) -> list[str]:
    shown = {"state": "Deciding", "reason": "", "step": "step 4", "activity": "asking the model: 7 s", "streamed": "", **changed}
    return [line.plain for line in Panel(gauges=gauges_of(run_in_its_second_step(), ENGLISH), **shown).lines(width, height)]


def test_a_roomy_terminal_has_a_bar_for_each_guard() -> None:
    assert drawn(80, 23, streamed="one\ntwo") == [
        "[Deciding] - Parsing - Executing - Observing - Halted                     step 4",
        "[--------] add calls 0/2     [##------] tokens 360/1000",
        "[#-------] cost 0.003/0.5    [--------] denials 0/2",
        "[--------] cut off 0/2       [--------] empty 0/3",
        "[--------] same errors 0/3   [##------] cycle 1/4",
        "[##------] malformed 3/10    [--------] errors 0/8",
        "[###-----] seconds 28/60     [######--] steps 3/4",
        "asking the model: 7 s",
        "one",
        "two",
    ]


def test_a_small_one_has_what_is_nearest_to_its_limit_first() -> None:
    assert drawn(40, 9, streamed="a\nb\nc\nd\ne\nf\ng\nh") == [
        "[Deciding] Par Exe Obs Hal        step 4",
        "steps 3/4 · seconds 28/60 · tokens 360/…",
        "asking the model: 7 s",
        *["d", "e", "f", "g", "h"],
    ]
    assert drawn(12, 1) == ["[Deciding]"]


@given(
    st.integers(1, 200),
    st.integers(1, 60),
    st.text(max_size=300),
    st.sampled_from([("Deciding", ""), ("Halted", "max_steps"), ("Executing", "")]),
)
def test_no_line_is_too_wide_and_there_are_not_too_many(width: int, height: int, streamed: str, state: tuple[str, str]) -> None:
    from fsm_agent.text import printable

    lines = drawn(width, height, streamed=printable(streamed), state=state[0], reason=state[1])
    assert len(lines) <= height
    assert all(cell_len(line) <= max(width, 1) for line in lines)


def test_what_is_near_its_limit_is_marked() -> None:
    near = {gauge.label: gauge.near for gauge in gauges_of(run_in_its_second_step(), ENGLISH)}
    assert {label for label, is_near in near.items() if is_near} == {"steps"}
    assert [gauge.label for gauge in gauges_of(run_in_its_second_step(), language("zh"))][2:4] == ["费用", "拒绝"]


@pytest.mark.parametrize(
    ("text", "chars", "lines", "shown"),
    [
        ("short", 10, 3, "short"),
        ("0123456789", 4, None, "0123\n… and 6 more characters"),
        ("a\nb\nc\n", 10, 2, "a\nb\n… and 3 more characters"),
        ("abc", 2, 5, "ab\n… and 1 more character"),
    ],
)
def test_a_long_text_is_cut_and_the_rest_is_counted(text: str, chars: int, lines: int | None, shown: str) -> None:
    assert shortened(text, ENGLISH, chars, lines) == shown


def test_what_nobody_would_see_is_shown_as_escapes_that_can_be_typed_over() -> None:
    from fsm_agent.live.person import _as_json
    from fsm_agent.text import printable

    assert printable("rm\u200b\u2060\xad -r\U000e0041") == "rm\\u200b\\u2060\\xad -r\\U000e0041"
    family = "\U0001f469\u200d\U0001f467 \u2764\ufe0f \u0645\u06cc\u200c\u062e"
    assert printable(family) == family
    value = {"a": f"x\u200b\xad\U000e0041\x1b {family}"}
    shown = _as_json(value)
    assert shown == f'{{"a": "x\\u200b\\u00ad\\udb40\\udc41\\u001b {family}"}}'
    assert json.loads(shown) == value


def test_an_abandoned_model_is_not_heard_any_more() -> None:
    written: list[str] = []
    run = Run("task", guards=GUARDS)
    view = PlainView(ENGLISH, written.append)
    view.text("before it began")
    view.began(run)
    view.text("I ")
    view.text("think")
    view.ended(run)
    view.text(" on")
    assert "".join(written) == "[step 1] LLM output: I think\n"


def test_what_a_run_has_behind_it_is_not_told_again() -> None:
    written: list[str] = []
    run = run_in_its_second_step()
    view = PlainView(ENGLISH, written.append)
    view.began(run)
    run.feed(ModelReplied(Reply("FINAL done")))
    view.took(run, ModelReplied(Reply("FINAL done")), ())
    assert "".join(written) == "[step 4] LLM output: FINAL done\n[step 4] FINAL received, the loop ends normally\n"

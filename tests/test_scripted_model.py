"""The scripted model: a script, then a template, then an error that says where the script ran out."""

from __future__ import annotations

import pytest

from fsm_agent import Message, Reply, ScriptedModel
from fsm_agent.models import ScriptEnded

ASKED = [Message("user", "task")]


def replies(model: ScriptedModel, n: int) -> list[str | Reply]:
    return [model(ASKED) for _ in range(n)]


def test_it_plays_its_replies_in_order_and_then_the_template_without_end() -> None:
    model = ScriptedModel(["TOOL now", "TOOL add a=1,b=2"], then="TOOL add a=1,b={n}")
    assert replies(model, 5) == ["TOOL now", "TOOL add a=1,b=2", "TOOL add a=1,b=1", "TOOL add a=1,b=2", "TOOL add a=1,b=3"]
    assert model.calls == 5


def test_a_template_may_stand_alone() -> None:
    assert replies(ScriptedModel(then="{n} of {n}"), 2) == ["1 of 1", "2 of 2"]


@pytest.mark.parametrize("template", ["no number", "{m} {} {n!r}", 'TOOL add a="{"', "}"])
def test_a_template_has_no_other_field(template: str) -> None:
    assert replies(ScriptedModel(then=template), 1) == [template]


def test_a_script_without_a_template_says_at_which_step_it_ran_out() -> None:
    model = ScriptedModel(["FINAL 1", "FINAL 2"])
    replies(model, 2)
    with pytest.raises(ScriptEnded, match=r"^the script ran out at step 3: it has 2 replies and no template$"):
        model(ASKED)
    with pytest.raises(ScriptEnded, match=r"^the script ran out at step 4"):
        model(ASKED)


def test_an_empty_script_runs_out_at_once() -> None:
    with pytest.raises(ScriptEnded, match=r"^the script ran out at step 1: it has 0 replies and no template$"):
        ScriptedModel()(ASKED)


def test_a_script_may_hold_whole_replies() -> None:
    reply = Reply("FINAL 1", finish_reason="length")
    assert replies(ScriptedModel([reply]), 1) == [reply]


def test_a_script_can_be_any_iterable_of_replies_but_no_single_text() -> None:
    assert replies(ScriptedModel(text for text in ("a", "b")), 2) == ["a", "b"]
    with pytest.raises(TypeError, match=r"^replies is a string; give a list of replies$"):
        ScriptedModel("FINAL 1")

"""The scenario files: the committed ones end as they say, and a bad one is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsm_agent.cli.sources import play
from fsm_agent.events import ToolsReturned
from fsm_agent.outcome import answer_of
from fsm_agent.scenarios import ScenarioError, built_in, load, load_all, parse

SCENARIOS = load_all()


def test_the_six_scenarios_are_there_in_order() -> None:
    assert list(SCENARIOS) == ["a", "b", "c", "d", "e", "f"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_ends_as_it_expects_and_asks_the_model_no_more_than_that(name: str) -> None:
    from fsm_agent.cli.sources import new_run
    from fsm_agent.drivers.interrupts import Interrupts
    from fsm_agent.drivers.session import Session
    from fsm_agent.drivers.sync import drive
    from fsm_agent.language import ENGLISH

    scenario = SCENARIOS[name]
    model = scenario.model
    machine = new_run(scenario, ENGLISH)
    with Interrupts() as interrupts:
        drive(Session(machine, model, scenario.named_tools), interrupts)
    assert (machine.reason, machine.step, model.calls) == (scenario.expect.reason, scenario.expect.model_calls, scenario.expect.model_calls)
    if scenario.expect.answer is not None:
        assert answer_of(machine) == scenario.expect.answer


def test_b_executes_the_call_twice() -> None:
    assert [entry.observations[0].text for entry in play(SCENARIOS["b"]).log if isinstance(entry, ToolsReturned)] == ["7", "7"]


def test_d_observes_two_to_seven() -> None:
    seen = [entry.observations[0].text for entry in play(SCENARIOS["d"]).log if isinstance(entry, ToolsReturned)]
    assert seen == ["2", "3", "4", "5", "6", "7"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_scenario_has_a_title_and_a_lesson_in_both_languages(lang: str) -> None:
    titles = [(scenario.titled(lang), scenario.taught(lang)) for scenario in SCENARIOS.values()]
    assert all(title and lesson for title, lesson in titles)
    assert all(any("一" <= char <= "鿿" for char in title) == (lang == "zh") for title, _ in titles)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("title = ", "x: not TOML: "),
        ("task = 't'\nscript = ['FINAL']", "x: Object missing required field `title`"),
        ("title = 't'\ntask = 't'\nscript = ['FINAL']\nlimit = 3", "x: Object contains unknown field `limit`"),
        ("title = 't'\ntask = 't'\nscript = 'FINAL'", "x: Expected `array`, got `str` - at `$.script`"),
        ("title = 't'\ntask = 't'\nscript = ['FINAL x']\n[limits]\nmax_steps = 0", "x: max_steps is 0; it must be at least 1"),
        (
            "title = 't'\ntask = 't'\nscript = ['FINAL x']\n[limits]\nmax_step = 1",
            "x: Object contains unknown field `max_step` - at `$.limits`",
        ),
        ("title = 't'\ntask = 't'\ntools = ['sub']\nscript = ['FINAL x']", "x: tools: no built-in tool 'sub'; there are add, mul, now"),
        ("title = 't'\ntask = 't'", "x: there is nothing to play; give script (a list of replies), then (a template), or both"),
        ("title = 't'\ntask = 't'\ntools = ['now', 'add', 'now']\nscript = ['FINAL x']", "x: tools: 'now' is given twice"),
        (
            "title = 't'\ntask = 't'\nscript = ['FINAL x']\n[expect]\nreason = 'max_step'",
            "x: expect.reason is 'max_step'; it must be one of model_error, cancelled, recording_ended, final_answer, repeated_call, ",
        ),
        (
            "title = 't'\ntask = 't'\nscript = ['FINAL x']\n[expect]\nmodel_calls = -1",
            "x: expect.model_calls is -1; it must be at least 0",
        ),
        ("title = {}\ntask = 't'\nthen = 'FINAL x'", "x: a table of texts is empty; give en, zh, or plain text"),
    ],
)
def test_a_bad_scenario_is_refused_with_place_and_reason(text: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(text, "x")
    assert str(caught.value).startswith(problem)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ScenarioError, match=r"there is no scenario 'z'; there are a, b, c, d, e, f, or give the path of a \.toml file"):
        built_in("z")


def test_a_file_of_ones_own_is_named_after_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("\ufefftitle = 'T'\ntask = 't'\nscript = ['FINAL x']\n", encoding="utf-8")
    assert load(path).name == "mine"


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"title = '\xff'")
    with pytest.raises(ScenarioError, match=r"mine\.toml: not UTF-8 text \(byte 9\)"):
        load(path)


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with path.open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(ScenarioError, match=r"mine\.toml is no scenario: it is longer than 16 MiB"):
        load(path)


@pytest.mark.parametrize("content", [b'{"messages": []}', b"\xff\x00"])
def test_a_file_of_another_kind_is_for_replay(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs.json"
    path.write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        load(path)
    assert str(caught.value) == (
        f"{path} is no scenario, which is a .toml file; a recorded run is fed through the machine with: fsm-agent replay {path}"
    )


def test_a_scenario_of_another_ending_is_still_one(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("title = 'T'\ntask = 't'\nscript = ['FINAL x']\n", encoding="utf-8")
    assert load(tmp_path / "mine.txt").name == "mine"

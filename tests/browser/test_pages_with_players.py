"""Players on pages of others in a real browser: in the audit's report, where they wait to be opened, and in the lessons."""

from __future__ import annotations

import attrs
import pytest

from fsm_agent.diagrams.palette import DARK, LIGHT, Theme
from fsm_agent.lessons import lesson
from fsm_agent.lessons.website import lesson_page
from tests.browser.conftest import Open
from tests.test_audit_tables import RUNS
from tests.test_report import made

PLAYERS = "document.querySelectorAll('.fsm-player').length"


@pytest.fixture(scope="module")
def report() -> str:
    return made(RUNS, sweeps=())


def test_in_the_report_no_player_is_there_until_a_run_is_opened(opened: Open, report: str) -> None:
    page = opened(report)
    assert page.ask(PLAYERS) == 0
    page.page.locator("#run-3 > summary").click()
    page.until(PLAYERS, 5)
    page.page.locator("#play-3 [data-go=last]").click()
    page.until("document.querySelector('#play-3 .fsm-reason').textContent", "Halted(error_streak)")
    page.until("location.hash", "#play-3=12")


def test_a_link_to_a_moment_opens_its_run_in_the_report(opened: Open, report: str) -> None:
    page = opened(report, "#play-3=6")
    assert page.ask("[...document.querySelectorAll('details.run[open]')].map((each) => each.id)") == ["run-3"]
    assert page.ask("document.querySelector('#play-3 .fsm-place').textContent") == "6 / 12"


@pytest.mark.parametrize("code", ["en", "zh"])
@pytest.mark.parametrize("width", [320, 1280])
def test_a_lesson_has_its_run_to_step_through(opened: Open, code: str, width: int) -> None:
    page = opened(lesson_page(lesson(5, code)), "#scenario-c=8", width)
    assert (page.at, page.marked()) == ("8 / 8", (["Halted"], ["▶ consecutive_errors"]))
    assert page.ask("document.documentElement.scrollWidth <= innerWidth")


def test_without_a_script_a_lesson_has_the_picture_and_the_timeline(opened: Open) -> None:
    page = opened(lesson_page(lesson(5, "en")), java_script_enabled=False).page
    assert page.locator("figure svg").is_visible()
    assert page.locator("noscript pre").is_visible()
    assert not page.locator(".fsm-controls").is_visible()


@pytest.mark.parametrize("width", [320, 1280])
def test_axe_finds_no_violation_in_an_opened_run(opened: Open, axe: str, report: str, width: int) -> None:
    page = opened(report, "#play-3=12", width)
    page.ask(axe)
    found = page.ask("axe.run('#run-3').then((each) => each.violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html)]))")
    assert found == []


@pytest.mark.parametrize(
    ("number", "code", "scheme", "width"),
    [(1, "en", "light", 1280), (1, "zh", "dark", 320), (5, "en", "dark", 1280), (8, "en", "light", 320), (9, "zh", "dark", 320)],
)
def test_axe_finds_no_violation_in_a_lesson(opened: Open, axe: str, number: int, code: str, scheme: str, width: int) -> None:
    page = opened(lesson_page(lesson(number, code)), "", width, color_scheme=scheme)
    assert page.ask("document.documentElement.scrollWidth <= innerWidth")
    page.ask(axe)
    found = page.ask("axe.run(document).then((found) => found.violations.map((each) => [each.id, each.nodes.map((node) => node.html)]))")
    assert found == []


@pytest.mark.parametrize(("scheme", "theme"), [("light", LIGHT), ("dark", DARK)])
@pytest.mark.parametrize("number", [5, 9])
def test_a_lesson_s_picture_is_light_or_dark_as_the_page_is(opened: Open, number: int, scheme: str, theme: Theme) -> None:
    page = opened(lesson_page(lesson(number, "en")), color_scheme=scheme)
    used: list[str] = page.ask(
        """[...new Set([...document.querySelectorAll(".picture svg :is([fill], [stroke])")].flatMap((each) => {
            const { fill, stroke } = getComputedStyle(each);
            return [each.getAttribute("fill") ? fill : "none", each.getAttribute("stroke") ? stroke : "none"];
        }))]"""
    )
    colours = {each for each in attrs.astuple(theme) if isinstance(each, str)}
    assert {f"#{''.join(f'{int(part):02x}' for part in each[4:-1].split(', '))}" for each in used if each != "none"} <= colours

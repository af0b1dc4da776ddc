"""The player in a real browser: stepping, keys, links, hostile text, long runs, small screens, and people who do not see or move as others do."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from fsm_agent.cli.sources import play
from fsm_agent.language import Language, language
from fsm_agent.machine import Run
from fsm_agent.player import content_policy, player_fragment, player_script, player_style
from fsm_agent.player.embed import safe_text
from fsm_agent.scenarios import built_in
from fsm_agent.traces import Trace
from fsm_agent.traces.record import header_of
from tests.browser.conftest import Open
from tests.browser.runs import BIG, HOSTILE, guarded_run, hostile_run, long_run, optional_run


@pytest.fixture(scope="module")
def errors() -> Run:
    """Scenario c, without its times: two calls that fail."""
    run = play(built_in("c"))
    again = Trace(header_of(run), run.log).new_run()
    for event in Trace(header_of(run), run.log).events:
        again.feed(event)
    return again


def test_each_key_goes_where_it_says(opened: Open, errors: Run) -> None:
    page = opened(errors)
    assert (page.at, page.way, page.marked()) == ("0 / 8", "start → Deciding", (["Deciding"], []))
    seen = []
    for _ in range(9):
        page.press("ArrowRight")
        seen.append((page.at, page.way, page.marked()))
    edges = [
        ("Deciding → Parsingmodel replied", "Parsing", "model replied▶ ×{n}"),
        ("Parsing → Executingtool call", "Executing", "tool call▶ ×{n}"),
        ("Executing → Observingtools returned", "Observing", "tools returned▶ ×{n}"),
        ("Observing → Decidinggo on", "Deciding", "▶ go on ×{n}"),
    ]
    expected = [(f"{i + 1} / 8", way, ([state], [words.format(n=i // 4 + 1)])) for i, (way, state, words) in enumerate((edges * 2)[:7])]
    halt = ("8 / 8", "Observing → Halted(consecutive_errors)errors", (["Halted"], ["▶ consecutive_errors"]))
    assert seen == [*expected, halt, halt]
    for key, place in (("ArrowLeft", 7), ("Home", 0), ("ArrowLeft", 0), ("End", 8), ("Shift+ArrowLeft", 4), ("Shift+ArrowRight", 8)):
        page.press(key)
        assert page.at == f"{place} / 8"


def test_going_back_shows_the_same_as_going_there(opened: Open, errors: Run) -> None:
    page = opened(errors)
    shown = """() => {
        const classes = (each) => [...each.classList].sort().join(" ");
        const marks = [...document.querySelectorAll("[data-row], [data-state]")].map((each) => `${classes(each)}: ${each.textContent}`);
        const bars = [...document.querySelectorAll(".fsm-level")].map((each) => each.style.width);
        return [...marks.sort(), ...bars, document.querySelector(".fsm-content").innerText].join("\\n");
    }"""
    forwards, backwards = [], []
    for _ in range(8):
        page.press("ArrowRight")
        forwards.append(page.ask(shown))
    for _ in range(8):
        backwards.append(page.ask(shown))
        page.press("ArrowLeft")
    assert len(set(forwards)) == 8
    assert backwards[::-1] == forwards


def test_the_edge_and_the_state_are_marked_by_width_and_words_as_well_as_colour(opened: Open, errors: Run) -> None:
    page = opened(errors, "#run=3")
    width = "(selector) => parseFloat(getComputedStyle(document.querySelector(selector)).strokeWidth)"
    widths = [
        page.page.evaluate(width, selector)
        for selector in (
            ".fsm-edge.fsm-now .fsm-path",
            ".fsm-edge.fsm-taken:not(.fsm-now) .fsm-path",
            ".fsm-edge:not(.fsm-taken) .fsm-path",
            ".fsm-state.fsm-now rect",
            ".fsm-state:not(.fsm-now) rect",
        )
    ]
    assert widths == [4, 1.7, 1, 3.6, 1.3]
    assert page.page.locator(".fsm-here:visible").all_text_contents() == ["● now here"]


def test_the_content_is_that_of_the_step_so_far(opened: Open, errors: Run) -> None:
    page = opened(errors, "#run=3")
    items = [" ".join(text.split()) for text in page.page.locator(".fsm-items .fsm-item").all_inner_texts()]
    assert items == [
        "the model said TOOL add a=三,b=四",
        "call add{a=三, b=四}",
        "add failed (bad_arguments) now TOOL_ERROR: add expected an integer, got a=三, b=四",
    ]
    assert page.one("ending").is_hidden()
    page.press("End")
    assert " ".join(page.one("ending").inner_text().split()) == (
        "Halted(consecutive_errors) stopped: 2 failed tool calls in a row, circuit breaker tripped "
        "step 1 bad_arguments add expected an integer, got a=三, b=四 step 2 unknown_tool unknown tool search"
    )
    page.page.locator(".fsm-messages summary").click()
    roles = page.page.locator(".fsm-history .fsm-item-head").all_inner_texts()
    assert roles == ["system", "user", "assistant", "tool add", "assistant", "tool search"]
    page.press("Home")
    assert page.page.locator(".fsm-history .fsm-item-head").all_inner_texts() == ["system", "user"]


def test_every_reading_is_a_bar_against_its_limit(opened: Open) -> None:
    page = opened(guarded_run(), "#run=0")

    def gauges() -> dict[str, tuple[str, str]]:
        rows: list[list[str]] = page.ask(
            """() => [...document.querySelectorAll(".fsm-gauge")].map((row) => [
                row.querySelector(".fsm-guard").textContent,
                row.querySelector(".fsm-level").style.width,
                row.querySelector("[role=meter]").getAttribute("aria-valuetext"),
            ])"""
        )
        return {name: (width, said) for name, width, said in rows}

    assert set(gauges().values()) == {("0%", "not judged yet")}
    page.press("End")
    assert gauges()["tokens"] == ("31.6%", "at least 1580 of 5000")
    assert gauges()["same errors"] == ("100%", "3 of 3 trips")
    assert gauges()["errors"] == ("62.5%", "5 of 8")
    assert page.page.locator(".fsm-caption").all_inner_texts() == ["judged in Parsing, last at step 5", "judged in Observing, just now"]
    page.press("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft")
    assert gauges()["errors"] == ("50%", "4 of 8 warns")


def test_what_options_bring_is_shown(opened: Open) -> None:
    page = opened(optional_run())
    last = int(page.at.partition("/")[2])
    shown = {}
    for _ in range(last):
        page.press("ArrowRight")
        shown[page.way] = [" ".join(text.split()) for text in page.page.locator(".fsm-items .fsm-item.fsm-now").all_inner_texts()]
        values = page.page.locator(".fsm-value").all_inner_texts()
        assert all(re.fullmatch(r"–|\d+/\d+", value) for value in values), (page.way, values)
    assert shown["Deciding → Decidingasked again"] == ["the model could not be asked now RateLimitError: 429: slow down"]
    assert shown["Executing → Executinga person is asked"] == ["a person is asked now send{to=bob}"]
    assert shown["Executing → Executinga person decided"] == ["changed it to {to=eve} now send{to=bob}"]
    assert shown["Deciding → Decidingsummed up"] == ["summed up: 4 messages now Ann was not written to, and Eve was."]
    assert shown["Observing → Decidinglast chance"] == [
        "told to the model now The run is being stopped: max_steps. No tool can be called any more. Give your final answer now."
    ]
    assert shown["Parsing → Observinglast word"] == ["answer now both were written to"]
    assert page.page.locator(".fsm-caption").all_inner_texts() == ["judged in Parsing, last at step 3", "judged in Observing, just now"]


def test_a_summary_is_shown_in_place_of_the_messages_that_it_stands_for(opened: Open) -> None:
    page = opened(optional_run())
    page.page.locator(".fsm-messages summary").click()

    def heads() -> list[str]:
        page.drawn()
        return page.page.locator(".fsm-history .fsm-item-head").all_inner_texts()

    page.page.locator("input").fill("14")
    assert heads() == ["system", "user", "assistant", "tool send", "assistant", "tool send"]
    page.page.locator("input").fill("15")
    assert heads() == ["system", "user", "summed up: 4 messages", "assistant", "tool send"]
    assert page.one("number").inner_text() == "5"


@pytest.mark.parametrize("code", ["en", "zh"])
@pytest.mark.parametrize("made", [guarded_run, optional_run])
def test_in_the_picture_no_words_lie_on_others_or_on_a_state(opened: Open, made: Callable[[Language], Run], code: str) -> None:
    page = opened(made(language(code)), "#run=99")
    assert (
        page.ask(
            """(() => {
            const box = (each) => each.getBoundingClientRect();
            const words = [...document.querySelectorAll(".fsm-edge .fsm-words")].map((each) => [each.textContent, box(each)]);
            const states = [...document.querySelectorAll(".fsm-state:not(.fsm-halted)")].map((each) => [each.dataset.state, box(each)]);
            const meet = (one, other) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 2
                && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 4;
            return words.flatMap(([text, one], i) => [...words.slice(i + 1), ...states].filter(([, other]) => meet(one, other)).map(([other]) => [text, other]));
        })()"""
        )
        == []
    )


def test_space_plays_at_a_speed_and_stops_at_the_end(opened: Open, errors: Run) -> None:
    page = opened(errors, "#run=6")
    page.press("+", "+", "+")
    assert page.page.locator("select").input_value() == "50"
    page.press("Space")
    page.until_at("8 / 8")
    assert page.one("play").get_attribute("aria-label") == "Play"
    page.press("-", "-", "-", "-", "-")
    assert page.page.locator("select").input_value() == "0.5"
    page.press("Space")
    assert page.one("play").get_attribute("aria-label") == "Pause"
    assert page.at != "8 / 8", "it begins anew"
    page.press("Space")
    assert page.one("play").get_attribute("aria-label") == "Play"


def test_a_question_mark_lists_the_keys(opened: Open, errors: Run) -> None:
    page = opened(errors)
    page.press("?")
    assert page.page.locator("dialog th").all_inner_texts() == ["→", "←", "Shift →, Shift ←", "Home", "End", "Space", "+, −", "?"]
    page.press("ArrowRight")
    assert page.at == "0 / 8"
    page.press("Escape", "ArrowRight")
    assert (page.page.locator("dialog").is_visible(), page.at) == (False, "1 / 8")


def test_buttons_and_slider_go_there_too(opened: Open, errors: Run) -> None:
    page = opened(errors)
    for button, place in (("next", 1), ("last", 8), ("back", 7), ("first", 0)):
        page.page.locator(f"[data-go={button}]").click()
        page.drawn()
        assert page.at == f"{place} / 8"
    page.page.locator("input").fill("5")
    page.drawn()
    assert (page.at, page.page.locator("input").get_attribute("aria-valuetext")) == ("5 / 8", "edge 5 of 8, step 2")
    page.page.locator("input").focus()
    page.press("ArrowRight", "End", "Home")
    assert page.at == "0 / 8"
    page.page.locator("[data-go=next]").focus()
    page.press("Enter", "Space")
    assert page.at == "2 / 8"


def test_the_address_holds_the_position_and_a_link_goes_there(opened: Open, errors: Run) -> None:
    page = opened(errors)
    assert page.ask("location.hash") == ""
    page.press("ArrowRight", "ArrowRight")
    page.until("location.hash", "#run=2")
    assert page.one("live").inner_text() == "edge 2 of 8, step 1: Parsing to Executing: tool call"
    page.ask("location.hash = '#run=7'")
    page.until_at("7 / 8")
    assert opened(errors, "#run=99").at == "8 / 8"
    assert opened(errors, "#other=3&run=x").at == "0 / 8"


def test_several_players_on_a_page_are_each_on_their_own(opened: Open, errors: Run) -> None:
    style, script = player_style(), player_script()
    page = opened(
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Two</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy([style], [script])}"><style>{style}</style></head><body>'
        f"{player_fragment(errors, 'One', 'one')}{player_fragment(guarded_run(), 'Two', 'two')}<script>{script}</script></body></html>",
        "#two=3",
    )

    def places() -> list[str]:
        page.drawn()
        return page.page.locator(".fsm-place").all_inner_texts()

    assert places() == ["0 / 8", "3 / 20"]
    page.press("ArrowRight")
    assert places() == ["0 / 8", "3 / 20"]
    page.page.locator("#one .fsm-title").click()
    page.press("ArrowRight")
    assert places() == ["1 / 8", "3 / 20"]
    page.until("location.hash", "#two=3&one=1")


def test_what_a_model_or_a_tool_said_is_text_and_never_runs(opened: Open) -> None:
    page = opened(hostile_run())
    everything = safe_text("\n".join(HOSTILE))
    elements = page.ask("[...document.querySelectorAll('script, style, img, link, iframe')].map((each) => each.tagName).join(' ')")
    assert elements == "STYLE SCRIPT SCRIPT"
    page.page.locator(".fsm-messages summary").click()
    last = int(page.at.partition("/")[2])
    for _ in range(last):
        page.press("ArrowRight")
        assert page.ask("window.harmed") is None
        texts = [text.replace("\u00a0", " ") for text in page.page.locator(".fsm-items .fsm-text").all_text_contents()]
        assert all("<script>" in text or "</script>" in text or "dump" in text or "fail" in text for text in texts)
    assert page.page.locator(".fsm-answer .fsm-text").text_content() == everything.strip()
    assert page.ask("[...document.querySelectorAll('script, style, img, link, iframe')].length") == 3


def test_a_text_of_a_megabyte_is_cut_and_shown_in_full_on_demand(opened: Open) -> None:
    page = opened(hostile_run(), "#run=7")
    text = page.page.locator(".fsm-item.fsm-now .fsm-text")
    whole = f"{safe_text(chr(10).join(HOSTILE))}\n{'x' * BIG}THE END"
    cut = text.text_content() or ""
    assert 3900 < len(cut) <= 4001
    assert whole.startswith(cut.removesuffix("…"))
    button = page.page.locator(".fsm-item.fsm-now .fsm-more")
    assert re.fullmatch(r"show all 1,000,\d\d\d characters", button.inner_text())
    button.click()
    assert text.text_content() == whole
    assert (button.inner_text(), page.ask("document.activeElement.textContent")) == ("show less", "show less")
    button.click()
    assert text.text_content() == cut


def test_a_run_of_2000_steps_costs_a_page_no_more_elements_than_one_of_20_steps(opened: Open) -> None:
    counted = "document.querySelectorAll('*').length"
    short, long = opened(long_run(20)), opened(long_run(2000))
    assert long.at == "0 / 8001"
    assert long.ask(counted) == short.ask(counted) < 500


def test_a_key_press_changes_as_little_in_a_run_of_2000_steps_as_in_one_of_20_steps(opened: Open) -> None:
    """What a press costs the browser is what it has to make and lay out anew."""
    changed = []
    for steps, at in ((20, 40), (2000, 4000)):
        page = opened(long_run(steps), f"#run={at}")
        page.until_at(f"{at} / {4 * steps + 1}")
        changed.append(
            page.ask(
                """async () => {
                    let changed = 0;
                    const watched = new MutationObserver((found) => { for (const each of found) changed += 1 + each.addedNodes.length; });
                    watched.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
                    for (const key of ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft"]) {
                        document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
                        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
                    }
                    return changed;
                }"""
            )
        )
    assert 0 < changed[1] <= 1.2 * changed[0]


@pytest.mark.parametrize("width", [320, 1280])
def test_nothing_is_wider_than_the_screen(opened: Open, width: int) -> None:
    for run, last, least in ((hostile_run(), 7, 9.4), (guarded_run(), 20, 9.4), (optional_run(), 22, 8.5)):
        page = opened(run, f"#run={last}", width)
        page.page.locator(".fsm-messages summary").click()
        assert page.ask("document.documentElement.scrollWidth") <= width
        size = page.ask("document.querySelector('.fsm-svg').getScreenCTM().a * 11")
        assert size > least


def test_light_and_dark_follow_the_reader(opened: Open, errors: Run) -> None:
    colours = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('.fsm-title')).color]"
    assert opened(errors, color_scheme="light").ask(colours) == ["rgb(255, 255, 255)", "rgb(31, 41, 51)"]
    assert opened(errors, color_scheme="dark").ask(colours) == ["rgb(18, 22, 27)", "rgb(232, 236, 241)"]


def test_nothing_moves_for_those_who_do_not_want_it(opened: Open, errors: Run) -> None:
    for motion, moves in (("no-preference", ["fsm-drawn", "0.15s"]), ("reduce", ["none", "0s"])):
        page = opened(errors, "#run=3", reduced_motion=motion)
        assert moves == page.ask(
            """[
                getComputedStyle(document.querySelector(".fsm-edge.fsm-now .fsm-path")).animationName,
                getComputedStyle(document.querySelector(".fsm-level")).transitionDuration,
            ]"""
        )


def test_without_a_script_the_page_tells_the_run(opened: Open, errors: Run) -> None:
    page = opened(errors, java_script_enabled=False)
    assert "step 2\n  Deciding  -> Parsing" in page.page.locator("noscript pre").inner_text()


@pytest.mark.parametrize(("at", "scheme", "width"), [(0, "dark", 1280), (8, "light", 320)])
def test_axe_finds_no_violation(opened: Open, axe: str, errors: Run, at: int, scheme: str, width: int) -> None:
    page = opened(errors, f"#run={at}", width, color_scheme=scheme)
    page.page.locator(".fsm-messages summary").click()
    page.ask(axe)
    found = page.ask("axe.run(document).then((found) => found.violations.map((each) => [each.id, each.nodes.map((node) => node.html)]))")
    assert found == []

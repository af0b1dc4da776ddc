"""The player's page of a long run against that of a short one, in the same browser, turn by turn.

pytest tests/benchmarks/test_player_bench.py --benchmark-only
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from fsm_agent.machine import Run
from fsm_agent.player import player_page
from tests.browser.open_page import started
from tests.browser.runs import long_run

from .measure import Report, cpu_seconds

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SIZES = (20, 2_000)
"""Steps of the two runs."""
PRESSES = 40
ROUNDS = 9

SHOWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
"""Milliseconds from the beginning of loading until the page is drawn, by the browser's own clock."""

STEPPED = """async (presses) => {
    const key = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    for (let i = 0; i < presses; i++) {
        key(i % 4 === 3 ? "ArrowLeft" : "ArrowRight");
        await drawn();
    }
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.mark.benchmark(group="a page of 2,000 steps")
def test_opening_and_stepping(benchmark: Any, report: Report, browser: Browser, tmp_path: Path) -> None:
    pages = {steps: tmp_path / f"{steps}.html" for steps in SIZES}
    made = {steps: cpu_seconds(partial(_write, page, long_run(steps))) for steps, page in pages.items()}
    spent: dict[int, list[tuple[float, float]]] = {steps: [] for steps in SIZES}

    def measure() -> None:
        for steps, page in pages.items():  # turn by turn, so that both meet the same machine
            spent[steps].append(_opened_and_stepped(browser, page, 2 * steps))

    benchmark.pedantic(measure, rounds=ROUNDS, warmup_rounds=1)
    short, long = (spent[steps][-ROUNDS:] for steps in SIZES)
    opening, stepping = ([(one[which], other[which]) for one, other in zip(short, long, strict=True)] for which in (0, 1))
    note = f"{median(other for _, other in opening):.0f} ms to {median(one for one, _ in opening):.0f} ms, until it is drawn"
    report.add("opening a page of 2,000 steps against one of 20", median(other / one for one, other in opening), 3, "x", note)
    note = f"{median(other for _, other in stepping):.1f} ms to {median(one for one, _ in stepping):.1f} ms of the browser's work, painting included"
    report.add("a key press in 2,000 steps against one in 20", median(other / one for one, other in stepping), 1.25, "x", note)
    size = pages[2_000].stat().st_size
    said = sum(len(message.content.encode()) for message in long_run(2_000).history)
    note = f"{size / 1e6:.2f} MB to {said / 1e6:.2f} MB; made in {made[2_000]:.2f} s"
    report.add("the page of 2,000 steps against all that was said in it", size / said, 2, "x", note)


def _write(page: Path, run: Run) -> None:
    page.write_text(player_page(run, "A run"), encoding="utf-8")


def _opened_and_stepped(browser: Browser, page: Path, at: int) -> tuple[float, float]:
    """Milliseconds until the page is drawn; milliseconds of work that a key press costs in it."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        tab = context.new_page()
        session = context.new_cdp_session(tab)
        session.send("Performance.enable")

        def worked() -> float:
            return float(
                next(each["value"] for each in session.send("Performance.getMetrics")["metrics"] if each["name"] == "TaskDuration")
            )

        tab.goto(f"{page.as_uri()}#run={at}")
        opened = float(tab.evaluate(SHOWN))
        before = worked()
        tab.evaluate(STEPPED, PRESSES)
        return opened, (worked() - before) / PRESSES * 1000
    finally:
        context.close()

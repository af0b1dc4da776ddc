"""A browser for the player's tests: the system's Chromium, driven by Playwright, with nothing to reach outside. axe-core comes from npm."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fsm_agent.machine import Run
from fsm_agent.player import player_page
from tests.browser.open_page import WAIT_S, Opened, started

if TYPE_CHECKING:
    from playwright.sync_api import Browser

AXE = "4.14.1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep each file's tests together on one worker: while Playwright's event loop runs in a thread, no other can."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group(item.path.name))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser a file, closed before another file's tests. Skips where Chromium or Playwright is missing."""
    with started() as browser:
        yield browser


Open = Callable[..., Opened]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens the page of a run, or a page, from disk. At the end nothing may have gone wrong or been asked for."""
    pages: list[Opened] = []

    def open_(what: Run | str, fragment: str = "", width: int = 1280, **options: object) -> Opened:
        file = tmp_path / f"{len(pages)}.html"
        file.write_text(player_page(what, "A run") if isinstance(what, Run) else what, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)  # type: ignore[arg-type]  # keywords of Playwright's
        context.set_default_timeout(WAIT_S * 1000)
        pages.append(Opened(context.new_page(), f"{file.as_uri()}{fragment}"))
        return pages[-1]

    yield open_
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, by ``npm pack``, kept in ``build/``. Skips where it cannot be had."""
    kept = Path(__file__).parents[2] / "build" / f"axe-core-{AXE}.min.js"
    if not kept.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed, which brings axe-core")
        folder = tmp_path_factory.mktemp("axe")
        packed = subprocess.run([npm, "pack", f"axe-core@{AXE}"], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
        if packed.returncode != 0:
            pytest.skip(f"npm cannot bring axe-core: {packed.stderr.strip().splitlines()[-1:]}")
        with tarfile.open(fileobj=io.BytesIO(next(folder.glob("*.tgz")).read_bytes())) as archive:
            script = archive.extractfile("package/axe.min.js")
            assert script is not None
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(script.read())
    return kept.read_text(encoding="utf-8")

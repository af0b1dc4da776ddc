"""A result in a notebook: what it shows there, in a notebook that is really run."""

from __future__ import annotations

import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from fsm_agent.diagrams import path_view, render
from fsm_agent.drivers import run
from fsm_agent.drivers.setup import Result
from fsm_agent.guards import classic
from fsm_agent.models import ScriptedModel
from fsm_agent.tools import add

ROOT = Path(__file__).parent.parent


def result(*replies: str, lang: str = "en", steps: int = 10) -> Result:
    return run("a task", model=ScriptedModel(list(replies)), tools=[add], guards=classic(steps), lang=lang, title="Sum")


class Page(HTMLParser):
    """The tags and the texts of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {f"{tag}.{name}": value for name, value in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_result_shows_its_path_its_reason_and_a_table() -> None:
    shown = result("TOOL add a=1,b=2", "FINAL 3")
    bundle = shown._repr_mimebundle_()
    page = Page(bundle["text/html"])
    assert page.texts == [
        *("Halted(final_answer)", " · 2 model calls", "3"),
        *("step", "the model", "what came of it"),
        *("1", "add{a=1, b=2}", "add 3"),
        *("2", "3", "final answer"),
    ]
    view = path_view(shown.trace)
    assert page.attributes["img.alt"] == view.graph.title == "Sum: Halted(final_answer) at step 2, 2 model calls"
    assert b64decode(str(page.attributes["img.src"]).removeprefix("data:image/svg+xml;base64,")) == render(view, "svg")
    assert bundle["text/plain"] == view.text
    assert list(bundle) == ["text/html", "text/plain"]


def test_a_long_run_shows_its_first_and_last_steps() -> None:
    bundle = result(*(f"TOOL add a=1,b={step}" for step in range(40)), steps=30)._repr_mimebundle_()
    page = Page(bundle["text/html"])
    assert page.tags.count("tr") == 1 + 5 + 1 + 5
    assert page.texts[-17:-14] == ["…", "… and 20 more …", "26"]
    assert page.texts[-1] == "add 30; steps 30/30"


def test_it_speaks_the_language_of_the_run() -> None:
    page = Page(result("FINAL 三", lang="zh")._repr_mimebundle_()["text/html"])
    assert page.attributes["div.lang"] == "zh"
    assert "1 次模型调用" in page.texts[1]


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\x1b[31m\u202e</td></table>"])
def test_what_is_said_is_never_markup(text: str) -> None:
    page = Page(result(f"TOOL add a={text}", f"FINAL {text}")._repr_mimebundle_()["text/html"])
    assert set(page.tags) == {"div", "p", "b", "br", "img", "table", "thead", "tr", "th", "tbody", "td"}
    assert page.tags.count("img") == 1
    assert not {name for name in page.attributes if name.split(".")[1].startswith("on")}


def test_a_notebook_that_is_run_shows_a_result(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient runs notebooks")
    nbformat = pytest.importorskip("nbformat", reason="nbformat makes notebooks")
    pytest.importorskip("ipykernel", reason="ipykernel runs the cells of a notebook")
    lines = [
        "from fsm_agent.drivers import run",
        "from fsm_agent.models import ScriptedModel",
        "from fsm_agent.tools import add",
        "run('a task', model=ScriptedModel(['TOOL add a=1,b=2', 'FINAL 3']), tools=[add], lang='en', title='Sum')",
    ]
    cells = [nbformat.v4.new_code_cell(f"import sys; sys.path.insert(0, {str(ROOT)!r})"), nbformat.v4.new_code_cell("\n".join(lines))]
    notebook = nbformat.v4.new_notebook(cells=cells)
    waits = {"timeout": 600, "startup_timeout": 600}  # for the slowest machine
    executed: Any = nbclient.NotebookClient(notebook, **waits, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    executed.execute()
    nbformat.validate(notebook)
    (output,) = notebook.cells[1].outputs
    assert output.output_type == "execute_result"
    page = Page(output.data["text/html"])
    assert page.texts[:3] == ["Halted(final_answer)", " · 2 model calls", "3"]
    picture = b64decode(re.findall(r"base64,([^\"]+)", output.data["text/html"])[0])
    assert ET.fromstring(picture).get("role") == "img"
    assert output.data["text/plain"].startswith("Sum: Halted(final_answer) at step 2, 2 model calls\n")

"""Pictures: that they are valid, readable, safe against what models and tools say, and made in process."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent.diagrams import View, draw_machine, draw_path, machine_view, palette, path_view, render
from fsm_agent.diagrams.gallery import views
from fsm_agent.diagrams.layout import LayoutError, lay_out
from fsm_agent.events import ModelReplied, Observation, Reply, ToolsReturned
from fsm_agent.guards import classic
from fsm_agent.machine import Run
from tests.drawn import laid, played, talk

SVG = "{http://www.w3.org/2000/svg}"

HOSTILE = [
    "</text><script>alert(1)</script>&amp;&#x41;<!-- --> ]]>",
    '"]; evil -> node [label="x"] } digraph {',
    "\\N \\G \\L \\\\ \\",
    "\x00\x07\x1b[31m\x9b\u202e\u2066\ufeff\uffff\ud800",
    '```mermaid #quot; %%{init: {}}%% --> | " ; end',
    "三" * 400,
    "e" + "\u0301" * 400,
    "",
]


def text_of(svg: bytes) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter(f"{SVG}text")]


@cache
def shown() -> dict[str, View]:
    """Drawings of every kind."""
    forms = {f"Scenario {name}" if len(name) == 1 else name: view for name, view in views().items()}
    runs = {
        "talk": talk(),
        "long": played(*("no form" if step % 7 == 0 else f"TOOL add a=1,b={step}" for step in range(400)), guards=classic(400, 2, 3)),
        "twelve": played(guards=classic(20), steps=12),
        "open": played(steps=2),
        "new": Run("a task", guards=classic()),
        "errors": played(guards=classic(50, 2, 20), failing=True),
    }
    return {**forms, **{name: path_view(run, name) for name, run in runs.items()}}


# --- valid ---------------------------------------------------------------------------------------------------------


def test_an_svg_has_a_role_a_title_a_description_and_the_labels() -> None:
    view = views()["c"]
    root = ET.fromstring(render(view, "svg"))
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert title is not None
    assert description is not None
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert (title.text, description.text) == (view.graph.title, view.graph.description)
    lines = [line.text for node in view.graph.nodes for line in node.lines] + [
        line.text for edge in view.graph.edges for line in edge.lines
    ]
    assert sorted(line.replace("\xa0", " ").strip() for line in text_of(render(view, "svg"))) == sorted(
        line.strip() for line in [view.graph.title, *lines]
    )


def test_two_drawings_in_one_page_have_titles_of_their_own() -> None:
    ids = [re.findall(rb'aria-labelledby="([^"]+)"', render(view, "svg"))[0] for view in views().values()]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("form", "magic"), [("png", b"\x89PNG\r\n\x1a\n"), ("pdf", b"%PDF-")])
def test_png_and_pdf_are_what_they_say(form: str, magic: bytes) -> None:
    assert render(views()["c"], form).startswith(magic)


def test_every_node_has_a_label_of_its_own_in_dot() -> None:
    for view in shown().values():
        source = render(view, "dot").decode()
        assert all(re.search(rf"^\t{node.id} \[label=", source, re.MULTILINE) for node in view.graph.nodes)


# --- readable ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(shown()))
def test_labels_touch_no_edge_no_box_and_no_other_label(name: str) -> None:
    assert laid(render(shown()[name], "dot").decode()).collisions(gap=1) == []


@pytest.mark.parametrize("name", list(shown()))
def test_the_states_stand_in_one_row_from_left_to_right(name: str) -> None:
    nodes = laid(render(shown()[name], "dot").decode()).nodes
    row = [nodes[state] for state in ("start", "Deciding", "Parsing", "Executing", "Observing")]
    assert [box.left for box in row] == sorted(box.left for box in row)
    assert max(abs((box.low + box.high) / 2 - (row[0].low + row[0].high) / 2) for box in row) < 1


def test_the_halts_of_a_state_stand_in_the_order_of_the_table() -> None:
    view = machine_view()
    nodes = laid(render(view, "dot").decode()).nodes
    for state in ("Parsing", "Observing"):
        halts = [edge.dest for edge in view.graph.edges if edge.source == state and edge.dest.startswith("Halted")]
        assert sorted(halts, key=lambda halt: -nodes[halt].low) == halts


@pytest.mark.parametrize("name", ["long", "talk", "errors"])
def test_a_long_run_stays_one_screen(name: str) -> None:
    drawing = laid(render(shown()[name], "dot").decode())
    assert drawing.width < 1400
    assert drawing.height < 500


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(("text", "ground"), palette.TEXT_ON)
def test_text_has_contrast(text: str, ground: str) -> None:
    assert (luminance(ground) + 0.05) / (luminance(text) + 0.05) >= 4.5


def test_drawings_use_no_colour_that_is_not_in_the_palette() -> None:
    known = {value for name, value in vars(palette).items() if name.isupper() and isinstance(value, str)}
    for view in shown().values():
        assert set(re.findall(r"#[0-9a-f]{6}", render(view, "dot").decode())) <= known


def test_taken_is_told_by_width_and_dashes_and_the_halting_edge_by_colour_as_well() -> None:
    source = draw_path(played("no form", guards=classic(max_steps=1))).source
    looks = {line.split('id="edge-')[1].split('"')[0]: line for line in source.splitlines() if 'id="edge-' in line}
    assert "penwidth=2.8" in looks["malformed"]
    assert "dashed" not in looks["malformed"]
    assert "penwidth=1 style=dashed" in looks["call_tools"]
    assert f'color="{palette.STOP}"' in looks["max_steps"]
    assert "penwidth=2.8" in looks["max_steps"]


# --- safe ----------------------------------------------------------------------------------------------------------


def hostile_run(text: str) -> Run:
    """What a model, a tool and a person's guard can say, all of it ``text``."""
    run = Run(text, guards=classic(9, 2, 2))
    for _ in range(2):
        run.feed(ModelReplied(Reply(f'TOOL tool q="{text}"')))
        if run.state == "Executing":
            run.feed(ToolsReturned((Observation(text, text, "tool_error"),)))
        if run.reason:
            break
    return run


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_is_said_breaks_no_format(text: str) -> None:
    answer = Run("a task", guards=classic())
    answer.feed(ModelReplied(Reply(f"FINAL {text}")))
    for view in (path_view(hostile_run(text), text), path_view(answer, text)):
        root = ET.fromstring(render(view, "svg"))
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
            "svg",
            "title",
            "desc",
            "g",
            "path",
            "polygon",
            "ellipse",
            "text",
            "polyline",
        }
        drawn = laid(render(view, "dot").decode())
        assert drawn.nodes.keys() == {node.id for node in view.graph.nodes}
        assert len(drawn.curves) == len(view.graph.edges)
        mermaid = render(view, "mermaid").decode()
        assert not re.search(r"<(?!/?b>|br/>)|%%|[\x00-\x09\x0b-\x1f]", mermaid)
        styled = sum(edge.kind in {"untaken", "halting"} for edge in view.graph.edges)
        assert len(mermaid.splitlines()) == 11 + len(view.graph.nodes) + len(view.graph.edges) + styled
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2066\u202e]", render(view, "text").decode())
        assert drawn.width < 1400


@settings(max_examples=60, deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
    | st.text("\\\\NGELTH<>&;#\"' ", min_size=1).filter(str.strip)
)
def test_any_answer_is_drawn_as_it_is(answer: str) -> None:
    run = Run("a task", guards=classic())
    run.feed(ModelReplied(Reply(f"FINAL {answer}")))
    view = path_view(run)
    (halt,) = (node for node in view.graph.nodes if node.kind == "halted")
    (group,) = (group for group in ET.fromstring(render(view, "svg")).iter(f"{SVG}g") if group.findtext(f"{SVG}title") == halt.id)
    drawn = ["".join(element.itertext()).replace("\xa0", " ") for element in group.iter(f"{SVG}text")]
    assert drawn == [line.text for line in halt.lines]


def test_backslashes_are_drawn_as_they_are() -> None:
    run = Run("a task", guards=classic())
    run.feed(ModelReplied(Reply("FINAL \\N \\G \\\\ \\n")))
    assert "\\N \\G \\\\ \\n" in text_of(render(path_view(run), "svg"))


# --- made in process ------------------------------------------------------------------------------------------------


def test_a_drawing_shows_itself_in_a_notebook_without_any_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    drawing = draw_path(played("FINAL 1"), "Run 1")
    bundle = drawing._repr_mimebundle_()
    assert list(bundle) == ["image/svg+xml"]
    assert ET.fromstring(bundle["image/svg+xml"]).findtext(f"{SVG}title") == "Run 1: Halted(final_answer) at step 1, 1 model call"
    assert drawing._repr_mimebundle_(include=["image/png"])["image/png"].startswith(b"\x89PNG")
    assert drawing.pipe("svg", encoding="utf-8") == bundle["image/svg+xml"]


def test_a_drawing_renders_files_as_any_digraph_does(tmp_path: Path) -> None:
    drawing = draw_machine(classic())
    picture = drawing.render("machine.gv", directory=tmp_path, format="pdf")
    assert Path(picture) == tmp_path / "machine.gv.pdf"
    assert Path(picture).read_bytes().startswith(b"%PDF-")
    assert (tmp_path / "machine.gv").read_text(encoding="utf-8") == drawing.source
    drawing.render("other.gv", directory=tmp_path, cleanup=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["machine.gv", "machine.gv.pdf", "other.gv.svg"]


def test_a_drawing_can_be_changed_and_copied() -> None:
    drawing = draw_path(played("FINAL 1"))
    drawing.node("note", label="my own")
    assert "my own" in text_of(drawing.pipe("svg"))
    copy = drawing.copy()
    assert copy.source == drawing.source
    assert "my own" in text_of(copy.pipe("svg"))


def test_what_cannot_be_drawn_is_said_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LayoutError, match=r"^not DOT text: "):
        lay_out("no graph", "svg")
    with pytest.raises(LayoutError, match=r"^cannot draw the format 'nothing': "):
        lay_out("digraph {}", "nothing")


def test_graphviz_says_what_is_wrong_and_nothing_of_fonts() -> None:
    script = "from fsm_agent.diagrams import machine_view, render; from fsm_agent.diagrams.layout import lay_out; render(machine_view(), 'png'); lay_out('no graph', 'svg')"
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=Path(__file__).parent.parent
    ).stderr
    assert said.startswith("Error: syntax error in line 1 near 'no'\nTraceback")
    assert said.splitlines()[-1].startswith("fsm_agent.diagrams.layout.LayoutError: not DOT text: ")


def test_several_threads_draw_at_once() -> None:
    view = views()["c"]
    expected = render(view, "svg")
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.extend(render(view, "svg") for _ in range(5))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 30

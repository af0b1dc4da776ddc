"""How drawings look: themes, the legend, and the room that Chinese text has."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import attrs
import pytest
from click.testing import CliRunner, Result

from fsm_agent.cli import cli
from fsm_agent.diagrams import View, draw_machine, machine_view, path_view, render, unrolled_view, with_legend
from fsm_agent.diagrams.layout import lay_out
from fsm_agent.diagrams.palette import DARK, LIGHT, PRINT, THEMES, Theme
from fsm_agent.diagrams.text import columns, wide_characters
from fsm_agent.drivers import run
from fsm_agent.guards import classic, production
from fsm_agent.language import ENGLISH, language
from fsm_agent.scenarios import load_all
from tests.drawn import laid, played

CHINESE = language("zh")
PAIRS = [(name, text, ground) for name, theme in THEMES.items() for text, ground in theme.text_on]


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@cache
def chinese() -> dict[str, View]:
    """Drawings of every kind in Chinese."""
    runs = {
        name: run(each.task, model=each.model, tools=each.named_tools.values(), guards=each.guards, lang="zh").trace.replay()
        for name, each in load_all().items()
    }
    return {
        **{name: path_view(each, f"场景 {name}") for name, each in runs.items()},
        **{f"{name} unrolled": unrolled_view(each, f"场景 {name}") for name, each in runs.items()},
        "machine": machine_view(lang=CHINESE),
        "production": with_legend(machine_view(production(20), CHINESE), CHINESE),
        "long": path_view(played(guards=classic(400)), "长", CHINESE),
    }


def draw(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["draw", *map(str, arguments), "--lang", "en"])


# --- themes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "text", "ground"), PAIRS)
def test_text_has_contrast_in_every_theme(name: str, text: str, ground: str) -> None:
    bright, dark = sorted((luminance(text), luminance(ground)), reverse=True)
    assert (bright + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize("name", list(THEMES))
def test_a_drawing_has_the_colours_of_its_theme_alone(name: str) -> None:
    known = set(attrs.astuple(THEMES[name]))
    for view in (with_legend(machine_view()), path_view(played("no form", guards=classic(3))), unrolled_view(played(guards=classic(3)))):
        for form in ("dot", "svg"):
            found = set(re.findall(r"#[0-9a-f]{6}", render(view, form, name).decode()))
            names = set(re.findall(r'(?:fill|stroke)="([a-z]+)"', render(view, form, name).decode())) - {"none", "black", "white"}
            assert found <= known
            assert not names
        assert f'bgcolor="{THEMES[name].ground}"' in render(view, "dot", name).decode()


def test_themes_change_colours_and_nothing_else() -> None:
    def shape(theme: Theme, name: str) -> str:
        source = render(path_view(played("FINAL 1"), "Run"), "dot", name).decode()
        return re.sub(r"#[0-9a-f]{6}", "#", source)

    assert shape(LIGHT, "light") == shape(DARK, "dark") == shape(PRINT, "print")
    assert render(machine_view(), "dot", "light") == render(machine_view(), "dot")


def test_print_is_black_white_and_grey() -> None:
    assert all(colour[1:3] == colour[3:5] == colour[5:7] for colour in attrs.astuple(PRINT))


def test_an_unknown_theme_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"^the theme 'neon' is not known; known are light, dark, print$"):
        render(machine_view(), "svg", "neon")


def test_a_notebooks_drawing_can_have_a_theme() -> None:
    assert DARK.ground in draw_machine(classic(), theme="dark").source


@pytest.mark.parametrize("form", ["svg", "png", "pdf", "dot"])
def test_the_command_draws_themes(form: str, tmp_path: Path) -> None:
    pictures = set()
    for theme in THEMES:
        assert draw("c", "--theme", theme, "-o", tmp_path / f"{theme}.{form}").exit_code == 0
        pictures.add((tmp_path / f"{theme}.{form}").read_bytes())
    assert len(pictures) == 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["c", "--theme", "dark"], "--theme is of svg, png, pdf, dot; text has no colours to choose"),
        (["c", "--theme", "dark", "--format", "html"], "--theme is of svg, png, pdf, dot; html has no colours to choose"),
        (["c", "--legend"], "--legend is of svg, png, pdf, dot, mermaid; text has no boxes or arrows"),
    ],
)
def test_looks_that_a_format_does_not_have_are_wrong_use(arguments: list[str], problem: str) -> None:
    result = draw(*arguments)
    assert (result.exit_code, result.stderr) == (2, f"Error: {problem}\n")


# --- the legend ----------------------------------------------------------------------------------------------------


def legend(view: View) -> list[tuple[str, str]]:
    return [(key.name, key.text) for key in with_legend(view).graph.keys]


def test_a_legend_explains_what_is_in_the_drawing_and_nothing_else() -> None:
    taken = ("thick arrow", "taken, at the steps with these numbers; a/b: a guard read a, its limit is b")
    assert legend(path_view(played("FINAL 1"))) == [
        ("box", "a state"),
        ("double box, blue", "halted with an answer"),
        taken,
        ("thin dashed arrow", "not taken"),
    ]
    assert legend(path_view(played(steps=1))) == [("box", "a state"), taken, ("thin dashed arrow", "not taken")]
    assert legend(machine_view()) == [
        ("box", "a state"),
        ("double box, blue", "halted with an answer"),
        ("double box, brown", "halted without an answer"),
        ("arrow", "event [guard]: taken when it holds, tried from top to bottom"),
    ]
    assert legend(unrolled_view(played("FINAL 1")))[-1] == ("thick arrow", "taken; a/b: a guard read a, its limit is b")


def test_a_legend_is_in_the_picture_its_description_and_mermaid() -> None:
    view = with_legend(path_view(played("FINAL 1")))
    root = ET.fromstring(render(view, "svg"))
    assert {key.text for key in view.graph.keys} <= {
        "".join(text.itertext()).strip("\xa0 ") for text in root.iter("{http://www.w3.org/2000/svg}text")
    }
    assert view.graph.description.endswith(
        "box: a state\ndouble box, blue: halted with an answer\n" + "\n".join(f"{k.name}: {k.text}" for k in view.graph.keys[2:])
    )
    assert "box: a state<br/>double box, blue: halted with an answer<br/>" in render(view, "mermaid").decode()


@pytest.mark.parametrize("view", [machine_view(), machine_view(classic()), path_view(played(guards=classic(400)))])
def test_a_legend_touches_nothing(view: View) -> None:
    drawn, plain = (laid(render(each, "dot").decode()) for each in (with_legend(view), view))
    assert drawn.collisions(gap=1) == []
    assert drawn.height - plain.height < 70
    assert drawn.width <= max(plain.width, 1000)


def test_the_command_draws_a_legend(tmp_path: Path) -> None:
    assert draw("c", "--legend", "-o", tmp_path / "c.svg").exit_code == 0
    assert "halted without an answer" in (tmp_path / "c.svg").read_text(encoding="utf-8")
    assert draw("c", "--format", "mermaid", "--legend").exit_code == 0


# --- Chinese -------------------------------------------------------------------------------------------------------


def texts(drawing: bytes) -> Iterator[tuple[str, float, float]]:
    """Each text that Graphviz laid out: what it says, its size, and the width that it was given, in points."""
    laid_out: dict[str, Any] = json.loads(drawing)
    for item in [laid_out, *laid_out["objects"], *laid_out["edges"]]:
        size = 0.0
        for op in item.get("_ldraw_", []):
            if op["op"] == "F":
                size = op["size"]
            elif op["op"] == "T":
                yield op["text"], size, op["width"]


@pytest.mark.parametrize("name", list(chinese()))
def test_chinese_labels_are_as_wide_as_they_are_drawn_and_touch_nothing(name: str) -> None:
    source = render(chinese()[name], "dot").decode()
    assert laid(source).collisions(gap=1) == []
    wide = [(text, size, width) for text, size, width in texts(lay_out(source, "json")) if wide_characters(text)]
    assert wide
    for text, size, width in wide:
        assert width >= 0.95 * size * wide_characters(text), text


@pytest.mark.parametrize("name", ["c", "d unrolled", "production"])
def test_cells_of_chinese_text_ask_for_its_width_whatever_fonts_there_are(name: str) -> None:
    source = render(chinese()[name], "dot").decode()
    cells = re.findall(r"<TD([^>]*)>(?:<B>)?<FONT(?: POINT-SIZE=\"(\d+)\")?[^>]*>([^<]*)</FONT>", source)
    wide = [(look, int(size or 15), text) for look, size, text in cells if wide_characters(text)]
    assert wide
    for look, size, text in wide:
        assert int(look.split('WIDTH="')[1].split('"')[0]) >= columns(text) * size / 2


def test_boxes_have_room_for_chinese_text_where_no_font_has_it(tmp_path: Path) -> None:
    """Another process, which finds no font at all: what is measured there is no character's width."""
    (tmp_path / "fonts.conf").write_text('<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig></fontconfig>')
    source = tmp_path / "c.dot"
    source.write_bytes(render(chinese()["c"], "dot"))
    script = (
        "import sys; from pathlib import Path; from fsm_agent.diagrams.layout import lay_out; "
        "sys.stdout.buffer.write(lay_out(Path(sys.argv[1]).read_text(encoding='utf-8'), 'json'))"
    )
    env = {**os.environ, "FONTCONFIG_FILE": str(tmp_path / "fonts.conf"), "XDG_CACHE_HOME": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", script, str(source)], capture_output=True, check=False, cwd=Path(__file__).parent.parent, env=env
    )
    if result.returncode < 0:
        pytest.skip("the text library ends the process where there is no font")
    assert result.returncode == 0, result.stderr
    (halt,) = (each for each in json.loads(result.stdout)["objects"] if each["name"].startswith("Halted"))
    lines = [line.text for node in chinese()["c"].graph.nodes if node.kind == "halted" for line in node.lines]
    assert float(halt["width"]) * 72 >= max(columns(line) for line in lines) * 11 / 2


def test_the_legend_speaks_the_language() -> None:
    assert with_legend(machine_view(), ENGLISH).graph.keys[0].text == "a state"

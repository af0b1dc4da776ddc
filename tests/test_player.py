"""The player's page as text: what is in it, that hostile text is only text there, and how the machine is laid out. No browser is needed."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from click.testing import CliRunner

from fsm_agent.cli import cli
from fsm_agent.cli.sources import play
from fsm_agent.events import Fact, ModelReplied, Observation, Reply, ToolsReturned, Usage, UserSpoke
from fsm_agent.guards import Guard, Reading, classic, guards_from
from fsm_agent.language import ENGLISH, language
from fsm_agent.machine import Run, Taken
from fsm_agent.player import content_policy, player_fragment, player_page, player_script, player_style
from fsm_agent.player.colours import COLOURS, TEXT_ON
from fsm_agent.player.data import packed
from fsm_agent.player.embed import safe_json, safe_text
from fsm_agent.player.picture import Picture, picture_of
from fsm_agent.player.shapes import Box
from fsm_agent.scenarios import built_in, names
from fsm_agent.table import HALTED, ROWS, Row
from tests.browser.runs import BIG, HOSTILE, guarded_run, hostile_run, long_run


@attrs.define
class Parsed(HTMLParser):
    """A page as a browser's parser sees it."""

    tags: Counter[str] = attrs.field(factory=Counter)
    attributes: list[tuple[str, str | None]] = attrs.field(factory=list)
    texts: dict[str, list[str]] = attrs.field(factory=dict)
    _open: str = ""

    def __attrs_pre_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        self._open = tag
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open][-1] += data


def parsed(page: str) -> Parsed:
    parser = Parsed()
    parser.feed(page)
    parser.close()
    return parser


def data_of(page: str) -> dict[str, Any]:
    """What the page's script reads."""
    block = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert block is not None
    data: dict[str, Any] = json.loads(block[1])
    return data


# --- the data ----------------------------------------------------------------------------------------------------


def test_a_run_is_packed_into_columns_and_every_text_is_there_once() -> None:
    run = Run("t", guards=guards_from("classic", max_errors=1, max_tokens=100), at=10.0)
    run.feed(ModelReplied(Reply("TOOL add a=1", usage=Usage(7, None), model="m", latency_s=0.25), 10.5))
    run.feed(ToolsReturned((Observation("add", "TOOL_ERROR: no", "bad_arguments"),), 11.0))
    data = packed(run, ENGLISH)
    del data["words"]
    assert data == {
        "rows": [
            ["Deciding", "Parsing", "Parsing", "model replied"],
            ["Deciding", "Halted", "Halted(model_error)", "model failed"],
            ["Deciding", "Deciding", "Deciding", "a person spoke"],
            ["Deciding", "Halted", "Halted(cancelled)", "cancelled"],
            ["Deciding", "Halted", "Halted(recording_ended)", "recording ended"],
            ["Parsing", "Halted", "Halted(final_answer)", "final answer"],
            ["Parsing", "Halted", "Halted(repeated_call)", "repeats"],
            ["Parsing", "Halted", "Halted(token_budget)", "tokens"],
            ["Parsing", "Observing", "Observing", "malformed"],
            ["Parsing", "Observing", "Observing", "said to a person"],
            ["Parsing", "Executing", "Executing", "tool call"],
            ["Executing", "Observing", "Observing", "tools returned"],
            ["Executing", "Halted", "Halted(cancelled)", "cancelled"],
            ["Executing", "Halted", "Halted(recording_ended)", "recording ended"],
            ["Observing", "Halted", "Halted(consecutive_errors)", "errors"],
            ["Observing", "Halted", "Halted(max_steps)", "steps"],
            ["Observing", "Deciding", "Deciding", "go on"],
        ],
        "edges": [0, 10, 11, 14],
        "unjudged": [],
        "steps": [1, 0, 0, 0],
        "ms": [500, 0, 500, 0],
        "messages": [2, 1, 0, 1, 0],
        "items": [[[0, 1, 0, 2]], [[3, 4, 1]], [[5, 6, 2]], 0],
        "history": [[7, 8, 9], [10, 11, 9], [12, 1, 9], [13, 6, 9]],
        "summaries": [],
        "task": 11,
        "guards": [
            {"name": "repeats", "reason": "repeated_call", "watches": "Parsing", "limit": 2, "values": [0]},
            {"name": "tokens", "reason": "token_budget", "watches": "Parsing", "limit": 100, "values": [[7, 4]]},
            {"name": "errors", "reason": "consecutive_errors", "watches": "Observing", "limit": 1, "values": [[1, 1]]},
            {"name": "steps", "reason": "max_steps", "watches": "Observing", "limit": 10, "values": [1]},
        ],
        "ending": {"answered": False, "message": 14, "evidence": [[1, 15, 16]], "also": 9},
        "texts": [
            "the model said",
            "TOOL add a=1",
            "m · tokens: 7 read, ? written · 0.25 s",
            "call",
            "add{a=1}",
            "add failed (bad_arguments)",
            "TOOL_ERROR: no",
            "system",
            run.history[0].content,
            "",
            "user",
            "t",
            "assistant",
            "tool add",
            "stopped: 1 failed tool call in a row, circuit breaker tripped",
            "bad_arguments",
            "no",
        ],
    }


@pytest.mark.parametrize("name", names())
def test_the_edges_and_readings_are_those_of_the_run(name: str) -> None:
    run = play(built_in(name))
    data, taken = packed(run, ENGLISH), [entry for entry in run.log if isinstance(entry, Taken)]
    ids = [row.id for row in run.wiring.rows]
    assert [ids[edge] for edge in data["edges"]] == [each.edge for each in taken]
    for guard in data["guards"]:
        values = [value[0] if isinstance(value, list) else value for value in guard["values"]]
        assert values == [reading.value for each in taken for reading in each.readings if reading.guard == guard["reason"]]


def test_a_guard_is_judged_on_every_edge_out_of_the_state_that_it_watches() -> None:
    data = packed(guarded_run(), ENGLISH)
    for guard in data["guards"]:
        assert len(guard["values"]) == sum(data["rows"][edge][0] == guard["watches"] for edge in data["edges"])


def test_numbers_that_javascript_cannot_hold_are_texts() -> None:
    @attrs.frozen
    class Odd(Guard):
        reason: ClassVar[str] = "odd"
        values: tuple[float, ...] = (2**60, 2**53, 1 / 3)

        def start(self) -> int:
            return -1

        def fold(self, memory: int, fact: Fact, step: int) -> int:
            return memory + isinstance(fact, ModelReplied)

        def judge(self, memory: int) -> Reading:
            return Reading(self.reason, self.values[memory], 1, trips=False)

    run = Run("t", guards=(Odd(),))
    for _ in Odd().values:
        run.feed(ModelReplied(Reply("nothing that is a call")))
    page = player_page(run, "")
    assert data_of(page)["guards"][0]["values"] == ["1.153e+18", 2**53, 0.333333]


def test_a_run_that_nothing_happened_to_and_one_that_did_not_end() -> None:
    run = Run("t")
    data = packed(run, ENGLISH)
    assert (data["edges"], data["messages"], data["guards"], data["ending"]) == ([], [2], [], None)
    run.feed(ModelReplied(Reply("TOOL add a=1")))
    assert (packed(run, ENGLISH)["ending"], run.state) == (None, "Executing")
    assert "not ended, in Executing at step 1" in player_page(run, "")


# --- the page ----------------------------------------------------------------------------------------------------


def test_the_policy_lets_nothing_run_but_the_page_s_own_script_and_nothing_be_loaded() -> None:
    page = parsed(player_page(play(built_in("d")), "Scenario d"))
    style, (_, script) = page.texts["style"][0], page.texts["script"]
    [policy] = [value for name, value in page.attributes if name == "content" and value and "default-src" in value]

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    assert policy == (
        f"default-src 'none'; script-src 'sha256-{digest(script)}'; style-src 'sha256-{digest(style)}'; base-uri 'none'; form-action 'none'"
    )
    assert content_policy([], []) == "default-src 'none'; script-src 'none'; style-src 'none'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"url\(|@import|https?:|\beval\b|innerHTML|outerHTML|insertAdjacent|document\.write", style + script)


def test_nothing_in_the_markup_loads_or_runs_anything() -> None:
    names_used = {name for name, _ in parsed(player_page(hostile_run(), "<b>")).attributes}
    assert not {name for name in names_used if name.startswith("on")} | names_used & {"src", "href", "action", "style", "srcdoc", "data"}


def test_hostile_text_makes_no_markup() -> None:
    def shape(text: str) -> Counter[str]:
        run = Run(text, guards=classic())
        run.feed(UserSpoke(text))
        run.feed(ModelReplied(Reply("TOOL dump x=1")))
        run.feed(ToolsReturned((Observation(text, text, "tool_error", text),)))
        run.feed(ModelReplied(Reply(f"FINAL {text}")))
        return parsed(player_page(run, text)).tags

    assert len({frozenset(shape(text).items()) for text in ("harmless", *HOSTILE)}) == 1


def test_hostile_text_is_whole_in_the_data_and_what_steers_is_an_escape() -> None:
    page = player_page(hostile_run(), "\n".join(HOSTILE))
    block = page[page.index('<script type="application/json">') : page.rindex("<script>")]
    assert not re.search("[<>&\u2028\u2029]", block.removeprefix('<script type="application/json">').partition("</script>")[0])
    texts = data_of(page)["texts"]
    everything = safe_text("\n".join(HOSTILE))
    assert everything in texts
    assert (
        "before\\u2028line\\u2029paragraph\n\\u202egnirts \\u2066desrever\\u2069 \\u200f\n\\x00\\x07\\x1b[31mred\\x85 \\ufeff" in everything
    )
    assert [text for text in texts if text.endswith("x" * BIG + "THE END")] == [f"{everything}\n{'x' * BIG}THE END"]
    assert not re.search("[\x00-\x08\x0e-\x1f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page)


def test_json_is_safe_inside_a_script_element() -> None:
    assert safe_json({"</script>": "<!-- & -->\u2028"}) == '{"\\u003c/script\\u003e":"\\u003c!-- \\u0026 --\\u003e\\u2028"}'


def test_the_same_run_gives_the_same_page() -> None:
    assert player_page(guarded_run(), "x") == player_page(guarded_run().copy(), "x")


def test_a_long_run_is_little_more_than_what_was_said() -> None:
    run = long_run(500)
    said = sum(len(message.content) for message in run.history)
    page = player_page(run, "long")
    assert len(page) < 2 * said + 100_000
    assert page.count("Result 250:") == 1


def test_the_page_is_in_the_language_of_its_reader() -> None:
    page = player_page(guarded_run(), "", language("zh"))
    assert '<html lang="zh-CN">' in page
    assert '<section class="fsm-player" id="run" lang="zh-CN"' in page
    assert '<html lang="en">' in player_page(guarded_run(), "")


def test_players_on_one_page_share_no_id() -> None:
    run = play(built_in("b"))
    page = f"<style>{player_style()}</style>{player_fragment(run, 'one', 'one')}{player_fragment(run, 'two', 'two-2_b', level=4)}"
    ids = [value for name, value in parsed(page).attributes if name == "id"]
    assert len(ids) == len(set(ids)) == 10
    assert {value for name, values in parsed(page).attributes if name == "aria-labelledby" for value in (values or "").split()} <= set(ids)
    assert parsed(page).tags["h4"] == 1
    assert player_script().count("use strict") == 1


@pytest.mark.parametrize("bad", ["", "1a", "a b", 'a"', "é", "a=b", "-a"])
def test_an_id_that_is_none_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"^id is .*; it must be letters, digits, - and _, and begin with a letter$"):
        player_fragment(Run("t"), "", bad)


def test_a_heading_s_level_leaves_room_for_those_below_it() -> None:
    with pytest.raises(ValueError, match=r"^level is 6; it must be 1 to 5$"):
        player_fragment(Run("t"), "", "a", level=6)


# --- the picture ---------------------------------------------------------------------------------------------------


@attrs.frozen
class Named(Guard):
    """A user's own guard with a long reason."""

    reason: ClassVar[str] = "a_reason_that_goes_on_and_on_and_on"
    watches: ClassVar[Any] = "Parsing"

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        return memory

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, 1, trips=False)


MACHINES: dict[str, tuple[Row, ...]] = {
    "no guards": Run("").wiring.rows,
    "classic": Run("", guards=classic()).wiring.rows,
    "production": guarded_run().wiring.rows,
    "own": Run("", guards=(*classic(), Named())).wiring.rows,
    "all": ROWS,
}


def laid_out(machine: str) -> Picture:
    return picture_of(MACHINES[machine], ENGLISH)


def apart(one: Box, other: Box) -> bool:
    return (
        one.x + one.width <= other.x or other.x + other.width <= one.x or one.y + one.height <= other.y or other.y + other.height <= one.y
    )


@pytest.mark.parametrize("machine", MACHINES)
def test_every_row_has_its_line_and_every_halt_its_place_in_the_order_of_the_table(machine: str) -> None:
    picture, rows = laid_out(machine), MACHINES[machine]
    assert sorted(index for line in picture.lines for index in line.indices) == list(range(len(rows)))
    for line in picture.lines:
        assert {(rows[i].source, rows[i].dest, rows[i].reason or rows[i].label) for i in line.indices} == {
            (line.row.source, line.row.dest, line.row.reason or line.row.label)
        }
    halts = [line.chip for line in picture.lines if line.chip is not None]
    assert len(halts) == len({(row.source, row.reason) for row in rows if row.dest == HALTED})
    order = [(line.row.source, line.chip.y) for line in picture.lines if line.chip]
    for (source, y), (next_source, next_y) in pairwise(order):
        assert source != next_source or y < next_y


@pytest.mark.parametrize("machine", MACHINES)
def test_no_two_boxes_touch_and_all_are_in_the_picture(machine: str) -> None:
    picture = laid_out(machine)
    chips = [line.chip for line in picture.lines if line.chip]
    for one, other in combinations([*picture.states.values()], 2):
        assert apart(one, other)
    for one, other in combinations(chips, 2):
        assert apart(one, other)
    halted = picture.states[HALTED]
    for chip in chips:
        assert halted.x < chip.x
        assert chip.x + chip.width < halted.x + halted.width
        assert halted.y + 34 < chip.y
        assert chip.y + chip.height < halted.y + halted.height
    assert halted.x + halted.width < picture.width
    assert halted.y + halted.height < picture.height
    assert all(0 < value < max(picture.width, picture.height) for line in picture.lines for value in (line.words.x, line.words.y))


@pytest.mark.parametrize("machine", MACHINES)
def test_no_two_lanes_meet(machine: str) -> None:
    lanes = [line.path for line in laid_out(machine).lines if line.words.upright]
    starts_and_ends = [(re.search(r"^M\S+ (\S+?)H", path), re.search(r" (\S+?)H\S+$", path)) for path in lanes]
    heights = [float(found[1]) for pair in starts_and_ends for found in pair if found]
    assert len(heights) == len(set(heights)) == 2 * len(lanes) > 0
    along = [float(found[1]) for path in lanes if (found := re.search(r"Q(\S+) ", path))]
    assert len(along) == len(lanes)
    for (x, ends), (other, others) in combinations(zip(along, zip(heights[::2], heights[1::2], strict=True), strict=True), 2):
        assert x != other or max(ends) < min(others) or max(others) < min(ends)


def test_the_picture_is_narrow_enough_for_a_telephone() -> None:
    assert laid_out("production").width < 365


# --- colours -------------------------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(("text", "fill"), TEXT_ON)
@pytest.mark.parametrize("ground", [0, 1], ids=["light", "dark"])
def test_text_has_contrast(text: str, fill: str, ground: int) -> None:
    dark, light = sorted(luminance(COLOURS[name][ground]) for name in (text, fill))
    assert (light + 0.05) / (dark + 0.05) >= 4.5


# --- the command line ----------------------------------------------------------------------------------------------


def test_draw_writes_a_page_for_a_run(tmp_path: Path) -> None:
    for arguments in (["draw", "c", "-o"], ["run", "c", "--draw"]):
        CliRunner().invoke(cli, [*arguments, str(tmp_path / "run.html"), "--lang", "en"])
        page = (tmp_path / "run.html").read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>")
        assert "<title>Scenario c</title>" in page
        assert data_of(page)["edges"][-1] == 13


@pytest.mark.parametrize("arguments", [[], ["c", "--view", "machine"]])
def test_a_page_of_what_is_no_run_is_refused(arguments: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["draw", *arguments, "-o", str(tmp_path / "run.html")])
    line = "Error: a page (html) steps through one run: name a scenario, a trace, or with --run one run of several\n"
    assert (result.exit_code, result.stderr) == (2, line)

"""The report: one page that is whole, safe, loads nothing, and is the same every time."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner, Result

from fsm_agent.audit.audit import Audit, audit_runs, by_model
from fsm_agent.audit.plan import Plan, parse_sweep, plan_of
from fsm_agent.cli import cli
from fsm_agent.diagrams import machine_view, palette, path_view, render
from fsm_agent.events import ModelReplied, Observation, Reply, ToolRequest, ToolsReturned
from fsm_agent.language import ENGLISH
from fsm_agent.player import player_fragment, player_script
from fsm_agent.report import Collected, Told, collect, page
from fsm_agent.report.collect import MOST_KEPT
from fsm_agent.report.markup import element, text
from fsm_agent.report.pictures import DARK, picture
from fsm_agent.report.players import MOST_EDGES, player, shortened
from fsm_agent.report.runs import MOST_LISTED
from fsm_agent.text import printable
from fsm_agent.traces.recordings import Damaged, Recording
from fsm_agent.traces.replay import replay
from tests.scripted_recordings import of_file, recorded
from tests.test_audit_tables import RUNS
from tests.test_cli_audit import chat

VOID = {"meta", "input", "br"}
LOADING = {"src", "srcset", "action", "formaction", "data", "poster", "background", "ping", "manifest", "style"}
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "' onmouseover='alert(4)",
    "]]><!-- --><svg onload=alert(5)>",
    "&lt;b&gt; &#60;b&#62; {0} {x} %s $\\frac",
    "javascript:alert(6)",
    "a\u2028b\u2029c\u202ed\u2066e\u200ff\x00g\x1b[31mh\ufeffi\ufffej",
    "lone \ud800 surrogate",
    "=cmd|' /C calc'!A0",
    "模型 🙂 العربية",
)
SWEEPS = ("max_errors=2..3",)


class Parsed(HTMLParser):
    """A page, with what is wrong about how its elements are nested."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        self.wrong += [f"{name} is not closed" for name in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if len(dict(attrs)) < len(attrs):
            self.wrong.append(f"{tag} has an attribute twice")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text_of(self, *tags: str) -> str:
        return "\n".join(data for tag, data in self.texts if tag in tags)

    @property
    def ids(self) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get("id"))]


def audited(runs: Sequence[Recording | Damaged], base: Plan | None = None, sweeps: Sequence[str] = SWEEPS, *, group: bool = False) -> Audit:
    parsed = [parse_sweep(each) for each in sweeps]
    plan = base or plan_of("production", {"max_steps": 5}, "production, max_steps=5")
    what_ifs = [plan_of("production", {"max_errors": 2}, "max_errors=2")]
    return audit_runs(
        runs,
        plan,
        what_ifs=what_ifs,
        sweeps=[(each, each.plans("production", {})) for each in parsed],
        **({"group": by_model} if group else {}),
    )


def made(runs: Sequence[Recording | Damaged], sweeps: Sequence[str] = SWEEPS, title: str = "Audit of made", *, group: bool = False) -> str:
    audit = audited(runs, sweeps=sweeps, group=group)
    collected = collect(runs, audit.base.plan)
    return page(audit, collected, Told(title, "source", "fsm-agent report made"), ENGLISH).decode()


@pytest.fixture(scope="module")
def whole() -> str:
    return made(RUNS)


# --- what is in it -----------------------------------------------------------------------------------------------


def test_the_page_is_well_formed_and_names_are_unique(whole: str) -> None:
    parsed = Parsed(whole)

    assert whole.startswith('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">')
    assert parsed.wrong == []
    ids = set(parsed.ids)
    assert len(parsed.ids) == len(ids)
    for _, attributes in parsed.elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert set((attributes.get(name) or "").split()) <= ids
        if (attributes.get("href") or "#").startswith("#"):
            assert (attributes.get("href") or "#")[1:] in {"", *ids}


def test_sections_and_tables_in_order(whole: str) -> None:
    parsed = Parsed(whole)

    assert parsed.text_of("h1") == "Audit of made"
    assert parsed.text_of("h2").splitlines() == [
        "Why the runs stopped", "What the guards stop, and what they kill", "Other limits", "Successes and failures side by side",
        "Runs worth a look", "All runs",
    ]  # fmt: skip
    assert parsed.text_of("caption").splitlines() == [
        "Runs", "Halt reasons under production, max_steps=5", "Each guard alone, and all together: what they stop and what they kill",
        "Near misses", "Runs that ended at a cap", "What if", "max_errors: its guard alone", "max_errors: all guards together",
        "7 of 7 runs, under production, max_steps=5",
    ]  # fmt: skip
    assert parsed.text_of("h3").splitlines() == [
        *parsed.text_of("caption").splitlines()[:-1],
        "False kills: 1 of 1 shown", "Stopped early: 3 of 3 shown", "Other near misses: 1 of 1 shown",
    ]  # fmt: skip


def test_the_summary_tells_the_good_and_the_bad_together(whole: str) -> None:
    assert Parsed(whole).text_of("p").splitlines()[:2] == [
        "7 runs with 32 model calls: 2 succeeded, 4 failed, 1 unknown.",
        "Under production, max_steps=5, 2 of 4 (50.0%) failed runs are stopped, which saves 4 of 20 (20.0%) of their model calls; 1 of 2 (50.0%) successful runs are killed.",
    ]


def test_every_table_and_picture_says_how_to_read_it(whole: str) -> None:
    for title in Parsed(whole).text_of("h3").splitlines():
        assert re.search(rf'<h3[^>]*>{re.escape(text(title))}</h3><p class="hint">[^<]+</p>', whole), title
    pictures = [each for each in Parsed(whole).of("svg") if each.get("class") == "picture"]
    assert len(pictures) == 3 + 5  # the heat map, the chart, the comparison, and five runs
    assert all(each["role"] == "img" and each["aria-labelledby"] and each["aria-describedby"] for each in pictures)


def test_the_warning_of_weak_models_stands_wherever_figures_are_pooled(whole: str) -> None:
    warning = "Most savings come from weak models: set limits by the rows of runs like yours, not by those of all runs."
    assert whole.count(f'<p class="warning">{warning}') == 2
    alone: list[Recording | Damaged] = [attrs.evolve(run, source="one") for run in RUNS]
    assert warning not in made(alone)


def test_tables_have_scopes_and_can_be_scrolled_by_keyboard(whole: str) -> None:
    parsed = Parsed(whole)

    assert {attributes.get("scope") for attributes in parsed.of("th")} == {"col", "row"}
    scrolled = [attributes for attributes in parsed.of("div") if attributes.get("class") == "scroll"]
    tables = len(parsed.of("table")) - whole.count("<table><tr>")  # those of a player's keys fit every screen
    assert len(scrolled) >= tables + whole.count('class="picture"')
    assert all(each["tabindex"] == "0" and each["role"] == "region" for each in scrolled)
    assert all(each.get("aria-labelledby") or each.get("aria-label") for each in scrolled)


def test_the_list_has_every_run_with_its_remark(whole: str) -> None:
    body = whole.partition('id="runs"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(?:<a [^>]*>)?([^<]*)", row) for row in body.split("</tr>")[:-1]]
    assert rows == [
        ["w1", "weak", "a task", "failure", "cap", "error_streak", "3", "6", "3", "stopped early"],
        ["w2", "weak", "a task", "failure", "answer", "final_answer", "5", "5", "0", "near miss: no_progress, max_steps"],
        ["w3", "weak", "a task", "success", "answer", "error_streak", "3", "5", "2", "false kill"],
        ["w4", "weak", "a task", "failure", "cap", "max_steps", "5", "6", "1", "stopped early"],
        ["s1", "strong", "a task", "success", "answer", "final_answer", "2", "2", "0", ""],
        ["s2", "strong", "a task", "failure", "user_stop", "recording_ended", "3", "3", "0", ""],
        ["s3", "strong", "a task", "unknown", "unknown", "no_progress", "4", "5", "1", "stopped early"],
    ]


def test_runs_that_a_guard_could_not_help_are_found_by_their_remark() -> None:
    runs = [recorded("1", "a b c d e f g", "failure", "cap"), recorded("2", "a b c d =", "success")]
    audit = audited(runs, plan_of("production", {"max_steps": 9}))
    html = page(audit, collect(runs, audit.base.plan), Told("t", "source", "c"), ENGLISH).decode()

    assert audit.base.capped[-1].runs == ("made:1",)
    assert "<td>no guard would have helped; beyond the recording</td>" in html


def test_damaged_runs_are_listed_and_counted() -> None:
    html = made([*RUNS, Damaged("line 3", "<no JSON>"), Recording("x", "made", "t", (ToolsReturned(()),))])

    assert '<h2 id="damaged">Damaged runs</h2>' in html
    assert "<li>line 3: &lt;no JSON&gt;</li><li>made:x: ToolsReturned in Deciding (step 0)" in html
    assert "<li>2 damaged runs were left out.</li>" in html


def test_without_failures_or_sweeps_their_sections_are_left_out() -> None:
    parsed = Parsed(made([recorded("1", "a =", "success")], sweeps=()))
    assert parsed.text_of("h2").splitlines() == [
        "Why the runs stopped",
        "What the guards stop, and what they kill",
        "Other limits",
        "All runs",
    ]


def test_without_matplotlib_the_chart_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    html = made(RUNS)
    assert '<p class="warning">charts are drawn by matplotlib; install it with: pip install &#x27;fsm-agent[charts]&#x27;</p>' in html
    assert "max_errors: its guard alone" in html


# --- bounds ------------------------------------------------------------------------------------------------------


def test_what_is_collected_of_many_runs() -> None:
    runs = [recorded(f"k{i}", "a! a! a! b =", "success") for i in range(9)]
    runs += [recorded(f"s{i}", "a! " * (4 + i), "failure") for i in range(9)]
    runs += [recorded(f"n{i}", "a! a! b =", "success" if i % 2 else "failure") for i in range(20)]
    found = collect(runs, plan_of("production", {}))

    assert found.counts == {"false_kill": 9, "saved": 9, "near_success": 10, "near_miss": 10}
    assert {kind: [each.row.id for each in kept] for kind, kept in found.kept.items()} == {
        "false_kill": ["k0", "k1", "k2", "k3", "k4", "k5"],
        "saved": ["s8", "s7", "s6", "s5", "s4", "s3"],
        "near_success": ["n1", "n3", "n5", "n7", "n9", "n11"],
        "near_miss": ["n0", "n2", "n4", "n6", "n8", "n10"],
    }
    assert MOST_KEPT == 6
    assert (found.heat.runs, found.successes.runs, found.failures.runs) == (38, 19, 19)


def test_a_long_list_holds_first_what_is_worth_a_look_and_says_what_it_leaves_out() -> None:
    runs = [recorded(str(i), "a =", "success") for i in range(MOST_LISTED + 50)] + [recorded("last", "a! a! a! b =", "success")]
    audit = audit_runs(runs, plan_of("production", {}))
    html = page(audit, collect(runs, audit.base.plan), Told("t", "source", "c"), ENGLISH).decode()

    assert f"{MOST_LISTED:,} of {len(runs):,} runs, under production" in html
    assert html.count('<th scope="row">') < MOST_LISTED + 50
    assert ">last</a>" in html
    assert len(html) < 1_500_000


def test_a_huge_observation_and_endless_names_do_not_make_a_huge_page() -> None:
    def huge(ident: str) -> Recording:
        call = ModelReplied(Reply("x" * 1_000_000, (ToolRequest("", "t" * 100_000, '{"a": "' + "y" * 1_000_000 + '"}'),)))
        failed = ToolsReturned((Observation("t" * 100_000, "z" * 1_000_000, "tool_error"),))
        return Recording(ident * 10_000, "s" * 10_000, "q" * 1_000_000, (call, failed) * 4, outcome="success", ending="answer")

    runs: list[Recording | Damaged] = [huge("1"), huge("2")]
    assert len(made(runs, sweeps=())) < 250_000


def test_what_was_said_in_a_run_is_cut_until_it_is_little_enough() -> None:
    assert shortened(["x" * 3_000, "short"]) == ["x" * 2_000 + "…", "short"]
    assert {len(each) for each in shortened(["x" * 3_000] * 30)} == {1_001}
    assert {len(each) for each in shortened(["x" * 3_000] * 10_000)} == {81}


def test_a_run_of_very_many_edges_is_shown_by_its_path_alone() -> None:
    run = replay(recorded("long", "a b " * (MOST_EDGES // 8 + 1)), ())
    assert player(run, "long", "play-1", ENGLISH).markup == (
        '<p class="hint">It is too long to be stepped through here; `fsm-agent draw` makes a page of it alone.</p>'
    )


# --- players -----------------------------------------------------------------------------------------------------


def test_every_run_worth_a_look_has_a_player_that_waits_until_a_run_is_opened(whole: str) -> None:
    players = re.findall(
        r'<details id="run-(\d+)" class="run"><summary>.*?</summary><template class="player"><section class="fsm-player" id="play-(\d+)"',
        whole,
    )
    assert sorted(players) == [(number, number) for number in "12347"]
    assert whole.count('class="fsm-player"') == len(players)
    outside = re.sub("<template.*?</template>", "", whole, flags=re.DOTALL)
    assert "fsm-player" not in outside.partition("</style>")[2]


def test_a_player_in_the_page_goes_through_the_run_as_one_alone_does(whole: str) -> None:
    kept = next(each for found in collect(RUNS, audited(RUNS).base.plan).kept.values() for each in found)
    [section] = re.findall(rf'<section class="fsm-player" id="play-{kept.row.number}".*?</section>\n</template>', whole, re.DOTALL)
    alone = player_fragment(kept.run, kept.row.task, f"play-{kept.row.number}", ENGLISH, level=4)
    assert section == re.sub("<noscript>.*</noscript>", "", alone, flags=re.DOTALL) + "</template>"


# --- safety ------------------------------------------------------------------------------------------------------


def hostile(evil: str, outcome: str = "success") -> Recording:
    """A run in which everything that can be text is ``evil``."""
    call = ModelReplied(Reply(evil, (ToolRequest(evil, evil, json.dumps({evil: evil})),), model=evil))
    failed = ToolsReturned((Observation(evil, evil, "tool_error"),))
    answer = ModelReplied(Reply(evil, taken_as="answer"))
    events = (call, failed, call, failed, call, failed, call, failed, answer)
    return Recording(evil, evil, evil, events, outcome=outcome, model=evil)  # type: ignore[arg-type]  # success or failure


@pytest.mark.parametrize("evil", HOSTILE)
def test_hostile_text_is_text_wherever_it_stands(evil: str, whole: str) -> None:
    runs: list[Recording | Damaged] = [hostile(evil), hostile(evil + "2", "failure"), Damaged(evil, evil), *RUNS]
    html = made(runs, title=evil, group=True)
    parsed = Parsed(html)
    plain = Parsed(whole)

    assert parsed.wrong == []
    assert {tag for tag, _ in parsed.elements} <= {tag for tag, _ in plain.elements} | {"li"}
    scripts = [attributes.get("type") for attributes in parsed.of("script")]
    assert (len(parsed.of("style")), scripts.count(None), set(scripts)) == (1, 2, {None, "application/json"})
    names = {name for _, attributes in parsed.elements for name in attributes}
    assert names <= {name for _, attributes in plain.elements for name in attributes}
    assert not [name for name in names if name.startswith("on")]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff\ud800-\udfff]", html)
    assert printable(evil) in parsed.text_of("h1")


def test_nothing_is_loaded_from_anywhere(whole: str) -> None:
    parsed = Parsed(whole)

    for tag, attributes in parsed.elements:
        assert not LOADING & attributes.keys(), tag
        for name in ("href", "xlink:href", "clip-path", "fill", "stroke"):
            value = attributes.get(name) or ""
            assert not re.search(r"//|:", value), (tag, name, value)
            assert value.startswith("#") or name not in {"href", "xlink:href"} or not value
    assert {"link", "img", "iframe", "object", "embed", "image", "foreignobject", "base"}.isdisjoint({tag for tag, _ in parsed.elements})
    assert all(form == {"method": "dialog"} for form in parsed.of("form"))
    assert not re.search(r"https?://|url\((?!#)|@import|@font-face", whole)


def test_the_policy_lets_in_only_the_page_s_own_style_and_script(whole: str) -> None:
    parsed = Parsed(whole)
    (policy,) = [attributes["content"] for attributes in parsed.of("meta") if attributes.get("http-equiv") == "Content-Security-Policy"]

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    scripts = [digest(each) for each in re.findall(r"<script>(.*?)</script>", whole, re.DOTALL)]
    assert digest(player_script()) == scripts[0]
    assert policy == (
        f"default-src 'none'; script-src {scripts[1]} {scripts[0]}; style-src {digest(parsed.text_of('style'))}; "
        "base-uri 'none'; form-action 'none'"
    )
    assert whole.index("Content-Security-Policy") < whole.index("<style")


def test_the_same_runs_give_the_same_bytes(whole: str) -> None:
    assert made(RUNS) == whole


def test_markup_escapes_in_elements_and_attributes() -> None:
    assert element("p", "<b>\u202e", None, element("br"), title='"\x00&', hidden=True, class_="x", lang=None, data_n=False).markup == (
        '<p title="&quot;\\x00&amp;" hidden class="x">&lt;b&gt;\\u202e<br></p>'
    )


def test_a_picture_keeps_shapes_and_text_alone() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="3pt" height="6" onload="x" '
        'viewBox="0 0 3 6"><title>old</title><style>*{}</style><script>x</script><a xlink:href="http://x"><text>in a link</text></a>'
        '<defs><clipPath id="c"><rect width="1"/></clipPath><path id="m" d="M 0\n0" style="stroke: #fff; background: url(http://x)"/></defs>'
        '<g id="g" clip-path="url(#c)"><use xlink:href="#m" x="1"/><use xlink:href="http://x/#m"/><text fill="url(http://x)">a &lt; b\ufffe'
        "</text></g><image/></svg>"
    )
    assert picture(svg.encode(), "k", "<t>", "d").markup == (
        '<svg role="img" class="picture" aria-labelledby="k-title" aria-describedby="d" viewBox="0 0 3 6" width="4" height="6">'
        '<title id="k-title">&lt;t&gt;</title><defs><clipPath id="k-c"><rect width="1"></rect></clipPath>'
        '<path id="k-m" d="M 0 0" stroke="#fff"></path></defs>'
        '<g clip-path="url(#k-c)"><use href="#k-m" x="1"></use><use></use><text>a &lt; b\ufffd</text></g></svg>'
    )


def colours(svg: str) -> Iterator[str]:
    yield from re.findall(r'(?:fill|stroke)="([^"]+)"', svg)


def test_every_colour_of_a_picture_has_one_for_dark_pages(whole: str) -> None:
    pictures = "".join(re.findall(r"<svg .*?</svg>", whole, re.DOTALL))
    run = replay(RUNS[0], plan_of("production", {}).guards)
    drawn = [render(view, "svg").decode() for view in (machine_view(), path_view(run))]

    assert {*colours(pictures), *colours(drawn[0]), *colours(drawn[1])} - DARK.keys() <= {"none", "transparent"}


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_of_pictures_is_legible_on_dark_pages() -> None:
    for ink, ground in palette.TEXT_ON:
        light, dark = sorted((luminance(DARK[ink]), luminance(DARK[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)


# --- the command -------------------------------------------------------------------------------------------------


def report(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["report", *map(str, arguments), "--lang", "en"])


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    chats = (chat("1", "a! a! a! a! b =", outcome="failure"), chat("2", "a b =", outcome="success"))
    Path("runs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in chats), encoding="utf-8")
    return Path("runs.jsonl")


def test_the_command_writes_the_page_and_says_how_to_make_it_again(runs: Path) -> None:
    options = ("--limits", "max_steps=9", "--what-if", "max_errors=3", "--sweep", "max_errors=2..3", "--where", "steps>=2")
    result = report(runs, "-o", "report.html", *options)
    html = Path("report.html").read_text(encoding="utf-8")

    assert (result.exit_code, result.output) == (0, "")
    assert Parsed(html).wrong == []
    assert Parsed(html).text_of("h1") == "Audit of runs.jsonl, steps>=2"
    assert Parsed(html).text_of("code") == (
        "fsm-agent report runs.jsonl --guards production --limits max_steps=9 --by source --what-if max_errors=3 --sweep max_errors=2..3 "
        "--where 'steps>=2' -o report.html"
    )


def test_a_ledger_and_its_file_give_the_same_page_but_for_their_name(runs: Path) -> None:
    assert CliRunner().invoke(cli, ["import", str(runs), "--ledger", "runs.db"]).exit_code == 0
    assert report(runs, "-o", "a.html").exit_code == report("runs.db", "-o", "a2.html").exit_code == 0
    pages = [Path(name).read_text(encoding="utf-8") for name in ("a.html", "a2.html")]
    assert pages[0].replace("runs.jsonl", "runs.db").replace("a.html", "a2.html") == pages[1]


def test_damaged_runs_are_told_on_stderr_too(runs: Path) -> None:
    with runs.open("a", encoding="utf-8") as file:
        file.write("{\n")
    result = report(runs, "-o", "report.html")
    assert result.exit_code == 0
    assert result.stderr.startswith("damaged: runs.jsonl, line 3: ")


def test_the_page_speaks_chinese(runs: Path) -> None:
    assert CliRunner().invoke(cli, ["report", str(runs), "-o", "r.html", "--lang", "zh"]).exit_code == 0
    assert Path("r.html").read_text(encoding="utf-8").startswith('<!DOCTYPE html>\n<html lang="zh">')


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["no.db", "-o", "r.html"], "no.db: No such file or directory"),
        (["runs.jsonl", "-o", "no/r.html"], "no/r.html: No such file or directory"),
        (["runs.jsonl", "-o", "runs.jsonl"], "runs.jsonl is one of the sources; give the page another name"),
        (["runs.jsonl", "-o", "r.html", "--where", "outcome=unknown"], "runs.jsonl: there are no runs to report on"),
        (["runs.jsonl", "-o", "r.html", "--sweep", "max_errors"], "'max_errors' is not of the form name=first..last"),
        (["runs.jsonl", "-o", "r.html", "--limits", "x=1"], None),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(runs: Path, arguments: list[str], line: str | None) -> None:
    result = report(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    if line is not None:
        assert result.stderr == f"Error: {line}\n"
    assert not Path("r.html").exists()
    assert runs.read_text(encoding="utf-8").startswith("{")


# --- the published recordings ------------------------------------------------------------------------------------


def test_the_published_runs_make_a_page_that_agrees_with_the_audit() -> None:
    runs = [*of_file("tau-bench"), *of_file("reflexion")]
    plan = plan_of("production", {"max_steps": 30})
    audit = audit_runs(runs, plan)
    found: Collected = collect(runs, plan)
    together = audit.base.together()

    assert sum(row.killed for row in found.rows) == together.false_kills.count
    assert sum(row.saved for row in found.rows if row.outcome == "failure") == together.calls_saved.count
    assert sum(row.helpless for row in found.rows) == audit.base.capped[-1].no_guard_helped.count
    assert sum(bool(row.near) for row in found.rows) == audit.base.near_misses[-1].near_misses.count
    assert {reason: found.heat.ended(reason) for reason in found.heat.reasons} == {
        reason: sum(row.halts.count for row in audit.base.halts if (row.group, row.reason) == ("all", reason))
        for reason in found.heat.reasons
    }
    html = page(audit, found, Told("t", "source", "c"), ENGLISH).decode()
    assert Parsed(html).wrong == []
    assert len(html) < 1_500_000

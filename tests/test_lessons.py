"""The lessons: every command and output in them is real, every exercise is checked by running its answer, and they can be read everywhere."""

from __future__ import annotations

import io
import json
import re
import sys
import unicodedata
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len
from rich.console import Console

from fsm_agent.cli import cli
from fsm_agent.language import LANGUAGES, language
from fsm_agent.lessons import Lesson, LessonError, lesson, lessons
from fsm_agent.lessons.checking import play
from fsm_agent.lessons.exercises import EXERCISES
from fsm_agent.lessons.parts import Call, File, Picture, Prose, Question, Session, Table, parse
from fsm_agent.lessons.showing import print_plain, print_rich
from fsm_agent.lessons.website import UNPLAYED, write_site
from fsm_agent.player import content_policy, player_fragment, player_script, player_style
from fsm_agent.scenarios import built_in
from tests.lesson_sessions import inline_commands, inside, run, sessions

ROOT = Path(__file__).parent.parent
ALL = [each for lang in LANGUAGES for each in lessons(lang)]
NAMES = [f"{each.number}-{each.lang}" for each in ALL]
NUMBERS = range(1, 10)

every_lesson = pytest.mark.parametrize("each", ALL, ids=NAMES)


def learn(*arguments: object, lang: str = "en") -> Result:
    return CliRunner().invoke(cli, ["learn", *map(str, arguments), "--lang", lang])


# --- what is in them ---------------------------------------------------------------------------------------------


def test_there_are_eight_lessons_and_one_in_both_languages() -> None:
    assert [each.slug for each in lessons("en")] == [
        "01-the-loop",
        "02-observation",
        "03-the-answer",
        "04-errors",
        "05-the-breaker",
        "06-repetition",
        "07-the-cap",
        "08-the-order",
        "09-production",
    ]
    assert [each.slug for each in lessons("zh")] == [each.slug for each in lessons("en")]
    assert list(EXERCISES) == list(NUMBERS)


@every_lesson
def test_a_lesson_runs_something_shows_a_picture_asks_two_questions_and_sets_an_exercise(each: Lesson) -> None:
    assert each.title.startswith(f"{each.number}. ")
    commands = [call.command for session in each.sessions for call in session.calls]
    assert any(not command.startswith("fsm-agent learn") for command in commands)
    assert any(command.startswith(f"fsm-agent learn {each.number} --check ") for command in commands)
    assert len(each.pictures) == 1
    assert len(each.questions) == 2
    assert all(question.answer for question in each.questions)


@every_lesson
def test_pictures_are_those_of_the_gallery(each: Lesson) -> None:
    for picture in each.pictures:
        assert f"![{picture.caption}](../../diagrams/{picture.source}.svg)\n" in each.text
        assert (ROOT / "diagrams" / f"{picture.source}.svg").exists()


@pytest.mark.parametrize("number", NUMBERS)
def test_both_languages_run_the_same(number: int) -> None:
    english, chinese = lesson(number, "en"), lesson(number, "zh")
    assert [picture.source for picture in english.pictures] == [picture.source for picture in chinese.pictures]
    assert list(english.files) == list(chinese.files)
    for name in english.files:
        mine, other = english.scenario(name), chinese.scenario(name)
        assert (mine.script, mine.then, mine.limits, mine.tools) == (other.script, other.then, other.limits, other.tools)
    commands = [
        [call.command.removesuffix(" --lang zh") for session in each.sessions for call in session.calls] for each in (english, chinese)
    ]
    assert commands[0] == commands[1]


@pytest.mark.parametrize("each", lessons("zh"), ids=lambda each: each.slug)
def test_chinese_paragraphs_are_not_broken_where_a_reader_would_see_a_space(each: Lesson) -> None:
    for part in each.parts:
        texts = [part.markdown] if isinstance(part, Prose) else [part.answer] if isinstance(part, Question) else []
        for text in texts:
            for before, after in re.findall(r"([^\n|`])\n([^\n|#`-])", text):
                assert not (unicodedata.east_asian_width(before) in "WF" and unicodedata.east_asian_width(after) in "WF"), text


@every_lesson
def test_every_file_that_is_named_exists(each: Lesson) -> None:
    for path in re.findall(r"`(fsm_agent/[\w/.]+)`", each.text):
        assert (ROOT / path).exists(), path


# --- every command and output is real ----------------------------------------------------------------------------


@every_lesson
def test_console_sessions_are_what_the_commands_print(each: Lesson, tmp_path: Path) -> None:
    """After a change of what commands print: ``python -m tests.update_lessons``."""
    for call, now in sessions(each, tmp_path):
        assert f"$ {call.command}\n{call.output}" == f"$ {call.command}\n{now}"


@every_lesson
def test_commands_in_the_text_can_be_run(each: Lesson, tmp_path: Path) -> None:
    for command in inline_commands(each):
        words = command.rpartition("fsm-agent ")[2].split()
        if len(words) == 1:  # the command is only named
            assert words[0] in cli.commands, command
            continue
        with inside(tmp_path):
            run("fsm-agent run c --trace c.jsonl")
            run("fsm-agent import c.jsonl --ledger runs.db")
            result = run(command)
        assert result.exit_code in {0, 1, 3}, f"{command}: {result.output}"


# --- exercises ---------------------------------------------------------------------------------------------------

TOOLS = 'title="t"\ntask="t"\ntools=["add","mul","now"]\n'


def scenario(*script: str, limits: str = "", then: str = "") -> str:
    lines = "".join(f"  {line!r},\n" for line in script)
    tail = f"then={then!r}\n" if then else ""
    return f"{TOOLS}script=[\n{lines}]\n{tail}" + (f"[limits]\n{limits}\n" if limits else "")


A, B = "TOOL add a=1,b=2", "TOOL mul a=1,b=2"
WRONG, UNKNOWN = "TOOL add a=x,b=2", "TOOL search q=1"

SOLUTIONS = {
    1: scenario("TOOL mul a=3,b=12", "TOOL add a=36,b=2", "TOOL add a=38,b=-4", "FINAL 34"),
    2: scenario("TOOL add a=2,b=3", "TOOL mul a=5,b=4", "FINAL 20"),
    3: "max_steps=4",
    4: scenario(WRONG, A, UNKNOWN, "FINAL 3"),
    5: "max_errors=4",
    6: scenario(A, B, A, B, A, B, limits="max_steps=6"),
    7: "max_steps=11",
    8: scenario(WRONG, UNKNOWN, limits="max_steps=2"),
    9: scenario(WRONG, UNKNOWN, A, "FINAL 3"),
}

NOT_YET = [
    (1, scenario(A, "TOOL add a=1,b=3", "FINAL 3"), "no  2 tool calls were made; it should go round the loop three times, with one call each time"),
    (1, scenario(A, WRONG, B, "FINAL 3"), "no  1 call failed; none should"),
    (1, scenario(A, B, A), "no  your scenario halts as model_error, after 4 model calls; it should halt as final_answer"),
    (2, scenario("TOOL add a=2,b=3", "TOOL mul a=5,b=4", "FINAL done"), "no  the answer does not tell the last observation; it should"),
    (2, scenario("FINAL 20"), "no  no call takes what the call before it returned; one should have it as an argument"),
    (3, "max_steps=5", "no  trip.toml, max_steps=4 halts as final_answer, after 4 model calls; it should halt as max_steps"),
    (3, "max_errors=2", "no  max_steps is not given; this exercise is about it"),
    (3, "max_steps=off", "no  max_steps is not given; this exercise is about it"),
    (4, scenario(WRONG, A, "FINAL 3"), "no  1 call failed; at least two should"),
    (5, "max_errors=6", "no  hopeless.toml halts as consecutive_errors, after 6 model calls; 5 model calls are enough"),
    (5, "max_errors=off,max_steps=off", "no  hopeless.toml does not halt within 200 steps"),
    (6, scenario(then="TOOL add a=1,b={n}", limits="max_steps=6"), "no  under production, your scenario halts as max_steps, after 6 model calls; it should halt as no_progress"),
    (7, "max_steps=13", "no  scenario d halts as max_steps, after 13 model calls; 12 model calls are enough"),
    (8, scenario(WRONG, UNKNOWN, limits="max_steps=3"), "no  at the last edge these trip: consecutive_errors; consecutive_errors and max_steps both should"),
    (9, scenario(*["TOOL add a=x,b=2"] * 9, "FINAL 3"), "no  under production, your scenario halts as error_streak, after 3 model calls; it should halt as final_answer"),
]  # fmt: skip


def answered(number: int, answer: str, folder: Path) -> Result:
    """What the check says of an answer: limits, or the text of a scenario."""
    if "\n" in answer:
        path = folder / "answer.toml"
        path.write_text(answer, encoding="utf-8")
        answer = str(path)
    return learn(number, "--check", answer)


@pytest.mark.parametrize("number", NUMBERS)
def test_an_exercise_can_be_solved(number: int, tmp_path: Path) -> None:
    result = answered(number, SOLUTIONS[number], tmp_path)
    assert result.exit_code == 0, result.output
    *found, last = result.stdout.splitlines()
    assert last == "Solved."
    assert all(line.startswith("yes ") for line in found)


@pytest.mark.parametrize("number", NUMBERS)
def test_what_a_lesson_begins_with_is_no_solution(number: int, tmp_path: Path) -> None:
    start = lesson(number, "en").files.get("my.toml")
    if start is not None:
        result = answered(number, start, tmp_path)
        assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, "Not yet.")


@pytest.mark.parametrize(("number", "answer", "line"), NOT_YET)
def test_an_answer_that_does_not_do_is_told_why(number: int, answer: str, line: str, tmp_path: Path) -> None:
    result = answered(number, answer, tmp_path)
    assert result.exit_code == 1
    assert line in result.stdout.splitlines()
    assert result.stdout.endswith("\nNot yet.\n")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([12], "there is no lesson 12; there are 1 to 9"),
        ([1, "--check", "no.toml"], "no.toml: No such file or directory"),
        ([1, "--check", "max_steps=3"], "lesson 1 asks for a scenario: give the path of a .toml file"),
        ([3, "--check", "my.toml"], "lesson 3 asks for limits: give them as in max_steps=6,max_errors=3"),
        ([3, "--check", "max_steps=0"], "max_steps is 0; it must be at least 1"),
        ([3, "--check", "max_step=3"], "'max_step' is not the name of a limit; known are "),
        (["--check", "x.toml"], "name a lesson, as in: fsm-agent learn 1"),
        ([3, "--html", "site"], "--html writes all lessons; give it alone"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(arguments: list[object], error: str) -> None:
    result = learn(*arguments)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert error in result.stderr


def test_a_hostile_scenario_is_checked_without_harm(tmp_path: Path) -> None:
    text = 'title="t"\ntask="t"\ntools=["add"]\nscript=["TOOL add a=1,b=1", "TOOL x\\u001b[2J a=2"]\nthen="TOOL add a={n},b=2"\n[limits]\nmax_steps=100000000\n'
    result = answered(2, text, tmp_path)
    assert result.exit_code == 1
    assert "your scenario does not halt within 200 steps" in result.stdout
    assert "\x1b" not in result.stdout


def test_the_files_of_a_lesson_are_written_and_never_over_others(tmp_path: Path) -> None:
    result = learn(5, "--files", tmp_path / "five")
    assert result.stdout == f"{tmp_path / 'five' / 'slow.toml'}\n{tmp_path / 'five' / 'hopeless.toml'}\n"
    assert (tmp_path / "five" / "slow.toml").read_text(encoding="utf-8") == lesson(5, "en").files["slow.toml"]
    again = learn(5, "--files", tmp_path / "five")
    assert (again.exit_code, again.stderr) == (2, f"Error: {tmp_path / 'five' / 'slow.toml'} is there already; it is left as it is\n")


# --- shown -------------------------------------------------------------------------------------------------------


def test_the_list_of_lessons() -> None:
    assert [line.rstrip() for line in learn().stdout.splitlines()] == [
        "   lesson",
        "1  The loop is a guarded while",
        "2  Writing the observation back",
        "3  Stopping on the answer",
        "4  Errors go back to the model",
        "5  The circuit breaker",
        "6  Going in circles",
        "7  The cap is the last resort",
        "8  From sensitive to certain",
        "9  What is missing for production",
        "To begin: fsm-agent learn 1",
    ]
    assert "循环是带守卫的 while" in learn(lang="zh").stdout


@every_lesson
def test_a_lesson_that_is_piped_is_plain_and_whole(each: Lesson) -> None:
    lang = language(each.lang)
    hidden, revealed = ("\n".join(print_plain(each, lang, answers=answers)) for answers in (False, True))
    assert "\x1b" not in hidden + revealed
    assert "<details>" not in hidden + revealed
    for question in each.questions:
        assert question.question in hidden
        assert question.answer not in hidden
        assert question.answer in revealed
    for session in each.sessions:
        for call in session.calls:
            assert f"$ {call.command}\n{call.output.rstrip()}" in hidden


@every_lesson
@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_lesson_fits_into_every_terminal(each: Lesson, width: int) -> None:
    written = io.StringIO()
    console = Console(file=written, width=width, force_terminal=True, no_color=True, highlight=False)
    print_rich(each, language(each.lang), console, answers=True)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", written.getvalue()).splitlines()
    assert max(cell_len(line.rstrip()) for line in lines) <= min(width, 100)
    assert not re.search(r"\x1b\[(?:\d+;)*[349][0-8]", written.getvalue()), "NO_COLOR"


@every_lesson
@pytest.mark.parametrize("width", [40, 80])
def test_no_word_of_a_table_is_lost_on_a_terminal(each: Lesson, width: int) -> None:
    written = io.StringIO()
    tables = [part for part in each.parts if isinstance(part, Table)]
    console = Console(file=written, width=width, force_terminal=False, highlight=False)
    print_rich(attrs.evolve(each, parts=tuple(tables)), language(each.lang), console, answers=True)

    def letters(text: str) -> Counter[str]:
        return Counter(re.sub(r"[\s`|─-]", "", text))

    assert letters(written.getvalue()) == letters("".join(cell for table in tables for row in table.rows for cell in row))


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a POSIX thing")
def test_a_lesson_on_a_terminal_is_formatted() -> None:
    import os
    import pty
    import subprocess

    leader, follower = pty.openpty()
    environ = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"}}
    child = subprocess.Popen(
        [sys.executable, "-m", "fsm_agent", "learn", "1", "--lang", "en"],
        stdout=follower, stderr=follower, cwd=ROOT, env={**environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    os.close(follower)
    written = b""
    try:
        while piece := os.read(leader, 65536):
            written += piece
    except OSError:  # the end, on Linux
        pass
    os.close(leader)
    code, shown = child.wait(60), written.decode(errors="replace")
    assert code == 0, shown
    assert "# 1." not in shown, shown
    assert "\x1b[1m$ fsm-agent run f" in shown, shown


# --- the site ----------------------------------------------------------------------------------------------------

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """A page's ids, links, scripts, styles and text; it complains of tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.references: list[str] = []
        self.labels: list[str] = []
        self.text = ""
        self.tags: list[str] = []
        self.seen: set[str] = set()
        self.scripts: list[str] = []
        """The text of each script that can run."""
        self.data: list[str] = []
        """That of each block of data."""
        self.styles: list[str] = []
        self.policies: list[str] = []
        self.feed(text)
        assert self.tags == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.tags.append(tag)
        self.seen.add(tag)
        told = dict(attributes)
        if told.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(told["content"] or "")
        if tag == "script":
            (self.data if told.get("type") == "application/json" else self.scripts).append("")
            self.read = self.data if told.get("type") == "application/json" else self.scripts
        if tag == "style":
            self.styles.append("")
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src", "xlink:href", "action"}:
                self.references.append(value or "")
            if name in {"aria-labelledby", "aria-describedby"}:
                self.labels += (value or "").split()
            assert not name.startswith("on"), name
            assert name != "style", "the policy lets no style in but that of the page"

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.tags.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.tags.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["script"]:
            self.read[-1] += data
        elif self.tags[-1:] == ["style"]:
            self.styles[-1] += data
        else:
            self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    result = learn("--html", folder, lang="zh")
    assert (result.exit_code, result.stdout) == (0, f"{folder / 'index.html'}\n")
    return folder


def test_the_site_is_whole_and_asks_nothing_of_a_network(site: Path) -> None:
    pages = sorted(site.rglob("*"))
    assert [page.relative_to(site).as_posix() for page in pages if page.is_file()] == sorted(
        ["index.html", *(f"{each.lang}/{each.slug}.html" for each in ALL)]
    )
    for path in (page for page in pages if page.is_file()):
        text = path.read_text(encoding="utf-8")
        page = Page(text)
        plays = path.stem not in {"index", "09-production"}
        assert page.scripts == [player_script()] * plays
        assert len(page.data) == plays
        assert page.styles[1:] == [player_style(), UNPLAYED] * plays
        assert page.policies == [content_policy(page.styles, page.scripts)]
        assert page.seen.isdisjoint({"iframe", "img", "link", "object"})
        assert len(page.ids) == len(set(page.ids)), "ids are unique"
        assert set(page.labels) <= set(page.ids)
        for reference in page.references:
            if reference.startswith("#"):
                assert reference[1:] in page.ids
            else:
                assert (path.parent / reference).resolve().is_file(), reference
        assert "@import" not in text
        assert "url(http" not in text


@every_lesson
def test_a_page_holds_the_whole_lesson(each: Lesson, site: Path) -> None:
    text = (site / each.lang / f"{each.slug}.html").read_text(encoding="utf-8")
    page = Page(text)
    assert text.startswith(f'<!doctype html>\n<html lang="{"zh-CN" if each.lang == "zh" else "en"}">')
    for session in each.sessions:
        for call in session.calls:
            assert f"$ {call.command}\n{call.output}" in page.text
    for file in each.files.values():
        assert file in page.text
    assert text.count("<details>") == len(each.questions)
    assert text.count("<figure>") == text.count('<div class="picture"') == len(each.pictures)
    runs = [picture for picture in each.pictures if not picture.is_machine]
    assert re.findall(r'<section class="fsm-player" id="([^"]*)"', text) == [f"scenario-{picture.source}" for picture in runs]
    assert re.findall(r'<h2 class="fsm-title"[^>]*>([^<]*)</h2>', text) == [picture.caption for picture in runs]


def test_a_player_goes_through_the_run_of_the_picture(site: Path) -> None:
    [data] = Page((site / "en" / "05-the-breaker.html").read_text(encoding="utf-8")).data
    run = play(built_in("c"), built_in("c").guards, language("en")).run
    assert json.loads(data) == json.loads(Page(player_fragment(run, "Scenario c", "c")).data[0])


def test_the_first_page_begins_with_the_language_that_was_asked_for(site: Path, tmp_path: Path) -> None:
    assert (site / "index.html").read_text(encoding="utf-8").startswith('<!doctype html>\n<html lang="zh-CN">')
    assert write_site(tmp_path, "en").read_text(encoding="utf-8").startswith('<!doctype html>\n<html lang="en">')


def test_a_folder_that_cannot_be_written_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    result = learn("--html", tmp_path / "file" / "site")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


# --- the parts of a text -----------------------------------------------------------------------------------------


def test_a_text_is_taken_apart() -> None:
    text = (
        "# Title\n\nText\n\n```python\nx = 1\n```\n\n```console\n$ one\n1\n\n2\n$ two\n```\n\n```toml\n# my.toml\nx = 1\n```\n\n"
        "![A picture](../../diagrams/b.svg)\n\n| a | b |\n| --- | --- |\n| `c` | d e |\n\n<details>\n<summary>Why?</summary>\n\nBecause.\n\n</details>\n\nThe end\n"
    )
    assert parse(text) == (
        Prose("# Title\n\nText\n\n```python\nx = 1\n```"),
        Session((Call("one", "1\n\n2\n"), Call("two", ""))),
        File("my.toml", "# my.toml\nx = 1\n"),
        Picture("A picture", "b"),
        Table("| a | b |\n| --- | --- |\n| `c` | d e |"),
        Question("Why?", "Because."),
        Prose("The end"),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a\n```console\n$ x\n", "line 2: the block is not closed; ``` is missing"),
        ("<details>\n<summary>x</summary>\n", "line 1: the block is not closed; </details> is missing"),
        ("<details>\nx\n</details>\n", "line 1: after <details> a line <summary>...</summary> must follow"),
    ],
)
def test_a_text_that_is_not_whole_says_where(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse(text)


def test_a_lesson_that_is_not_there_says_which_are() -> None:
    with pytest.raises(LessonError, match="there is no lesson 0; there are 1 to 9"):
        lesson(0, "en")

"""The line protocol: what each reply means, what a model is told of a reply that means nothing, and that no text breaks it."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fsm_agent.events import Decision, Final, Malformed, Reply, ToolCall, ToolCalls, ToolSpec
from fsm_agent.language import language
from fsm_agent.protocols import LineProtocol
from fsm_agent.protocols.line import print_call
from fsm_agent.text import well_formed
from fsm_agent.tools import add, now

LINE = LineProtocol()


def parse(text: str) -> Decision:
    return LINE.parse(Reply(text))


def calls(name: str, **arguments: str) -> ToolCalls:
    return ToolCalls((ToolCall(name, arguments),))


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("TOOL add a=3,b=4", calls("add", a="3", b="4")),
        ("TOOL now", calls("now")),
        ("FINAL 42", Final("42")),
        ("  \n TOOL add a=3,b=4 \n\n", calls("add", a="3", b="4")),
        ("TOOL   add    a=3", calls("add", a="3")),
        ("TOOL\tadd\ta=3", calls("add", a="3")),
        ("TOOL add a = 3 , b = 4", calls("add", a="3", b="4")),
        ("TOOL add a= 3,b =4", calls("add", a="3", b="4")),
        ("TOOL add a=三,b=四", calls("add", a="三", b="四")),
        ("TOOL search q=rain in May", calls("search", q="rain in May")),
        ("TOOL search q=a=b", calls("search", q="a=b")),
        ("TOOL search q=1;n=2", calls("search", q="1;n=2")),
        ('TOOL search q="a=1 b=2"', calls("search", q="a=1 b=2")),
        ("TOOL search q=", calls("search", q="")),
        ("TOOL search q=,n=1", calls("search", q="", n="1")),
        ('TOOL search q="rain, hail",n=1', calls("search", q="rain, hail", n="1")),
        ('TOOL search q="a \\"b\\" \\u00e9\\n"', calls("search", q='a "b" é\n')),
        ('TOOL search q="" , n=1', calls("search", q="", n="1")),
        ('TOOL search q=" a "', calls("search", q=" a ")),
        ('TOOL search q=say "hi"', calls("search", q='say "hi"')),
        ("TOOL wetter-bericht.v2 stadt=Köln", calls("wetter-bericht.v2", stadt="Köln")),
        ("FINAL one\ntwo\n\nthree", Final("one\ntwo\n\nthree")),
        ("FINAL\n  on the next line", Final("on the next line")),
        ("FINAL TOOL add a=1", Final("TOOL add a=1")),
        ("FINAL FINAL", Final("FINAL")),
    ],
)
def test_replies_with_a_meaning(text: str, decision: Decision) -> None:
    assert parse(text) == decision


TWO = "holds more than one key=value; pairs are separated by commas, and a text with = in it goes into double quotes"
FORMS = "Answer with exactly one line:\nTOOL name key=value,key=value\nFINAL the answer"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("FINALLY done", "a reply starts with TOOL or FINAL, this one with 'FINALLY done'"),
        ("FINAL: 42", "a reply starts with TOOL or FINAL, this one with 'FINAL: 42'"),
        ("TOOLS add a=1", "a reply starts with TOOL or FINAL, this one with 'TOOLS add a=1'"),
        ("final 42", "a reply starts with TOOL or FINAL, this one with 'final 42'"),
        ("I think TOOL add a=1", "a reply starts with TOOL or FINAL, this one with 'I think TOOL add a=1'"),
        ("x" * 50, "a reply starts with TOOL or FINAL, this one with '" + "x" * 40 + "'"),
        ("FINAL", "FINAL stands without an answer"),
        (" FINAL \n", "FINAL stands without an answer"),
        ("TOOL", "after TOOL a tool's name must follow, alone"),
        ("TOOL =3", "after TOOL a tool's name must follow, alone"),
        ("TOOL a=3", "after TOOL a tool's name must follow, alone"),
        ("TOOL add,mul", "after TOOL a tool's name must follow, alone"),
        ('TOOL "add" a=1', "after TOOL a tool's name must follow, alone"),
        ("TOOL add a=3\nTOOL mul a=1", "a TOOL reply has one line only"),
        ("TOOL add a=3\nand then we see", "a TOOL reply has one line only"),
        ("TOOL add a=3\x0bb=4", "a TOOL reply has one line only"),
        ("TOOL add 3", "'3' is not of the form key=value"),
        ("TOOL add a=3,4", "'4' is not of the form key=value; a value with a comma goes into double quotes"),
        ("TOOL add a=[1,2]", "'2]' is not of the form key=value; a value with a comma goes into double quotes"),
        ("TOOL add a=1 b=2", f"'a=1 b=2' {TWO}"),
        ("TOOL add a=1,b=2\tc=3,d=4", f"'b=2\\tc=3' {TWO}"),
        ("TOOL add a=1; b=2", f"'a=1; b=2' {TWO}"),
        ("TOOL add a=3,", "'' is not of the form key=value"),
        ("TOOL add a=3,,b=4", "'' is not of the form key=value"),
        ("TOOL add ,a=3", "'' is not of the form key=value"),
        ("TOOL add =3", "'=3' is not of the form key=value"),
        ("TOOL add a b=3", "'a b=3' is not of the form key=value"),
        ('TOOL add a="3" 4', "'a=\"3\" 4' is not of the form key=value"),
        ('TOOL add a="3', "'a=\"3' is not of the form key=value"),
        ("TOOL add a=3,a=4", "a is given twice"),
        ("TOOL add a=3,b=1,a=3", "a is given twice"),
        ('TOOL add a="\\x"', "the value of a is not a JSON string"),
        ('TOOL add a="\\ud800"', "the value of a is not a JSON string"),
        ('TOOL add a="\t"', "the value of a is not a JSON string"),
    ],
)
def test_replies_without_a_meaning_are_told_why_and_the_form(text: str, problem: str) -> None:
    assert parse(text) == Malformed(f"The reply cannot be parsed: {problem}.\n{FORMS}", "unparseable")


@pytest.mark.parametrize("text", ["", " ", "\n\t\n", "\u3000", "\x85"])
def test_an_empty_reply_is_malformed_in_its_own_way(text: str) -> None:
    assert parse(text) == Malformed(f"The reply cannot be parsed: the reply is empty.\n{FORMS}", "empty")


def test_corrections_exist_in_chinese() -> None:
    decision = LineProtocol(language("zh")).parse(Reply("TOOL add a=3,a=4"))
    assert isinstance(decision, Malformed)
    assert "TOOL name key=value,key=value" in decision.problem.splitlines()
    assert not any(word in decision.problem for word in ("reply", "twice", "the answer"))


def test_the_system_prompt_gives_the_form_and_the_tools() -> None:
    assert LINE.system_prompt((add.spec, now.spec, ToolSpec("quit"))) == (
        "Solve the task. Answer every time with exactly one line, in one of these forms:\n"
        "TOOL name key=value,key=value\n"
        "FINAL the answer\n"
        "A value with a comma goes into double quotes.\n"
        "\n"
        "Tools:\n"
        "- add(a: integer, b: integer): Add two integers.\n"
        "- now(): The local date and time, in ISO 8601.\n"
        "- quit()"
    )
    assert LINE.system_prompt(()).splitlines()[-1] == "There are no tools."


# --- properties --------------------------------------------------------------------------------------------------

ANY_TEXT = st.text(st.characters(exclude_categories=()))
"""Every code point, lone surrogates too."""

NEARLY_LINES = st.lists(
    st.sampled_from(
        ["TOOL", "FINAL", " ", "add", "a", "=", ",", '"', "\\", "\n", "3", "\u2028", "\t", "\\u12", "é", "\ud83d", "{", "null"]
    ),
    max_size=16,
).map("".join)
"""Texts of the form's own pieces."""


@given(st.one_of(ANY_TEXT, NEARLY_LINES, NEARLY_LINES.map("TOOL add ".__add__), ANY_TEXT.map("TOOL ".__add__)))
@example("TOOL add " + "a=" * 100_000)
@example("TOOL add " + ",".join(f"k{i}=v" for i in range(10_000)))
@example('TOOL add a="' + "\\\\" * 50_000)
@example("TOOL add " + " " * 100_000 + "x")
@example("TOOL add a" + " " * 20_000 + "b")
def test_any_text_gives_a_decision(text: str) -> None:
    decision = parse(text)
    assert isinstance(decision, Final | ToolCalls | Malformed)
    if isinstance(decision, Malformed):
        assert decision.problem.endswith(FORMS)
    if isinstance(decision, Final):
        assert decision.answer
        assert decision.answer in text


NAMES = st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"], exclude_characters='=,"'), min_size=1).filter(
    lambda name: not any(char.isspace() for char in name)
)
VALUES = st.text(st.characters(exclude_categories=["Cs"])) | st.text(string.printable) | st.text('ab= ,"')


@given(NAMES, st.dictionaries(NAMES, VALUES, max_size=5))
def test_a_printed_call_parses_back_to_itself(name: str, arguments: dict[str, str]) -> None:
    line = print_call(ToolCall(name, arguments))
    assert len(line.splitlines()) == 1
    assert parse(line) == ToolCalls((ToolCall(name, arguments),))


@given(NEARLY_LINES.map("TOOL add ".__add__))
def test_a_call_that_was_parsed_prints_and_parses_back(text: str) -> None:
    decision = parse(well_formed(text))
    if isinstance(decision, ToolCalls):
        assert parse(print_call(decision.calls[0])) == decision


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (ToolCall("now", {}), "TOOL now"),
        (ToolCall("add", {"a": "3", "b": "4"}), "TOOL add a=3,b=4"),
        (ToolCall("add", {"a": 3, "b": -0.5}), "TOOL add a=3,b=-0.5"),
        (ToolCall("find", {"q": "a, b"}), 'TOOL find q="a, b"'),
        (ToolCall("find", {"q": ""}), "TOOL find q="),
        (ToolCall("find", {"q": "where a = 1"}), "TOOL find q=where a = 1"),
        (ToolCall("find", {"q": "a=1 b=2"}), 'TOOL find q="a=1 b=2"'),
        (ToolCall("find", {"q": " x"}), 'TOOL find q=" x"'),
        (ToolCall("find", {"q": '"x'}), 'TOOL find q="\\"x"'),
        (ToolCall("find", {"q": "one\ntwo\u2028three"}), 'TOOL find q="one\\ntwo\\u2028three"'),
        (ToolCall("find", {"q": None, "all": True, "at": [1, {"x": "y"}]}), 'TOOL find q=null,all=true,at="[1,{\\"x\\":\\"y\\"}]"'),
        (ToolCall("find", {"q": "三\U0001f300"}), "TOOL find q=三\U0001f300"),
    ],
)
def test_print_call(call: ToolCall, line: str) -> None:
    assert print_call(call) == line


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a,b", '"a"', "a\n", "a\u3000b"])
def test_print_call_refuses_names_that_the_form_cannot_hold(name: str) -> None:
    for call in (ToolCall(name, {}), ToolCall("find", {name: "x"})):
        with pytest.raises(ValueError, match="cannot stand in a TOOL line"):
            print_call(call)


def test_print_call_refuses_a_value_that_no_file_can_hold() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        print_call(ToolCall("find", {"q": "\ud83d"}))

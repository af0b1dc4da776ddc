"""Tools: what a signature becomes, how arguments are checked, and that whatever a tool does is an observation."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import functools
import gc
import math
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent import ScriptedModel, arun, run
from fsm_agent.events import Message, Observation, ToolCall, ToolSpec, ToolsReturned
from fsm_agent.language import language
from fsm_agent.tools import BUILT_IN, Tool, ToolError, ToolServerDead, add, mul, now, observe, tool

if TYPE_CHECKING:
    from fsm_agent.events import ToolCall as Requested  # a name that is not there when the tools below are made


def called(function: Tool, **arguments: Any) -> Observation:
    return function.observe(ToolCall(function.name, arguments))


def in_chinese(function: Tool, **arguments: Any) -> str:
    return function.observe(ToolCall(function.name, arguments), language("zh")).text


# --- signature and docstring to schema ---------------------------------------------------------------------------


@attrs.frozen
class Point:
    x: int
    y: int = 0


class Colour(enum.Enum):
    RED = "red"


@tool
def everything(  # type: ignore[no-untyped-def]  # one parameter has no annotation: that is the test
    i: int,
    f: float,
    b: bool,
    s: str,
    one_of: Literal["km", "mi"],
    maybe: Optional[int],  # noqa: UP045  # the old spelling is a user's too
    numbers: list[int],
    by_name: dict[str, float],
    at: Point,
    *,
    colour: Colour = Colour.RED,
    positive: Annotated[int, msgspec.Meta(gt=0, le=9)] = 1,
    anything: Any = None,
    either: int | list[str] | None = None,
    tags: tuple[str, ...] = ("x", "y"),
    untyped=(),
) -> str:
    """Take everything.

    In every type there is.

    Args:
        i: A whole number.
        maybe (int): Or nothing.
        no_such: Is not there.
    """
    return msgspec.json.encode(
        [i, f, b, s, one_of, maybe, numbers, by_name, at, colour, positive, anything, either, tags, untyped]
    ).decode()


def test_a_signature_becomes_a_json_schema() -> None:
    assert everything.spec == ToolSpec(
        "everything",
        "Take everything.\nIn every type there is.",
        {
            "type": "object",
            "properties": {
                "i": {"type": "integer", "description": "A whole number."},
                "f": {"type": "number"},
                "b": {"type": "boolean"},
                "s": {"type": "string"},
                "one_of": {"enum": ["km", "mi"]},
                "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "Or nothing."},
                "numbers": {"type": "array", "items": {"type": "integer"}},
                "by_name": {"type": "object", "additionalProperties": {"type": "number"}},
                "at": {"$ref": "#/$defs/Point"},
                "colour": {"$ref": "#/$defs/Colour", "default": "red"},
                "positive": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9, "default": 1},
                "anything": {"default": None},
                "either": {
                    "anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                    "default": None,
                },
                "tags": {"type": "array", "items": {"type": "string"}, "default": ["x", "y"]},
                "untyped": {"default": []},
            },
            "required": ["i", "f", "b", "s", "one_of", "maybe", "numbers", "by_name", "at"],
            "additionalProperties": False,
            "$defs": {
                "Colour": {"title": "Colour", "enum": ["red"]},
                "Point": {
                    "title": "Point",
                    "type": "object",
                    "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                    "required": ["x"],
                },
            },
        },
    )
    assert msgspec.json.decode(msgspec.json.encode(everything.spec), type=ToolSpec) == everything.spec


def test_the_built_in_tools() -> None:
    two_integers = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    nothing = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert [each.spec for each in BUILT_IN.values()] == [
        ToolSpec("add", "Add two integers.", two_integers, idempotent=True),
        ToolSpec("mul", "Multiply two integers.", two_integers, idempotent=True),
        ToolSpec("now", "The local date and time, in ISO 8601.", nothing, idempotent=True),
    ]
    assert (called(add, a="3", b=4).text, called(mul, a=7, b="5").text) == ("7", "35")
    assert dt.datetime.fromisoformat(called(now).text).tzinfo is not None


@pytest.mark.parametrize(
    ("docstring", "description", "of_a"),
    [
        (None, "", ""),
        ("  One line.  ", "One line.", ""),
        ("Google.\n\n    Args:\n        a: the a\n            of it", "Google.", "the a\nof it"),
        ("Sphinx.\n\n    :param a: the a", "Sphinx.", "the a"),
        ("Numpy.\n\n    Parameters\n    ----------\n    a : int\n        the a\n", "Numpy.", "the a"),
        ("Epydoc.\n\n    @param a: the a", "Epydoc.", "the a"),
        ("Two\n    lines.\n\n    And more.", "Two\nlines.\n\nAnd more.", ""),
        ("Odd.\n\n    :param", "Odd.\n:param", ""),
    ],
)
def test_descriptions_come_from_the_docstring(docstring: str | None, description: str, of_a: str) -> None:
    def function(a: int) -> int:
        return a

    function.__doc__ = docstring
    made: Tool = tool(function)
    assert made.description == description
    assert made.spec.parameters["properties"]["a"] == ({"type": "integer", "description": of_a} if of_a else {"type": "integer"})


def test_name_and_description_can_be_given() -> None:
    @tool(name="plus", description="Sums.")
    def function(a: int, b: int) -> int:
        """Not this."""
        return a + b

    assert (function.name, function.description, called(function, a=1, b=2)) == ("plus", "Sums.", Observation("plus", "3"))


def test_a_tool_is_still_the_function_that_it_was() -> None:
    assert add(3, 4) == add(a=3, b=4) == 7
    assert add("x", "y") == "xy"


def test_a_tool_can_declare_what_makes_its_repeats_legitimate() -> None:
    @tool(polls=True, volatile=["pid", "elapsed"], idempotent=True)
    def status(pid: int) -> str:
        return str(pid)

    assert (status.spec.polls, status.spec.volatile, status.spec.idempotent) == (True, ("pid", "elapsed"), True)
    assert (everything.spec.polls, everything.spec.volatile, everything.spec.idempotent) == (False, (), False)


def test_a_tool_can_declare_that_it_changes_something() -> None:
    @tool(side_effects=True)
    def send(to: str) -> str:
        return f"sent to {to}"

    assert (send.side_effects, send.spec.side_effects) == (True, True)
    assert (add.side_effects, add.spec.side_effects) == (False, False)
    assert called(send, to="me") == Observation("send", "sent to me")


@pytest.mark.parametrize("volatile", ["pid", [1], ("pid", None)])
def test_volatile_has_to_be_a_list_of_names(volatile: Any) -> None:
    with pytest.raises(TypeError, match=f"^volatile is {re.escape(repr(volatile))}; it must be a tuple of field names"):
        tool(volatile=volatile)


def test_a_method_can_be_a_tool() -> None:
    class Shop:
        def price(self, item: str) -> int:
            """What it costs."""
            return len(item)

    assert called(tool(Shop().price), item="tea") == Observation("price", "3")


# --- a tool that asks for its call ---------------------------------------------------------------------------------

CALL = ToolCall("pay", {"amount": "3"}, "c1", "run/2/0")


@tool
def pay(amount: int, call: ToolCall) -> str:
    """Pay.

    Args:
        amount: How much.
        call: It is given.
    """
    return f"{amount} {call.key} {call.arguments}"


@tool
async def pay_later(call: ToolCall | None, *, amount: int = 1) -> str:
    return f"{amount} {call and call.key}"


@tool
def pay_or_not(amount: int, call: Optional[ToolCall] = None, again: Any = None) -> str:  # noqa: UP045  # the old spelling is a user's too
    return f"{amount} {call and call.key} {again}"


def test_a_tool_is_given_its_call_and_a_model_sees_nothing_of_that() -> None:
    assert pay.call_parameters == ("call",)
    assert pay.spec.parameters == {
        "type": "object",
        "properties": {"amount": {"type": "integer", "description": "How much."}},
        "required": ["amount"],
        "additionalProperties": False,
    }
    assert pay.observe(CALL) == Observation("pay", "3 run/2/0 {'amount': '3'}")
    assert asyncio.run(pay_later.aobserve(CALL)) == Observation("pay", "3 run/2/0")
    assert pay_or_not.observe(CALL) == Observation("pay", "3 run/2/0 None")
    assert (list(pay_later.spec.parameters["properties"]), list(pay_or_not.spec.parameters["properties"])) == (
        ["amount"],
        ["amount", "again"],
    )


def test_a_tool_that_asks_for_its_call_can_still_be_called_as_a_function() -> None:
    assert pay(3, CALL) == "3 run/2/0 {'amount': '3'}"
    assert pay_or_not(3) == "3 None None"


def test_a_model_cannot_give_the_call() -> None:
    seen = called(pay, amount=3, call={"name": "x", "arguments": {}})
    assert seen == Observation("pay", "TOOL_ERROR: pay has no parameter call (its parameters: amount)", "bad_arguments")


def made_of(source: str) -> Tool:
    """The tool ``f`` of a module with this source."""
    module: dict[str, Any] = {}
    exec(source, module)
    return tool(module["f"])


@pytest.mark.parametrize(
    "source",
    [
        "from __future__ import annotations\ndef f(call: ToolCall, a: int): return a, call.key",
        "from __future__ import annotations\ndef f(a: int, call: ToolCall | None = None): return a, call.key",
        "def f(a: int, call: 'ToolCall'): return a, call.key",
        "def f(a: int, of: 'ToolCall'): return a, of.key",
    ],
)
def test_the_call_may_be_known_to_type_checkers_only(source: str) -> None:
    assert made_of(source).observe(ToolCall("f", {"a": 1}, key="k")) == Observation("f", '[1,"k"]')


def test_a_class_of_the_same_name_is_not_the_call() -> None:
    made = made_of("import attrs\n@attrs.frozen\nclass ToolCall:\n    x: int\ndef f(call: 'ToolCall'): return call.x")
    assert called(made, call={"x": 3}) == Observation("f", "3")


def unknown_call(a: Requested) -> None: ...


# --- signatures that are refused ---------------------------------------------------------------------------------


def many(*numbers: int) -> None: ...
def named(**numbers: int) -> None: ...
def positional(a: int, /) -> None: ...
def call_back(a: Callable[[], int]) -> None: ...
def complex_number(a: complex) -> None: ...
def unknown_type(a: NoSuchType) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # that is the test
def nested_unknown_type(a: list[NoSuchType]) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # that is the test
def odd_default(a: int = object()) -> None: ...  # type: ignore[assignment]  # that is the test
def generator(a: int) -> Any:
    yield a


SIGNATURES: list[tuple[Any, str]] = [
    (many, "tool many: *numbers: 'int' cannot be given by name; use plain named parameters"),
    (named, "tool named: **numbers: 'int' cannot be given by name; use plain named parameters"),
    (positional, "tool positional: a: 'int' cannot be given by name; use plain named parameters"),
    (call_back, "tool call_back: a has a type that JSON cannot hold (type <class 'collections.abc.Callable'> is not supported)"),
    (complex_number, "tool complex_number: a has a type that JSON cannot hold (type <class 'complex'> is not supported)"),
    (unknown_type, "tool unknown_type: its annotations cannot be read (name 'NoSuchType' is not defined)"),
    (unknown_call, "tool unknown_call: its annotations cannot be read (name 'Requested' is not defined)"),
    (nested_unknown_type, "tool nested_unknown_type: its annotations cannot be read (name 'NoSuchType' is not defined)"),
    (odd_default, "tool odd_default: a has a default that JSON cannot hold (Encoding objects of type object is unsupported)"),
    (generator, "tool generator: it is a generator; a tool is a function that returns its result"),
    (int, "<class 'int'> is not a function; a tool is made of one"),
    (functools.partial(pow, 2), "functools.partial(<built-in function pow>, 2) is not a function; a tool is made of one"),
    (3, "3 is not a function; a tool is made of one"),
]


@pytest.mark.parametrize(
    ("function", "message"), SIGNATURES, ids=[str(getattr(function, "__name__", function)) for function, _ in SIGNATURES]
)
def test_a_signature_that_a_model_cannot_call_is_refused_when_it_is_decorated(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        tool(function)
    with pytest.raises(TypeError):
        tool(name="given")(function)


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a,b", '"a"', "a\n"])
def test_a_name_that_cannot_be_called_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="cannot be called: leave out white space"):
        tool(name=name)(add.function)


# --- the check of arguments --------------------------------------------------------------------------------------

GIVEN: dict[str, Any] = {
    "i": 1, "f": 1.5, "b": True, "s": "x", "one_of": "km", "maybe": None, "numbers": [1], "by_name": {"x": 1.5}, "at": {"x": 1},
}  # fmt: skip


def given_all(**changes: Any) -> Observation:
    return called(everything, **{**GIVEN, **changes})


@pytest.mark.parametrize(
    ("name", "value", "converted"),
    [
        ("i", "3", "3"),
        ("i", " -3 ", "-3"),
        ("i", 3.0, "3"),
        ("i", 10**25, str(10**25)),
        ("f", 2, "2.0"),
        ("f", "2", "2.0"),
        ("f", "1e3", "1000.0"),
        ("b", "true", "true"),
        ("b", "False", "false"),
        ("b", 0, "false"),
        ("s", "3", '"3"'),
        ("s", "", '""'),
        ("s", " x ", '" x "'),
        ("one_of", "mi", '"mi"'),
        ("maybe", "5", "5"),
        ("maybe", "null", "null"),
        ("numbers", "[1, 2]", "[1,2]"),
        ("numbers", ["1", 2.0], "[1,2]"),
        ("numbers", [], "[]"),
        ("by_name", '{"y": "2"}', '{"y":2.0}'),
        ("at", '{"x": 3}', '{"x":3,"y":0}'),
        ("at", {"x": 3, "y": 4}, '{"x":3,"y":4}'),
        ("colour", "red", '"red"'),
        ("positive", "9", "9"),
        ("anything", {"a": [None]}, '{"a":[null]}'),
        ("anything", "text", '"text"'),
        ("either", ["a"], '["a"]'),
        ("either", '["a"]', '["a"]'),
        ("either", "4", "4"),
        ("tags", '["a"]', '["a"]'),
        ("untyped", 3, "3"),
    ],
)
def test_arguments_are_converted(name: str, value: Any, converted: str) -> None:
    seen = given_all(**{name: value})
    position = list(everything.spec.parameters["properties"]).index(name)
    assert seen.kind == "ok"
    assert msgspec.json.encode(msgspec.json.decode(seen.text)[position]) == msgspec.json.encode(msgspec.json.decode(converted))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("i", "三", "everything expected an integer, got i=三"),
        ("i", "3.5", "everything expected an integer, got i=3.5"),
        ("i", 3.5, "everything expected an integer, got i=3.5"),
        ("i", True, "everything expected an integer, got i=true"),
        ("i", None, "everything expected an integer, got i=null"),
        ("i", [1], "everything expected an integer, got i=[1]"),
        ("i", "9" * 5000, "everything expected an integer, got i=" + "9" * 199 + "…"),
        ("f", "much", "everything expected a number, got f=much"),
        ("b", "maybe", "everything expected true or false, got b=maybe"),
        ("b", 2, "everything expected true or false, got b=2"),
        ("s", 5, "everything expected text, got s=5"),
        ("s", None, "everything expected text, got s=null"),
        ("one_of", "m", "everything expected one of 'km', 'mi', got one_of=m"),
        ("maybe", "x", "everything expected an integer or null, got maybe=x"),
        ("numbers", "1, 2", "everything expected a list (of: an integer), got numbers=1, 2"),
        ("numbers", ["x"], 'everything expected a list (of: an integer), got numbers=["x"]'),
        ("numbers", "[" * 100_000, "everything expected a list (of: an integer), got numbers=" + "[" * 199 + "…"),
        ("by_name", {"x": "y"}, 'everything expected an object, got by_name={"x":"y"}'),
        ("at", {"y": 1}, 'everything expected Point, got at={"y":1}'),
        ("colour", "blue", "everything expected Colour, got colour=blue"),
        ("positive", 0, "everything expected an integer (> 0, <= 9), got positive=0"),
        ("either", "x", "everything expected an integer or a list (of: text) or null, got either=x"),
        ("tags", [1], "everything expected a list (of: text), got tags=[1]"),
    ],
)
def test_an_ill_typed_argument_is_named_with_what_was_expected(name: str, value: Any, problem: str) -> None:
    assert given_all(**{name: value}) == Observation("everything", f"TOOL_ERROR: {problem}", "bad_arguments")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "add needs the argument a: an integer; add needs the argument b: an integer"),
        ({"b": 1}, "add needs the argument a: an integer"),
        ({"a": 1, "b": 2, "c": 3}, "add has no parameter c (its parameters: a, b)"),
        ({"a": "x", "b": "y"}, "add expected an integer, got a=x, b=y"),
        (
            {"c": 3, "b": "y", "d": None},
            (
                "add has no parameter c (its parameters: a, b); add has no parameter d (its parameters: a, b); "
                "add needs the argument a: an integer; add expected an integer, got b=y"
            ),
        ),
    ],
)
def test_every_problem_is_named_at_once(arguments: dict[str, Any], problem: str) -> None:
    assert called(add, **arguments) == Observation("add", f"TOOL_ERROR: {problem}", "bad_arguments")


def test_a_tool_without_parameters_takes_none() -> None:
    assert called(now, zone="UTC").text == "TOOL_ERROR: now has no parameter zone (its parameters: none)"


def test_an_unknown_tool_is_an_observation() -> None:
    assert observe(BUILT_IN, ToolCall("search", {})) == Observation("search", "TOOL_ERROR: unknown tool search", "unknown_tool")
    assert observe({}, ToolCall("", {})).kind == "unknown_tool"


def test_problems_in_chinese() -> None:
    assert in_chinese(add, a="三", b="四") == "TOOL_ERROR: add 的参数必须是整数，收到 a=三, b=四"
    assert observe(BUILT_IN, ToolCall("search", {"q": "天气"}), language("zh")).text == "TOOL_ERROR: 未注册的工具 search"
    assert not re.search("[a-z]{4}", in_chinese(add, c=3).removeprefix("TOOL_ERROR:"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from([*GIVEN, "colour", "either", "tags", "no_such"]), JSON))
def test_any_arguments_give_an_observation(arguments: dict[str, Any]) -> None:
    seen = called(everything, **arguments)
    assert (seen.kind == "bad_arguments") == seen.text.startswith("TOOL_ERROR: everything")
    assert msgspec.json.decode(msgspec.json.encode(seen), type=Observation) == seen


# --- what a tool does --------------------------------------------------------------------------------------------


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I will not say")


class SilentToolError(ToolError, Silent): ...


class Cyclic:
    def __repr__(self) -> str:
        return "<cyclic>"


class Mute:
    def __repr__(self) -> str:
        raise ValueError("mute")


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


def returning(value: Any) -> Observation:
    @tool
    def give() -> Any:
        return value

    return called(give)


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        ("", ""),
        ("三", "三"),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (10**30, str(10**30)),
        (0.1, "0.1"),
        (math.nan, "null"),
        ([1, "x", None], '[1,"x",null]'),
        ({"b": 1, "a": {"x": []}}, '{"b":1,"a":{"x":[]}}'),
        ({1: "x", 2.5: "y"}, '{"1":"x","2.5":"y"}'),
        ({(1, 2): "x"}, "{(1, 2): 'x'}"),
        ({"at": Cyclic()}, "{'at': <cyclic>}"),
        (Point(1, 2), '{"x":1,"y":2}'),
        (Colour.RED, '"red"'),
        (dt.date(2026, 1, 2), '"2026-01-02"'),
        (b"abc", '"YWJj"'),
        (Cyclic(), "<cyclic>"),
        (CYCLE, "[[...]]"),
        ("a\ud800b", "a\\ud800b"),
        (["\ud800"], "['\\ud800']"),
        (Text("text"), "text"),
        (Text("三"), "三"),
        ([Text("text")], "['text']"),
    ],
    ids=str,
)
def test_what_a_tool_returns_is_text_for_the_model(value: Any, text: str) -> None:
    seen = returning(value)
    assert seen == Observation("give", text)
    assert type(seen.text) is str
    assert msgspec.json.decode(msgspec.json.encode(seen), type=Observation) == seen


def test_a_result_of_any_size_is_kept_whole() -> None:
    seen = returning("é" * 50_000_000)
    assert (seen.kind, len(seen.text)) == ("ok", 50_000_000)
    assert len(returning(b"x" * 75_000_000).text) == 100_000_002


def test_what_a_tool_prints_is_no_part_of_its_result(capsys: pytest.CaptureFixture[str]) -> None:
    @tool
    def loud() -> str:
        print("TOOL_ERROR: no")
        return "done"

    assert called(loud) == Observation("loud", "done")
    assert capsys.readouterr() == ("TOOL_ERROR: no\n", "")


@pytest.mark.parametrize("value", [Mute(), 10**5000], ids=["no repr", "too long a number"])
def test_what_cannot_be_said_is_an_error(value: Any) -> None:
    seen = returning(value)
    assert (seen.kind, seen.text.startswith("TOOL_ERROR: ValueError: ")) == ("tool_error", True)


@pytest.mark.parametrize("text", ["TOOL_ERROR: no such file", "TOOL_ERROR:", "TOOL_ERROR:x"])
def test_a_tool_can_fail_by_what_it_returns(text: str) -> None:
    assert returning(text) == Observation("give", text, "tool_error")


@pytest.mark.parametrize("text", [" TOOL_ERROR: x", "tool_error: x", "TOOL_ERROR", "no TOOL_ERROR: x"])
def test_text_that_only_looks_like_a_failure_is_none(text: str) -> None:
    assert returning(text) == Observation("give", text, "ok")


def raising(error: BaseException | type[BaseException]) -> Observation:
    @tool
    def fail() -> None:
        raise error

    return called(fail)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ToolError("no such city: Atlantis"), "no such city: Atlantis"),
        (ToolError("two\nlines"), "two\nlines"),
        (ToolError(), "fail failed and did not say why"),
        (ToolError(" \n"), "fail failed and did not say why"),
        (ToolError("\ud800"), "\\ud800"),
        (SilentToolError(), "(its message raised RuntimeError)"),
    ],
)
def test_a_tool_error_is_told_to_the_model_as_it_is(error: ToolError, text: str) -> None:
    assert raising(error) == Observation("fail", f"TOOL_ERROR: {text}", "tool_error")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no"), "ValueError: no"),
        (KeyError("x"), "KeyError: 'x'"),
        (ZeroDivisionError, "ZeroDivisionError: "),
        (SystemExit(1), "SystemExit: 1"),
        (GeneratorExit(), "GeneratorExit: "),
        (StopIteration(3), "StopIteration: 3"),
        (MemoryError(), "MemoryError: "),
        (ExceptionGroup("some", [ValueError("a"), TypeError("b")]), "ExceptionGroup: some (2 sub-exceptions)"),
        (
            UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"),
            "UnicodeEncodeError: 'utf-8' codec can't encode character '\\ud800' in position 0: no",
        ),
        (OSError("\udcff"), "OSError: \\udcff"),
        (Silent(), "Silent: (its message raised RuntimeError)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_other_exception_is_told_by_type_and_message_its_traceback_is_for_people(error: BaseException, text: str) -> None:
    seen = raising(error)
    assert (seen.text, seen.kind) == (f"TOOL_ERROR: {text}", "tool_error")
    assert seen.traceback is not None
    assert "in fail" in seen.traceback
    assert "Traceback" not in seen.text
    assert msgspec.json.decode(msgspec.json.encode(seen), type=Observation) == seen


def test_endless_recursion_in_a_tool_is_an_observation() -> None:
    @tool
    def deep(n: int) -> int:
        return int(deep.function(n + 1))

    seen = called(deep, n=0)
    assert seen.text.startswith("TOOL_ERROR: RecursionError: maximum recursion depth exceeded")
    assert len(seen.traceback or "") < 20_000


def test_only_ctrl_c_comes_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        raising(KeyboardInterrupt())


def test_a_dead_server_comes_through_too() -> None:
    dead = ToolServerDead("files", "it ended with exit code 1")
    with pytest.raises(ToolServerDead, match=r"^the server files is dead: it ended with exit code 1$") as caught:
        raising(dead)
    assert (caught.value.server, caught.value.why) == ("files", "it ended with exit code 1")


def test_what_an_async_tool_raises_is_an_observation() -> None:
    async def seen(error: BaseException) -> Observation:
        async def fail() -> None:
            raise error

        return await tool(fail).aobserve(ToolCall("fail", {}))

    assert asyncio.run(seen(ToolError("no"))) == Observation("fail", "TOOL_ERROR: no", "tool_error")
    assert asyncio.run(seen(GeneratorExit())).text == "TOOL_ERROR: GeneratorExit: "
    assert asyncio.run(seen(asyncio.CancelledError("mine"))).text == "TOOL_ERROR: CancelledError: mine"
    with pytest.raises(ToolServerDead):
        asyncio.run(seen(ToolServerDead("files", "it ended")))


def test_cancelling_the_task_of_an_async_tool_is_no_observation() -> None:
    @tool
    async def wait() -> None:
        await asyncio.sleep(60)

    async def cancelled() -> bool:
        task = asyncio.create_task(wait.aobserve(ToolCall("wait", {})))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancelled())


def test_a_mutable_default_is_not_shared_with_the_schema() -> None:
    @tool
    def collect(item: str, into: list[str] = []) -> list[str]:  # noqa: B006  # that is the test
        into.append(item)
        return into

    schema = collect.spec.parameters
    called(collect, item="x", into=[])
    called(collect, item="y")
    assert schema["properties"]["into"]["default"] == []


# --- defaults, lambdas, and results that are none ----------------------------------------------------------------


def test_what_a_call_does_to_a_default_is_nothing_to_the_next() -> None:
    @tool
    def collect(item: int, into: list[int] = [], nested: dict[str, list[int]] = {"seen": []}) -> int:  # noqa: B006  # the very thing tested
        into.append(item)
        nested["seen"].append(item)
        return len(into) + len(nested["seen"])

    assert [collect.observe(ToolCall("collect", {"item": 1})).text for _ in range(3)] == ["2", "2", "2"]
    assert collect.spec.parameters["properties"]["into"]["default"] == []


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(TypeError, match=r"^a lambda has no name for the model to call; give it one: tool\(name=\.\.\.\)\(lambda \.\.\.\)$"):
        tool(lambda: 1)
    assert tool(name="one")(lambda: 1).observe(ToolCall("one", {})).text == "1"


async def later() -> str:
    return "later"


async def many_later() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("make", "kind"), [(later, "coroutine"), (lambda: (n for n in range(3)), "generator"), (many_later, "async_generator")]
)
def test_a_sync_tool_that_returns_a_coroutine_or_a_generator_has_failed(make: Callable[[], object], kind: str) -> None:
    seen = tool(name="odd")(lambda: make()).observe(ToolCall("odd", {}))  # noqa: PLW0108  # make itself may be async
    assert seen == Observation("odd", f"TOOL_ERROR: odd returned an object of type {kind}, and no result", "tool_error")
    gc.collect()  # a coroutine that was never awaited would warn


# --- odd tools in whole runs -------------------------------------------------------------------------------------


class Odd(BaseException): ...


@tool(name="odd", timeout_s=0.05)
def never_returns() -> None:
    threading.Event().wait()


@tool(name="odd", timeout_s=0.05)
async def never_returns_either() -> None:
    await asyncio.Event().wait()


def odd(give: Callable[[], object]) -> Tool:
    return tool(name="odd")(lambda: give())  # noqa: PLW0108  # a class is no tool


def raise_odd() -> None:
    raise Odd("so")


def leave() -> None:
    sys.exit("bye")


ODD: dict[str, tuple[Tool, str, str]] = {
    "never returns": (never_returns, "timeout", "TOOL_ERROR: no result of odd after "),
    "raises a BaseException": (odd(raise_odd), "tool_error", "TOOL_ERROR: Odd: so"),
    "exits": (odd(leave), "tool_error", "TOOL_ERROR: SystemExit: bye"),
    "prints": (odd(lambda: print("FINAL no")), "ok", "null"),
    "100 MB": (odd(lambda: "x" * 100_000_000), "ok", "x"),
    "bytes": (odd(lambda: b"\xff\x00"), "ok", '"/wA="'),
    "None": (odd(lambda: None), "ok", "null"),
    "NaN": (odd(lambda: math.nan), "ok", "null"),
    "NaN inside": (odd(lambda: {"a": [math.inf]}), "ok", '{"a":[null]}'),
    "what JSON cannot hold": (odd(Cyclic), "ok", "<cyclic>"),
    "what nothing can say": (odd(Mute), "tool_error", "TOOL_ERROR: ValueError: mute"),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("drive", ["run", "arun"])
def test_whatever_a_tool_does_the_run_goes_on(case: str, drive: str, capsys: pytest.CaptureFixture[str]) -> None:
    function, kind, text = ODD[case]
    shown: list[str] = []

    def model(messages: Sequence[Message]) -> str:
        shown.append(messages[-1].content)
        return "TOOL odd" if len(shown) == 1 else "FINAL went on"

    given: dict[str, Any] = {"model": model, "tools": [function], "lang": "en", "max_observation_chars": 1000}
    result = run("task", **given) if drive == "run" else asyncio.run(arun("task", **given))
    assert (result.reason, result.answer) == ("final_answer", "went on")
    assert len(shown[1]) < 1500
    (seen,) = [seen for event in result.trace.events if isinstance(event, ToolsReturned) for seen in event.observations]
    assert (seen.kind, seen.text[: len(text)]) == (kind, text)
    assert capsys.readouterr().out == ("FINAL no\n" if case == "prints" else "")


def test_an_async_tool_that_never_returns_is_given_up() -> None:
    model = ScriptedModel(["TOOL odd", "FINAL went on"])
    result = asyncio.run(arun("task", model=model, tools=[never_returns_either], lang="en"))
    (seen,) = [seen for event in result.trace.events if isinstance(event, ToolsReturned) for seen in event.observations]
    assert (result.answer, seen.kind) == ("went on", "timeout")

"""What comes from a keyboard: keys by name, and a line that is typed, edited and pasted into, in whatever pieces it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from fsm_agent.stepper.editing import PASTE, PASTED, TypedLine
from fsm_agent.stepper.keys import Input, from_windows

UP, DOWN, RIGHT, LEFT, HOME, END, DELETE = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[3~"


def coming(pieces: Iterable[str]) -> Callable[[], str]:
    """Gives the pieces, one after the other."""
    return iter(pieces).__next__


# --- keys --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("characters", "keys"),
    [
        (["n ", "p"], ["next", "next", "back"]),
        (["\x1b[C\x1b[D"], ["next", "back"]),
        (["\x1b", "[C"], ["next"]),
        (["\x1b[", "1~", "\x1bO", "F"], ["first", "last"]),
        (["三", "t", "\x03", "?"], ["", "type", "interrupt", "help"]),
        (["\x1b[1;5Xq"], ["", "quit"]),
        (["\x1b\x1b", "G"], ["", "", "last"]),
        (["àMé"], ["", "messages", ""]),
    ],
)
def test_keys_are_known_in_whatever_pieces_they_come(characters: list[str], keys: list[str]) -> None:
    given = Input(coming(characters))
    assert [given.key() for _ in keys] == keys
    assert not given.waits
    with pytest.raises(StopIteration):
        given.key()


def test_what_comes_after_a_key_in_one_piece_is_still_there() -> None:
    given = Input(coming(["tFINAL x\r"]))
    assert (given.key(), given.waits, given.piece(), given.piece(), given.waits) == ("type", True, "FINAL x", "\r", False)


@pytest.mark.parametrize(
    ("sent", "key"),
    [("\xe0M", "next"), ("\x00K", "back"), ("\xe0G", "first"), ("\xe0O", "last"), ("\xe0Z", None), ("à", ""), ("n", "next")],
)
def test_a_windows_console_s_keys_are_those_of_other_terminals(sent: str, key: str | None) -> None:
    assert from_windows(sent) == "" if key is None else Input(coming([from_windows(sent)])).key() == key


# --- a line ------------------------------------------------------------------------------------------------------


def typed(*characters: str, earlier: Iterable[str] = ()) -> tuple[str, str | None]:
    """The line with a bar at the place of the next character, and how typing ended."""
    given, line, left = Input(coming(characters)), TypedLine(list(earlier)), None
    try:
        while left is None:
            left = line.take(given.piece())
    except StopIteration:
        pass
    return f"{line.text[: line.at]}|{line.text[line.at :]}", left


@pytest.mark.parametrize(
    ("characters", "line"),
    [
        (["FINAL 三"], "FINAL 三|"),
        (["abc", LEFT, LEFT, "x", RIGHT], "axb|c"),
        (["abc", LEFT * 9, "x", RIGHT * 9, "y"], "xabcy|"),
        (["abc", HOME, DELETE, END, "\x7f"], "b|"),
        (["abc", "\x01", "\x04", "\x05", "\x08"], "b|"),
        (["\x7f", DELETE, "\x15", "\x0b", "\x17"], "|"),
        (["one two", LEFT, "\x0b", "\x15"], "|"),
        (["one two  ", "\x17"], "one |"),
        (["one two", LEFT, LEFT, "\x17"], "one |wo"),
        (["one", "\x17", "\x17"], "|"),
        (["a\tb\x07\x00c\u202e\ufeff\x9b"], "abc|"),
        (["x", "\x1b[99;5u", "\x1bOP", "\x0c", "y"], "xy|"),
        (["one", "\x1b", "\r", "two"], "one\ntwo|"),
    ],
    ids=repr,
)
def test_a_line_is_edited_as_everywhere(characters: list[str], line: str) -> None:
    assert typed(*characters) == (line, None)


@pytest.mark.parametrize(
    ("characters", "line", "left"),
    [
        (["x\r"], "x|", "done"),
        (["x\n"], "x|", "done"),
        (["\r"], "|", "done"),
        (["x\x03"], "x|", "left"),
        (["\x04"], "|", "left"),
    ],
)
def test_typing_ends(characters: list[str], line: str, left: str) -> None:
    assert typed(*characters) == (line, left)


def test_what_is_pasted_is_text_with_its_line_breaks_and_nothing_in_it_is_a_key() -> None:
    pasted = f"{PASTE}Thought:\tq\rAction: \x03\x04{UP}\x1b[31mx{PASTED}"
    assert typed(*pasted) == ("Thought: q\nAction: x|", None)
    assert typed(pasted, "\r") == ("Thought: q\nAction: x|", "done")


def test_lines_typed_before_come_back() -> None:
    earlier = ["one", "two"]
    assert typed(UP, earlier=earlier) == ("two|", None)
    assert typed(UP * 9, earlier=earlier) == ("one|", None)
    assert typed("new", UP, DOWN * 9, earlier=earlier) == ("new|", None)
    assert typed(UP, "!", UP, DOWN, earlier=earlier) == ("two!|", None)


@pytest.mark.parametrize(
    ("text", "at", "width", "shown"),
    [
        ("abc", 3, 10, ("abc", "")),
        ("abc", 1, 10, ("a", "bc")),
        ("abcdefghij", 10, 6, ("…ghij", "")),
        ("abcdefghij", 0, 6, ("", "abcde")),
        ("abcdefghij", 5, 6, ("abcde", "")),
        ("abcdefghij", 6, 6, ("…cdef", "")),
        ("abcdefghij", 3, 6, ("abc", "de")),
        ("三四五六", 4, 6, ("…五六", "")),
        ("一\n二", 3, 10, ("一↵二", "")),
        ("abc", 3, 1, ("", "")),
        ("abc", 3, 2, ("…", "")),
    ],
)
def test_the_place_of_the_next_character_is_always_seen(text: str, at: int, width: int, shown: tuple[str, str]) -> None:
    line = TypedLine()
    line.text, line.at = text, at
    assert line.shown(width) == shown


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf"]) | st.sampled_from("三天\n\u0301")), st.integers(1, 20), st.data()
)
def test_no_more_is_shown_than_there_is_room_for(text: str, width: int, data: st.DataObject) -> None:
    line = TypedLine()
    line.text, line.at = text, data.draw(st.integers(0, len(text)))
    assert sum(map(cell_len, line.shown(width))) < width


def test_a_megabyte_can_be_pasted() -> None:
    text = "天" * 333_333
    pieces = [PASTE, *(text[i : i + 341] for i in range(0, len(text), 341)), PASTED]
    assert typed(*pieces) == (f"{text}|", None)

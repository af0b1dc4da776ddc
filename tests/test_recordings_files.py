"""Files of recordings: which format they are in, what is no recording, and formats of other packages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.traces.recordings import Damaged, RecordingError, detect, documents, read, registry
from fsm_agent.traces.recordings.peek import peek
from tests.fixtures import FOLDER, both

CHAT = b'{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}'
KNOWN = "notebook, trace, tau-bench, intercode, otel, anthropic, openai, reflexion, react"


def problem(path: Path, form: str | None = None) -> str:
    """What reading the file says, which must be one line."""
    with pytest.raises(RecordingError) as caught:
        list(read(path, form))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("empty.json", b"", "is empty"),
        ("white.json", b" \n\t\n", "is empty"),
        ("binary.db", b"SQLite format 3\0\x10\0", "is a binary file (it holds NUL bytes); recordings are JSON or text"),
        ("other.txt", b"hello", f"is of no format that is known; name one: {KNOWN}"),
        ("other.json", b'{"hello": [1, 2]}', f"is of no format that is known; name one: {KNOWN}"),
        ("scalar.json", b"7", f"is of no format that is known; name one: {KNOWN}"),
        ("wild.json", b"[[[}}", f"is of no format that is known; name one: {KNOWN}"),
    ],
)
def test_what_is_no_recording_is_told_in_a_line(tmp_path: Path, name: str, content: bytes, wanted: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert problem(path) == f"{path} {wanted}"
    with pytest.raises(RecordingError):
        detect(path)


def test_what_is_no_file_is_told_in_a_line(tmp_path: Path) -> None:
    assert problem(tmp_path) == f"{tmp_path} is a directory; give a file"
    absent = tmp_path / "absent.json"
    assert problem(absent) == f"{absent} cannot be read: No such file or directory"
    assert problem(absent, "openai") == f"{absent} cannot be read: No such file or directory"
    assert problem(absent, "yaml") == f"the format 'yaml' is not known; known are {KNOWN}"


@pytest.mark.parametrize(
    ("name", "form", "content", "wanted"),
    [
        ("a.json", "openai", CHAT[:40], "the JSON is cut off at column 41"),
        ("a.json", "openai", CHAT[:-3] + b"\n", "the JSON is cut off at line 2, column 1"),
        ("a.json", "openai", CHAT.replace(b'"q"', b'"\xff"'), "this is not UTF-8 (byte 0xff at byte 43); convert the file to UTF-8"),
        ("a.json", "openai", CHAT + b"x", "this is not JSON (Extra data at column 88)"),
        ("a.json", "openai", b"[" * 100_000, "the JSON is nested too deeply"),
        ("a.json", "tau-bench", CHAT, "Expected `array`, got `object`"),
        ("a.json", "intercode", b"[]", "Expected `object`, got `array`"),
        ("a.json", "tau-bench", b'[{"task_id": 1, "trial": 0,\n "traj": [', "the JSON is cut off at line 2, column 11"),
    ],
)
def test_broken_json_is_told_with_its_place(tmp_path: Path, name: str, form: str, content: bytes, wanted: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert problem(path, form) == f"{path}: {wanted}"


def test_text_that_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"Question: q\nThought 1: \xe9\nAction 1: Finish[x]\n")
    assert problem(path) == f"{path}, line 2: this is not UTF-8 (byte 0xe9); convert the file to UTF-8"


def test_a_line_that_is_too_long_is_a_damaged_line_of_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_LINE_BYTES", 1 << 20)
    path = tmp_path / "runs.jsonl"
    path.write_bytes(CHAT + b"\n" + CHAT[:-2] + b" " * (5 << 20) + CHAT[-2:] + b"\n" + CHAT + b"\n" + b'"' * (3 << 20))
    runs, damaged = both(path)
    assert [run.id for run in runs] == ["1", "3"]
    assert damaged == [Damaged("line 2", "the line is longer than 1 MiB"), Damaged("line 4", "the line is longer than 1 MiB")]


def test_a_document_that_is_too_large_is_told_without_reading_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_BYTES", 1 << 20)
    path = tmp_path / "chat.json"
    with path.open("wb") as file:
        file.write(CHAT[:-2] + b" " * (1 << 20) + CHAT[-2:])
    assert problem(path) == f"{path} is larger than 1 MiB; split it, or write it as JSON Lines, one run a line"
    assert problem(path, "react") == f"{path} is larger than 1 MiB; split it, or write it as JSON Lines, one run a line"


def test_json_lines_are_recognised_by_their_lines_even_where_one_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "chats.txt"
    path.write_bytes(b"\xef\xbb\xbf" + CHAT + b"\n\n" + CHAT + b"\n")
    assert [run.id for run in both(path)[0]] == ["1", "2"]
    path.write_bytes(CHAT[:30] + b"\n" + CHAT + b"\n" + CHAT[:-1] + b"\n")
    runs, damaged = both(path)
    assert [run.id for run in runs] == ["2"]
    assert [each.place for each in damaged] == ["line 1", "line 3"]


def test_a_pretty_printed_document_is_one_document(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text('{"messages": [\n{"role": "user", "content": "q"}\n]}', encoding="utf-8")
    assert [(run.id, run.task) for run in both(path)[0]] == [("chat", "q")]


def test_every_fixture_is_detected_by_its_beginning_and_no_other_format_takes_it() -> None:
    forms = {path.name: detect(path) for path in sorted(FOLDER.iterdir())}
    assert forms == {
        "anthropic.json": "anthropic",
        "anthropic_talk.jsonl": "anthropic",
        "intercode.json": "intercode",
        "notebook.ipynb": "notebook",
        "openai_chat.json": "openai",
        "openai_chats.jsonl": "openai",
        "otel_lines.jsonl": "otel",
        "otel_older.json": "otel",
        "otel_otlp.json": "otel",
        "react.txt": "react",
        "react_unnumbered.txt": "react",
        "reflexion.txt": "reflexion",
        "tau_bench.json": "tau-bench",
    }


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(value=VALUES, cut=st.floats(0, 1))
def test_the_head_of_a_document_is_read_as_far_as_it_goes(value: object, cut: float) -> None:
    text = json.dumps(value).encode()
    part = peek(text[: int(len(text) * cut)])
    assert peek(text) == (value if isinstance(value, dict | list) else None)
    assert part is None or type(part) is type(value)


@given(form=st.sampled_from(KNOWN.split(", ")), content=st.binary() | st.text().map(str.encode))
def test_no_file_makes_a_reader_raise_anything_but_a_line(tmp_path_factory: pytest.TempPathFactory, form: str, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed"
    path.write_bytes(content)
    try:
        both(path, form)
    except RecordingError as error:
        told = str(error)
    else:
        told = ""
    assert "\n" not in told


# --- other packages' formats -----------------------------------------------------------------------------------------

PLUGIN = """
from fsm_agent.events import RecordingEnded
from fsm_agent.traces.recordings import Recording

class Lines:
    name = "lines"
    def recognises(self, head, path, /):
        if head.startswith(b"!"):
            raise KeyError("!")
        return head.startswith(b"#lines")
    def read(self, path, is_error=None):
        for line in path.read_text("utf-8").splitlines()[1:]:
            yield Recording(id=line, source="lines", task=line.upper(), events=(RecordingEnded(),))
            if line == "bad":
                raise KeyError(line)

class Nothing:
    pass
"""
ENTRY_POINTS = """
[fsm_agent.recordings]
lines = a_plugin:Lines
absent = no_such_module:Reader
hollow = a_plugin:Nothing
openai = a_plugin:Lines
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with four entry points, of which one is good."""
    site = tmp_path / "site"
    info = site / "a_plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "a_plugin.py").write_text(PLUGIN, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: a-plugin\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    registry.cache_clear()
    yield
    registry.cache_clear()


@pytest.mark.usefixtures("plugin")
def test_another_package_adds_a_format_and_what_does_not_load_is_told(tmp_path: Path) -> None:
    path = tmp_path / "runs.txt"
    path.write_text("#lines\none\ntwo\none\n", encoding="utf-8")
    assert detect(path) == "lines"
    assert [(run.id, run.task) for run in both(path)[0]] == [("one", "ONE"), ("two", "TWO"), ("one#2", "ONE")]
    assert sorted(registry().broken) == [
        "the format 'absent' (no_such_module:Reader) does not load: ModuleNotFoundError: No module named 'no_such_module'",
        "the format 'hollow' (a_plugin:Nothing) does not load: TypeError: it has no methods read and recognises",
        "the format 'openai' (a_plugin:Lines) does not load: ValueError: the format 'openai' is there already; give it another name",
    ]
    assert both(FOLDER / "openai_chat.json")[0][0].source == "openai"


@pytest.mark.usefixtures("plugin")
def test_a_reader_of_another_package_that_fails_is_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.txt"
    path.write_text("#lines\nbad\n", encoding="utf-8")
    assert problem(path) == f"{path}: the reader of the format lines failed: KeyError: 'bad'"
    path.write_text("!", encoding="utf-8")
    assert problem(path).endswith("does not load: ValueError: the format 'openai' is there already; give it another name; the reader of the format lines failed: KeyError: '!'")  # fmt: skip

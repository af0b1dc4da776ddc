"""``fsm-agent import``: what it prints, what it does with bad files and bad ledgers, and that it may be killed."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from fsm_agent.cli import cli
from fsm_agent.traces.ledger import Ledger, LedgerError, connect, schema
from fsm_agent.traces.recordings import Damaged, Recording, read, registry

from .scripted_recordings import FILES
from .test_ledger import REFUSED, locked, rows


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def chat(number: int, result: str = "found", outcome: str = "success") -> dict[str, object]:
    """A run of two steps in OpenAI's form."""
    call = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": json.dumps({"n": number})}}
    messages = [
        {"role": "user", "content": f"task {number}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result},
        {"role": "assistant", "content": f"answer {number}"},
    ]
    return {"id": f"run-{number}", "messages": messages, "outcome": outcome}


def write(name: str, *lines: object) -> Path:
    """A file of JSON Lines; what is bytes goes into it as it is."""
    path = Path(name)
    path.write_bytes(b"".join(line if isinstance(line, bytes) else msgspec.json.encode(line) + b"\n" for line in lines))
    return path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["import", *map(str, arguments)], env={"LC_ALL": "C"})


def ids(ledger: str = "runs.db") -> list[str]:
    with Ledger.open(ledger) as opened:
        return [run.id for run in opened.runs()]


def lines_of(result: Result) -> list[list[str]]:
    """The cells of the printed lines."""
    return [re.split(r"\s{2,}", line.strip()) for line in result.stdout.splitlines()]


# --- what it prints ----------------------------------------------------------------------------------------------


def test_the_summary_counts_what_is_new_and_what_was_there() -> None:
    write("a.jsonl", chat(1), chat(2))
    write("b.jsonl", chat(2), chat(3), chat(4))
    result = call("a.jsonl", "b.jsonl", "--ledger", "runs.db")
    assert (result.exit_code, result.stderr) == (0, "")
    assert lines_of(result) == [
        ["file", "format", "runs", "new", "already there", "damaged"],
        ["a.jsonl", "openai", "2", "2", "0", "0"],
        ["b.jsonl", "openai", "3", "2", "1", "0"],
        ["all files", "5", "4", "1", "0"],
        ["runs.db holds 4 runs"],
    ]
    again = call("a.jsonl", "--ledger", "runs.db")
    assert (again.exit_code, again.stderr) == (0, "")
    assert lines_of(again)[1:] == [["a.jsonl", "openai", "2", "0", "2", "0"], ["runs.db holds 4 runs"]]
    assert ids() == ["run-1", "run-2", "run-3", "run-4"]
    assert sorted(path.name for path in Path().iterdir()) == ["a.jsonl", "b.jsonl", "runs.db"]


def test_the_summary_as_json() -> None:
    write("a.jsonl", chat(1), b"{broken\n", chat(2))
    result = call("a.jsonl", "none.jsonl", "--ledger", "runs.db", "--json")
    assert result.exit_code == 2
    summary = json.loads(result.stdout)
    problem = summary["files"][0]["damaged"][0].pop("problem")
    assert problem.startswith("this is not JSON")
    counts = {"runs": 2, "new": 2, "already_there": 0, "updated": 0, "changed": 0}
    assert summary == {
        "ledger": "runs.db",
        "runs_in_ledger": 2,
        **counts,
        "damaged": 1,
        "unreadable_files": 1,
        "files": [
            {"file": "a.jsonl", "format": "openai", **counts, "damaged": [{"place": "line 2"}], "error": None, "remarks": []},
            {
                "file": "none.jsonl",
                "format": None,
                **dict.fromkeys(counts, 0),
                "damaged": [],
                "error": "none.jsonl cannot be read: No such file or directory",
                "remarks": [],
            },
        ],
    }
    assert result.stderr == f"damaged: a.jsonl, line 2: {problem}\nError: none.jsonl cannot be read: No such file or directory\n"


def test_damaged_runs_are_named_and_the_others_are_imported() -> None:
    write("a.jsonl", chat(1), b'{"messages": 5}\n', chat(2))
    result = call("a.jsonl", "--ledger", "runs.db")
    assert result.exit_code == 0
    assert lines_of(result)[1:] == [["a.jsonl", "openai", "2", "2", "0", "1"], ["runs.db holds 2 runs"]]
    assert result.stderr == "damaged: a.jsonl, line 2: Expected `array`, got `int` - at `$.messages`\n"


def test_another_rule_for_errors_makes_other_runs_and_that_is_told() -> None:
    write("a.jsonl", chat(1, "404 not found"), chat(2))
    call("a.jsonl", "--ledger", "runs.db")
    result = call("a.jsonl", "--ledger", "runs.db", "--error-pattern", "^404")
    assert lines_of(result)[1:] == [
        ["a.jsonl", "openai", "2", "1", "1", "0"],
        ["runs.db holds 3 runs"],
        ["new runs that are there with other content too (read by another rule for errors, or the file was changed): 1"],
    ]  # fmt: skip
    assert rows(Path("runs.db"), "SELECT run_id, errors FROM runs") == [("run-1", 0), ("run-2", 0), ("run-1", 1)]


def test_another_outcome_is_the_new_one_and_that_is_told() -> None:
    write("a.jsonl", chat(1, outcome="failure"))
    call("a.jsonl", "--ledger", "runs.db")
    write("a.jsonl", chat(1, outcome="success"))
    result = call("a.jsonl", "--ledger", "runs.db")
    assert lines_of(result)[1:] == [
        ["a.jsonl", "openai", "1", "0", "1", "0"],
        ["runs.db holds 1 run"],
        ["runs that were there and have another outcome, score or ending now: 1"],
    ]
    assert rows(Path("runs.db"), "SELECT outcome FROM runs") == [("success",)]


# --- bad files ---------------------------------------------------------------------------------------------------

BAD = {
    "nothing.json": (b"", "nothing.json is empty"),
    "space.json": (b" \n\n", "space.json is empty"),
    "binary.bin": (bytes(range(256)), "binary.bin is a binary file (it holds NUL bytes); recordings are JSON or text"),
    "prose.txt": (b"Once upon a time.", "prose.txt is of no format that is known; name one"),
    "latin.jsonl": (b'[{"role": "user", "content": "caf\xe9"}]\n', "latin.jsonl"),
    "cut.json": (b'[{"role": "user", "content": "a"}, {"role": "assi', "cut.json: the JSON is cut off at "),
    "all.jsonl": (b'{"messages": []}\n{"messages": []}\n', "all.jsonl"),
}


@pytest.mark.parametrize("name", [*BAD, "folder", "missing.json"])
def test_a_file_that_cannot_be_read_is_told_and_the_others_are_imported(name: str) -> None:
    complaint = f"{name} is a directory; give a file" if name == "folder" else f"{name} cannot be read: No such file or directory"
    if name in BAD:
        content, complaint = BAD[name]
        write(name, content)
    Path("folder").mkdir()
    write("good.jsonl", chat(1))
    result = call(name, "good.jsonl", "--ledger", "runs.db")
    assert result.exit_code == 2
    assert [line for line in result.stderr.splitlines() if line.startswith("Error: ")] == [result.stderr.splitlines()[-1]]
    assert result.stderr.splitlines()[-1].startswith(f"Error: {complaint}")
    assert lines_of(result)[2:] == [["good.jsonl", "openai", "1", "1", "0", "0"], lines_of(result)[3], ["runs.db holds 1 run"]]
    assert ids() == ["run-1"]


def test_without_any_run_no_ledger_is_made() -> None:
    write("prose.txt", b"Once upon a time.")
    result = call("prose.txt", "--ledger", "runs.db")
    assert result.exit_code == 2
    assert lines_of(result)[-1] == ["runs.db was not made: there is no run for it"]
    assert not Path("runs.db").exists()


def test_a_line_beyond_all_measure_is_one_damaged_run() -> None:
    path = write("long.jsonl", chat(1))
    with path.open("ab") as file:
        file.write(b'{"messages": [{"role": "user", "content": "')
        for _ in range(65):
            file.write(b"a" * (1 << 20))
        file.write(b"\n" + msgspec.json.encode(chat(2)) + b"\n")
    result = call(path, "--ledger", "runs.db")
    assert result.exit_code == 0
    assert result.stderr == "damaged: long.jsonl, line 2: the line is longer than 64 MiB\n"
    assert ids() == ["run-1", "run-2"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--format", "nope"), "the format 'nope' is not known; known are "),
        (("--error-pattern", "("), "the error pattern '(' is no regular expression: "),
    ],
)
def test_a_wrong_option_is_told_once(options: tuple[str, str], complaint: str) -> None:
    write("a.jsonl", chat(1))
    write("b.jsonl", chat(2))
    result = call("a.jsonl", "b.jsonl", "--ledger", "runs.db", *options)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith(f"Error: {complaint}")
    assert not Path("runs.db").exists()


class Failing:
    """A reader of another package, with a bug."""

    name = "failing"

    def recognises(self, head: bytes, _path: Path, /) -> bool:
        return head.startswith(b"failing")

    def read(self, _path: Path, _is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        yield Recording("first", self.name, "task", ())
        raise KeyError("second")


def test_a_reader_that_fails_keeps_no_other_file_from_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry().readers, "failing", Failing())
    write("f.log", b"failing")
    write("a.jsonl", chat(1))
    result = call("f.log", "a.jsonl", "--ledger", "runs.db")
    assert result.exit_code == 2
    assert result.stderr == "Error: f.log: the reader of the format failing failed: KeyError: 'second'\n"
    assert ids() == ["first", "run-1"]


@pytest.mark.skipif(sys.platform != "linux", reason="only there are file names bytes that may be no text")
def test_a_file_name_that_is_no_text_is_no_matter() -> None:
    name = os.fsdecode(b"caf\xe9.jsonl")
    write(name, chat(1))
    result = call(name, "--ledger", os.fsdecode(b"\xff.db"))
    assert result.exit_code == 0
    assert lines_of(result)[-1] == ["\\udcff.db holds 1 run"]


# --- bad ledgers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_ledger_is_one_line_and_left_as_it_was(here: Path, what: str) -> None:
    make, complaint = REFUSED[what]
    make(here / "runs.db")
    before = None if Path("runs.db").is_dir() else Path("runs.db").read_bytes()
    write("a.jsonl", chat(1))
    result = call("a.jsonl", "--ledger", "runs.db")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"Error: runs.db {complaint}\n")
    assert before == (None if Path("runs.db").is_dir() else Path("runs.db").read_bytes())


def test_a_ledger_is_no_file_of_recordings() -> None:
    write("a.jsonl", chat(1))
    call("a.jsonl", "--ledger", "runs.db")
    result = call("runs.db", "--ledger", "runs.db")
    assert result.exit_code == 2
    assert result.stderr == "Error: runs.db is a binary file (it holds NUL bytes); recordings are JSON or text\n"
    assert ids() == ["run-1"]


def test_a_locked_ledger_is_one_line_and_left_as_it_was(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "BUSY_S", 0.1)
    write("a.jsonl", chat(1))
    write("b.jsonl", chat(2))
    call("a.jsonl", "--ledger", "runs.db")
    with locked(here / "runs.db"):
        result = call("b.jsonl", "--ledger", "runs.db")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Error: runs.db is locked by another process; try again when that is done\n"
    assert ids() == ["run-1"]


def test_a_folder_that_is_not_there_is_one_line() -> None:
    write("a.jsonl", chat(1))
    result = call("a.jsonl", "--ledger", "none/runs.db")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: {Path('none/runs.db')}: there is no folder none; make it, or give another one\n"


# --- killed ------------------------------------------------------------------------------------------------------

RUNS = 3000


def importing(*files: str) -> subprocess.Popen[bytes]:
    package = Path(__file__).parents[1]
    environ = {**os.environ, "PYTHONPATH": str(package)}
    return subprocess.Popen(
        [sys.executable, "-m", "fsm_agent", "import", *files, "--ledger", "runs.db"], env=environ, stdout=subprocess.DEVNULL
    )


def runs_held() -> int:
    """How many are there, be it while an import is killed or at work."""
    try:
        with Ledger.open("runs.db") as ledger:
            return len(ledger)
    except LedgerError:
        return 0


def contents() -> dict[str, list[object]]:
    with closing(sqlite3.connect("runs.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in schema.TABLES}


def assert_whole() -> None:
    """Every run that is there has all of its rows."""
    with closing(sqlite3.connect("runs.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for query in (
            "SELECT id, 1 FROM runs EXCEPT SELECT run, 1 FROM recordings",
            "SELECT id, steps FROM runs EXCEPT SELECT run, count(*) FROM steps GROUP BY run",
            "SELECT id, 6 FROM runs EXCEPT SELECT run, count(*) FROM edges GROUP BY run",
        ):
            assert connection.execute(query).fetchall() == [], query


@pytest.mark.parametrize(("signalled", "moments"), [("killed", (0, 1, 300, 500)), ("interrupted", (300,))])
def test_an_import_that_is_killed_again_and_again_comes_to_the_same_ledger(signalled: str, moments: tuple[int, ...]) -> None:
    """``moments``: how many runs are in the ledger when it is killed; at 0, the file has just been made."""
    if signalled == "interrupted" and sys.platform == "win32":
        pytest.skip("a console's Ctrl-C cannot be sent to one process there")
    write("a.jsonl", *(chat(n, "Error: none") for n in range(RUNS // 2)))
    write("b.jsonl", *(chat(n) for n in range(RUNS // 2, RUNS)))
    before, ends = 0, []
    for kill_at in moments:
        with importing("a.jsonl", "b.jsonl") as process:
            end = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < end:
                if runs_held() >= kill_at and (kill_at or Path("runs.db").exists()):
                    if signalled == "killed":
                        process.kill()
                    else:
                        process.send_signal(signal.SIGINT)
                    break
                time.sleep(0.002)
        ends.append(process.returncode)
        if Path("runs.db").stat().st_size and runs_held():
            assert_whole()
        assert runs_held() >= max(before, kill_at)
        before = runs_held()
    assert set(ends) != {0}
    with importing("a.jsonl", "b.jsonl") as process:
        assert process.wait(60) == 0
    mended = contents()
    assert [path.name for path in Path().iterdir() if path.name.startswith("runs.db")] == ["runs.db"]
    Path("runs.db").unlink()
    assert call("a.jsonl", "b.jsonl", "--ledger", "runs.db").exit_code == 0
    assert contents() == mended
    assert len(mended["runs"]) == RUNS


# --- the four files ----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not all(path.exists() for path in FILES.values()), reason="the recorded runs in ../shared/data are not here")
def test_the_four_files() -> None:
    result = call(*FILES.values(), "--ledger", "runs.db", "--json")
    assert result.exit_code == 0
    assert result.stderr == (
        f"note: {FILES['reflexion']}: trial 3: its summary line says 34 correct, 56 incorrect, 9 halted (99 runs); "
        "it holds 34 correct, 56 incorrect, 10 halted (100 runs)\n"
    )
    summary = json.loads(result.stdout)
    assert (summary["new"], summary["damaged"], summary["runs_in_ledger"]) == (2234, 0, 2234)
    with Ledger.open("runs.db") as ledger:
        assert ledger.sources() == {"intercode": 1034, "notebook": 500, "reflexion": 500, "tau-bench": 200}
        expected = [run for path in FILES.values() for run in read(path) if isinstance(run, Recording)]
        assert [run.id for run in ledger.recordings()] == [run.id for run in expected]
    again = json.loads(call(*FILES.values(), "--ledger", "runs.db", "--json").stdout)
    assert (again["new"], again["already_there"], again["updated"], again["changed"]) == (0, 2234, 0, 0)


@pytest.mark.parametrize("text", [b'[{"role": "user", "content": "x"', b"", b"\x00\x01", b"\xff\xfe{", b"plain words"])
def test_bad_input_leaves_a_good_ledger_as_it_was_to_the_byte(text: bytes, tmp_path: Path) -> None:
    good, bad, book = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "l.db"
    good.write_text('[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]', encoding="utf-8")
    assert CliRunner().invoke(cli, ["import", str(good), "--ledger", str(book)]).exit_code == 0
    before = book.read_bytes()
    bad.write_bytes(text)
    result = CliRunner().invoke(cli, ["import", str(bad), "--ledger", str(book)])
    assert result.exit_code == 2
    assert book.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.json", "good.json", "l.db"]


def test_a_ledger_that_was_made_and_never_filled_is_filled(tmp_path: Path) -> None:
    good, book = tmp_path / "good.json", tmp_path / "l.db"
    good.write_text('[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]', encoding="utf-8")
    with closing(sqlite3.connect(book)) as connection:  # as an import leaves it that is killed before its first batch
        connection.execute("PRAGMA journal_mode = WAL")
    assert book.stat().st_size
    assert CliRunner().invoke(cli, ["import", str(good), "--ledger", str(book)]).exit_code == 0
    with Ledger.open(book) as ledger:
        assert len(ledger) == 1

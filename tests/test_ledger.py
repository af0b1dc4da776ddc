"""The ledger: what is put in comes out, once; what is no ledger is refused and left as it was."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent.cli.import_ import shadow_readings
from fsm_agent.events import Event, ModelReplied, Observation, RecordingEnded, Reply, ToolRequest, ToolSpec, ToolsReturned, Usage, UserSpoke
from fsm_agent.traces.ledger import FIELDS, Condition, EdgeCount, Importer, Ledger, LedgerError, StoredRun, Tally, Where, connect, schema
from fsm_agent.traces.recordings import Damaged, Recording, read

from .scripted_recordings import FILES, recorded

FIXTURES = sorted(path for path in (Path(__file__).parent / "fixtures" / "recordings").iterdir() if path.is_file())


def put(path: Path, *recordings: Recording, file: str = "runs.json") -> Tally:
    """Import them."""
    tally = Tally()
    with Ledger.create_or_open(path) as ledger:
        importer = Importer(ledger, shadow_readings)
        for recording in recordings:
            importer.take(recording, file, tally)
        importer.flush(tally)
    return tally


def held(path: Path, where: str = "") -> list[Recording]:
    with Ledger.open(path) as ledger:
        return list(ledger.recordings(Where.parse(where)))


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def as_json(recording: Recording) -> Recording:
    """With what else its format tells as JSON knows it: without tuples."""
    return attrs.evolve(recording, extra=json.loads(json.dumps(dict(recording.extra))))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


# --- in and out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.name)
def test_every_format_comes_out_as_it_went_in(path: Path, file: Path) -> None:
    recordings = [run for run in read(file) if isinstance(run, Recording)]
    assert recordings
    put(path, *recordings)
    assert held(path) == [as_json(recording) for recording in recordings]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
replies = st.builds(
    ModelReplied,
    st.builds(
        Reply,
        texts,
        st.lists(st.builds(ToolRequest, texts, texts, st.just("{}") | texts), max_size=2).map(tuple),
        st.none() | st.just("length"),
        st.none() | st.builds(Usage, st.none() | st.integers(-5, 2**63), st.none() | st.integers(0, 9), st.none() | st.floats(0, 1)),
    ),
    st.none() | st.floats(0, 2e9),
)
runs = st.builds(
    Recording,
    id=texts,
    source=st.sampled_from(["a", "b"]),
    task=texts,
    events=st.lists(replies, max_size=1).map(lambda events: (*events, RecordingEnded())),
    tools=st.lists(st.builds(ToolSpec, texts, texts, st.just({"type": "object"}), st.booleans()), max_size=1).map(tuple),
    outcome=st.sampled_from(["success", "failure", "unknown"]),
    score=st.none() | st.floats(allow_nan=False),
    ending=st.sampled_from(["answer", "cap", "unknown"]),
    model=st.none() | texts,
    extra=st.dictionaries(texts, texts | st.integers(-(2**70), 2**70) | st.lists(st.none() | st.booleans(), max_size=2), max_size=2),
)


@settings(max_examples=20)
@given(st.lists(runs, max_size=6))
def test_whatever_is_put_in_twice_is_there_once(tmp_path_factory: pytest.TempPathFactory, recordings: list[Recording]) -> None:
    path = tmp_path_factory.mktemp("ledger") / "runs.db"
    identity = [(run.source, run.id, run.task, run.model, run.tools, run.events) for run in recordings]
    once = [run for i, run in enumerate(recordings) if identity[i] not in identity[:i]]
    first, again = put(path, *once), put(path, *recordings, file="elsewhere.json")
    assert (first.new, first.already_there, first.damaged) == (len(once), 0, [])
    assert (again.new, again.already_there, again.damaged) == (0, len(recordings), [])
    last = []
    for run in once:
        verdict = recordings[max(i for i, each in enumerate(identity) if each == identity[recordings.index(run)])]
        last.append(attrs.evolve(run, outcome=verdict.outcome, score=verdict.score, ending=verdict.ending))
    assert held(path) == [as_json(run) for run in last]


def test_the_tables_tell_of_a_run(path: Path) -> None:
    events: tuple[Event, ...] = (
        ModelReplied(Reply("look", (ToolRequest("1", "read", '{"file": "a"}'),), usage=Usage(10, 2, 0.5))),
        ToolsReturned((Observation("read", "no such file", "tool_error"),)),
        ModelReplied(Reply("", (ToolRequest("2", "read", '{"file": "a"}'), ToolRequest("3", "list", "")), usage=Usage(15, None))),
        ToolsReturned((Observation("read", "no such file", "tool_error"), Observation("list", "b"))),
        ModelReplied(Reply("Which\nfile?", taken_as="talk")),
        UserSpoke("b"),
        ModelReplied(Reply("er", taken_as="unparseable")),
        ModelReplied(Reply("done", taken_as="answer")),
    )
    put(path, Recording("r1", "made", "Read a.", events, outcome="success", score=1.0, ending="answer", model="m"), file="my.json")
    with Ledger.open(path) as ledger:
        (run,) = ledger.runs()
        assert run == StoredRun(
            key=run.key,
            source="made",
            file="my.json",
            id="r1",
            task="Read a.",
            model="m",
            outcome="success",
            score=1.0,
            ending="answer",
            steps=5,
            model_calls=5,
            tool_calls=3,
            errors=2,
            prompt_tokens=25,
            completion_tokens=2,
            tokens_unknown=4,
            cost=0.5,
            cost_unknown=4,
            reason="final_answer",
        )
        assert str(run) == f"made r1 ({run.key[:10]}, my.json)"
        assert ledger.edge_counts() == [
            EdgeCount("model_replied", 5, 1),
            EdgeCount("go_on", 4, 1),
            EdgeCount("call_tools", 2, 1),
            EdgeCount("tools_returned", 2, 1),
            EdgeCount("final_answer", 1, 1),
            EdgeCount("malformed", 1, 1),
            EdgeCount("said", 1, 1),
            EdgeCount("user_spoke", 1, 1),
        ]
    assert rows(path, "SELECT * FROM steps") == [
        (1, 1, "calls", "read{file=a}", 1, 12),
        (1, 2, "calls", "read{file=a}, list{}", 0, None),
        (1, 3, "said", "Which", 0, None),
        (1, 4, "unparseable", "er", 1, None),
        (1, 5, "final", "done", 0, None),
    ]
    assert rows(path, "SELECT position, step, edge FROM edges WHERE position > 14") == [
        (15, 4, "go_on"),
        (16, 5, "model_replied"),
        (17, 5, "final_answer"),
    ]
    counting = "json_extract(limits, '$.count_malformed')"
    readings = f'SELECT step, reason, {counting}, value, "limit", trips FROM readings JOIN guards ON guard = id'
    assert rows(path, f'{readings} ORDER BY step, reason, "limit"') == [
        (1, "consecutive_errors", 1, 1, 2, 0),
        (1, "consecutive_errors", 0, 1, 8, 0),
        (1, "error_streak", None, 1, 3, 0),
        (4, "consecutive_errors", 1, 1, 2, 0),
        (4, "malformed_streak", None, 1, 10, 0),
    ]


def test_readings_go_on_after_a_guard_would_have_halted_the_run(path: Path) -> None:
    put(path, recorded("r", "a! a! a! a! a! ="))
    counts = "SELECT reason, group_concat(step || ':' || value || '/' || \"limit\" || iif(trips, '!', '')) FROM readings JOIN guards ON guard = id"
    assert rows(path, f"{counts} GROUP BY id ORDER BY reason, limits DESC") == [
        ("consecutive_errors", "1:1/8,2:2/8,3:3/8,4:4/8,5:5/8"),
        ("consecutive_errors", "1:1/2,2:2/2!,3:3/2!,4:4/2!,5:5/2!"),
        ("error_streak", "1:1/3,2:2/3,3:3/3!,4:4/3!,5:5/3!"),
        ("no_progress", "2:2/4,3:3/4,4:4/4!,5:5/4!"),
        ("repeated_call", "2:1/2,3:2/2!,4:3/2!,5:4/2!,6:4/2"),
    ]


def test_runs_without_an_end_a_reply_or_a_result_are_kept(path: Path) -> None:
    bare = Recording("bare", "made", "", ())
    put(path, bare, recorded("open", "a a..."), recorded("silent", ""))
    with Ledger.open(path) as ledger:
        assert [(run.id, run.steps, run.tool_calls, run.errors, run.reason) for run in ledger.runs()] == [
            ("bare", 0, 0, 0, None),
            ("open", 2, 2, 0, "recording_ended"),
            ("silent", 0, 0, 0, "recording_ended"),
        ]
    assert held(path) == [bare, recorded("open", "a a..."), recorded("silent", "")]


# --- the same run ------------------------------------------------------------------------------------------------


def test_the_same_run_from_another_file_is_the_same_run(path: Path) -> None:
    run = recorded("r", "a b =", "success")
    assert put(path, run, file="one.json") == Tally(new=1)
    assert put(path, run, run, file="copy/of/one.json") == Tally(already_there=2)
    with Ledger.open(path) as ledger:
        assert [stored.file for stored in ledger.runs()] == ["one.json"]
        assert len(ledger) == 1


def test_a_run_that_was_judged_anew_is_brought_up_to_date(path: Path) -> None:
    put(path, recorded("r", "a =", "unknown"), recorded("s", "a =", "failure"))
    judged = attrs.evolve(recorded("r", "a =", "success"), score=1.0)
    assert put(path, judged, recorded("s", "a =", "failure")) == Tally(already_there=2, updated=1)
    assert held(path) == [judged, recorded("s", "a =", "failure")]


def test_a_run_with_other_content_is_kept_beside_the_old_one_and_told(path: Path) -> None:
    put(path, recorded("r", "a ="), file="log.jsonl")
    assert put(path, recorded("r", "a b ="), file="log.jsonl") == Tally(new=1, changed=1)
    assert put(path, recorded("r", "a b c ="), file="another.jsonl") == Tally(new=1)
    assert [len(run.events) for run in held(path)] == [3, 5, 7]


@pytest.mark.parametrize(
    "other",
    [
        {"id": "s"},
        {"source": "other"},
        {"task": "another task"},
        {"model": "m"},
        {"tools": (ToolSpec("a", polls=True),)},
        {"events": (RecordingEnded(),)},
    ],
    ids=lambda other: next(iter(other)),
)
def test_what_makes_a_run_another_one(path: Path, other: dict[str, Any]) -> None:
    run = recorded("r", "a =")
    assert put(path, run, attrs.evolve(run, **other)).new == 2


def test_a_key_does_not_depend_on_the_order_of_json_fields(path: Path) -> None:
    run = recorded("r", "a =")
    put(path, attrs.evolve(run, tools=(ToolSpec("a", "", {"type": "object", "title": "t"}),)))
    assert put(path, attrs.evolve(run, tools=(ToolSpec("a", "", {"title": "t", "type": "object"}),))) == Tally(already_there=1)


# --- what cannot be kept -----------------------------------------------------------------------------------------


def test_what_cannot_be_kept_is_damaged_and_the_others_go_on(path: Path) -> None:
    run = recorded("r", "a =")
    tally = put(
        path,
        attrs.evolve(run, id="half", task="lone \ud800"),
        attrs.evolve(run, id="odd", events=(ToolsReturned(()),)),
        attrs.evolve(run, id="huge", tools=(ToolSpec("a", "", {"n": 2**70}),)),
        attrs.evolve(run, id="word", outcome="great"),  # type: ignore[arg-type]  # another package's reader may say so
        run,
    )
    assert tally == Tally(
        new=1,
        damaged=[
            Damaged("run half", "it cannot be kept: 'utf-8' codec can't encode character '\\ud800' in position 5: surrogates not allowed"),
            Damaged("run odd", "no run can have had these events: ToolsReturned in Deciding (step 0): this state takes ModelReplied, ModelFailed, UserSpoke, Cancelled, RecordingEnded"),
            Damaged("run huge", "it cannot be kept: can't serialize ints < -2**63 or > 2**64 - 1"),
            Damaged("run word", "'great' is none of success, failure, unknown"),
        ],
    )  # fmt: skip
    assert held(path) == [run]


def test_a_run_that_is_there_keeps_its_verdict_where_the_new_one_is_none(path: Path) -> None:
    run = recorded("r", "a =", "success")
    put(path, run)
    odd = attrs.evolve(run, outcome="great")  # type: ignore[arg-type]  # as above
    assert put(path, odd, run) == Tally(already_there=1, damaged=[Damaged("run r", "'great' is none of success, failure, unknown")])
    assert held(path) == [run]


def test_control_characters_are_kept_as_they_came(path: Path) -> None:
    call = ModelReplied(Reply("\x1b[31m", (ToolRequest("", "say", '{"text": "\\u0000\\u202e"}'),)))
    run = Recording("r\0", "made", "\u202e", (call, ToolsReturned((Observation("say", "ok\0"),)), RecordingEnded()))
    assert put(path, run) == Tally(new=1)
    assert held(path) == [run]


def test_numbers_that_no_run_can_have_are_unknown(path: Path) -> None:
    put(path, Recording("r", "made", "", (ModelReplied(Reply("hi", usage=Usage(2**62, -3, float("nan")))),), score=float("nan")))
    with Ledger.open(path) as ledger:
        (run,) = ledger.runs()
    assert (run.prompt_tokens, run.completion_tokens, run.tokens_unknown, run.cost, run.cost_unknown, run.score) == (
        None,
        None,
        1,
        None,
        1,
        None,
    )


# --- choosing and finding ----------------------------------------------------------------------------------------


@pytest.fixture
def some(path: Path) -> Path:
    put(
        path,
        recorded("1", "a =", "success", source="tau", model="m, large"),
        recorded("2", "a b =", "failure", source="tau"),
        attrs.evolve(recorded("10", "a b c", "failure", "cap", source="fever"), score=0.5),
    )
    return path


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        ("", ["1", "2", "10"]),
        ("outcome=failure", ["2", "10"]),
        ("outcome = failure , source!=tau", ["10"]),
        ("reason=recording_ended", ["10"]),
        ("ending=cap,", ["10"]),
        ('model="m, large"', ["1"]),
        ("model=", ["2", "10"]),
        ("model!=gpt", ["1", "2", "10"]),
        ("steps>=3", ["2", "10"]),
        ("steps<3", ["1"]),
        ("steps=3,tool_calls>2", ["10"]),
        ("score>0.1", ["10"]),
        ("score=", ["1", "2"]),
        ("id=1", ["1"]),
        ("file=runs.json, cost=", ["1", "2", "10"]),
        ("source=' OR 1=1 --", []),
    ],
)
def test_runs_are_chosen_by_what_they_are(some: Path, where: str, chosen: list[str]) -> None:
    assert [run.id for run in held(some, where)] == chosen
    with Ledger.open(some) as ledger:
        assert [run.id for run in ledger.runs(Where.parse(where))] == chosen
        assert sum(count.runs for count in ledger.edge_counts(Where.parse(where)) if count.edge == "model_replied") == len(chosen)


@pytest.mark.parametrize(
    ("where", "complaint"),
    [
        ("outcome", "'outcome' is no condition; write one like outcome=success, or steps>=10"),
        ("outcome=success, steps", "'steps' is no condition; write one like outcome=success, or steps>=10"),
        ('model="m', "'model=\"m' is no condition; write one like outcome=success, or steps>=10"),
        ("outcome>success", "outcome>success: outcome is text, which is compared with = or !="),
        ("steps=many", "steps=many: 'many' is no number"),
        ("steps>", "steps>: '' is no number"),
        ("steps>nan", "steps>nan: 'nan' is no number"),
        (
            "1=1",
            f"runs have no '1' that can be asked for; known are {', '.join(FIELDS)}",
        ),
    ],
)
def test_a_condition_that_cannot_be_meant_is_refused(where: str, complaint: str) -> None:
    with pytest.raises(LedgerError) as refused:
        Where.parse(where)
    assert str(refused.value) == complaint


def test_conditions_are_written_as_they_are_read() -> None:
    where = Where.parse('model="a, b"', "steps>=3,score=,id= x")
    assert where == Where(
        (Condition("model", "=", "a, b"), Condition("steps", ">=", 3.0), Condition("score", "=", None), Condition("id", "=", "x"))
    )
    assert str(where) == 'model="a, b", steps>=3, score=, id=x'
    assert Where.parse(str(where)) == where


def test_a_run_is_found_by_its_id_or_the_beginning_of_its_key(some: Path) -> None:
    with Ledger.open(some) as ledger:
        stored = {run.id: run for run in ledger.runs()}
        for name, ident in (
            ("1", "1"),
            ("10", "10"),
            ("tau:2", "2"),
            ("fever:1", "10"),
            (stored["2"].key, "2"),
            (stored["2"].key[:12], "2"),
        ):
            assert ledger.find(name) == stored[ident]
        assert ledger.recording(stored["10"]).id == "10"


def test_a_name_of_several_runs_or_of_none_is_refused(some: Path) -> None:
    put(some, recorded("1", "b ="), *(recorded(f"many/{n}", "a =") for n in range(12)))
    with Ledger.open(some) as ledger:
        keys = [run.key[:10] for run in ledger.runs()]
        with pytest.raises(LedgerError) as several:
            ledger.find("1")
        assert str(several.value) == (
            f"'1' may be any of these runs, name one by its key: tau 1 ({keys[0]}, runs.json); made 1 ({keys[3]}, runs.json)"
        )
        with pytest.raises(LedgerError, match=r"^'many' may be any of these .*many/7 \(\w+, runs.json\); \.\.\.$"):
            ledger.find("many")
        for name in ("", "%", "tau:x", "x:1"):
            with pytest.raises(
                LedgerError, match=r"holds no run .*; a run is named by its id, by source:id or by the beginning of its key$"
            ):
                ledger.find(name)


# --- files that are no ledgers -----------------------------------------------------------------------------------


def other_sqlite(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (id)")


def newer(path: Path) -> None:
    put(path, recorded("r", "a ="))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")


def without_edges(path: Path) -> None:
    put(path, recorded("r", "a ="))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE edges")


def spoilt(path: Path) -> None:
    put(path, recorded("r", "a ="))
    path.write_bytes(path.read_bytes()[:100] + b"spoilt" * 1000)


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a text": (lambda path: path.write_text("no ledger"), "is no SQLite file, so it is no ledger; give another one"),
    "a picture": (
        lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(9)),
        "is no SQLite file, so it is no ledger; give another one",
    ),
    "only the magic": (lambda path: path.write_bytes(schema.MAGIC), "is no SQLite file, so it is no ledger; give another one"),
    "a directory": (lambda path: path.mkdir(), "is a directory; give a file as the ledger"),
    "another program's": (other_sqlite, "is an SQLite file of another kind, no ledger; give another one"),
    "a newer ledger": (newer, "was made by a newer fsm_agent (its ledger has version 2, this one knows 1); update fsm_agent"),
    "without a table": (without_edges, "is no whole ledger (version 1, 5 tables); restore a copy, or give another one"),
    "spoilt pages": (spoilt, "is damaged (database disk image is malformed); make it again from the recordings, or restore a copy"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_ledger_is_refused_and_left_as_it_was(path: Path, what: str) -> None:
    make, complaint = REFUSED[what]
    make(path)
    before = None if path.is_dir() else path.read_bytes()
    for use in (Ledger.open, Ledger.create_or_open):
        with pytest.raises(LedgerError) as refused:
            use(path)
        assert str(refused.value) == f"{path} {complaint}"
    assert before == (None if path.is_dir() else path.read_bytes())
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_ledger_that_is_not_there_or_empty_cannot_be_read(path: Path) -> None:
    with pytest.raises(LedgerError) as refused:
        Ledger.open(path)
    assert str(refused.value) == f"there is no ledger {path}; make it with: fsm-agent import FILES --ledger {path}"
    assert not path.exists()
    path.touch()
    with pytest.raises(LedgerError) as refused:
        Ledger.open(path)
    assert str(refused.value) == f"{path} is empty; fill it with: fsm-agent import FILES --ledger {path}"
    assert path.read_bytes() == b""


def test_a_ledger_is_made_where_an_import_was_killed_before_its_first_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert path.stat().st_size
    assert put(path, recorded("r", "a =")) == Tally(new=1)


def test_a_ledger_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as refused:
        Ledger.create_or_open(tmp_path / "none" / "runs.db")
    assert str(refused.value) == f"{tmp_path / 'none' / 'runs.db'}: there is no folder {tmp_path / 'none'}; make it, or give another one"


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_ledger_can_be_read_and_not_written(path: Path) -> None:
    put(path, recorded("r", "a ="))
    path.chmod(0o444)
    with pytest.raises(LedgerError, match=r"cannot be written \(attempt to write a readonly database\); make it writable"):
        Ledger.create_or_open(path)
    assert len(held(path)) == 1


def test_odd_file_names_are_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "50% of ünï?code#1 &mode=ro.db" if os.name != "nt" else tmp_path / "50% of ünïcode#1 &mode=ro.db"
    put(path, recorded("r", "a ="))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert held(path) == [recorded("r", "a =")]


# --- several processes, and disks --------------------------------------------------------------------------------


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process has locked the file."""
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN EXCLUSIVE'); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdout.readline()
        yield
        other.stdin.close()


def test_a_ledger_that_another_process_has_locked_is_left_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "BUSY_S", 0.1)
    put(path, recorded("r", "a ="))
    with locked(path):
        for use in (Ledger.open, Ledger.create_or_open):
            with pytest.raises(LedgerError) as refused:
                use(path)
            assert str(refused.value) == f"{path} is locked by another process; try again when that is done"
    assert held(path) == [recorded("r", "a =")]


def test_a_ledger_can_be_read_while_it_is_written_and_is_one_plain_file_afterwards(path: Path) -> None:
    tally = Tally()
    with Ledger.create_or_open(path) as ledger:
        importer = Importer(ledger, shadow_readings)
        importer.take(recorded("1", "a ="), "f", tally)
        importer.flush(tally)
        with Ledger.open(path) as reader:
            reading = reader.recordings()
            assert next(reading).id == "1"
            importer.take(recorded("2", "a ="), "f", tally)
            importer.flush(tally)
            assert list(reading) == []  # it began before the second was there
            assert len(reader) == 2
    assert [each.name for each in path.parent.iterdir()] == ["runs.db"]
    assert rows(path, "PRAGMA journal_mode") == [("delete",)]


def test_two_imports_at_once_share_the_work(path: Path) -> None:
    first, second = Tally(), Tally()
    recordings = [recorded(str(n), "a b =") for n in range(20)]
    with Ledger.create_or_open(path) as one, Ledger.create_or_open(path) as two:
        here, there = Importer(one, shadow_readings), Importer(two, shadow_readings)
        for recording in recordings:
            here.take(recording, "f", first)
            there.take(recording, "f", second)
        there.flush(second)
        here.flush(first)
    assert (first, second) == (Tally(already_there=20), Tally(new=20))
    assert held(path) == recordings


def test_a_full_disk_leaves_what_was_there_and_takes_nothing_of_the_batch(path: Path) -> None:
    put(path, recorded("r", "a ="))
    tally = Tally()
    with Ledger.create_or_open(path) as ledger:
        ledger._connection.execute("PRAGMA max_page_count = 20")
        importer = Importer(ledger, shadow_readings)
        for n in range(200):
            importer.take(recorded(str(n), "a b c d ="), "f", tally)
        with pytest.raises(LedgerError) as refused:
            importer.flush(tally)
    assert str(refused.value) == (
        f"{path} cannot grow, the disk is full; what was imported before is in it, and the import can be run again"
    )
    assert held(path) == [recorded("r", "a =")]
    assert rows(path, "SELECT count(*) FROM edges WHERE run > 1") == [(0,)]


@pytest.mark.parametrize(
    "body", ["x'00'", "substr(body, 1, length(body) - 4)", "x'789c6360000000010001'"], ids=["no zlib", "cut off", "no body"]
)
def test_a_recording_that_is_damaged_in_the_ledger_is_named(path: Path, body: str) -> None:
    put(path, recorded("r", "a ="))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE recordings SET body = {body}")
    ((key,),) = rows(path, "SELECT key FROM runs")
    with pytest.raises(LedgerError, match=rf"^the run {key} is damaged in the ledger \(.*\); make the ledger again from the recordings$"):
        held(path)


# --- the four files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_recorded_runs_of_the_four_files_come_out_as_they_went_in(path: Path, name: str) -> None:
    if not FILES[name].exists():
        pytest.skip("the recorded runs in ../shared/data are not here")
    recordings = [run for run in read(FILES[name]) if isinstance(run, Recording)]
    assert put(path, *recordings) == Tally(new=len(recordings))
    with Ledger.open(path) as ledger:
        for stored, recording in zip(ledger.recordings(), recordings, strict=True):
            assert stored == as_json(recording)
        assert [run.steps for run in ledger.runs()] == [
            sum(isinstance(event, ModelReplied) for event in each.events) for each in recordings
        ]

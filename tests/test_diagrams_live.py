"""Pictures of a run that goes on: its trace is followed while it is written."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from fsm_agent.cli import cli
from fsm_agent.diagrams import path_view, render
from fsm_agent.diagrams.live import follow, put_whole
from fsm_agent.drivers import run
from fsm_agent.events import Message
from fsm_agent.guards import MaxSteps, classic
from fsm_agent.tools import add
from fsm_agent.traces import Trace, TraceError, load
from fsm_agent.traces.record import encode
from tests.drawn import played

ROOT = Path(__file__).parent.parent
SVG = "{http://www.w3.org/2000/svg}"
LIMIT_S = 60


def lines_of(steps: int, *, final: bool) -> list[bytes]:
    """The lines of a trace, the header first."""
    from fsm_agent.traces.record import header_of

    machine = played(*(f"TOOL add a=1,b={step}" for step in range(steps)), *(["FINAL 1"] if final else []), steps=steps + final)
    return [encode(header_of(machine, "Run")), *(encode(entry) for entry in machine.log)]


def written(path: Path, *parts: bytes) -> Callable[[], None]:
    """What writes one part more each time that it is called."""
    rest = iter(parts)

    def go_on() -> None:
        with path.open("ab") as file:
            file.write(next(rest))

    return go_on


def until(holds: Callable[[], bool]) -> None:
    start = time.monotonic()
    while not holds():
        assert time.monotonic() - start < LIMIT_S
        time.sleep(0.02)


def title_of(picture: Path) -> str:
    return ET.fromstring(picture.read_bytes()).findtext(f"{SVG}title") or "" if picture.exists() else ""


# --- following -----------------------------------------------------------------------------------------------------


def test_a_run_is_seen_again_each_time_that_its_file_grows_until_it_halts(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines = lines_of(2, final=True)
    seen = [(each.run.step, each.run.reason) for each in follow(path, wait=written(path, b"", *lines))]
    events = sum(b'"event"' in line for line in lines)
    assert seen[0] == (0, None)
    assert seen[-1] == (3, "final_answer")
    assert len(seen) >= events
    assert [step for step, _ in seen] == sorted(step for step, _ in seen)


def test_half_a_line_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    whole = b"".join(lines_of(1, final=True))
    parts = [whole[i : i + 7] for i in range(0, len(whole), 7)]
    assert list(follow(path, wait=written(path, *parts)))[-1].run.reason == "final_answer"


def test_a_file_that_is_made_anew_is_another_run(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines_of(3, final=False)))
    anew = b"".join(lines_of(1, final=True))
    followed = follow(path, wait=lambda: put_whole(anew, path))
    assert [(each.run.step, each.run.reason) for each in followed] == [(3, None), (2, "final_answer")]


def test_a_longer_file_of_another_run_is_noticed_by_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines_of(1, final=False)))
    anew = b"".join(lines_of(4, final=True)).replace(b"a task", b"another task")
    followed = follow(path, wait=lambda: put_whole(anew, path))
    assert [(each.run.task, each.run.step) for each in followed] == [("a task", 1), ("another task", 5)]


def test_other_guards_may_halt_it_sooner(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines_of(3, final=True)))
    assert [(each.run.step, each.run.reason) for each in follow(path, (MaxSteps(2),))] == [(2, "max_steps")]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"no trace\n", "line 1: "),
        (lines_of(1, final=False)[0] + b"{}\n", "line 2: neither an event nor an edge"),
        (lines_of(1, final=False)[0] + lines_of(1, final=False)[4], "line 2: these events belong to no run: "),
    ],
)
def test_what_is_no_trace_is_told_with_its_line(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=problem):
        list(follow(path, wait=lambda: pytest.fail("it waits")))


def test_a_folder_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"is no regular file; a trace is read from a file$"):
        list(follow(tmp_path))


def test_a_picture_is_replaced_as_a_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    put_whole(b"one", tmp_path / "p.svg")
    put_whole(b"two", tmp_path / "p.svg")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("p.svg", b"two")]


# --- the command ---------------------------------------------------------------------------------------------------


STARTED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from fsm_agent.cli import main; main()"
"""Where tests run in the background, a shell has Ctrl-C ignored."""


@contextmanager
def following(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """The command at work; it is ended in any case."""
    command = [sys.executable, "-c", STARTED, "draw", *map(str, arguments), "--lang", "en"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def test_the_picture_goes_on_while_the_run_goes(tmp_path: Path) -> None:
    """The model gives its next answer only when the picture shows the last one."""
    trace, picture = tmp_path / "t.jsonl", tmp_path / "p.svg"
    shown: list[str] = []

    def replies() -> Iterator[str]:
        for step in range(3):
            yield f"TOOL add a=1,b={step}"
            until(lambda step=step: f"at step {step + 1}," in title_of(picture))  # type: ignore[misc]  # a default binds the number
            shown.append(title_of(picture))
        yield "FINAL 3"

    script = replies()

    def model(_messages: Sequence[Message]) -> str:
        return next(script)

    with following(trace, "--live", "-o", picture, "--theme", "dark", "--legend") as process:
        result = run("a task", model=model, tools=[add], guards=classic(), lang="en", trace=trace, title="Sum")
        out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out) == (0, "")
    assert err == f"following {trace} into {picture}; it ends when the run halts, or with Ctrl-C\n"
    assert shown == [f"Sum: not ended, in Deciding at step {n}, {n} model call{'s' * (n > 1)}" for n in (1, 2, 3)]
    assert title_of(picture) == "Sum: Halted(final_answer) at step 4, 4 model calls"
    assert isinstance(load(trace), Trace)
    assert result.reason == "final_answer"


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to one process there")
def test_ctrl_c_leaves_the_last_picture(tmp_path: Path) -> None:
    trace, picture = tmp_path / "t.jsonl", tmp_path / "p.svg"
    trace.write_bytes(b"".join(lines_of(2, final=False)))
    with following(trace, "--live", "--view", "unrolled", "-o", picture) as process:
        until(lambda: "at step 2" in title_of(picture))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.svg", "t.jsonl"]


def test_a_run_that_has_halted_is_drawn_once(tmp_path: Path) -> None:
    trace, picture = tmp_path / "t.jsonl", tmp_path / "p.svg"
    trace.write_bytes(b"".join(lines_of(2, final=True)))
    result = CliRunner().invoke(cli, ["draw", str(trace), "--live", "-o", str(picture)])
    assert result.exit_code == 0
    assert picture.read_bytes() == render(path_view(load(trace)), "svg")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["a", "--live", "-o", "x.svg"], "--live follows one trace file, which a run is writing (run ... --trace FILE)"),
        (["--live", "-o", "x.svg"], "--live follows one trace file, which a run is writing (run ... --trace FILE)"),
        (["t.jsonl", "--live"], "--live draws into a file; name it with -o"),
        (["t.jsonl", "--live", "--run", "1", "-o", "x.svg"], "--live follows one trace file; leave --run, --where and --against out"),
        (
            ["t.jsonl", "--live", "--view", "heat", "-o", "x.svg"],
            "--live draws the path of a run, or with --view unrolled each visit; leave other views out",
        ),
        (
            ["t.jsonl", "--live", "-o", "t.jsonl", "--format", "svg"],
            "--output t.jsonl would overwrite t.jsonl, which is read; name another file",
        ),
    ],
)
def test_wrong_use_is_told(arguments: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["draw", *arguments])
    assert (result.exit_code, result.stderr) == (2, f"Error: {problem}\n")

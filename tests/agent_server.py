"""What the tests of ``ask`` and ``resume`` share: answers of a model's server, tools in a file, and a program in a terminal."""

from __future__ import annotations

import codecs
import json
import os
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fsm_agent.cli.ask import ask
from fsm_agent.cli.resume import resume
from tests.raw_server import Answer, RawServer, events

TOOLS = '''
from pathlib import Path

from fsm_agent import tool


@tool(idempotent=True)
def read_note(name: str) -> str:
    """Read a note."""
    return Path(name).read_text()


@tool(side_effects=True)
def write_note(name: str, text: str) -> str:
    """Write a note."""
    with Path(name).open("a") as file:
        file.write(text)
    return f"{len(text)} characters written"
'''

needs_pty = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a POSIX thing")


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def said(text: str = "", *calls: dict[str, Any]) -> Answer:
    """A reply as an OpenAI-compatible server sends it."""
    message = {"role": "assistant", "content": text, "tool_calls": [{**each, "id": f"c{at}"} for at, each in enumerate(calls)]}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return Answer({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})


def streamed(*pieces: str, calls: tuple[dict[str, Any], ...] = ()) -> Answer:
    """The same, piece by piece."""
    deltas: list[dict[str, Any]] = [{"content": piece} for piece in pieces]
    deltas += [{"tool_calls": [{**each, "index": at, "id": f"c{at}"}]} for at, each in enumerate(calls)]
    chunks = [{"model": "m", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return events(*chunks, end, "[DONE]")


@pytest.fixture(name="desk")
def desk_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with tools in ``my_tools.py``."""
    (tmp_path / "my_tools.py").write_text(TOOLS)
    (tmp_path / "list.txt").write_text("milk\n")
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def of_model(raw: RawServer) -> list[str]:
    return ["--model", "openai:m", "--base-url", raw.url]


def asked(*arguments: object, keys: str = "", lang: str = "C") -> Result:
    """``fsm-agent ask``, without a terminal."""
    return CliRunner().invoke(ask, [str(each) for each in arguments], input=keys, env={"LC_ALL": lang})


def resumed(*arguments: object) -> Result:
    """``fsm-agent resume``, without a terminal."""
    return CliRunner().invoke(resume, [str(each) for each in arguments], env={"LC_ALL": "C"})


# --- a terminal ----------------------------------------------------------------------------------------------------

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")


class Seen:
    """A program in a pseudo-terminal, and what it wrote there."""

    def __init__(self, leader: int, child: subprocess.Popen[bytes]) -> None:
        self._leader = leader
        self.child = child
        self.raw = ""
        self._from = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def text(self) -> str:
        """All that was written, without what steers the terminal."""
        return CONTROL.sub("", self.raw).replace("\r\n", "\n")

    def until(self, text: str) -> None:
        """Wait until ``text`` is written, after what was waited for before."""
        end = time.monotonic() + 30
        while (at := self.text.find(text, self._from)) < 0:
            assert time.monotonic() < end, f"{text!r} did not come after {self.text[self._from :]!r}"
            assert self._read() or text in self.text[self._from :], f"{text!r} did not come before the end: {self.text!r}"
        self._from = at + len(text)

    def press(self, keys: str) -> None:
        os.write(self._leader, keys.encode())

    def answers(self, prompt: str, keys: str) -> None:
        """Wait for a prompt, and for the terminal to give its keys one by one; press some."""
        self.until(prompt)
        self.press(keys)

    def ends(self) -> int:
        """Wait for the end; give the exit code."""
        while self._read():
            pass
        return self.child.wait(60)

    def _read(self) -> bool:
        """Whether there may be more."""
        if select.select([self._leader], [], [], 0.1)[0]:
            try:
                found = os.read(self._leader, 65536)
            except OSError:  # the program has ended
                return False
            self.raw += self._decoder.decode(found)
            return bool(found)
        return self.child.poll() is None


@contextmanager
def terminal(*arguments: object, rows: int = 24, columns: int = 80, **environ: str) -> Iterator[Seen]:
    """``fsm-agent`` with these arguments in a pseudo-terminal."""
    import fcntl
    import pty
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    before = termios.tcgetattr(follower)
    clean = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR"}}
    root = str(Path(__file__).parent.parent)
    child = subprocess.Popen(
        [sys.executable, "-m", "fsm_agent", *map(str, arguments)],
        stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # Ctrl-C needs a controlling terminal
        env={**clean, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PYTHONPATH": root, **environ},
    )  # fmt: skip
    try:
        yield Seen(leader, child)
        assert termios.tcgetattr(follower) == before, "the terminal is given back as it was"
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
        os.close(leader)
        os.close(follower)

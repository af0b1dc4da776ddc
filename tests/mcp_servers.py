"""MCP servers that tests run: published ones from npm and PyPI, and what is needed to kill one at a chosen moment."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import attrs
import pytest

from fsm_agent.events import Observation, ToolCall
from fsm_agent.tools import Tool
from tests.npm import installed

VERSION = "2026.8.31"
WAIT_S = 60.0
"""So long something that has to happen is waited for."""

TIME = shlex.join([sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"])
RAW = Path(__file__).parent / "raw_mcp_server.py"
_RECORDING = "import os, sys; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); os.execvp(sys.argv[2], sys.argv[2:])"


def everything(*arguments: str) -> str:
    """The command of the server that has a tool of every kind. Skips where Node is missing."""
    return _of_npm("server-everything", *arguments)


def filesystem(*folders: Path) -> str:
    """The command of the server that reads and writes files in these folders. Skips where Node is missing."""
    return _of_npm("server-filesystem", *map(str, folders))


def raw(*arguments: str | Path) -> str:
    """The command of the server in ``raw_mcp_server.py``, which does what no decent server does."""
    return shlex.join([sys.executable, str(RAW), *map(str, arguments)])


def _of_npm(package: str, *arguments: str) -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip(f"Node is not installed, which runs {package}")
    folder = installed(f"@modelcontextprotocol/server-everything@{VERSION}", f"@modelcontextprotocol/server-filesystem@{VERSION}")
    return shlex.join([node, str(folder / "node_modules" / "@modelcontextprotocol" / package / "dist" / "index.js"), *arguments])


@attrs.frozen
class Recorded:
    """A command that notes the process id of each of its starts."""

    inner: str
    file: Path

    @property
    def command(self) -> str:
        return shlex.join([sys.executable, "-c", _RECORDING, str(self.file), *shlex.split(self.inner)])

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in self.file.read_text().split()] if self.file.exists() else []

    def kill(self) -> None:
        """Kill the process that was started last, and see it gone."""
        os.kill(self.pids[-1], signal.SIGKILL)
        wait_until(lambda: not is_running(self.pids[-1]))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(happened: Callable[[], object]) -> None:
    """Wait until something has happened. Fails when it does not."""
    until = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def called(tools: Any, name: str, **arguments: Any) -> Observation:
    """What a call of the tool of this name comes to."""
    return named(tools)[name].observe(ToolCall(name, arguments))


def named(tools: Any) -> dict[str, Tool]:
    return {each.name: each for each in tools}


class Pending:
    """A call that goes on in a thread."""

    def __init__(self, work: Callable[[], Observation]) -> None:
        self._came_to: Future[Observation] = Future()
        self._work = work
        threading.Thread(target=self._run, daemon=True).start()

    def result(self) -> Observation:
        """What it comes to. Raises what it raises."""
        return self._came_to.result(WAIT_S)

    def _run(self) -> None:
        try:
            self._came_to.set_result(self._work())
        except Exception as error:  # noqa: BLE001  # it is raised where it is asked for
            self._came_to.set_exception(error)


@attrs.define
class OverHttp:
    """``server-everything`` on a port of this machine."""

    port: int
    process: subprocess.Popen[str] | None = None
    said: list[str] = attrs.Factory(list)
    """The lines that it wrote."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> None:
        command = shlex.split(everything("streamableHttp"))
        environment = {**os.environ, "PORT": str(self.port)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        assert self.process.stdout is not None
        threading.Thread(target=self._listen, args=(self.process.stdout,), daemon=True).start()
        wait_until(lambda: any("listening on port" in line for line in self.said) or (self.process and self.process.poll() is not None))

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(WAIT_S)
            self.said.clear()

    def _listen(self, output: IO[str]) -> None:
        with output:
            for line in output:
                self.said.append(line)


@contextmanager
def over_http() -> Iterator[OverHttp]:
    """A running server; it is started on another port where somebody took the one that was free."""
    for _ in range(5):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            server = OverHttp(free.getsockname()[1])
        server.start()
        if server.process is not None and server.process.poll() is None:
            break
    try:
        yield server
    finally:
        server.kill()

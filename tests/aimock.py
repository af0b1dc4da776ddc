"""aimock, an npm package that speaks the real protocols of model servers: installed once into ``build/``, run once a session, reset before each test."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import attrs
import pytest

__all__ = ["Aimock", "aimock_fixture", "aimock_server", "started"]

VERSION = "1.43.0"
ROOT = Path(__file__).parent.parent / "build" / f"aimock-{VERSION}"
CLI = Path("node_modules", "@copilotkit", "aimock", "dist", "cli.js")


@attrs.frozen
class Aimock:
    """A running server."""

    url: str

    def base_url(self, provider: str) -> str:
        return f"{self.url}/v1" if provider == "openai" else self.url

    def add(self, *fixtures: dict[str, Any]) -> None:
        """Answer so from now on; the first that matches counts."""
        self._control("/fixtures", {"fixtures": list(fixtures)})

    def says(self, response: dict[str, Any], **settings: Any) -> None:
        """Answer so, whatever is asked."""
        self.add({"match": {"endpoint": "chat"}, "response": response, **settings})

    def requests(self) -> list[dict[str, Any]]:
        """The requests since the last reset, in the form of chat completions whatever the protocol was, and how they were answered."""
        journal: list[dict[str, Any]] = self._control("/journal")
        return journal

    def reset(self) -> None:
        self._control("/reset", {})

    def _control(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.url}/__aimock{path}", data, {"Content-Type": "application/json"})
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)


@contextmanager
def started(fixtures: Sequence[dict[str, Any]] = ()) -> Iterator[Aimock]:
    """A server that answers so from its start, which are not checked as those that are added later. Skips where aimock cannot be had."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed, which aimock needs")
    folder = _installed()
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "fixtures.json"
        file.write_text(json.dumps({"fixtures": list(fixtures)}))
        command = [node, str(folder / CLI), "--port", "0", "--fixtures", str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                yield Aimock(_address(process))
            finally:
                process.terminate()


def _address(process: subprocess.Popen[str]) -> str:
    said = []
    for line in process.stdout or ():
        said.append(line)
        if "listening on " in line:
            return line.rpartition("listening on ")[2].strip()
    pytest.skip(f"aimock did not start: {''.join(said)[-300:]}")


@pytest.fixture(scope="session", name="aimock_process")
def aimock_server() -> Iterator[Aimock]:
    """A server for the session."""
    with started() as server:
        yield server


@pytest.fixture(name="aimock")
def aimock_fixture(aimock_process: Aimock) -> Aimock:
    """The server, which knows no answer yet."""
    aimock_process.reset()
    return aimock_process


def _installed() -> Path:
    if (ROOT / CLI).exists():
        return ROOT
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, which brings aimock")
    ROOT.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT.parent, prefix="aimock-") as fresh:
        command = [npm, "install", "--prefix", fresh, "--no-audit", "--no-fund", "--ignore-scripts", f"@copilotkit/aimock@{VERSION}"]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=180, text=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"aimock cannot be installed: {str(error.stderr or error)[-300:]}")
        if not ROOT.exists():
            try:
                Path(fresh).rename(ROOT)
                Path(fresh).mkdir()  # for the context to remove
            except OSError:
                assert (ROOT / CLI).exists()  # another process was faster
    return ROOT

"""A server that answers with what it is told, byte for byte: for answers that no well-behaved server gives."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs
import pytest

__all__ = ["Answer", "RawServer", "raw_server"]


@attrs.frozen
class Answer:
    """What the server says to a request."""

    body: bytes | str | object = b""
    """Bytes and text as they are, anything else as JSON."""
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    cut: bool = False
    """The connection is closed before all that was announced is sent."""
    wait_s: float = 0.0
    """Silence before the answer."""


class RawServer(ThreadingHTTPServer):
    """Gives ``first`` in their order, then ``answer`` to every request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = Answer()
        self.first: list[Answer] = []
        self.requests: list[tuple[Mapping[str, str], dict[str, Any]]] = []
        """The headers, in lower case, and the body of each request."""
        self.closing = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: RawServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(({name.lower(): value for name, value in self.headers.items()}, json.loads(sent)))
        answer = self.server.first.pop(0) if self.server.first else self.server.answer
        self.server.closing.wait(answer.wait_s)
        body = answer.body
        if not isinstance(body, bytes):
            body = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(body) + (1000 if answer.cut else 0)))
        self.send_header("Connection", "close")
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Nothing is logged."""


def events(*data: object, named: bool = False) -> Answer:
    """An answer of server-sent events, with their names where ``named``."""
    lines = []
    for each in data:
        if named and isinstance(each, dict):
            lines.append(f"event: {each['type']}\n")
        lines.append(f"data: {each if isinstance(each, str) else json.dumps(each)}\n\n")
    return Answer("".join(lines), headers={"Content-Type": "text/event-stream"})


@pytest.fixture(name="raw")
def raw_server() -> Iterator[RawServer]:
    """A server on loopback."""
    with RawServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.closing.set()
        server.shutdown()
        thread.join()

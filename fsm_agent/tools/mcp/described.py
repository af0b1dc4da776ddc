"""Where a server of tools is and how it is used: a command line to start, or an address on the web."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import attrs

from fsm_agent.text import printable
from fsm_agent.tools.errors import ToolServerError

_SHORTEST_SECRET = 6
"""Shorter values of ``env`` and ``headers`` (``1``, ``true``) are no secrets, and are parts of many words."""


@attrs.frozen
class McpServer:
    """A server of tools that speaks the Model Context Protocol."""

    where: str | Sequence[str]
    """A command line, such as ``npx -y @modelcontextprotocol/server-filesystem DIR``, or its words, or an http(s) address."""
    name: str = ""
    """What it is called in messages, and in front of a tool's name where two servers have one of that name; empty: as it calls itself."""
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    """Environment variables for the command, beside the few that a program needs to run, such as ``PATH``."""
    cwd: str | None = None
    """The folder in which the command runs."""
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    """HTTP headers for the address, such as ``Authorization``."""
    timeout_s: float | None = 60.0
    """Seconds after which a call is not waited for any more; None: it is waited for."""
    start_timeout_s: float = 60.0
    """Seconds in which it has to have started, and told its tools."""

    @property
    def url(self) -> str | None:
        """Its address; None for a command."""
        return self.where if isinstance(self.where, str) and self.where.lower().startswith(("http://", "https://")) else None

    def words(self) -> tuple[str, ...]:
        """The command, word by word. Raises ``ToolServerError`` where there is none."""
        try:
            words = tuple(split(self.where) if isinstance(self.where, str) else map(str, self.where))
        except ValueError as error:
            raise ToolServerError(f"the MCP server {self.shown!r} is no command line: {error}") from None
        if not words or not words[0]:
            raise ToolServerError("an MCP server is a command line or an http(s) address; this one is empty")
        return words

    @property
    def shown(self) -> str:
        """Where it is, for people, on one line."""
        if self.url is not None:
            parts = urlsplit(self.url)
            return printable(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")
        return printable(self.where if isinstance(self.where, str) else shlex.join(self.where)).replace("\n", " ")

    def without_secrets(self, text: str) -> str:
        """``text`` without the values of ``env`` and ``headers``."""
        for value in sorted({*self.env.values(), *self.headers.values()}, key=len, reverse=True):
            for secret in (value, value.removeprefix("Bearer ")):
                if len(secret) >= _SHORTEST_SECRET:
                    text = text.replace(secret, "***")
        return text


def split(command: str, *, windows: bool = sys.platform == "win32") -> list[str]:
    """A command line's words, with the quotes of a shell; on Windows a backslash is a letter as any other. Raises ``ValueError``."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    if windows:
        lexer.escape = ""
        lexer.quotes = '"'
    return list(lexer)

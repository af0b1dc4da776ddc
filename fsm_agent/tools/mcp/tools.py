"""The tools of MCP servers as tools like any other, and the servers behind them as one thing to open and close."""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import attrs

from fsm_agent.events import ToolCall
from fsm_agent.text import well_formed
from fsm_agent.tools.base import Tool
from fsm_agent.tools.errors import ToolServerDead, ToolServerError
from fsm_agent.tools.foreign import parameters_of_schema
from fsm_agent.tools.mcp.described import McpServer
from fsm_agent.tools.mcp.naming import names_of, numbered
from fsm_agent.tools.mcp.portal import Closed, Portal

if TYPE_CHECKING:
    import mcp.types

    from fsm_agent.tools.mcp.server import Server

logging.getLogger("mcp").addHandler(
    logging.NullHandler()
)  # the SDK's notes go where logging is set up, and not to a terminal by themselves


@attrs.frozen
class McpTool(Tool):
    """A tool that a server runs. ``run`` waits for it, ``arun`` awaits it."""

    tools: McpTools = attrs.field(kw_only=True, repr=False, eq=False)
    """Where it is from; while it is used, so are its servers."""
    server: Server = attrs.field(kw_only=True, repr=False, eq=False)
    original: str = attrs.field(kw_only=True)
    """The server's name for it."""

    @property
    def is_awaited(self) -> bool:
        return True

    def make(self, call: ToolCall, arguments: dict[str, Any]) -> str:
        try:
            return self.tools.portal.run(self.server.call, self.original, arguments, _run_of(call), self.timeout_s)
        except Closed:
            raise ToolServerDead(self.server.name, "it was closed") from None

    async def amake(self, call: ToolCall, arguments: dict[str, Any]) -> str:
        try:
            return await self.tools.portal.arun(self.server.call, self.original, arguments, _run_of(call), self.timeout_s)
        except Closed:
            raise ToolServerDead(self.server.name, "it was closed") from None


class McpTools:
    """The tools of some servers, which start when the tools are first asked for, or at the beginning of a ``with`` (or ``async with``).

    They end with it, with ``close()``, when nothing uses the tools any more, or else with the process.
    """

    def __init__(self, servers: Sequence[McpServer], taken: Collection[str] = ()) -> None:
        for each in servers:
            if each.url is None:
                each.words()
        self._described = tuple(servers)
        self._taken = frozenset(taken)
        self._lock = threading.Lock()
        self._tools: tuple[Tool, ...] | None = None
        self._servers: tuple[Server, ...] = ()
        self._portal: Portal | None = None
        self._closed = False

    @property
    def portal(self) -> Portal:
        """Where the servers live."""
        if self._portal is None:
            raise Closed
        return self._portal

    def __iter__(self) -> Iterator[Tool]:
        """Raises ``ToolServerError`` for a server that does not start."""
        return iter(self._open())

    def __len__(self) -> int:
        return len(self._open())

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._open)
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End the servers. It can be called again."""
        with self._lock:
            self._closed = True
            portal = self._portal
        if portal is not None:
            try:
                portal.run(self._end)
            except Closed:
                return
            portal.close()

    def _open(self) -> tuple[Tool, ...]:
        with self._lock:
            if self._tools is not None:
                return self._tools
            if self._closed:
                raise ToolServerError("these MCP tools are closed; make new ones with mcp_tools(...)")
            portal = Portal()
            try:
                listed = portal.run(self._start)
            except BaseException:
                portal.close()
                raise
            self._portal = portal
            weakref.finalize(self, portal.close, wait=False).atexit = False  # at exit, it is waited for
            names = numbered(server.name for server in self._servers)
            for server, name in zip(self._servers, names, strict=True):
                server.name = name
            called = names_of([(name, [tool.name for tool in tools]) for name, tools in zip(names, listed, strict=True)], self._taken)
            self._tools = tuple(
                _tool_of(self, server, described, tool, name)
                for server, described, tools, own in zip(self._servers, self._described, listed, called, strict=True)
                for tool, name in zip(tools, own, strict=True)
            )
            return self._tools

    async def _start(self) -> list[tuple[mcp.types.Tool, ...]]:
        """Start them all at the same time. Where one does not start, none is left."""
        from fsm_agent.tools.mcp.server import Server

        self._servers = tuple(Server(each) for each in self._described)
        started = await asyncio.gather(*(each.open() for each in self._servers), return_exceptions=True)
        problems = [each for each in started if isinstance(each, BaseException)]
        if problems:
            await self._end()
            raise problems[0]
        return [each for each in started if not isinstance(each, BaseException)]

    async def _end(self) -> None:
        await asyncio.gather(*(each.close() for each in self._servers))


def _tool_of(tools: McpTools, server: Server, described: McpServer, tool: mcp.types.Tool, name: str) -> McpTool:
    hints = tool.annotations
    reads = bool(hints and hints.read_only_hint)

    def function(**arguments: Any) -> str:
        return made.make(ToolCall(name, arguments), arguments)

    made = McpTool(
        function,
        name,
        well_formed(tool.description or ""),
        parameters_of_schema(tool.input_schema),
        idempotent=reads or bool(hints and hints.idempotent_hint),
        timeout_s=described.timeout_s,
        side_effects=not reads,  # the protocol says so: what a server does not say to be read-only is to be thought destructive
        schema={**tool.input_schema, "type": "object"},
        tools=tools,
        server=server,
        original=tool.name,
    )
    return made


def _run_of(call: ToolCall) -> str:
    """The run that the call belongs to, by its key; empty where it has none."""
    return call.key.rsplit("/", 2)[0]

"""One life of a server: the connection to it, from its start to its death, or until it is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import httpx2
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST, CallToolResult, Implementation, Tool

from fsm_agent.tools.mcp.deaths import ending, root, why_not_started, words_of
from fsm_agent.tools.mcp.described import McpServer
from fsm_agent.tools.mcp.lastwords import LastWords
from fsm_agent.tools.mcp.portal import ON_START

_MOST_TOOLS = 10_000
"""A server that lists more does not stop listing."""
_ANSWER_S = 5.0
"""So long a server may take to show that it is still there."""
_END_S = 10.0
"""So long a server may take to end, before its end is forced."""
_EXIT_S = 1.0
"""So long after the connection its process may end."""
_CONNECT_S = 30.0
"""As the SDK's own clients: for a connection, and for sending a request."""


class DidNotStart(Exception):
    """Why a server did not start."""


class Life:
    """It is made and used in one event loop."""

    def __init__(self, server: McpServer) -> None:
        self.tools: tuple[Tool, ...] = ()
        """What the server offers."""
        self.calls_itself = ""
        """The server's own name for itself."""
        self._server = server
        self._process: asyncio.SubprocessTransport | None = None
        self._last_words: LastWords | None = None
        self._lost = False
        self._problem: BaseException | None = None
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self._task = asyncio.create_task(self._live())

    @classmethod
    async def start(cls, server: McpServer) -> Life:
        """A server that has started and told its tools. Raises ``DidNotStart``; cancelled, it leaves nothing behind."""
        life = cls(server)
        try:
            either: tuple[asyncio.Future[Any], ...] = (life._client, life._task)
            await asyncio.wait(either, timeout=server.start_timeout_s, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            life._task.cancel()
            raise
        if life._client.done() and not life.is_dead:
            return life
        why = why_not_started(life._problem, server, life._exit_code) if life._task.done() else ""
        life._task.cancel()
        await life.end()
        raise DidNotStart(life._with_last_words(why or f"it did not answer within {server.start_timeout_s:g} s"))

    @property
    def is_dead(self) -> bool:
        """It is known to be gone."""
        return self._lost or self._task.done() or self._exit_code is not None

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """The server's answer. Raises as the SDK does; see ``is_lost_after``."""
        return await self._client.result().call_tool(tool, dict(arguments))

    async def is_lost_after(self, error: MCPError) -> bool:
        """Whether the server, or this connection to it, is gone: an error does not tell, so the server is asked for a sign of life."""
        if error.code in {CONNECTION_CLOSED, INVALID_REQUEST} and not self.is_dead:
            try:
                async with asyncio.timeout(_ANSWER_S):
                    await self._client.result().list_tools()
            except Exception:  # noqa: BLE001  # in whatever way: there was none
                self._lost = True
        return self.is_dead

    async def end(self) -> None:
        """End the connection, and the server's process. Nothing is raised."""
        self._over.set()
        if not (await asyncio.wait({self._task}, timeout=_END_S))[0]:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_END_S)

    async def why_dead(self) -> str:
        """What is known of its death. What is left of it is ended."""
        code = await self._exit_code_soon()
        await self.end()
        if code is not None:
            return self._with_last_words(ending(code))
        problem = root(self._problem)
        return self._with_last_words(f"the connection to it was lost{f' ({words_of(problem)})' if problem else ''}")

    async def _live(self) -> None:
        ON_START.set(self._started)
        try:
            async with AsyncExitStack() as stack:
                me = Implementation(name="fsm-agent", version="0")
                client = await stack.enter_async_context(Client(await self._transport(stack), client_info=me, cache=None))
                self.calls_itself = client.server_info.name if client.server_info else ""
                self.tools = await _all_tools(client)
                self._client.set_result(client)
                await self._over.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # the SDK raises groups of all kinds; it is told in words later
            self._problem = error
        finally:
            if self._last_words is not None:
                self._last_words.file.close()

    async def _transport(self, stack: AsyncExitStack) -> Any:
        server = self._server
        if server.url is not None:
            timeout = httpx2.Timeout(_CONNECT_S, read=None)  # a call's time is limited elsewhere
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout))
            return streamable_http_client(server.url, http_client=http)
        self._last_words = LastWords()
        command, *args = server.words()
        parameters = StdioServerParameters(
            command=command, args=args, env=dict(server.env), cwd=server.cwd, encoding_error_handler="replace"
        )
        return stdio_client(parameters, errlog=self._last_words.file)

    def _started(self, process: asyncio.SubprocessTransport) -> None:
        self._process = process
        if self._last_words is not None:
            self._last_words.file.close()  # so that the pipe ends with the process

    @property
    def _exit_code(self) -> int | None:
        return self._process.get_returncode() if self._process is not None else None

    async def _exit_code_soon(self) -> int | None:
        """Its exit code, if it ends by itself; it does so a moment after the connection."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _EXIT_S
        while self._process is not None and self._exit_code is None and loop.time() < until:  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.02)
        return self._exit_code

    def _with_last_words(self, why: str) -> str:
        said = self._last_words.telling() if self._last_words is not None else ""
        return self._server.without_secrets(f"{why}; it said: {said}" if said else why)


async def _all_tools(client: Client) -> tuple[Tool, ...]:
    page = await client.list_tools()
    found = {tool.name: tool for tool in page.tools}
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        before = len(found)
        found |= {tool.name: tool for tool in page.tools}
        if not before < len(found) <= _MOST_TOOLS:
            raise ValueError("its list of tools does not end")
    return tuple(found.values())

"""A server over its lives: calls, what becomes of them when it dies, and its one restart in a run.

The first time in a run that it dies, a call that ran has an unknown outcome, and the next call starts it again. The second time it is dead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp import MCPError
from mcp.types import Tool

from fsm_agent.text import first_line, well_formed
from fsm_agent.tools.errors import ServerLost, TimedOut, ToolError, ToolServerDead, ToolServerError
from fsm_agent.tools.mcp.content import text_of
from fsm_agent.tools.mcp.described import McpServer
from fsm_agent.tools.mcp.life import DidNotStart, Life


class Server:
    """It is used in one event loop."""

    def __init__(self, described: McpServer) -> None:
        self.name = described.name
        """What people call it; once it has started, it is not empty."""
        self._described = described
        self._life: Life | None = None
        self._lock = asyncio.Lock()
        self._restarted_in: set[str] = set()
        """The runs that started it again."""

    @property
    def is_running(self) -> bool:
        """It has started, and is not known to be dead."""
        return self._life is not None and not self._life.is_dead

    async def open(self) -> tuple[Tool, ...]:
        """Start it. Returns its tools. Raises ``ToolServerError``."""
        try:
            self._life = await Life.start(self._described)
        except DidNotStart as error:
            raise ToolServerError(f"the MCP server {self._described.shown!r} did not start: {error}") from None
        self.name = self.name or first_line(well_formed(self._life.calls_itself).rpartition("/")[2], 40) or "mcp"
        return self._life.tools

    async def call(self, tool: str, arguments: Mapping[str, Any], run: str, timeout_s: float | None) -> str:
        """What the tool answered, in a run of this id. A server that is found dead is started again before, once in a run.

        Raises ``ToolError`` with the server's words, ``TimedOut``, ``ServerLost`` where the server died while it ran, and
        ``ToolServerDead`` where it is dead for good.
        """
        life = await self._living(run)
        is_last = run in self._restarted_in
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(timeout_s):
                result = await life.call(tool, arguments)
        except TimeoutError:
            raise TimedOut(asyncio.get_running_loop().time() - began) from None
        except MCPError as error:
            if not await life.is_lost_after(error):
                raise ToolError(str(error)) from None
            if is_last:
                raise ToolServerDead(self.name, await _why_dead_again(life), under_way=True) from None
            raise ServerLost(self.name) from None
        except Exception as error:  # noqa: BLE001  # the SDK's checks of the answer raise many types
            raise ToolError(f"the answer of {self.name} cannot be used: {first_line(str(error)) or type(error).__name__}") from None
        if result.is_error:
            raise ToolError(text_of(result))
        return text_of(result)

    async def close(self) -> None:
        """End it. Nothing is raised."""
        if self._life is not None:
            await self._life.end()

    async def _living(self, run: str) -> Life:
        async with self._lock:
            if self._life is None:
                raise ToolServerDead(self.name, "it was never started")
            if not self._life.is_dead:
                return self._life
            if run in self._restarted_in:
                raise ToolServerDead(self.name, await _why_dead_again(self._life))
            why = await self._life.why_dead()
            try:
                self._life = await Life.start(self._described)
            except DidNotStart as error:
                self._restarted_in.add(run)
                raise ToolServerDead(self.name, f"{why}; started again, {error}") from None
            self._restarted_in.add(run)
            return self._life


async def _why_dead_again(life: Life) -> str:
    return f"after it had been started again once, {await life.why_dead()}"

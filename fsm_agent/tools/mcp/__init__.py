"""Tools of servers that speak the Model Context Protocol, by its official SDK: ``pip install "fsm-agent[mcp]"``.

    with mcp_tools("npx -y @modelcontextprotocol/server-filesystem DIR") as tools:
        run("What is in DIR?", model="openai:gpt-5", tools=tools)

A server that dies while a call runs leaves the call's outcome unknown, and the model reads that. The next call starts the server again,
once in a run; when it is dead once more, the call raises ``ToolServerDead``, and the run halts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from fsm_agent.tools.errors import ToolServerError
from fsm_agent.tools.mcp.described import McpServer

if TYPE_CHECKING:
    from fsm_agent.tools.mcp.tools import McpTools

__all__ = ["McpServer", "mcp_tools"]


def mcp_tools(
    *servers: str | McpServer,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float | None = 60.0,
    start_timeout_s: float = 60.0,
    taken: Collection[str] = (),
) -> McpTools:
    """The tools of these servers: each a command line to start, or an http(s) address, or an ``McpServer`` with options of its own.

    The options hold for the servers that are given as text; see ``McpServer``. A tool has the server's name for it; with the server's own
    name in front where another tool is called so, or one of those that are ``taken``. Tools that a server does not say to be read-only
    have side effects. Raises ``ToolServerError`` for a command line that is none, and without the package ``mcp``; when the tools are
    first used, for a server that does not start.
    """
    if not servers:
        raise ToolServerError(
            "mcp_tools needs a server: a command line, such as 'npx -y @modelcontextprotocol/server-everything', or an address"
        )
    try:
        from mcp import Client  # noqa: F401  # older versions have none
    except ImportError:
        raise ToolServerError('MCP tools need the package mcp, 2.3 or newer: pip install "fsm-agent[mcp]"') from None
    from fsm_agent.tools.mcp.tools import McpTools

    described = [
        each
        if isinstance(each, McpServer)
        else McpServer(each, env=env or {}, headers=headers or {}, timeout_s=timeout_s, start_timeout_s=start_timeout_s)
        for each in servers
    ]
    return McpTools(described, taken)

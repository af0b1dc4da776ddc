"""Why a server did not start, or died, in words for people."""

from __future__ import annotations

import shutil
import signal

import httpx2
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED

from fsm_agent.text import first_line, well_formed
from fsm_agent.tools.mcp.described import McpServer


def why_not_started(problem: BaseException | None, server: McpServer, exit_code: int | None) -> str:
    """``problem``: what was raised as it started; ``exit_code``: of its process, where it has ended."""
    error = root(problem)
    told = words_of(error) if error is not None else ""
    if isinstance(error, OSError) and server.url is None:
        return _why_not_run(error, server)
    if isinstance(error, httpx2.TransportError):
        return f"no connection ({told}); does it run, and is that its address?"
    if isinstance(error, MCPError) and error.code != CONNECTION_CLOSED:
        return f"it answered with an error: {told}"
    closed = error is None or isinstance(error, MCPError)
    if closed and exit_code is not None and exit_code != -signal.SIGTERM:  # which it gets where it only closed the connection
        return f"{ending(exit_code)} before it answered"
    return f"its answer cannot be used ({told or 'it has none'})"


def _why_not_run(error: OSError, server: McpServer) -> str:
    command = server.words()[0]
    if not isinstance(error, FileNotFoundError):
        return f"{command} cannot be run: {error.strerror or error}"
    if shutil.which(command) is None:
        return f"the command {command} is not found; install it, or give its whole path"
    return f"the folder {server.cwd} is not found"


def ending(code: int) -> str:
    """How a process ended that ended with this exit code."""
    return f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}"


def root(error: BaseException | None) -> BaseException | None:
    """The error at the bottom of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def words_of(error: BaseException) -> str:
    """What the error says, in one line."""
    return first_line(well_formed(str(error))) or type(error).__name__

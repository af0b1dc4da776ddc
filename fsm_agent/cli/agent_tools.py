"""The tools of a command: those of Python files and modules, and those of MCP servers."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from fsm_agent.cli.common import Fault, console
from fsm_agent.text import first_line
from fsm_agent.tools import Tool
from fsm_agent.tools.base import described
from fsm_agent.tools.errors import ToolServerError


@contextmanager
def opened_tools(sources: Sequence[str], servers: Sequence[str], variables: Sequence[str]) -> Iterator[tuple[Tool, ...]]:
    """As a context: the tools of these files and modules, and of these MCP servers, which end with it.

    ``variables``: those of the environment that the servers are given, too. Raises ``Fault`` in one line.
    """
    found = tools_of(sources)
    with ExitStack() as stack:
        tools = _without_async(found.values(), stack)
        if servers:
            tools += _served(stack, servers, _environment(variables), found)
        yield tools


def tools_of(sources: Sequence[str]) -> dict[str, Tool]:
    """The tools of these files and modules, by name. Raises ``Fault``."""
    found: dict[str, Tool] = {}
    places: dict[str, str] = {}
    for source in {Path(each).resolve() if is_file(each) else each: each for each in sources}.values():
        module = _loaded(source)
        tools = {id(value): value for value in vars(module).values() if isinstance(value, Tool)}
        if not tools:
            raise Fault(f"--tools {source}: there is no tool in it; decorate a function with @tool (from fsm_agent import tool)")
        for tool in tools.values():
            if found.get(tool.name, tool) is not tool:
                where = f"two of them in {source}" if places[tool.name] == source else f"one in {places[tool.name]}, one in {source}"
                raise Fault(f"two tools have the name {tool.name!r} ({where}); give one of them another with @tool(name=...)")
            found[tool.name] = tool
            places.setdefault(tool.name, source)
    return found


def is_file(source: str) -> bool:
    """Whether ``source`` is the path of a file; otherwise it is a module's dotted name."""
    return source.endswith(".py") or os.sep in source or "/" in source


def _loaded(source: str) -> ModuleType:
    try:
        return _from_file(Path(source)) if is_file(source) else _by_name(source)
    except (KeyboardInterrupt, Fault):
        raise
    except BaseException as error:  # noqa: BLE001  # whatever a user's module raises when it is imported, SystemExit too
        raise _not_imported(source, error) from None


def _not_imported(source: str, error: BaseException) -> Fault:
    told = f"{type(error).__name__}: {first_line(described(error))}".removesuffix(": ")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if is_file(source) and frame.filename == str(Path(source).resolve())]
    line = error.lineno if isinstance(error, SyntaxError) else own[-1] if own else None
    return Fault(f"--tools {source} cannot be imported: {told}" + (f" (line {line})" if line and f"line {line}" not in told else ""))


def _from_file(path: Path) -> ModuleType:
    """The module in a file, which finds others beside it, as if Python ran it."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise Fault(f"--tools {path}: {error.strerror or error}") from None
    path = path.resolve()
    name = f"fsm_agent_tools_{path.stem}_{abs(hash(str(path))):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Fault(f"--tools {path}: a Python file's name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[name] = module  # annotations are looked up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _by_name(source: str) -> ModuleType:
    """A module by its dotted name, which is looked for in the working directory, too."""
    if "" not in sys.path and (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    return importlib.import_module(source)


# --- async tools ---------------------------------------------------------------------------------------------------


def _without_async(tools: Any, stack: ExitStack) -> tuple[Tool, ...]:
    """The tools, async ones as such that wait for them: they run in one event loop, in a thread of its own."""
    given = tuple(tools)
    if not any(tool.is_async for tool in given):
        return given
    from fsm_agent.tools.mcp.portal import Portal

    portal = Portal()
    stack.callback(portal.close, wait=False)
    return tuple(_waiting(tool, portal.run) if tool.is_async else tool for tool in given)


def _waiting(tool: Tool, run: Any) -> Tool:
    def function(**arguments: Any) -> Any:
        return run(partial(tool.function, **arguments))

    return attrs.evolve(tool, function=function)


# --- MCP -----------------------------------------------------------------------------------------------------------


def _environment(variables: Sequence[str]) -> dict[str, str]:
    if missing := [name for name in variables if name not in os.environ]:
        raise Fault(f"--mcp-env {missing[0]}: the environment has no variable of this name")
    return {name: os.environ[name] for name in variables}


def _served(stack: ExitStack, servers: Sequence[str], environment: Mapping[str, str], taken: Mapping[str, Tool]) -> tuple[Tool, ...]:
    """The tools of the servers, once all have started. Raises ``Fault`` for one that does not."""
    from fsm_agent.tools.mcp import mcp_tools

    err = console(err=True, markup=False)
    waiting = err.status("starting the MCP servers") if err.is_terminal and not err.is_dumb_terminal else None
    try:
        tools = mcp_tools(*servers, env=environment, taken=taken)
        if waiting is None:
            return tuple(stack.enter_context(tools))
        with waiting:
            return tuple(stack.enter_context(tools))
    except ToolServerError as error:
        raise Fault(f"--mcp: {error}") from None


def told(tools: Sequence[Tool]) -> str:
    """The tools in a few words, for people."""
    names = ", ".join(tool.name for tool in tools[:6])
    if not tools:
        return "no tools"
    more = f", and {len(tools) - 6} more" if len(tools) > 6 else ""
    return f"{len(tools)} tool{'s' if len(tools) > 1 else ''} ({names}{more})"


def check_named(names: frozenset[str], tools: Sequence[Tool]) -> None:
    """Raises ``Fault`` for a name that none of the tools has."""
    known = [tool.name for tool in tools]
    if unknown := sorted(names - set(known)):
        raise Fault(f"--approve names the tool {unknown[0]!r}; there are {', '.join(known) or 'none'}")

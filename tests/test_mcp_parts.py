"""The parts of the MCP tools that need no server: command lines, names, last words, the portal to the servers' event loop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.tools.mcp.described import McpServer, split
from fsm_agent.tools.mcp.lastwords import LastWords, telling
from fsm_agent.tools.mcp.naming import names_of, numbered
from fsm_agent.tools.mcp.portal import Closed, Portal
from tests.mcp_servers import wait_until

# --- where a server is -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "posix", "windows"),
    [
        ("npx -y @x/y DIR", ["npx", "-y", "@x/y", "DIR"], ["npx", "-y", "@x/y", "DIR"]),
        ('a "b c" d', ["a", "b c", "d"], ["a", "b c", "d"]),
        ("a 'b c'", ["a", "b c"], ["a", "'b", "c'"]),
        (r"C:\npx.cmd C:\O'Brien\x", None, [r"C:\npx.cmd", r"C:\O'Brien\x"]),
        (r'"C:\Program Files\npx" "C:\my files"', ["C:\\Program Files\\npx", "C:\\my files"], ["C:\\Program Files\\npx", "C:\\my files"]),
        (r"a b\ c", ["a", "b c"], ["a", "b\\", "c"]),
        ("a #b", ["a", "#b"], ["a", "#b"]),
        ("", [], []),
    ],
)
def test_a_command_line_is_split_as_its_system_does(command: str, posix: list[str] | None, windows: list[str]) -> None:
    assert split(command, windows=True) == windows
    if posix is None:
        with pytest.raises(ValueError, match="No closing quotation"):
            split(command, windows=False)
    else:
        assert split(command, windows=False) == posix


@pytest.mark.parametrize(
    ("server", "url", "shown"),
    [
        (McpServer("npx x"), None, "npx x"),
        (McpServer(["npx", "a b"]), None, "npx 'a b'"),
        (McpServer("npx x\n\x1b[31m"), None, "npx x \\x1b[31m"),
        (McpServer("HTTPS://u:p@host:1/mcp?key=k#f"), "HTTPS://u:p@host:1/mcp?key=k#f", "https://host:1/mcp"),
        (McpServer("http-server --stdio"), None, "http-server --stdio"),
    ],
)
def test_a_server_is_a_command_or_an_address(server: McpServer, url: str | None, shown: str) -> None:
    assert (server.url, server.shown) == (url, shown)


# --- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "taken", "names"),
    [
        ([("a", ["x", "y"]), ("b", ["z"])], (), [["x", "y"], ["z"]]),
        ([("a", ["x", "y"]), ("b", ["x"])], (), [["a_x", "y"], ["b_x"]]),
        ([("a", ["x"])], ("x",), [["a_x"]]),
        ([("a", ["x"])], ("x", "a_x"), [["a_x_2"]]),
        ([("a", ["x", "a_x"]), ("b", ["x"])], (), [["a_x_2", "a_x"], ["b_x"]]),
        ([("a b", ["x y", "x=y"])], (), [["a_b_x_y", "a_b_x_y_2"]]),
        ([("", [""]), ("", [""])], (), [["___"], ["____2"]]),
    ],
)
def test_tools_of_one_name_have_their_server_s_in_front(
    listed: list[tuple[str, list[str]]], taken: tuple[str, ...], names: list[list[str]]
) -> None:
    assert names_of(listed, taken) == names


SHORT = st.text("ab_ =", max_size=3)


@given(st.lists(st.tuples(SHORT, st.lists(SHORT, max_size=3)), max_size=3), st.frozensets(SHORT))
def test_no_two_tools_have_one_name(listed: list[tuple[str, list[str]]], taken: frozenset[str]) -> None:
    names = names_of(listed, taken)
    assert [len(each) for each in names] == [len(tools) for _, tools in listed]
    flat = [name for each in names for name in each]
    assert max(Counter(flat).values(), default=1) == 1
    assert not set(flat) & taken
    assert not any(char.isspace() or char in '=,"' for name in flat for char in name)


def test_servers_of_one_name_are_numbered() -> None:
    assert numbered(["a", "b", "a", "a_2", "a"]) == ["a", "b", "a_2", "a_2_2", "a_3"]


# --- last words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", ""),
        ("\n---\n \n", ""),
        ("Listening\nBye\n", "Bye"),
        ("Traceback (most recent call last):\n  File 'x', line 1\nValueError: no\n", "ValueError: no"),
        (
            "node:internal:1\n  throw err;\n  ^\n\nError: Cannot find module 'x'\n    at a\n    at b {\n  code: 'X'\n}\n\nNode.js v20.1\n",
            "Error: Cannot find module 'x'",
        ),
        (
            "npm error code E404\nnpm error 404 Not Found\nnpm error A complete log of this run\n",
            "npm error code E404; npm error 404 Not Found",
        ),
        ("Starting\nfatal: no disk\n", "fatal: no disk"),
        ("\x1b[31mred\x1b[0m\n", "\\x1b[31mred\\x1b[0m"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_the_line_that_tells_most(said: str, told: str) -> None:
    assert telling(said) == told


def test_of_a_flood_the_end_is_kept() -> None:
    words = LastWords()
    code = "import sys; sys.stderr.write('x\\n' * 10**6 + 'the end\\n')"
    subprocess.run([sys.executable, "-c", code], stderr=words.file, check=True)
    words.file.close()
    wait_until(lambda: words.telling() == "the end")


# --- the portal --------------------------------------------------------------------------------------------------


async def value(given: int) -> int:
    await asyncio.sleep(0)
    return given


async def forever(begun: threading.Event, ended: threading.Event) -> None:
    try:
        begun.set()
        await asyncio.sleep(3600)
    finally:
        ended.set()


async def late() -> None:
    raise TimeoutError("of its own")


def test_work_is_done_from_sync_code_and_from_other_loops() -> None:
    portal = Portal()
    assert portal.run(value, 1) == 1
    assert asyncio.run(portal.arun(value, 2)) == 2
    with pytest.raises(TimeoutError, match="of its own"):
        portal.run(late)
    portal.close()
    with pytest.raises(Closed):
        portal.run(value, 1)
    with pytest.raises(Closed):
        asyncio.run(portal.arun(value, 1))
    portal.close()


def test_closing_ends_what_is_waited_for() -> None:
    portal = Portal()
    begun, ended, raised = threading.Event(), threading.Event(), threading.Event()

    def wait() -> None:
        with pytest.raises(Closed):
            portal.run(forever, begun, ended)
        raised.set()

    threading.Thread(target=wait, daemon=True).start()
    wait_until(begun.is_set)
    portal.close()
    wait_until(raised.is_set)
    assert ended.is_set()


def test_closing_ends_what_another_loop_waits_for() -> None:
    portal = Portal()
    begun, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        waiting = asyncio.create_task(portal.arun(forever, begun, ended))
        await asyncio.to_thread(begun.wait)
        await asyncio.to_thread(portal.close)
        with pytest.raises(Closed):
            await waiting

    asyncio.run(wait())
    assert ended.is_set()


def test_cancelling_the_task_cancels_the_work() -> None:
    portal = Portal()
    begun, ended = threading.Event(), threading.Event()

    async def cancelled() -> bool:
        waiting = asyncio.create_task(portal.arun(forever, begun, ended))
        await asyncio.to_thread(begun.wait)
        waiting.cancel()
        await asyncio.wait([waiting])
        return waiting.cancelled()

    assert asyncio.run(cancelled())
    wait_until(ended.is_set)
    portal.close()


def test_ctrl_c_cancels_the_work() -> None:
    portal = Portal()
    begun, ended = threading.Event(), threading.Event()

    def interrupt() -> None:
        wait_until(begun.is_set)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        portal.run(forever, begun, ended)
    wait_until(ended.is_set)
    portal.close()


FORKED = """
import os
from fsm_agent.tools.mcp.portal import Closed, Portal
async def one(): return 1
portal = Portal()
assert portal.run(one) == 1
child = os.fork()
if child == 0:
    try:
        portal.run(one)
    except Closed:
        raise SystemExit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert portal.run(one) == 1
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_in_a_forked_process_it_is_closed_and_nothing_waits() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)

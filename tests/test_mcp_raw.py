"""An MCP server that does what no decent server does: odd answers, noise, deaths; and servers that do not start at all."""

from __future__ import annotations

import asyncio
import gc
import json
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from fsm_agent import Result, ScriptedModel, arun, run
from fsm_agent.events import Observation, ToolCall, ToolsFailed
from fsm_agent.tools import ToolServerDead, ToolServerError
from fsm_agent.tools.mcp import McpServer, mcp_tools
from fsm_agent.tools.mcp.tools import McpTool, McpTools
from tests.mcp_servers import Pending, Recorded, called, is_running, named, raw, wait_until

pytestmark = pytest.mark.xdist_group("mcp_raw")


@pytest.fixture(scope="module")
def tools() -> Iterator[McpTools]:
    with mcp_tools(McpServer(raw(), name="raw")) as opened:
        yield opened


# --- odd answers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "text", "kind"),
    [
        ("echo", 'echo {"x": "1", "y": [null]}', "ok"),
        ("nothing", "", "ok"),
        ("structured", '{"b":[1,null],"a":"é"}', "ok"),
        ("noise", "after the noise", "ok"),
        (
            "parts",
            "one\n[audio/wav, 4 bytes]\n[file:///a.bin, application/x, 3 bytes]\n[file:///a.txt]\ninside\n[b, file:///b.txt]\ntwo",
            "ok",
        ),
        ("fail", "TOOL_ERROR: fail failed and did not say why", "tool_error"),
        ("refuse", "TOOL_ERROR: busy just now", "tool_error"),  # with the error code of a lost connection
    ],
)
def test_every_answer_is_an_observation(tools: McpTools, tool: str, text: str, kind: Any) -> None:
    assert called(tools, tool, x="1", y=[None]) == Observation(tool, text, kind)


def test_an_answer_that_is_none_of_the_protocol_is_an_error_of_the_tool(tools: McpTools) -> None:
    seen = called(tools, "wrong")
    assert (seen.kind, seen.traceback) == ("tool_error", None)
    assert seen.text.startswith("TOOL_ERROR: the answer of raw cannot be used: ")


def test_a_server_has_no_more_of_the_environment_than_a_program_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with mcp_tools(raw(), env={"GIVEN": "so"}) as opened:
        seen = json.loads(called(opened, "env").text)
    assert seen["GIVEN"] == "so"
    assert "PATH" in seen
    assert "sk-secret" not in seen.values()


def test_nothing_of_a_server_s_noise_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with mcp_tools(raw()) as opened:
        called(opened, "noise")
        called(opened, "die")
        called(opened, "noise")
    assert capfd.readouterr() == ("", "")


def test_names_that_no_protocol_could_write_are_changed_and_still_called() -> None:
    with mcp_tools(McpServer(raw("--tools", "get weather,a=b,a b,天气,files/read.all"))) as opened:
        assert list(named(opened)) == ["get_weather", "raw_a_b", "raw_a_b_2", "天气", "files/read.all"]
        assert called(opened, "raw_a_b_2").text == "a b {}"


def test_the_name_of_a_server_is_the_last_part_of_its_own() -> None:
    with mcp_tools(raw("--name", "com.example/my tools", "--tools", "x"), raw("--tools", "x"), raw("--tools", "x")) as opened:
        assert list(named(opened)) == ["my_tools_x", "raw_x", "raw_2_x"]


# --- deaths ------------------------------------------------------------------------------------------------------


def test_a_death_tells_its_exit_code_and_the_last_words(tmp_path: Path) -> None:
    server = Recorded(raw("--name", "mortal"), tmp_path / "pids")
    with mcp_tools(server.command) as opened:
        lost = "TOOL_ERROR: the server mortal was lost while die ran; whether it took effect is not known"
        assert called(opened, "die") == Observation("die", lost, "interrupted")
        for tool, under_way in (("die", True), ("echo", False), ("die", False)):
            with pytest.raises(ToolServerDead) as caught:
                called(opened, tool, code=0)
            why = "after it had been started again once, it ended with exit code 0; it said: fatal: asked to die"
            assert (caught.value.server, caught.value.why, caught.value.under_way) == ("mortal", why, under_way)
    assert len(server.pids) == 2


def test_what_could_not_be_started_again_says_why(tmp_path: Path) -> None:
    with mcp_tools(McpServer(raw("--once", tmp_path / "started"), name="once")) as opened:
        called(opened, "die")
        with pytest.raises(ToolServerDead) as caught:
            called(opened, "echo")
    assert caught.value.why == (
        "it ended with exit code 3; it said: fatal: asked to die; "
        "started again, it ended with exit code 1 before it answered; it said: fatal: it can be started but once"
    )


def test_all_calls_that_run_when_it_dies_are_lost_and_together_start_it_again_once(tmp_path: Path) -> None:
    server = Recorded(raw(), tmp_path / "pids")
    with mcp_tools(server.command) as opened:
        files = [tmp_path / f"begun-{number}" for number in range(3)]
        pending = [Pending(partial(called, opened, "hang", file=str(file))) for file in files]
        wait_until(lambda: all(file.exists() for file in files))
        server.kill()
        assert [each.result().kind for each in pending] == ["interrupted"] * 3
        again = [Pending(partial(called, opened, "pid")) for _ in range(3)]
        assert {each.result().text for each in again} == {str(server.pids[-1])}
        assert len(server.pids) == 2


def test_a_server_that_only_closes_its_output_is_dead(tmp_path: Path) -> None:
    server = Recorded(raw(), tmp_path / "pids")
    with mcp_tools(server.command) as opened:
        assert called(opened, "mute").kind == "interrupted"
        assert called(opened, "pid").text == str(server.pids[1])
        assert not is_running(server.pids[0])


def test_each_run_starts_it_again_once(tmp_path: Path) -> None:
    server = Recorded(raw(), tmp_path / "pids")
    with mcp_tools(server.command) as opened:
        die = named(opened)["die"]
        assert die.observe(ToolCall("die", {}, key="a/1/0")).kind == "interrupted"
        for key in ("a/2/0", "b/1/0"):
            with pytest.raises(ToolServerDead) as caught:
                die.observe(ToolCall("die", {}, key=key))
            assert caught.value.under_way
        for key in ("a/3/0", "b/2/0"):
            with pytest.raises(ToolServerDead) as caught:
                die.observe(ToolCall("die", {}, key=key))
            assert not caught.value.under_way
    assert len(server.pids) == 3


def test_a_server_that_died_between_two_calls_is_started_again_before_the_second(tmp_path: Path) -> None:
    server = Recorded(raw(), tmp_path / "pids")
    with mcp_tools(server.command) as opened:
        echo = named(opened)["echo"]
        assert isinstance(echo, McpTool)

        def kill() -> None:
            server.kill()
            wait_until(lambda: not echo.server.is_running)

        for runs in ("run-1", "run-2"):  # once in each
            kill()
            call = ToolCall("echo", {}, key=f"{runs}/1/0")
            assert asyncio.run(echo.aobserve(call)) == Observation("echo", "echo {}")
        kill()
        with pytest.raises(ToolServerDead):
            asyncio.run(echo.aobserve(call))
        assert len(server.pids) == 3


def test_a_run_halts_when_a_server_is_dead_and_says_which() -> None:
    """Also in mid-call, where a guard would trip at the second error in a row."""
    dying = ["TOOL die code=1", "TOOL die code=2", "FINAL no"]
    for drive in (run, in_asyncio):
        with mcp_tools(McpServer(raw(), name="mortal")) as opened:
            result = drive("task", model=ScriptedModel(dying), tools=opened, lang="en", policy="never")
        failed = result.trace.events[-1]
        assert isinstance(failed, ToolsFailed)
        assert (result.reason, failed.error) == ("tools_failed", "ToolServerDead")
        assert failed.message == (
            "the server mortal is dead: after it had been started again once, it ended with exit code 2; it said: fatal: asked to die; "
            "it died while a call ran, and whether that took effect is not known"
        )


def in_asyncio(task: str, **given: Any) -> Result:
    return asyncio.run(arun(task, **given))


# --- what does not start -----------------------------------------------------------------------------------------


def problem_of(*servers: str | McpServer, **options: Any) -> str:
    with pytest.raises(ToolServerError) as caught, mcp_tools(*servers, **options):
        pass
    return str(caught.value)


def python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("no-such-command --x", "the command no-such-command is not found; install it, or give its whole path"),
        (McpServer(python("1"), cwd="/no/such/folder"), "the folder /no/such/folder is not found"),
        (python("raise SystemExit(3)"), "it ended with exit code 3 before it answered"),
        (
            python("import no_such_module"),
            "it ended with exit code 1 before it answered; it said: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        (python("import os; os.kill(os.getpid(), 9)"), "it was ended by signal 9 before it answered"),
        (raw("--endless", "--tools", ""), "its answer cannot be used (its list of tools does not end)"),
        ("cat", "it answered with an error: Method not found"),
    ],
    ids=str,
)
def test_a_server_that_does_not_start_is_one_clear_line(server: str | McpServer, why: str) -> None:
    where = server if isinstance(server, McpServer) else McpServer(server)
    assert problem_of(server) == f"the MCP server {where.shown!r} did not start: {why}"


def test_a_server_that_says_nothing_is_given_up_and_ended(tmp_path: Path) -> None:
    server = Recorded(python("import sys; print('waiting for nothing', file=sys.stderr, flush=True); sys.stdin.read()"), tmp_path / "pids")
    told = problem_of(server.command, start_timeout_s=5.0)
    assert told.endswith(" did not start: it did not answer within 5 s; it said: waiting for nothing")
    assert not is_running(server.pids[0])


def test_an_address_where_nobody_is() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/mcp"
        told = problem_of(url.replace("127", "user:pass@127") + "?key=secret")
    assert (
        told
        == f"the MCP server {url!r} did not start: no connection (All connection attempts failed); does it run, and is that its address?"
    )


def test_where_one_does_not_start_none_is_left(tmp_path: Path) -> None:
    server = Recorded(raw(), tmp_path / "pids")
    assert problem_of(server.command, "no-such-command").startswith("the MCP server 'no-such-command' did not start")
    assert not any(is_running(pid) for pid in server.pids)


def test_secrets_are_not_told() -> None:
    code = 'import os, sys; sys.exit(f\'fatal: {os.environ["TOKEN"]} is no good, nor is {os.environ["MODE"]}\')'
    told = problem_of(McpServer(python(code), env={"TOKEN": "s3cret-token", "MODE": "on"}))
    assert told.endswith("it said: fatal: *** is no good, nor is on")
    assert "s3cret" not in repr(McpServer("x", env={"TOKEN": "s3cret-token"}, headers={"Authorization": "Bearer s3cret-token"}))


@pytest.mark.parametrize(
    ("servers", "problem"),
    [
        ([], "mcp_tools needs a server: a command line, such as 'npx -y @modelcontextprotocol/server-everything', or an address"),
        ([" "], "an MCP server is a command line or an http(s) address; this one is empty"),
        ([McpServer([])], "an MCP server is a command line or an http(s) address; this one is empty"),
        (["npx 'a"], 'the MCP server "npx \'a" is no command line: No closing quotation'),
    ],
)
def test_what_is_no_server_is_refused_at_once(servers: list[Any], problem: str) -> None:
    with pytest.raises(ToolServerError) as caught:
        mcp_tools(*servers)
    assert str(caught.value) == problem


def test_without_the_package_it_says_how_to_install_it() -> None:
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from fsm_agent.tools.mcp import mcp_tools\n"
        "try: mcp_tools('x')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == 'ToolServerError MCP tools need the package mcp, 2.3 or newer: pip install "fsm-agent[mcp]"\n'


# --- opening and closing -----------------------------------------------------------------------------------------


def test_they_start_when_they_are_first_asked_for(tmp_path: Path) -> None:
    server = Recorded(raw(), tmp_path / "pids")
    opened = mcp_tools(server.command)
    assert server.pids == []
    assert len(opened) == len(list(opened)) == 13
    assert len(server.pids) == 1
    opened.close()
    assert not is_running(server.pids[0])
    closed = mcp_tools(server.command)
    closed.close()
    with pytest.raises(ToolServerError, match=r"^these MCP tools are closed; make new ones with mcp_tools"):
        list(closed)


def test_a_server_that_does_not_end_by_itself_is_ended(tmp_path: Path) -> None:
    server = Recorded(raw("--slow-end"), tmp_path / "pids")
    with mcp_tools(server.command) as opened:
        called(opened, "echo")
    assert not is_running(server.pids[0])


def test_closing_ends_a_call_that_runs(tmp_path: Path) -> None:
    opened = mcp_tools(McpServer(raw(), name="raw", timeout_s=None))
    pending = Pending(lambda: called(opened, "hang", file=str(tmp_path / "begun")))
    wait_until((tmp_path / "begun").exists)
    opened.close()
    assert pending.result().kind == "interrupted"


def test_servers_that_nothing_uses_any_more_end(tmp_path: Path) -> None:
    server = Recorded(raw(), tmp_path / "pids")
    kept = next(iter(mcp_tools(server.command)))
    gc.collect()
    assert kept.observe(ToolCall("echo", {})).text == "echo {}"
    assert is_running(server.pids[0])
    del kept
    gc.collect()
    wait_until(lambda: not is_running(server.pids[0]))


def test_a_tool_can_be_given_another_name() -> None:
    with mcp_tools(raw()) as opened:
        other = attrs.evolve(named(opened)["echo"], name="say")
        assert other.observe(ToolCall("say", {"x": 1})) == Observation("say", 'echo {"x": 1}')


def test_closed_their_processes_are_gone_and_their_tools_say_so(tmp_path: Path) -> None:
    server = Recorded(raw(), tmp_path / "pids")
    with mcp_tools(McpServer(server.command, name="raw")) as opened:
        assert is_running(server.pids[0])
    assert not is_running(server.pids[0])
    opened.close()
    with pytest.raises(ToolServerDead, match=r"^the server raw is dead: it was closed$"):
        called(opened, "echo")
    with pytest.raises(ToolServerDead):
        asyncio.run(named(opened)["echo"].aobserve(ToolCall("echo", {})))


FORGETFUL = """
import sys
from fsm_agent import ScriptedModel, run
from fsm_agent.tools.mcp import mcp_tools
result = run("task", model=ScriptedModel(["TOOL echo", "FINAL ok"]), tools=mcp_tools(sys.argv[1]), policy="never")
print(result.reason)
"""


def test_forgotten_they_end_with_the_process_and_nothing_is_printed(tmp_path: Path) -> None:
    server = Recorded(raw(), tmp_path / "pids")
    done = subprocess.run([sys.executable, "-W", "error", "-c", FORGETFUL, server.command], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("final_answer\n", "", 0)
    wait_until(lambda: not is_running(server.pids[0]))

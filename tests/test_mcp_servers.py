"""Published MCP servers, run as they are: their tools in runs, their errors, their deaths."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import attrs
import pytest

from fsm_agent import Result, ScriptedModel, arun, run
from fsm_agent.events import Observation, ToolCall, ToolsReturned
from fsm_agent.tools import ToolServerDead, observe
from fsm_agent.tools.mcp import McpServer, mcp_tools
from fsm_agent.tools.mcp.tools import McpTool, McpTools
from tests.mcp_servers import TIME, Pending, Recorded, called, everything, filesystem, named, over_http, wait_until

pytestmark = pytest.mark.xdist_group("mcp_servers")  # its servers are shared


@pytest.fixture(scope="module")
def tools() -> Iterator[McpTools]:
    """The tools of ``server-everything``."""
    with mcp_tools(everything()) as opened:
        yield opened


@pytest.fixture(scope="module")
def clock() -> Iterator[McpTools]:
    """The tools of ``mcp-server-time``."""
    with mcp_tools(TIME) as opened:
        yield opened


@pytest.fixture(name="folder")
def folder_of_files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("in a")
    return folder


# --- what they answer --------------------------------------------------------------------------------------------


def test_a_call_is_answered(tools: McpTools) -> None:
    assert called(tools, "echo", message="hi") == Observation("echo", "Echo: hi")
    assert called(tools, "get-sum", a="1", b=2.5) == Observation("get-sum", "The sum of 1 and 2.5 is 3.5.")
    assert named(tools)["echo"](message="as a function") == "Echo: as a function"


def test_the_model_is_shown_the_server_s_own_schema_and_what_the_server_says_of_its_tools(tools: McpTools) -> None:
    spec = named(tools)["echo"].spec
    assert (spec.name, spec.description) == ("echo", "Echoes back the input string")
    assert spec.parameters["type"] == "object"
    assert spec.parameters["properties"] == {"message": {"type": "string", "description": "Message to echo"}}
    assert spec.parameters["required"] == ["message"]
    said = {name: (each.spec.side_effects, each.spec.idempotent) for name, each in named(tools).items()}
    assert said["echo"] == (False, True)
    assert said["gzip-file-as-resource"] == (True, True)
    assert said["toggle-simulated-logging"] == (True, False)


def test_what_is_no_text_is_described(tools: McpTools) -> None:
    image = "Here's the image you requested:\n[image/png, 4,033 bytes]\nThe image above is the MCP logo."
    assert called(tools, "get-tiny-image") == Observation("get-tiny-image", image)
    links = called(tools, "get-resource-links", count=1).text.splitlines()
    assert links[1] == "[Blob Resource 1, demo://resource/dynamic/blob/1, text/plain, Resource 1: plaintext resource]"
    inside = called(tools, "get-resource-reference", resourceType="Text", resourceId=1).text.splitlines()
    assert inside[1] == "[demo://resource/dynamic/text/1, text/plain]"
    assert inside[2].startswith("Resource 1: This is a plaintext resource")


def test_the_error_of_a_tool_is_told_to_the_model(clock: McpTools) -> None:
    answer = called(clock, "get_current_time", timezone="Asia/Tokyo")
    assert answer.kind == "ok"
    assert datetime.fromisoformat(answer.text.partition('"datetime": "')[2].partition('"')[0]).utcoffset() is not None
    wrong = called(clock, "convert_time", source_timezone="UTC", time="25:00", target_timezone="Asia/Tokyo")
    assert (wrong.kind, wrong.traceback) == ("tool_error", None)
    assert wrong.text.startswith("TOOL_ERROR: ")
    assert "Invalid time format. Expected HH:MM [24-hour format]" in wrong.text


def test_an_unknown_tool_is_an_observation_whoever_finds_it_unknown(tools: McpTools, clock: McpTools) -> None:
    assert observe(named(tools), ToolCall("ecko", {})) == Observation("ecko", "TOOL_ERROR: unknown tool ecko", "unknown_tool")
    for one, name in ((tools, "echo"), (clock, "get_current_time")):
        known = named(one)[name]
        assert isinstance(known, McpTool)
        seen = attrs.evolve(known, original="ecko").observe(ToolCall(name, {"message": "x", "timezone": "UTC"}))
        assert (seen.kind, "ecko" in seen.text, "not found" in seen.text or "Unknown tool" in seen.text) == ("tool_error", True, True)


def test_arguments_that_do_not_fit_do_not_reach_the_server(tools: McpTools) -> None:
    seen = called(tools, "get-sum", a="much")
    assert seen.text == "TOOL_ERROR: get-sum needs the argument b: a number; get-sum expected a number, got a=much"
    assert seen.kind == "bad_arguments"


def test_a_call_whose_time_is_up_has_an_unknown_outcome_and_the_server_goes_on(tools: McpTools) -> None:
    slow = attrs.evolve(named(tools)["trigger-long-running-operation"], timeout_s=0.2)
    seen = slow.observe(ToolCall(slow.name, {"duration": 60, "steps": 1}))
    assert seen.kind == "timeout"
    assert seen.text.startswith("TOOL_ERROR: no result of trigger-long-running-operation after ")
    assert seen.text.endswith(" s; whether it took effect is not known")
    assert called(tools, "echo", message="still there").text == "Echo: still there"


# --- in runs -----------------------------------------------------------------------------------------------------

SCRIPT = ["TOOL get-sum a=1,b=2", "TOOL ecko x=1", "TOOL echo message=bye", "FINAL done"]
SEEN = ["The sum of 1 and 2 is 3.", "TOOL_ERROR: unknown tool ecko", "Echo: bye"]


def seen_in(result: Result) -> list[str]:
    return [seen.text for event in result.trace.events if isinstance(event, ToolsReturned) for seen in event.observations]


def test_a_run_uses_them_as_any_other_tools(tools: McpTools) -> None:
    result = run("task", model=ScriptedModel(SCRIPT), tools=tools, lang="en")
    assert (result.reason, result.answer, seen_in(result)) == ("final_answer", "done", SEEN)


def test_several_event_loops_use_them_at_the_same_time_and_are_not_held_up(tools: McpTools) -> None:
    async def both() -> list[list[str]]:
        slow = asyncio.create_task(
            arun("task", model=ScriptedModel(["TOOL trigger-long-running-operation duration=60", "FINAL x"]), tools=tools)
        )
        results = await asyncio.gather(*(arun("task", model=ScriptedModel(SCRIPT), tools=tools, lang="en") for _ in range(3)))
        assert not slow.done()
        slow.cancel()
        await asyncio.wait([slow])
        assert slow.cancelled()
        return [seen_in(result) for result in results]

    assert [asyncio.run(both()) for _ in range(2)] == [[SEEN] * 3] * 2
    assert called(tools, "echo", message="still there").text == "Echo: still there"


def test_they_open_and_close_in_async_code_too(folder: Path) -> None:
    async def read() -> Observation:
        async with mcp_tools(filesystem(folder)) as opened:
            return await named(opened)["read_text_file"].aobserve(ToolCall("read_text_file", {"path": str(folder / "a.txt")}))

    assert asyncio.run(read()) == Observation("read_text_file", "in a")


def test_several_servers_and_two_of_a_kind(tmp_path: Path, folder: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with mcp_tools(filesystem(folder), McpServer(filesystem(other), name="other"), TIME, taken=["convert_time"]) as opened:
        names = list(named(opened))
        assert {"secure-filesystem-server_write_file", "other_write_file", "get_current_time", "mcp-time_convert_time"} <= set(names)
        assert not {"write_file", "convert_time"} & set(names)
        path = str(other / "b.txt")
        denied = called(opened, "secure-filesystem-server_write_file", path=path, content="b")
        assert (denied.tool, denied.kind) == ("secure-filesystem-server_write_file", "tool_error")
        assert "Access denied" in denied.text
        assert called(opened, "other_write_file", path=path, content="b").kind == "ok"
        assert Path(path).read_text() == "b"
        assert len(opened) == len(names) == len(set(names))


# --- death -------------------------------------------------------------------------------------------------------


def killed_in_mid_call(opened: McpTools, server: Recorded, folder: Path) -> Observation:
    """What a call comes to whose server is killed while it reads a file that has no end."""
    fifo = folder / f"fifo-{len(server.pids)}"
    os.mkfifo(fifo)
    pending = Pending(lambda: called(opened, "read_text_file", path=str(fifo)))
    with fifo.open("wb"):  # it opens when the server has opened it, too
        server.kill()
    return pending.result()


def test_a_server_that_dies_in_mid_call_is_started_again_once_and_then_it_is_dead(tmp_path: Path, folder: Path) -> None:
    server = Recorded(filesystem(folder), tmp_path / "pids")
    with mcp_tools(McpServer(server.command, name="files")) as opened:
        lost = Observation(
            "read_text_file",
            "TOOL_ERROR: the server files was lost while read_text_file ran; whether it took effect is not known",
            "interrupted",
        )
        assert killed_in_mid_call(opened, server, folder) == lost
        assert called(opened, "read_text_file", path=str(folder / "a.txt")) == Observation("read_text_file", "in a")
        assert len(server.pids) == 2
        with pytest.raises(ToolServerDead) as caught:
            killed_in_mid_call(opened, server, folder)
        assert str(caught.value).startswith(
            "the server files is dead: after it had been started again once, it was ended by signal 9; it said: "
        )
        assert str(caught.value).endswith("; it died while a call ran, and whether that took effect is not known")
        with pytest.raises(ToolServerDead, match=r"^the server files is dead: ") as caught:
            called(opened, "read_text_file", path=str(folder / "a.txt"))
        assert not caught.value.under_way
        assert len(server.pids) == 2


def test_over_http_a_server_is_used_lost_found_again_and_lost_for_good() -> None:
    with over_http() as server, mcp_tools(McpServer(server.url, name="far")) as opened:
        assert called(opened, "echo", message="hi") == Observation("echo", "Echo: hi")
        posts = len([line for line in server.said if "POST" in line])
        pending = Pending(lambda: called(opened, "trigger-long-running-operation", duration=60, steps=1))
        wait_until(lambda: len([line for line in server.said if "POST" in line]) > posts)
        server.kill()
        lost = "TOOL_ERROR: the server far was lost while trigger-long-running-operation ran; whether it took effect is not known"
        assert pending.result() == Observation("trigger-long-running-operation", lost, "interrupted")
        server.start()
        assert called(opened, "echo", message="again") == Observation("echo", "Echo: again")
        server.kill()
        for under_way in (True, False):  # it may have got the first
            with pytest.raises(ToolServerDead) as caught:
                called(opened, "echo", message="x")
            assert caught.value.under_way is under_way
            assert caught.value.why.startswith("after it had been started again once, the connection to it was lost (")


def test_npx_is_a_command_as_any_other(tmp_path: Path, folder: Path) -> None:
    node, index, *arguments = shlex.split(filesystem(folder))
    home = Path(index).parents[4]
    npx = str(Path(node).parent / "npx")
    command = shlex.join([npx, "--no-install", "--prefix", str(home), "mcp-server-filesystem", *arguments])
    with mcp_tools(command) as opened:
        assert called(opened, "read_text_file", path=str(folder / "a.txt")) == Observation("read_text_file", "in a")

"""Reading trace files that are odd: pipes and devices, endless lines, blank ones, a BOM, and a header that was cut off."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from fsm_agent.scenarios import built_in
from fsm_agent.traces import TraceError, load
from fsm_agent.traces import load as load_trace
from fsm_agent.traces.load import MAX_LINE, line_of
from tests.test_cli import call


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The record of scenario c."""
    path = tmp_path / "c.jsonl"
    assert call("run", "c", "--trace", path).exit_code == 3
    return path


def refused(path: Path, problem: str) -> None:
    with pytest.raises(TraceError, match=f"^{re.escape(f'{path}{problem}')}$"):
        load(path)


def test_a_folder_is_no_trace(tmp_path: Path) -> None:
    refused(tmp_path, " is a folder; a trace is read from a file")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero here")
def test_a_device_is_not_read() -> None:
    refused(Path("/dev/zero"), " is no regular file; a trace is read from a file")


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes are a POSIX thing")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", " is a pipe; a trace is read from a file")


def test_a_line_without_end_is_not_read_to_its_end(trace: Path) -> None:
    number = len(trace.read_bytes().splitlines()) + 1
    with trace.open("ab") as file:
        file.truncate(file.tell() + MAX_LINE * 4)
    refused(trace, f", line {number}: the line is longer than 64 MiB")


def test_a_bom_and_blank_lines_are_skipped_and_the_lines_keep_their_numbers(trace: Path) -> None:
    whole = load_trace(trace)
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"\xef\xbb\xbf" + b"\n \r\n".join(lines) + b"\n\n")
    assert load(trace) == whole
    assert [line_of(trace, nth) for nth in (1, 2, 3)] == [1, 4, 7]
    trace.write_bytes(b"\n\n" + lines[0] + b"\nhello\n")
    refused(trace, ", line 5: JSON is malformed: invalid character (byte 0)")


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf"])
def test_a_file_with_nothing_in_it_is_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.jsonl").write_bytes(content)
    refused(tmp_path / "t.jsonl", ": the file is empty")


def test_a_header_that_was_cut_off_says_that_no_run_was_recorded(trace: Path) -> None:
    header = trace.read_bytes().splitlines()[0]
    for size in (1, 5, 9, 20, len(header) - 1):
        trace.write_bytes(header[:size])
        refused(trace, ", line 1: the file was cut off in its header; no run was recorded")
    trace.write_bytes(header)
    assert (load(trace).header.task, load(trace).log) == (built_in("c").task, [])

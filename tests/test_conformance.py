"""The loop-detection cases that are kept as data, run through the real machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fsm_agent.events import ModelReplied, Observation, RecordingEnded, Reply, ToolRequest, ToolsReturned, UserSpoke
from fsm_agent.guards import NoProgress
from fsm_agent.machine import Run, Taken
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.table import DECIDING

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "conformance.json").read_text(encoding="utf-8"))["cases"]


def fed(run: Run, step: dict[str, Any]) -> None:
    """Feed one entry of a case."""
    if "user" in step:
        run.feed(UserSpoke(step["user"]))
    elif "malformed" in step:
        run.feed(ModelReplied(Reply(step["malformed"], taken_as="unparseable")))
    else:
        requests = [ToolRequest(str(i), name, msgspec.json.encode(arguments).decode()) for i, (name, arguments) in enumerate(step["calls"])]
        run.feed(ModelReplied(Reply("", tuple(requests))))
        results = zip(step["calls"], step["observations"], strict=True)
        run.feed(ToolsReturned(tuple(Observation(name, text, "tool_error" if failed else "ok") for (name, _), (text, failed) in results)))


def test_there_are_37_cases() -> None:
    assert len(CASES) == 37


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_no_progress_trips_at_the_step_and_with_the_period_of_the_case(case: dict[str, Any]) -> None:
    run = Run("", guards=(NoProgress(**case["guard"], min_steps=1),), protocol=RecordedProtocol())
    for step in case["steps"]:
        if run.state == DECIDING:
            fed(run, step)
    if run.state == DECIDING:
        run.feed(RecordingEnded())
    last = run.log[-1]
    assert isinstance(last, Taken)
    if case["halts_at"] is None:
        assert (run.reason, last.readings) == ("recording_ended", ())
    else:
        (reading,) = last.readings
        assert run.reason == "no_progress"
        assert {"step": last.step, "period": reading.period} == case["halts_at"]
        assert [evidence.step for evidence in reading.evidence] == list(range(last.step - int(reading.limit) + 1, last.step + 1))

"""Recorded runs for tests of the audit, written in a line each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fsm_agent.events import Event, ModelReplied, Observation, RecordingEnded, Reply, ToolRequest, ToolsReturned, Usage, UserSpoke
from fsm_agent.traces.recordings import Ending, Outcome, Recording, read

DATA = Path(__file__).parents[2] / "shared" / "data"
FILES = {
    "reflexion": DATA / "reflexion-hotpotqa-react.txt",
    "fever": DATA / "react-fever.ipynb",
    "tau-bench": DATA / "tau-bench-airline-gpt-4o.json",
    "intercode": DATA / "intercode-sql-react-gpt-3.5.json",
}


def recorded(
    ident: str,
    script: str,
    outcome: Outcome = "unknown",
    ending: Ending | None = None,
    *,
    source: str = "made",
    model: str | None = None,
    tokens: int | None = None,
) -> Recording:
    """A run from its steps, written with spaces between them.

    ``a`` is a call of the tool a that returns "a", ``a:new`` one that returns "new", ``a!`` one that fails; ``a+b!`` is a batch of two.
    ``?`` is a reply that cannot be parsed, ``"`` talk to a person, who then says something; ``a...`` is a call whose result is not
    recorded. ``=`` is the answer; without it the recording simply ends. ``tokens`` is what each reply cost.
    """
    events: list[Event] = []
    usage = None if tokens is None else Usage(tokens, 0)
    for step in script.split():
        events.extend(_step(step, usage))
    answered = script.endswith("=")
    if not answered:
        events.append(RecordingEnded())
    return Recording(
        ident, source, "a task", tuple(events), outcome=outcome, ending=ending or ("answer" if answered else "unknown"), model=model
    )


def _step(step: str, usage: Usage | None) -> Iterator[Event]:
    if step in {"=", "?", '"'}:
        taken_as = {"=": "answer", "?": "unparseable", '"': "talk"}[step]
        yield ModelReplied(Reply("well", usage=usage, taken_as=taken_as))  # type: ignore[arg-type]  # one of the three
        if step == '"':
            yield UserSpoke("go on")
        return
    calls = step.removesuffix("...").split("+")
    names = [call.rstrip("!").partition(":")[0] for call in calls]
    yield ModelReplied(Reply("", tuple(ToolRequest("", name, "{}") for name in names), usage=usage))
    if not step.endswith("..."):
        yield ToolsReturned(tuple(_observation(name, call) for name, call in zip(names, calls, strict=True)))


def _observation(name: str, call: str) -> Observation:
    if call.endswith("!"):
        return Observation(name, "it failed", "tool_error")
    return Observation(name, call.partition(":")[2] or name)


def of_file(name: str) -> list[Recording]:
    """The runs of one of the four files; the test is skipped where it is absent."""
    path = FILES[name]
    if not path.exists():
        pytest.skip(f"{path} is absent")
    return [run for run in read(path) if isinstance(run, Recording)]

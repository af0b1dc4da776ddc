"""State charts: valid, the same table, and walked to the same states by what runs them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import attrs
import pytest
from click.testing import CliRunner, Result

from fsm_agent.cli import cli
from fsm_agent.diagrams import View, machine_view, path_view, render
from fsm_agent.diagrams.charts import conditions
from fsm_agent.drivers import run
from fsm_agent.events import AttemptFailed, Fact, Final, Malformed, ModelReplied, Said
from fsm_agent.guards import Guard, Reading, ToolBudget, classic, production
from fsm_agent.machine import Run, Taken
from fsm_agent.machine.wiring import TRIGGERS
from fsm_agent.options import FEATURES
from fsm_agent.scenarios import load_all
from fsm_agent.table import HALTED, ROWS
from tests.browser.runs import optional_run
from tests.drawn import played, talk
from tests.npm import node

XSTATE = "xstate@5.33.3"
NS = "{http://www.w3.org/2005/07/scxml}"
OWN = "{urn:fsm-agent}"

WALK = """
import {createActor, createMachine} from 'xstate';
const found = told.map(({chart, names, events}) => {
  const guards = Object.fromEntries(names.map(name => [name, ({event}) => event.holds.includes(name)]));
  const edges = [], states = [];
  const inspect = seen => {
    if (seen.type !== '@xstate.microstep') return;
    edges.push(...seen._transitions.map(each => each.meta.edge));
    states.push(seen.snapshot.value);
  };
  const actor = createActor(createMachine(chart, {guards}), {inspect});
  actor.start();
  for (const event of events) actor.send(event);
  const last = actor.getSnapshot();
  return {edges, states, status: last.status, halted: last.hasTag('halted'), meta: last.getMeta()};
});
console.log(JSON.stringify(found));
"""


@cache
def runs() -> dict[str, Run]:
    scenarios = {
        name: run(each.task, model=each.model, tools=each.named_tools.values(), guards=each.guards, lang="en").trace.replay()
        for name, each in load_all().items()
    }
    warned = played("no form", "no form", guards=production(9), failing=True)
    return {**scenarios, "talk": talk(), "open": played(steps=2), "warned": warned, "options": optional_run()}


def events_of(walked: Run) -> list[dict[str, Any]]:
    """What happened, each with the conditions that held then; which edge was taken is not told."""
    names, rows = conditions(walked.wiring.rows), walked.wiring.rows
    by_reason = {row.reason: names[row.id] for row in rows if row.reason and row.id in names}
    chances = {row.reason for row in rows if row.chance and walked.options.last_chance}
    decisions = iter(walked.decisions)
    events: list[dict[str, Any]] = []
    retries, is_last = 0, False
    for entry in walked.log:
        if not isinstance(entry, Taken):
            events.append({"type": TRIGGERS[type(entry)], "holds": ["is_last", "is_last_word"] if is_last else []})
            if isinstance(entry, AttemptFailed):
                events[-1]["holds"] += ["can_retry"] if retries < walked.options.max_retries else []
                retries += 1
            elif isinstance(entry, ModelReplied):
                retries = 0
                predicate = {Final: "is_final_answer", Malformed: "is_malformed", Said: "is_said"}.get(type(next(decisions)))
                events[-1]["holds"] += [predicate] if predicate else []
            continue
        tripped = [reading.guard for reading in entry.readings if reading.trips]
        if chances.intersection(tripped) and not is_last:
            events[-1]["holds"].append("has_last_chance")
            is_last = True
        events[-1]["holds"] += [by_reason[reason] for reason in tripped]
        events[-1]["holds"] += ["is_warned"] if any(reading.warns for reading in entry.readings) else []
    return events


def taken(walked: Run) -> list[str]:
    return [entry.edge for entry in walked.log if isinstance(entry, Taken)]


def places(walked: Run) -> list[str]:
    rows = {row.id: row for row in walked.wiring.rows}
    return [f"Halted_{rows[edge].reason}" if rows[edge].dest == HALTED else rows[edge].dest for edge in taken(walked)]


def view_of(walked: Run) -> View:
    return machine_view(walked.wiring.guards, features=walked.options.features)


# --- XState --------------------------------------------------------------------------------------------------------


@cache
def walked_by_xstate() -> dict[str, Any]:
    told = [
        {
            "chart": json.loads(render(view_of(each), "xstate")),
            "names": list(conditions(each.wiring.rows).values()),
            "events": events_of(each),
        }
        for each in runs().values()
    ]
    return dict(zip(runs(), node(WALK, told, XSTATE), strict=True))


@pytest.mark.parametrize("name", list(runs()))
def test_xstate_walks_the_chart_by_the_same_edges_to_the_same_states(name: str) -> None:
    walked, found = runs()[name], walked_by_xstate()[name]
    assert found["edges"] == taken(walked)
    assert found["states"] == places(walked)
    assert (found["status"], found["halted"]) == (("done", True) if walked.reason else ("active", False))
    if walked.reason:
        assert list(found["meta"].values()) == [{"reason": walked.reason}]


def test_the_chart_has_every_row_of_the_table_in_order() -> None:
    states = json.loads(render(machine_view(features=FEATURES), "xstate"))["states"]
    edges = [edge for state in states.values() for group in [*state.get("on", {}).values(), state.get("always", [])] for edge in group]
    assert [edge["meta"]["edge"] for edge in edges] == [row.id for row in ROWS]
    assert [edge.get("guard") for edge in edges] == [row.guard for row in ROWS]


# --- SCXML ---------------------------------------------------------------------------------------------------------


def walked_as_scxml(document: bytes, events: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """The edges and the states after them, by the rules of SCXML: internal events first, the first transition that is enabled."""
    root = ET.fromstring(document)
    nodes = {each.get("id"): each for each in root}
    here = root.get("initial")
    for event in events:
        queue = [event["type"]]
        while queue:
            name = queue.pop(0)
            edge = next(
                each
                for each in nodes[here].iterfind(f"{NS}transition")
                if each.get("event") == name and each.get("cond", "") in {"", *event["holds"]}
            )
            here = edge.get("target")
            queue = [each.get("event") for each in nodes[here].iterfind(f"{NS}onentry/{NS}raise")] + queue
            yield str(edge.get(f"{OWN}edge")), str(here)


@pytest.mark.parametrize("name", list(runs()))
def test_scxml_is_walked_by_the_same_edges_to_the_same_states(name: str) -> None:
    walked = runs()[name]
    assert list(walked_as_scxml(render(view_of(walked), "scxml"), events_of(walked))) == list(
        zip(taken(walked), places(walked), strict=True)
    )


def test_scxml_of_the_classic_machine() -> None:
    root = ET.fromstring(render(machine_view(classic()), "scxml"))
    assert root.tag == f"{NS}scxml"
    assert (root.get("version"), root.get("initial"), root.get("datamodel")) == ("1.0", "Deciding", "ecmascript")
    assert [each.get("id") for each in root.iterfind(f"{NS}state")] == ["Deciding", "Parsing", "Executing", "Observing"]
    assert [each.get("id") for each in root.iterfind(f"{NS}datamodel/{NS}data")] == [
        "is_final_answer",
        "RepeatedCall",
        "is_malformed",
        "is_said",
        "ConsecutiveErrors",
        "MaxSteps",
    ]
    finals = {each.get("id"): each.find(f"{NS}donedata/{NS}param") for each in root.iterfind(f"{NS}final")}
    assert {name: param.get("expr") for name, param in finals.items() if param is not None} == {
        f"Halted_{reason}": f'"{reason}"'
        for reason in (
            "model_error",
            "cancelled",
            "recording_ended",
            "final_answer",
            "repeated_call",
            "consecutive_errors",
            "max_steps",
        )
    }
    assert [
        (each.get("event"), each.get("cond"), each.get("target")) for each in root.iterfind(f"{NS}state[@id='Observing']/{NS}transition")
    ] == [
        ("observed", "ConsecutiveErrors", "Halted_consecutive_errors"),
        ("observed", "MaxSteps", "Halted_max_steps"),
        ("observed", None, "Deciding"),
    ]


def test_every_target_exists_and_every_id_is_used_once() -> None:
    for guards in (None, classic(), production(20)):
        root = ET.fromstring(render(machine_view(guards), "scxml"))
        ids = [each.get("id") for each in root if each.get("id")]
        assert len(set(ids)) == len(ids)
        assert {each.get("target") for each in root.iter(f"{NS}transition")} <= set(ids)


# --- names and wrong use -------------------------------------------------------------------------------------------


def test_guards_of_one_class_are_told_apart_and_strange_names_are_made_harmless() -> None:
    @attrs.frozen
    class Counting(Guard):
        reason = 'a<b&"c'

        def start(self) -> int:
            return 0

        def fold(self, memory: int, fact: Fact, step: int) -> int:
            return memory

        def judge(self, memory: int) -> Reading:
            return Reading(self.reason, memory, 1, memory >= 1)

    Counting.__name__ = "Zähler"
    view = machine_view((ToolBudget(tool="search", max_calls=2), ToolBudget(tool="sum", max_calls=2), Counting()))
    names = conditions(view.rows)
    assert [name for edge, name in names.items() if edge.startswith(("tool", "a<"))] == [
        "ToolBudget_tool_budget_search",
        "ToolBudget_tool_budget_sum",
        "Z_hler",
    ]
    root = ET.fromstring(render(view, "scxml"))
    assert root.find(f"{NS}final[@id='Halted_a_b__c']/{NS}donedata/{NS}param").get("expr") == '"a<b&\\"c"'  # type: ignore[union-attr]  # it is there, or the test fails
    assert json.loads(render(view, "xstate"))["states"]["Halted_a_b__c"]["meta"] == {"reason": 'a<b&"c'}


def draw(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["draw", *map(str, arguments), "--lang", "en"])


@pytest.mark.parametrize(("file", "form"), [("m.scxml", "scxml"), ("m.xstate.json", "xstate"), ("m.json", "xstate")])
def test_the_command_writes_charts_by_the_files_ending(file: str, form: str, tmp_path: Path) -> None:
    assert draw("-o", tmp_path / file).exit_code == 0
    assert (tmp_path / file).read_bytes() == render(machine_view(), form)
    assert draw("--format", form).stdout.encode() == render(machine_view(), form)


def test_of_a_run_the_chart_is_its_machine() -> None:
    assert draw("c", "--format", "scxml").stdout.encode() == render(view_of(runs()["c"]), "scxml")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["c", "--view", "path", "--format", "scxml"],
            "a state chart (scxml, xstate) is of the machine; leave --view out, or give --view machine",
        ),
        (["--format", "xstate", "--legend"], "--legend is of svg, png, pdf, dot, mermaid; xstate has no boxes or arrows"),
    ],
)
def test_a_chart_of_anything_else_is_wrong_use(arguments: list[str], problem: str) -> None:
    result = draw(*arguments)
    assert (result.exit_code, result.stderr) == (2, f"Error: {problem}\n")


def test_a_view_of_a_path_has_no_chart() -> None:
    with pytest.raises(ValueError, match=r"^a state chart is of the machine, and this is a path$"):
        render(path_view(runs()["c"]), "scxml")


def test_a_runs_picture_is_no_chart(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["run", "a", "--draw", str(tmp_path / "a.scxml")])
    assert (result.exit_code, "the ending names no format" in result.stderr) == (2, True)

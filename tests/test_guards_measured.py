"""What the production preset does to recorded runs whose outcome is known: it may stop next to no run that would have succeeded."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsm_agent.guards import production
from fsm_agent.traces.recordings import Recording, read
from fsm_agent.traces.replay import replay

DATA = Path(__file__).parent.parent.parent / "shared" / "data"

MEASURED = {
    "reflexion-hotpotqa-react.txt": (170, [], 330, 15),
    "react-fever.ipynb": (270, [], 230, 9),
    "tau-bench-airline-gpt-4o.json": (84, [], 116, 1),
    "intercode-sql-react-gpt-3.5.json": (607, [("359", "no_progress", 9, 10), ("824", "no_progress", 7, 10)], 427, 22),
}
"""By file: successful runs; those that are halted before their last step (id, reason, step, steps); failed runs; those halted early."""


@pytest.mark.skipif(not DATA.is_dir(), reason="the recorded runs (../shared/data) are not here")
@pytest.mark.parametrize("file", MEASURED)
def test_production_halts_no_successful_run_early_but_the_two_that_are_named(file: str) -> None:
    count = {"success": 0, "failure": 0, "unknown": 0}
    kills: list[tuple[str, str | None, int, int]] = []
    stopped = 0
    for recording in read(DATA / file):
        assert isinstance(recording, Recording)
        steps = replay(recording, ()).step
        run = replay(recording, production(max_steps=steps + 1))
        count[recording.outcome] += 1
        if run.step < steps:
            stopped += recording.outcome == "failure"
            kills += [(recording.id, run.reason, run.step, steps)] if recording.outcome == "success" else []
    assert (count["success"], sorted(kills), count["failure"], stopped) == MEASURED[file]


def test_that_is_two_in_a_thousand() -> None:
    successes = sum(measured[0] for measured in MEASURED.values())
    kills = sum(len(measured[1]) for measured in MEASURED.values())
    assert (kills, successes) == (2, 1_131)
    assert kills / successes <= 0.003

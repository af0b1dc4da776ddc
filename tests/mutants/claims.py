"""What ``check`` claims of a few configurations, as one JSON object: run in a copy of the project, to be compared with the original's."""

from __future__ import annotations

from typing import Any

import msgspec

from fsm_agent.guards import Guard, guards_from
from fsm_agent.language import ENGLISH
from fsm_agent.proof import prove
from fsm_agent.proof.configuration import Configuration
from fsm_agent.proof.options import options_from
from fsm_agent.proof.report import Report

CONFIGURATIONS: tuple[tuple[str, dict[str, Any], str, int], ...] = (
    ("classic", {"max_steps": 4}, "none", 2),
    ("classic", {"max_steps": 3, "max_repeats": 1}, "retries=2,approvals,compaction,tool_servers,last_chance", 2),
    (
        "production",
        {"max_steps": 6, "max_errors": 4, "max_malformed": 5, "max_period": 2, "consecutive_errors.warn_at": 2},
        "retries=1,approvals",
        1,
    ),
    ("none", {"max_steps": 3, "max_calls": 2, "max_calls:search": 1, "max_tokens": 100, "max_cost": 2.0}, "none", 1),
    ("none", {"max_steps": 2, "max_tokens": 100}, "compaction,last_chance", 1),
    ("none", {"max_steps": 3, "max_errors": 2, "deadline_s": 9.0}, "none", 1),
    ("none", {"max_steps": 2, "deadline_s": 9.0}, "retries=1,approvals", 1),
    ("none", {"max_steps": 5, "max_errors": 3, "count_malformed": False, "max_same_errors": 2}, "last_chance", 1),
)
"""A preset, its limits, what is on, and the calls that a reply may hold."""

CLAIMS = (
    *("verdict", "model_calls", "tool_rounds", "tool_calls", "retries_a_call", "rests_on", "structure"),
    *("reasons", "further_edges", "warnings", "counterexample"),
)


def claims() -> list[dict[str, Any]]:
    """What is claimed of each configuration."""
    found = []
    for preset, limits, on, batch in CONFIGURATIONS:
        guards: tuple[Guard, ...] = guards_from(preset, **limits)
        proof = prove(guards, options_from(on.split(",")), max_states=250, batch=batch)
        values = Report(Configuration(preset, guards), proof, ENGLISH).as_values()
        found.append({claim: values[claim] for claim in CLAIMS})
    return found


if __name__ == "__main__":
    print(msgspec.json.encode(claims(), order="deterministic").decode())

"""Puts what the README restates into it, from its one place: ``python -m tests.update_readme``."""

from __future__ import annotations

import re
from pathlib import Path

from fsm_agent.audit import Share, Tables, audit_runs, plan_of
from fsm_agent.audit.figures import POOLED
from fsm_agent.cli.table import markdown
from fsm_agent.table import ROWS
from fsm_agent.traces.recordings import read

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DATA = ROOT.parent / "shared" / "data"
FILES = ("reflexion-hotpotqa-react.txt", "react-fever.ipynb", "tau-bench-airline-gpt-4o.json", "intercode-sql-react-gpt-3.5.json")
NAMES = {
    "reflexion": "Reflexion, HotpotQA",
    "notebook": "ReAct, FEVER",
    "tau-bench": "tau-bench airline, GPT-4o",
    "intercode": "InterCode SQL, GPT-3.5",
    POOLED: "all",
}


def limits_table() -> str:
    """What the presets would have done to the recorded runs, per source. Raises ``RecordingError`` where they are not there."""
    found = [run for file in FILES for run in read(DATA / file)]
    audit = audit_runs(found, plan_of("production", {}), what_ifs=[plan_of("classic", {})])
    production, classic = audit.base, audit.what_ifs[0]
    head = [
        "runs",
        "succeeded / failed",
        *(f"{name}: {what}" for name in ("production", "classic") for what in ("saved", "killed")),
        "no guard helps",
    ]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for group, name in NAMES.items():
        row = next(row for row in production.groups if row.group == group)
        capped = next(row for row in production.capped if row.group == group)
        lines.append(
            [
                name,
                f"{row.successes} / {row.failures}",
                *_saved_and_killed(production, group),
                *_saved_and_killed(classic, group),
                _of(capped.no_guard_helped),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _saved_and_killed(tables: Tables, group: str) -> tuple[str, str]:
    row = tables.together(group)
    return _percent(row.calls_saved, 1), f"{row.false_kills.count} ({_percent(row.false_kills, 2)})" if row.false_kills.count else "0"


def _percent(share: Share, digits: int) -> str:
    return f"{100 * share.count / share.of:.{digits}f} %"


def _of(share: Share) -> str:
    return f"{share.count} of {share.of}"


def replaced(text: str, what: str, table: str) -> str:
    """The README's text with the table between the marks ``<!-- what ... -->`` and ``<!-- end of what -->``."""
    return re.sub(
        rf"(<!-- {what}: .*? -->\n).*?(<!-- end of {what} -->)", lambda marks: f"{marks[1]}{table}\n{marks[2]}", text, flags=re.DOTALL
    )


if __name__ == "__main__":
    text = replaced(README.read_text(encoding="utf-8"), "table", markdown(ROWS))
    README.write_text(replaced(text, "limits", limits_table()), encoding="utf-8")

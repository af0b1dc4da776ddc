"""The gallery: the path of each scenario and the machine, as ``.dot`` and ``.svg`` files.

    python -m fsm_agent.diagrams.gallery diagrams            # draw it anew
    python -m fsm_agent.diagrams.gallery --check diagrams    # exit 1 and name the .dot files that are not current

A ``.dot`` file is the same on every machine; an ``.svg`` depends on the fonts that are installed, so only the former is checked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fsm_agent.diagrams import View, machine_view, path_view, render, with_legend
from fsm_agent.drivers import run
from fsm_agent.guards import classic, production
from fsm_agent.options import FEATURES
from fsm_agent.scenarios import load_all


def views() -> dict[str, View]:
    """What is in the gallery, by name."""
    paths = {}
    for name, scenario in load_all().items():
        result = run(scenario.task, model=scenario.model, tools=scenario.named_tools.values(), guards=scenario.guards, lang="en")
        paths[name] = path_view(result.trace.replay(), f"Scenario {name}")
    machines = {
        "machine": with_legend(machine_view()),
        "machine-classic": machine_view(classic()),
        "machine-agent": machine_view(production(20), features=FEATURES),
    }
    return {**paths, **machines}


def write(folder: Path) -> list[Path]:
    """Draw the gallery into ``folder``, and give the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, view in views().items():
        for form in ("dot", "svg"):
            path = folder / f"{name}.{form}"
            path.write_bytes(render(view, form))
            written.append(path)
    return written


def not_current(folder: Path) -> list[Path]:
    """The ``.dot`` files in ``folder`` that are missing, differ, or are no part of the gallery; and the missing ``.svg`` files."""
    expected = {folder / f"{name}.dot": render(view, "dot") for name, view in views().items()}
    wrong = {path for path, text in expected.items() if not path.is_file() or path.read_bytes().replace(b"\r\n", b"\n") != text}
    wrong |= {path for path in folder.glob("*.dot") if path not in expected}
    wrong |= {path.with_suffix(".svg") for path in expected if not path.with_suffix(".svg").is_file()}
    return sorted(wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. 0: done, or all current; 1: some are not."""
    parser = argparse.ArgumentParser(
        prog="python -m fsm_agent.diagrams.gallery", description="Draw the gallery of scenarios and the machine."
    )
    parser.add_argument("folder", type=Path, nargs="?", default=Path("diagrams"))
    parser.add_argument("--check", action="store_true", help="only name the files that are not current, and exit with 1 if there are any")
    options = parser.parse_args(arguments)
    if not options.check:
        print(f"{len(write(options.folder))} files in {options.folder}")
        return 0
    wrong = not_current(options.folder)
    for path in wrong:
        print(f"{path} is not current; draw the gallery anew with: make diagrams", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""What importing the package loads, and which of its modules may import what."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fsm_agent

PACKAGE = Path(fsm_agent.__file__).parent

HEAVY = {
    "pygraphviz",
    "graphviz",
    "click",
    "rich",
    "asyncio",
    "docstring_parser",
    "concurrent.futures",
    "multiprocessing",
    "sqlite3",
    "urllib.request",
    "http.client",
    "ssl",
}

USE_OF_THE_CORE = """
from fsm_agent import ScriptedModel, classic, run, tool
from fsm_agent.tools import add
assert run("task", model=ScriptedModel(["TOOL add a=1,b=2", "FINAL 3"]), tools=[add], guards=classic()).answer == "3"
"""


def loaded_by(code: str) -> set[str]:
    """The modules that a new Python has loaded after ``code``, beyond those that it begins with."""
    lines = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", lines], check=True, capture_output=True, text=True, encoding="utf-8")
    return set(done.stdout.split())


@pytest.mark.parametrize("code", ["import fsm_agent", USE_OF_THE_CORE], ids=["import", "use"])
def test_the_core_loads_nothing_heavy_and_nothing_of_the_command_line(code: str) -> None:
    loaded = loaded_by(code)
    print(*sorted({name.partition(".")[0] for name in loaded}))
    assert loaded & HEAVY == set()
    own = {name for name in loaded if name.startswith("fsm_agent.")}
    assert [
        name for name in own if name.startswith(("fsm_agent.cli", "fsm_agent.diagrams", "fsm_agent.audit", "fsm_agent.scenarios"))
    ] == []
    assert not any(name.startswith("transitions.extensions") for name in loaded)


def test_importing_the_package_alone_loads_no_library() -> None:
    assert loaded_by("import fsm_agent") & {"transitions", "msgspec", "attrs"} == set()


def test_every_public_name_can_be_had() -> None:
    code = "import fsm_agent\nfor name in fsm_agent.__all__: getattr(fsm_agent, name)\nassert set(fsm_agent.__all__) <= set(dir(fsm_agent))"
    assert "fsm_agent.machine" in loaded_by(code)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        fsm_agent.no_such_name  # noqa: B018  # that is the test


# --- by reading the code -----------------------------------------------------------------------------------------


def modules(*places: str) -> list[Path]:
    """The Python files at these places of the package: modules, or packages with all that is in them."""
    files = [
        file
        for place in places
        for file in ([PACKAGE / f"{place}.py"] if (PACKAGE / f"{place}.py").exists() else (PACKAGE / place).rglob("*.py"))
    ]
    assert all(any(place in file.relative_to(PACKAGE).as_posix() for file in files) for place in places)
    return sorted(files)


def imports(file: Path) -> Iterator[str]:
    """Every module that the file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports are not used in the package"
            yield node.module or ""


def name_of(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


def test_only_the_machine_imports_transitions() -> None:
    importers = [
        name_of(file) for file in sorted(PACKAGE.rglob("*.py")) if any(name.split(".")[0] == "transitions" for name in imports(file))
    ]
    assert len(importers) == 1
    assert importers[0].startswith("machine")


PURE_LIBRARIES = {
    "__future__", "abc", "collections", "contextlib", "enum", "fractions", "functools", "inspect", "itertools", "json", "math", "operator", "re", "types", "typing",
    "attrs", "msgspec", "transitions", "fsm_agent",
}  # fmt: skip


@pytest.mark.parametrize("file", modules("table", "events", "options", "guards", "machine", "protocols"), ids=name_of)
def test_the_core_imports_no_library_that_does_io(file: Path) -> None:
    assert [name for name in imports(file) if name.split(".")[0] not in PURE_LIBRARIES] == []


ALLOWED = {
    "table": {"options"},
    "events": set(),
    "options": {"events"},
    "guards": {"events", "table", "guards", "language", "text"},
    "protocols": {"events", "protocols", "language", "text", "tools"},
    "machine": {"table", "events", "options", "guards", "protocols", "language", "machine", "text"},
}
"""Arrows point one way: what each part of the core may import of the package."""


@pytest.mark.parametrize("part", ALLOWED)
def test_the_arrows_of_the_core_point_one_way(part: str) -> None:
    own = {name.split(".")[1] for file in modules(part) for name in imports(file) if name.startswith("fsm_agent.")}
    assert own - ALLOWED[part] == set()


def test_traces_and_drivers_import_nothing_above_them() -> None:
    """But for what shows a result in a notebook, which is imported when it is shown."""
    shown = {"fsm_agent.diagrams.notebook", "fsm_agent.diagrams.notebook.display"}
    above = {"cli", "audit", "diagrams", "scenarios", "proof"}
    assert [
        (name_of(file), name)
        for file in modules("table", "events", "options", "guards", "machine", "protocols", "tools", "models", "traces", "drivers")
        for name in imports(file)
        if name.startswith("fsm_agent.") and name.split(".")[1] in above and not (file.stem == "setup" and name in shown)
    ] == []

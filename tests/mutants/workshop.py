"""Where mutants are tried: a copy of the project in a temporary folder, so that the working tree is never touched."""

from __future__ import annotations

import compileall
import json
import os
import py_compile
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import attrs

from tests.mutants.changes import Mutant

ROOT = Path(__file__).parent.parent.parent
COPIED = ("fsm_agent", "tests", "pyproject.toml", "README.md")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "benchmarks", "*.svg", "locale_src")

MACHINE_TESTS = ("test_table", "test_machine*", "test_search*", "test_scenarios", "test_transcripts")
GUARD_TESTS = ("test_guards_*", "test_conformance", "test_machine*", "test_transcripts", "test_search")
SLOW = ("test_guards_purity", "test_guards_measured")
"""Left out: they take longer than all the others, and see what those see."""

Fate = Literal["check", "tests", "hangs", "survived"]


@attrs.frozen
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    fate: Fate
    noticed: str = ""
    """By what."""


class Workshop:
    """One copy of the project. Several can be used at the same time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=LEFT_OUT)
            else:
                shutil.copy(source, folder / name)
        # compiled code that is checked by content: a mutant may be as long as the original, and written in the same second
        compileall.compile_dir(folder / "fsm_agent", quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        self.baseline = self._claims(60)
        if self.baseline is None:
            raise RuntimeError("the unchanged package makes no claims; run python -m tests.mutants.claims")
        self.failing = self._failing()

    def tried(self, mutant: Mutant) -> Outcome:
        """Put the change in, see who notices, and take it out again."""
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        path.write_text(mutant.source, encoding="utf-8")
        try:
            return self._tried(mutant)
        except subprocess.TimeoutExpired:
            return Outcome(mutant, "hangs")
        finally:
            path.write_text(original, encoding="utf-8")

    def _tried(self, mutant: Mutant) -> Outcome:
        claims = self._claims(120)
        if claims is None:
            return Outcome(mutant, "check", "it cannot be searched")
        different = [key for one, other in zip(claims, self.baseline or [], strict=True) for key in one if one[key] != other[key]]
        if different:
            return Outcome(mutant, "check", ", ".join(dict.fromkeys(different)))
        result = self._pytest(mutant.file, 180, "-x")
        if result.returncode == 0:
            return Outcome(mutant, "survived")
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", result.stdout, re.MULTILINE)
        return Outcome(mutant, "tests", failed[1] if failed else "an error while tests were collected")

    def _claims(self, timeout_s: float) -> list[dict[str, Any]] | None:
        """What the package in this folder claims; None: it does not get that far."""
        result = self._python(timeout_s, "-m", "tests.mutants.claims")
        return json.loads(result.stdout) if result.returncode == 0 else None

    def _failing(self) -> list[str]:
        """Tests that fail without any mutant, and so say nothing."""
        found: list[str] = []
        for file in ("fsm_agent/table.py", "fsm_agent/guards/base.py"):
            found += re.findall(r"^FAILED (\S+?\.py::.*?)(?: - .*)?$", self._pytest(file, 300).stdout, re.MULTILINE)
        return list(dict.fromkeys(found))

    def _pytest(self, file: str, timeout_s: float, *options: str) -> subprocess.CompletedProcess[str]:
        patterns = GUARD_TESTS if "/guards/" in file else MACHINE_TESTS
        tests = sorted({path for pattern in patterns for path in (self.folder / "tests").glob(f"{pattern}.py") if path.stem not in SLOW})
        deselected = [f"--deselect={test}" for test in getattr(self, "failing", [])]
        names = [str(path.relative_to(self.folder)) for path in tests]
        return self._python(timeout_s, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *options, *deselected, *names)

    def _python(self, timeout_s: float, *arguments: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "PYTHONPATH": str(self.folder), "LC_ALL": "C.UTF-8"}
        command = [sys.executable, *arguments]
        while True:
            result = subprocess.run(command, cwd=self.folder, env=environ, capture_output=True, text=True, timeout=timeout_s, check=False)
            if result.returncode >= 0:
                return result  # else it was killed by somebody else, which says nothing of the mutant

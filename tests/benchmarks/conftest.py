"""The report of the benchmarks: one table of what was measured against what is wanted. It fails nothing: clocks are no tests."""

from __future__ import annotations

import pytest

from .measure import REPORT, Report


@pytest.fixture(scope="session")
def report(pytestconfig: pytest.Config) -> Report:
    return pytestconfig.stash.setdefault(REPORT, Report())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    report = config.stash.get(REPORT, None)
    if report is None or not report.lines:
        return
    terminalreporter.section("the machine against a bare loop")
    width = max(len(line.what) for line in report.lines)
    terminalreporter.write_line(f"{'':{width}}  {'measured':>12}  {'wanted':>12}")
    for line in report.lines:
        measured, wanted = f"{line.measured:.4g}{line.unit}", f"<= {line.limit:g}{line.unit}"
        verdict = "" if line.measured <= line.limit else "  NOT REACHED"
        terminalreporter.write_line(f"{line.what:{width}}  {measured:>12}  {wanted:>12}{verdict}  {line.note}".rstrip())

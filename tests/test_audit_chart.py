from __future__ import annotations

import sys
import xml.etree.ElementTree as ET

import pytest

from fsm_agent.audit.audit import Audit, audit_runs
from fsm_agent.audit.chart import ChartError, _draw, chart
from fsm_agent.audit.plan import parse_sweep, plan_of
from tests.scripted_recordings import recorded
from tests.test_audit_tables import RUNS

pytest.importorskip("matplotlib", reason="charts need the extra charts")

SVG = "{http://www.w3.org/2000/svg}"


def swept(*sweeps: str, source: str = "") -> Audit:
    more = [recorded("m", "a! a! a! a! =", "failure", source=source)] if source else []
    parsed = [parse_sweep(text) for text in sweeps]
    return audit_runs([*RUNS, *more], plan_of("production", {}), sweeps=[(each, each.plans("production", {})) for each in parsed])


def test_a_chart_has_labels_a_title_and_a_description_with_its_figures() -> None:
    root = ET.fromstring(chart(swept("max_same_errors=2..4", "max_errors=2,off"), "svg").decode())
    texts = {"".join(text.itertext()) for text in root.iter(f"{SVG}text")}

    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "max_same_errors, max_errors: what each value saves and kills"
    assert root.findtext(f"{SVG}desc") == (
        "For all runs together. "
        "max_same_errors=2: saves 4 (20.0%), kills 1 (50.0%), beyond the recording 1 (14.3%); "
        "max_same_errors=3: saves 3 (15.0%), kills 1 (50.0%), beyond the recording 1 (14.3%); "
        "max_same_errors=4: saves 2 (10.0%), kills 0 (0.0%), beyond the recording 1 (14.3%); "
        "max_errors=2: saves 4 (20.0%), kills 1 (50.0%), beyond the recording 1 (14.3%)."
    )
    assert texts >= {"failed runs' model calls saved, %", "successful runs killed, %", "strong", "weak", "all runs", "2", "3", "4", "off"}
    assert texts >= {"error_streak alone, at each max_same_errors", "consecutive_errors alone, at each max_errors"}
    assert any(text.startswith("7 runs: 2 succeeded, 4 failed. Most savings come from weak models") for text in texts)


def test_a_chart_says_how_many_runs_go_beyond_their_recording() -> None:
    said = "are not halted where their own system stopped them; what would have come is not known."
    assert _texts(swept("max_errors=2,3")) >= {f"Beyond the recording: 1 of the runs {said}"}
    assert _texts(swept("max_errors=2,9")) >= {f"Beyond the recording: 1 to 2 of the runs {said}"}
    assert not any(text.startswith("Beyond") for text in _texts(swept("max_steps=1")))


def test_groups_without_known_outcomes_are_left_out_of_the_legend_and_named() -> None:
    sweep = parse_sweep("max_errors=2,3")
    more = [recorded("m", "a! a! =", source=f"nobody{i}") for i in range(6)]
    plans = [(sweep, sweep.plans("production", {}))]
    texts = _texts(audit_runs([*RUNS, *more], plan_of("production", {}), sweeps=plans))

    assert "Left out, since no run is known to have succeeded or failed: nobody0, nobody1, nobody2, nobody3 and 2 more." in texts
    assert texts >= {"strong", "weak", "all runs"}
    assert "nobody0" not in texts
    assert "all runs" in _texts(audit_runs(more[:1], plan_of("production", {}), sweeps=plans))


def _texts(found: Audit) -> set[str]:
    """Each line of text in the chart."""
    root = ET.fromstring(chart(found, "svg").decode())
    return {"".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")}


def test_a_chart_is_the_same_every_time_and_leaves_no_global_state(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    before = mpl.rcParams.copy()
    found = swept("max_errors=2,3")
    assert chart(found, "svg") == chart(found, "svg")
    assert chart(found, "png").startswith(b"\x89PNG")
    assert mpl.rcParams.copy() == before
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.parametrize("source", ["_hidden", "$\\foo", "<b>&", "模型", "a\x1b[31m\u202e", "x" * 300])
def test_a_group_may_have_any_name(source: str) -> None:
    found = swept("max_errors=2,3", source=source)
    assert chart(found, "png").startswith(b"\x89PNG")
    root = ET.fromstring(chart(found, "svg").decode())
    texts = {"".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")}
    assert texts & {source, "a\\x1b[31m\\u202e", f"…{'x' * 27}"}


def test_panels_side_by_side_have_one_scale_that_holds_every_line() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    _draw(figure, swept("max_errors=4..5", "max_steps=1,3,off"))
    saved, killed = [[axes.get_ylim() for axes in figure.axes[i : i + 2]] for i in (0, 2)]

    assert [*saved[0], *saved[1]] == pytest.approx([0, 1.05 * 1400 / 17] * 2)  # max_steps=1 saves 14 of the 17 calls of the weak
    assert [*killed[0], *killed[1]] == pytest.approx([0, 105] * 2)


def test_without_a_sweep_there_is_nothing_to_draw() -> None:
    with pytest.raises(ChartError, match=r"a chart shows a sweep; give one, such as --sweep max_errors=1\.\.6"):
        chart(swept(), "svg")


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ChartError, match=r"charts are drawn by matplotlib; install it with: pip install 'fsm-agent\[charts\]'"):
        chart(swept("max_errors=2,3"), "svg")

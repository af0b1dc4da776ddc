"""``fsm-agent draw --live``: a picture that is drawn again each time that the run of a trace has gone on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fsm_agent.cli.common import Fault
from fsm_agent.cli.sources import is_scenario
from fsm_agent.text import printable

if TYPE_CHECKING:
    from fsm_agent.cli.draw_runs import Chosen
    from fsm_agent.machine import Run


def draw_live(chosen: Chosen, view: str | None, output: Path | None, draw: Callable[[Run, str], bytes]) -> None:
    """Follow the trace that is chosen until its run halts; ``draw`` makes the picture of a run under a title.

    Raises ``Fault`` for wrong use, ``TraceError`` or ``OSError`` for what is no trace; Ctrl-C leaves the last picture.
    """
    from fsm_agent.diagrams.live import follow, put_whole

    if len(chosen.sources) != 1 or is_scenario(chosen.sources[0]):
        raise Fault("--live follows one trace file, which a run is writing (run ... --trace FILE)")
    if chosen.wanted is not None or chosen.where or chosen.against is not None:
        raise Fault("--live follows one trace file; leave --run, --where and --against out")
    if view not in {None, "path", "unrolled"}:
        raise Fault("--live draws the path of a run, or with --view unrolled each visit; leave other views out")
    if output is None:
        raise Fault("--live draws into a file; name it with -o")
    path = Path(chosen.sources[0])
    if path.resolve() == output.resolve():
        raise Fault(f"--output {output} would overwrite {path}, which is read; name another file")
    click.echo(printable(f"following {path} into {output}; it ends when the run halts, or with Ctrl-C"), err=True)
    for seen in follow(path, chosen.own_guards):
        put_whole(draw(seen.run, seen.header.title or path.stem), output)

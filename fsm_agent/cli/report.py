"""``fsm-agent report``: the whole audit as one HTML page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsm_agent.cli.audit import Question, audited, lang_group, question_options
from fsm_agent.cli.common import Fault, faults, lang_option, with_progress
from fsm_agent.language import Language
from fsm_agent.text import printable

if TYPE_CHECKING:
    from fsm_agent.audit.plan import Plan
    from fsm_agent.report import Collected


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SOURCE...")
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The page to write, such as report.html."
)
@question_options
@lang_option
def report(sources: tuple[Path, ...], output: Path, lang: Language, **asked: Any) -> None:
    """Write one HTML page with all that `fsm-agent audit` says of the runs in SOURCE..., with pictures and the runs worth a look.

    SOURCE is a ledger (see `fsm-agent import`) or a file of recordings. The page needs no network and opens from disk; what models and
    tools said stands in it as text alone.

    Exit code: 0, 2 for unreadable input.
    """
    from fsm_agent.report import Told, page

    question = Question(**asked)
    if any(source.exists() and output.exists() and source.samefile(output) for source in sources):
        raise Fault(f"{output} is one of the sources; give the page another name")
    with faults():
        audit = audited(sources, question)
        if not audit.pooled.runs:
            raise Fault(f"{', '.join(map(str, sources))}: there are no runs to report on")
        told = Told(_title(sources, question, lang), lang_group(question.by, lang), _command(sources, output, question))
        output.write_bytes(page(audit, _collected(sources, question, audit.base.plan, lang), told, lang))
    for damaged in audit.damaged:
        click.echo(printable(f"damaged: {damaged.place}: {damaged.problem}"), err=True)


def _collected(sources: tuple[Path, ...], question: Question, plan: Plan, lang: Language) -> Collected:
    """The runs once more, for what the audit's figures do not keep."""
    from fsm_agent.audit.sources import runs_of
    from fsm_agent.report import collect
    from fsm_agent.traces.ledger import Where

    found = runs_of(sources, Where.parse(*question.where), form=question.form, error_pattern=question.error_pattern)
    return collect(with_progress((each for _, each in found), "Reporting"), plan, lang)


def _title(sources: tuple[Path, ...], question: Question, lang: Language) -> str:
    chosen = ", ".join((*(source.name for source in sources), *question.where))
    return lang.say("Audit of {runs}", runs=chosen)


def _command(sources: tuple[Path, ...], output: Path, question: Question) -> str:
    """The command line that makes the page, without the folders of its files."""
    options = [("--guards", question.preset), ("--limits", question.limits), ("--by", question.by), ("--format", question.form)]
    options += [("--error-pattern", question.error_pattern), *(("--what-if", each) for each in question.what_ifs)]
    options += [*(("--sweep", each) for each in question.sweeps), *(("--where", each) for each in question.where), ("-o", output.name)]
    words = [word for name, value in options if value for word in (name, value)]
    return shlex.join(["fsm-agent", "report", *(source.name for source in sources), *words])

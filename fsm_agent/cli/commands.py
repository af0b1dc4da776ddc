"""The group of all commands, and what becomes of their errors."""

from __future__ import annotations

import click

from fsm_agent.cli.ask import ask
from fsm_agent.cli.audit import audit
from fsm_agent.cli.check import check
from fsm_agent.cli.common import CANCELLED, WRONG_USE
from fsm_agent.cli.draw import draw
from fsm_agent.cli.explain import explain
from fsm_agent.cli.import_ import import_
from fsm_agent.cli.learn import learn
from fsm_agent.cli.replay import replay
from fsm_agent.cli.report import report
from fsm_agent.cli.resume import resume
from fsm_agent.cli.run import run
from fsm_agent.cli.scenarios import scenarios
from fsm_agent.cli.step import step
from fsm_agent.cli.table import table
from fsm_agent.cli.verify import verify


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="fsm-agent", message="%(prog)s %(version)s")
def cli() -> None:
    """Run an LLM agent loop as a finite state machine, see why it stopped, and draw the path that it took.

    Begin with: fsm-agent scenarios, fsm-agent run a, fsm-agent draw c -o c.svg

    Exit codes: 0 final answer (or: done), 3 halted for another reason, 4 waits for a person, 1 a check found a difference, 2 wrong
    use or unreadable input, 130 cancelled.
    """


for command in (scenarios, run, ask, resume, check, draw, replay, verify, table, import_, audit, explain, report, step, learn):
    cli.add_command(command)


def perform() -> int:
    """Run the command that the command line names. Every error that is foreseen is one line on stderr and the documented exit code."""
    try:
        code = cli.main(prog_name="fsm-agent", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("cancelled", err=True)
        return CANCELLED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"Error: {where}{error.strerror or error}", err=True)
        return WRONG_USE
    return code if isinstance(code, int) else 0

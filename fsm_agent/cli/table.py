"""``fsm-agent table``: the transition table, as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fsm_agent.cli.common import print_json, print_table

if TYPE_CHECKING:
    from fsm_agent.table import Row

COLUMNS = ("edge", "from", "trigger", "guard", "to", "option")


@click.command()
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True, help="How to print it."
)
def table(form: str) -> None:
    """Print the transition table: every edge, in the order in which it is tried.

    An edge that is named by a guard is there only in a machine that has that guard, one with an option only where that is on.
    """
    from fsm_agent.table import ROWS

    if form == "json":
        print_json(ROWS)
    elif form == "markdown":
        click.echo(markdown(ROWS))
    else:
        print_table("", list(COLUMNS), map(cells, ROWS))


def cells(row: Row) -> tuple[str, str, str, str, str, str]:
    """A row as it is printed."""
    return row.id, row.source, row.trigger, row.guard or "", f"Halted({row.reason})" if row.reason else row.dest, row.needs or ""


def markdown(rows: tuple[Row, ...]) -> str:
    """The table in Markdown, as the README has it."""
    lines = [COLUMNS, tuple("---" for _ in COLUMNS), *(tuple(f"`{cell}`" if cell else "" for cell in cells(row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

"""What the commands share: exit codes, options, errors in one line, and output that can be piped."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from fsm_agent.language import LANGUAGES, Language, language, locale_language
from fsm_agent.text import printable

DONE = 0
DIFFERS = 1
WRONG_USE = 2
HALTED = 3
CANCELLED = 130

PRESETS = ("classic", "production", "none")
"""What ``--guards`` takes."""

Item = TypeVar("Item")


class Fault(click.ClickException):
    """Wrong use or unreadable input: one line, exit code 2."""

    exit_code = WRONG_USE

    def format_message(self) -> str:
        return printable(self.message.replace("\n", " "))


@contextmanager
def faults() -> Iterator[None]:
    """Within, what is wrong with the user's input becomes a ``Fault``."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise Fault(f"not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise Fault(f"{where}{error.strerror or error}") from None
    except ValueError as error:
        raise Fault(str(error)) from None


def _language(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Language:
    return language(value or locale_language())


lang_option = click.option(
    "--lang",
    type=click.Choice(LANGUAGES),
    callback=_language,
    help="Language of the transcript and of what the model is told. [default: the locale's]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")


def guard_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--guards`` and ``--limits``: a preset, and other limits than its own."""
    limits = click.option("--limits", default="", metavar="NAME=N,...", help="Limits of the guards, such as max_steps=30,max_errors=3.")
    preset = click.option("--guards", "preset", type=click.Choice(PRESETS), default="classic", show_default=True, help="The guards.")
    return preset(limits(command))


def colour() -> bool:
    """Colour is for terminals, and not where ``NO_COLOR`` is set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def with_progress(items: Iterable[Item], what: str) -> Iterator[Item]:
    """The items, with a progress line on a terminal's stderr once it has taken longer than a second."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} read"), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    bar = progress.add_task(what, total=None)
    begun, shown = time.monotonic(), False
    try:
        for item in items:
            if not shown and time.monotonic() - begun > 1:
                progress.start()
                shown = True
            progress.advance(bar)
            yield item
    finally:
        if shown:
            progress.stop()


def print_table(title: str, columns: list[str], rows: Iterable[Iterable[object]]) -> None:
    """A table for people; where it is piped, wide enough that nothing is cut."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    if title:
        click.echo(printable(title))
    table = Table(box=None if not sys.stdout.isatty() else _lines(), pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(escape(printable(str(cell))) for cell in row))
    Console(width=None if sys.stdout.isatty() else 400, highlight=False).print(table)


def _lines() -> Any:
    from rich.box import SIMPLE

    return SIMPLE

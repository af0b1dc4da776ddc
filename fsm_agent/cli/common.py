"""What the commands share: exit codes, options, errors in one line, and output that can be piped."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fsm_agent.language import LANGUAGES, Language, language, locale_language
from fsm_agent.text import printable

if TYPE_CHECKING:
    from rich.console import Console

DONE = 0
DIFFERS = 1
WRONG_USE = 2
HALTED = 3
CANCELLED = 130

PRESETS = ("classic", "production", "none")
"""What ``--guards`` takes."""

NARROW = 80
"""Columns of a terminal below which a table that does not fit becomes a list."""

Item = TypeVar("Item")


class Fault(click.ClickException):
    """Wrong use or unreadable input: one line, exit code 2."""

    exit_code = WRONG_USE

    def format_message(self) -> str:
        return printable(self.message.replace("\n", " "))


@contextmanager
def faults(about: str | os.PathLike[str] = "") -> Iterator[None]:
    """Within, what is wrong with the user's input becomes a ``Fault``; it names the file ``about``, if it does not do so already."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise Fault(_named(f"not UTF-8 text: {error.reason} at byte {error.start}", about)) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise Fault(f"{where}{error.strerror or error}") from None
    except ValueError as error:
        raise Fault(_named(str(error), about)) from None


def _named(message: str, about: str | os.PathLike[str]) -> str:
    return message if str(about) in message else f"{about}: {message}"


def keep_apart(inputs: Collection[str | Path], outputs: Mapping[str, Path | None]) -> None:
    """Raises ``Fault`` where an output, given by its option, is a file that is read, or the file of another output."""
    given = [(option, path) for option, path in outputs.items() if path is not None]
    for number, (option, path) in enumerate(given):
        for read in inputs:
            if path.exists() and _same(path, Path(read)):
                raise Fault(f"{option} {path} would overwrite {read}, which is read; name another file")
        for other, second in given[:number]:
            if _same(path, second):
                raise Fault(f"{other} {second} and {option} {path} are one file; name two")


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.is_file() and one.samefile(other)  # a device, such as /dev/null, takes what several write
    return os.path.normcase(one.resolve()) == os.path.normcase(other.resolve())


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


def colour(*, err: bool = False) -> bool:
    """Colour is for terminals that can show it, and not where ``NO_COLOR`` is set."""
    stream = sys.stderr if err else sys.stdout
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in {"dumb", "unknown"}
    return stream is not None and stream.isatty() and not plain


def console(*, err: bool = False, **options: Any) -> Console:
    """A console of ``rich`` that keeps to ``colour()``: by itself it would send bold in spite of ``NO_COLOR``, and colour a pipe."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    terminal = stream is not None and stream.isatty()
    return Console(stderr=err, force_terminal=terminal, color_system="auto" if colour(err=err) else None, highlight=False, **options)


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def with_progress(items: Iterable[Item], what: str) -> Iterator[Item]:
    """The items, with a progress line on a terminal's stderr once it has taken longer than a second."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield from items
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} read"), TimeElapsedColumn())
    progress = Progress(*columns, console=console(err=True), transient=True)
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
    """A table for people; in a pipe wide enough that nothing is cut, in a narrow terminal a list where it does not fit."""
    from rich.box import SIMPLE
    from rich.markup import escape
    from rich.table import Table

    if title:
        click.echo(printable(title))
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    terminal = sys.stdout is not None and sys.stdout.isatty()
    out = console(width=None if terminal else 400)
    table = Table(box=SIMPLE if terminal else None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in cells:
        table.add_row(*map(escape, row))
    if out.width < NARROW and out.measure(table, options=out.options.update(width=400)).maximum > out.width:
        _print_list(out, columns, cells)
    else:
        out.print(table)


def _print_list(out: Console, columns: list[str], rows: list[list[str]]) -> None:
    """Each row as its first cell, and under it a line for each other cell that is not empty."""
    from rich.padding import Padding
    from rich.text import Text

    for first, *others in rows:
        out.print(Text(first, style="bold"))
        for column, cell in zip(columns[1:], others, strict=True):
            if cell:
                out.print(Padding(Text(f"{column}: {cell}" if column else cell), (0, 0, 0, 2)))

"""The options that ``ask`` and ``resume`` share, and what they say as one value."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click
from click.core import ParameterSource

from fsm_agent.cli.common import Fault, faults
from fsm_agent.formats import ENDINGS

if TYPE_CHECKING:
    from fsm_agent.cli.agent_words import Approving
    from fsm_agent.context import Context
    from fsm_agent.guards import Guard
    from fsm_agent.models.base import ChatModel

FILE_PATH = click.Path(dir_okay=False, path_type=Path)

CONFIG = "settings"
"""Where the command's context keeps the name of the settings that were read, for people."""

CONFIG_FILE = "settings file"
"""Where it keeps their file."""


def _read_settings(context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    """Read the file of settings before the other options, whose defaults are in it."""
    from fsm_agent.cli.config import find, read

    with faults():
        found = read(value) if value is not None else find()
    if found is not None:
        context.default_map = {**found.defaults}
        context.meta[CONFIG], context.meta[CONFIG_FILE] = found.source, found.path
    return value


def settings_file(context: click.Context) -> list[Path]:
    """The file of settings that was read, if there is one."""
    return [context.meta[CONFIG_FILE]] if CONFIG_FILE in context.meta else []


def agent_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options, in the order in which ``--help`` shows them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option("--model", metavar="NAME", help="The model: openai:MODEL (of any compatible server) or anthropic:MODEL."),
    click.option(
        "--base-url",
        metavar="URL",
        help="The model's server. [default: OPENAI_BASE_URL or ANTHROPIC_BASE_URL, else the maker's own]",
    ),
    click.option("--temperature", type=float, metavar="T", help="How much chance there is in replies. [default: the server's]"),
    click.option("--max-reply-tokens", type=click.IntRange(min=1), metavar="N", help="The longest reply. [default: the server's]"),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="A server that is silent for so long has failed. [default: 600]",
    ),
    click.option(
        "--model-option",
        multiple=True,
        metavar="NAME=VALUE",
        help="A further field of each request, such as reasoning_effort=low; repeatable.",
    ),
    click.option(
        "--prices",
        metavar="IN,OUT",
        help="US dollars per million tokens read, and written. [default: those that fsm-agent[prices] lists]",
    ),
    click.option(
        "--tools",
        multiple=True,
        metavar="FILE.py",
        help="Every tool in this Python file, or in the module of this dotted name; repeatable.",
    ),
    click.option(
        "--mcp",
        multiple=True,
        metavar="SERVER",
        help="Every tool of this MCP server: a command line to start, or an http(s) address; repeatable.",
    ),
    click.option(
        "--mcp-env",
        multiple=True,
        metavar="NAME",
        help="A variable of the environment that the MCP commands are given, too; repeatable.",
    ),
    click.option(
        "--approve",
        default="ask",
        show_default=True,
        metavar="WHO",
        help="Who agrees to calls of tools with side effects: ask (you, on the terminal), wait (the run waits for `fsm-agent resume`), yes "
        "(nobody is asked) or no (they are denied). ask:all asks about every call, ask:TOOL,... about those of these tools alone.",
    ),
    click.option(
        "--context",
        metavar="HOW",
        help="What the model is shown of a long run: keep-last:STEPS, drop:TOKENS or summarise:TOKENS. [default: all of it]",
    ),
    click.option(
        "--max-parallel",
        type=click.IntRange(min=1),
        default=8,
        show_default=True,
        metavar="N",
        help="So many calls of one reply are made at the same time.",
    ),
    click.option("--stream/--no-stream", default=False, help="Show the model's text as it arrives."),
    click.option(
        "--draw",
        type=FILE_PATH,
        metavar="FILE",
        help=f"Draw the path that the run took ({', '.join(ENDINGS)}), also where it waits or was cancelled.",
    ),
    click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        is_eager=True,
        callback=_read_settings,
        help="A file of settings for these options. [default: fsm-agent.toml, or [tool.fsm-agent] in pyproject.toml]",
    ),
)

REPEATED = (
    *("model", "base_url", "temperature", "max_reply_tokens", "timeout", "model_option", "prices", "tools", "mcp", "mcp_env"),
    *("approve", "context", "max_parallel", "stream", "config"),
)
"""What whoever takes up a run has to say again: its record does not know it."""


@attrs.frozen
class Chosen:
    """What the shared options say, checked."""

    model: str | None
    model_options: dict[str, Any]
    tools: tuple[str, ...]
    mcp: tuple[str, ...]
    mcp_env: tuple[str, ...]
    approving: Approving
    max_parallel: int
    stream: bool
    draw: Path | None
    make_context: Callable[[ChatModel], Context] | None

    @classmethod
    def of(cls, options: dict[str, Any]) -> Chosen:
        """Raises ``Fault``, naming the option, for what cannot be meant so."""
        from fsm_agent.cli import agent_words as words

        fields = [_said("--model-option", words.request_field, text) for text in options["model_option"]]
        given = {
            "base_url": options["base_url"],
            "timeout_s": options["timeout"],
            "max_tokens": options["max_reply_tokens"],
            "prices": None if options["prices"] is None else _said("--prices", words.prices_of, options["prices"]),
            **dict(fields),
            "temperature": options["temperature"] if options["temperature"] is not None else dict(fields).get("temperature"),
        }
        if options["temperature"] is not None:
            _said("--temperature", words.check_finite, options["temperature"])
        if options["timeout"] is not None:
            _said("--timeout", words.check_timeout, options["timeout"])
        if options["base_url"] is not None:
            _said("--base-url", words.check_url, options["base_url"])
        picture: Path | None = options["draw"]
        if picture is not None:
            if picture.suffix.lower() not in ENDINGS:
                raise Fault(f"--draw {picture}: the ending names no format; known are {', '.join(ENDINGS)}")
            if not picture.parent.is_dir():
                raise Fault(f"--draw {picture}: there is no folder {picture.parent}")
        return cls(
            options["model"],
            {name: value for name, value in given.items() if value is not None},
            options["tools"],
            options["mcp"],
            options["mcp_env"],
            _said("--approve", words.approving, options["approve"]),
            options["max_parallel"],
            options["stream"],
            picture,
            None if options["context"] is None else _said("--context", words.context_of, options["context"]),
        )

    @contextmanager
    def opened_model(self, guards: Sequence[Guard]) -> Iterator[ChatModel]:
        """As a context: the model for a run with these guards.

        Raises ``Fault`` in one line where it cannot be set up, and where its price is not known and a cost budget is to be kept.
        """
        from fsm_agent.guards import CostBudget
        from fsm_agent.models.named import model_from
        from fsm_agent.models.prices import has_price, no_price

        if self.model is None:
            raise Fault("--model is missing: openai:MODEL or anthropic:MODEL, here or as `model` in fsm-agent.toml")
        with faults():
            model = model_from(self.model, **self.model_options)
        with model:
            if any(isinstance(guard, CostBudget) for guard in guards) and not has_price(model):
                raise Fault(no_price(model).replace("give it prices=(1.25, 10),", "give --prices 1.25,10,"))
            yield model


def _said(option: str, read: Callable[[Any], Any], text: Any) -> Any:
    with faults(option):
        try:
            return read(text)
        except ValueError as error:
            raise ValueError(f"{option}: {error}") from None


def resume_line(context: click.Context, trace: Path, *more: str) -> str:
    """The command line that takes up this command's run; ``more`` stands at its end."""
    parts = ["fsm-agent", "resume", as_argument(trace)]
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in REPEATED or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        for each in value if isinstance(value, tuple) else [value]:
            parts += (
                [parameter.opts[0]] if each is True else parameter.secondary_opts[:1] if each is False else [parameter.opts[0], str(each)]
            )
    return in_shell([*parts, *more])


def as_argument(path: Path) -> str:
    """A path that no command takes for an option."""
    return os.path.join(os.curdir, path) if str(path).startswith("-") else str(path)  # noqa: PTH118  # a Path has no ./


def in_shell(words: Sequence[str]) -> str:
    """Words as one types them."""
    import subprocess

    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)

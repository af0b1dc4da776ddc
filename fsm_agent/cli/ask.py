"""``fsm-agent ask``: run an agent on a task."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsm_agent.cli.agent_options import CONFIG, FILE_PATH, Chosen, agent_options, as_argument, in_shell, resume_line, settings_file
from fsm_agent.cli.common import PRESETS, Fault, faults, json_option, keep_apart, lang_option
from fsm_agent.language import Language
from fsm_agent.text import printable

if TYPE_CHECKING:
    from fsm_agent.drivers import Result

PROTOCOLS = ("function_calling", "json_text", "react", "line")


@click.command()
@click.argument("task")
@agent_options
@click.option("--trace", type=FILE_PATH, metavar="FILE", help="Write the record of the run to this file, while it goes.")
@click.option(
    "--guards",
    type=click.Choice(PRESETS),
    default="production",
    show_default=True,
    help="The guards. production has a cap of 30 steps unless --limits gives max_steps.",
)
@click.option("--limits", default="", metavar="NAME=N,...", help="Limits of the guards, such as max_steps=50,max_cost=0.5,deadline_s=600.")
@click.option(
    "--protocol", type=click.Choice(PROTOCOLS), default="function_calling", show_default=True, help="The form in which the model answers."
)
@click.option(
    "--last-chance/--no-last-chance", default=False, help="At a cap, a budget or a loop, ask once more, without tools, for the answer."
)
@click.option(
    "--max-retries",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    metavar="N",
    help="So often in a row is a model asked again that could not be asked (429, 5xx, no connection).",
)
@click.option(
    "--max-observation-chars",
    type=click.IntRange(min=1),
    default=20_000,
    show_default=True,
    metavar="N",
    help="So many characters of what a tool returns are shown to the model.",
)
@lang_option
@json_option
@click.pass_context
def ask(context: click.Context, /, task: str, lang: Language, *, as_json: bool, **options: Any) -> None:
    """Run an agent on TASK (- reads it from stdin), with a real model and real tools.

    On a terminal you see the machine move, and are asked before tools with side effects are called: y agrees, n denies (say why, the
    model reads it), e changes the arguments, w shows how the model came to it. In a pipe there are plain lines, and the run waits:
    `fsm-agent resume` goes on. The model's key is read from OPENAI_API_KEY or ANTHROPIC_API_KEY.

    \b
    fsm-agent ask "What is in notes.txt?" --model openai:gpt-5 --tools my_tools.py
    fsm-agent ask "Tidy up DIR" --model anthropic:claude-sonnet-5 \\
      --mcp "npx -y @modelcontextprotocol/server-filesystem DIR" --trace run.jsonl --draw run.svg
    fsm-agent ask "What is 3 + 4?" --model openai:qwen3 --base-url http://localhost:11434/v1 --stream

    Exit code: 0 final answer, 3 halted for another reason, 4 waits for a person, 2 wrong use, 130 cancelled.
    """  # noqa: D301  # click keeps the lines of a paragraph after a backspace
    from fsm_agent.cli.agent_run import Stage, perform
    from fsm_agent.cli.agent_tools import check_named, is_file, opened_tools, told
    from fsm_agent.cli.agent_words import guards_of
    from fsm_agent.cli.waiting import check_free
    from fsm_agent.drivers.sync import run

    chosen = Chosen.of(options)
    trace: Path | None = options["trace"]
    with faults("--limits"):
        guards, assumed = guards_of(options["guards"], options["limits"])
    keep_apart([*settings_file(context), *(each for each in chosen.tools if is_file(each))], {"--trace": trace, "--draw": chosen.draw})
    if trace is not None:
        check_free(trace, in_shell(["fsm-agent", "resume", as_argument(trace)]))
        if not trace.parent.is_dir():
            raise Fault(f"--trace {trace}: there is no folder {trace.parent}")
    text = _task(task)
    with faults():  # a tool may change the working directory
        folder = Path.cwd()
    stage = Stage.of(lang, as_json=as_json)
    with chosen.opened_model(guards) as model, stage.opened(opened_tools(chosen.tools, chosen.mcp, chosen.mcp_env)) as tools:
        check_named(chosen.approving.tools, tools)
        if not as_json:
            click.echo(printable(_setup(model.name, told(tools), options, context, assumed=assumed)), err=True)
        code = perform(
            stage,
            lambda: run(
                text,
                model=model,
                tools=tools,
                guards=guards,
                protocol=options["protocol"],
                lang=lang.code,
                trace=None if trace is None else folder / trace,
                title=_title(text),
                max_parallel=chosen.max_parallel,
                max_retries=options["max_retries"],
                last_chance=options["last_chance"],
                max_observation_chars=options["max_observation_chars"],
                context=chosen.make_context(model) if chosen.make_context else None,
                policy=chosen.approving.policy,
                approve=stage.approver(chosen.approving),
                on_text=stage.on_text(stream=chosen.stream),
                hooks=[stage.view],
            ),
            None if chosen.draw is None else folder / chosen.draw,
            lambda result: _resumed_by(context, result, trace, folder),
        )
    context.exit(code)


def _setup(model: str, tools: str, options: Mapping[str, Any], context: click.Context, *, assumed: bool) -> str:
    """What the run is made of, in one line."""
    limits = ",".join(part for part in ("max_steps=30" if assumed else "", options["limits"]) if part)
    guards = ", ".join(part for part in (f"guards {options['guards']}", limits) if part)
    settings = [f"settings of {context.meta[CONFIG]}"] if CONFIG in context.meta else []
    return " · ".join([model, tools, guards, *settings])


def _task(task: str) -> str:
    """The task as it is given, or as stdin says it."""
    if task == "-":
        if hasattr(sys.stdin, "reconfigure"):
            sys.stdin.reconfigure(errors="replace")
        task = sys.stdin.read() if sys.stdin is not None else ""
    if not task.strip():
        raise Fault("the task is empty; say what is to be done")
    return task


def _title(task: str) -> str:
    from fsm_agent.cli.agent_run import title_of

    return title_of(task)


def _resumed_by(context: click.Context, result: Result, trace: Path | None, folder: Path) -> str:
    """The command line that takes up the run. Without ``--trace`` its record is written now, into ``folder``, or the run were lost."""
    from fsm_agent.cli.agent_run import short_key

    if trace is None:
        trace = _written(result, folder)
    return resume_line(context, trace, *(part for call in result.awaiting for part in ("--yes", short_key(call.key))))


def _written(result: Result, folder: Path) -> Path:
    """The file that has the record now: in ``folder``, or where that cannot be, among the temporary ones. Raises ``Fault``."""
    import tempfile

    name = Path(f"fsm-agent-{result.trace.header.id}.jsonl")
    try:
        _write(result, folder / name)
    except OSError as error:
        try:
            descriptor, temporary = tempfile.mkstemp(".jsonl", "fsm-agent-")  # for its owner alone
            os.close(descriptor)
            _write(result, Path(temporary))
        except OSError:
            raise Fault(f"the record cannot be written, and nothing can go on with the run: {folder / name}: {error.strerror}") from None
        return Path(temporary)
    return name


def _write(result: Result, path: Path) -> None:
    """Write the record; where that fails, leave no part of it."""
    from fsm_agent.traces.writer import TraceWriter

    try:
        with TraceWriter(result.trace, path):
            pass
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise

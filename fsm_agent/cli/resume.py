"""``fsm-agent resume``: go on with a run that waits for a person, or whose process died."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fsm_agent.cli.agent_options import Chosen, agent_options, resume_line, settings_file
from fsm_agent.cli.common import Fault, faults, json_option, keep_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsm_agent.cli.agent_run import Stage
    from fsm_agent.cli.waiting import Waiting
    from fsm_agent.drivers.approvals import Answer, ApprovalRequest
    from fsm_agent.events import Approval
    from fsm_agent.machine import Run
    from fsm_agent.tools import Tool
    from fsm_agent.traces import Trace


@click.command()
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--yes", multiple=True, metavar="KEY", help="Agree to this call; `all`: to all that wait. Repeatable.")
@click.option("--no", multiple=True, metavar="KEY[=WHY]", help="Deny this call; the model reads why. Repeatable.")
@click.option("--edit", multiple=True, metavar="KEY=JSON", help="Agree to this call with other arguments. Repeatable.")
@agent_options
@json_option
@click.pass_context
def resume(context: click.Context, /, trace: Path, *, as_json: bool, **options: Any) -> None:
    """Go on with the run that TRACE records, as if it had never stopped: no model call that is recorded is made again, and no tool.

    A run that waits for a person needs a word on each call that waits: --yes, --no or --edit, or --approve ask to be asked on the
    terminal. Without one, it is shown what waits. A call that was running when its process died waits, too, as nobody knows what came
    of it: yes calls the tool again, no tells the model that its outcome is unknown.

    The model and the tools are given as they were; limits, protocol and language the record knows.

    Exit code: 0 final answer, 3 halted for another reason, 4 waits for a person, 2 wrong use, 130 cancelled.
    """
    from fsm_agent.cli.agent_run import Stage, code_of, perform, short_key
    from fsm_agent.cli.agent_tools import check_named, is_file, opened_tools
    from fsm_agent.cli.traced import replayed
    from fsm_agent.cli.waiting import waiting_calls
    from fsm_agent.drivers.resume import resume as go_on
    from fsm_agent.traces.load import load

    chosen = Chosen.of(options)
    keep_apart([trace, *settings_file(context), *(each for each in chosen.tools if is_file(each))], {"--draw": chosen.draw})
    with faults(trace):
        record = load(trace)
        run = replayed(trace, record)
        folder = Path.cwd()  # a tool may change it
    stage = Stage.of(run.protocol.lang, as_json=as_json)
    waiting = waiting_calls(record, run)
    if run.reason is not None:
        _tell_halted(stage, run)
        context.exit(code_of(run))
    answers = _answers(waiting, options["yes"], options["no"], options["edit"])
    approve = stage.approver(chosen.approving)
    said = context.get_parameter_source("approve") is ParameterSource.COMMANDLINE
    answering = approve if said else None
    open_ = [
        each
        for each in waiting
        if each.call.key not in answers and (answering is None or (each.interrupted and chosen.approving.who != "ask"))
    ]
    if open_:
        if answers:
            raise Fault(f"the call {short_key(open_[0].call.key)} waits, too: say --yes, --no or --edit of it, or give --approve ask")
        _tell_waiting(stage, run, waiting, context, trace)
        context.exit(code_of(run))
    opened = stage.opened(opened_tools(chosen.tools, chosen.mcp, chosen.mcp_env))
    with chosen.opened_model(run.wiring.guards) as model, opened as tools:
        check_named(chosen.approving.tools, tools)
        _check_there(record, tools)
        _check_edits(answers, waiting, tools)
        code = perform(
            stage,
            lambda: go_on(
                folder / trace,
                _answering(answers, approve),
                model=model,
                tools=tools,
                max_parallel=chosen.max_parallel,
                context=chosen.make_context(model) if chosen.make_context else None,
                policy=chosen.approving.policy if said or record.header.options.approvals else None,
                on_text=stage.on_text(stream=chosen.stream),
                hooks=[stage.view],
            ),
            None if chosen.draw is None else folder / chosen.draw,
            lambda result: resume_line(context, trace, *(part for call in result.awaiting for part in ("--yes", short_key(call.key)))),
        )
    context.exit(code)


# --- what the person said ------------------------------------------------------------------------------------------


def _answers(waiting: Sequence[Waiting], yes: Sequence[str], no: Sequence[str], edit: Sequence[str]) -> dict[str, Approval]:
    """The answers on the command line, by the calls' keys. Raises ``Fault`` for a key that no call has, and for two answers to one."""
    import msgspec

    from fsm_agent.events import Approval

    answers: dict[str, Approval] = {}

    def answer(key: str, approval: Approval) -> None:
        for call in _meant(key, waiting):
            if call.call.key in answers:
                raise Fault(f"the call {key} is answered twice")
            if call.interrupted and approval.verdict == "edit":
                raise Fault(f"--edit {key}: this call was running when the process ended; say --yes to make it again, or --no")
            answers[call.call.key] = approval

    for key in yes:
        answer(key, Approval("yes"))
    for text in no:
        key, _, why = text.partition("=")
        answer(key, Approval("no", why.strip()))
    for text in edit:
        key, _, arguments = text.partition("=")
        try:
            answer(key, Approval("edit", arguments=msgspec.json.decode(arguments, type=dict[str, Any])))
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise Fault(f"--edit {key}: after KEY= stands a JSON object, the arguments: {error}") from None
    return answers


def _meant(key: str, waiting: Sequence[Waiting]) -> Sequence[Waiting]:
    """The call with this key, whole or without its run; all of them for ``all``."""
    from fsm_agent.cli.agent_run import short_key

    found = waiting if key == "all" else [each for each in waiting if key in {each.call.key, short_key(each.call.key)}]
    if not found:
        there = ", ".join(short_key(each.call.key) for each in waiting)
        raise Fault(f"no call with the key {key!r} waits; " + (f"there is {there}" if there else "the run waits for nobody"))
    return found


def _check_there(record: Trace, tools: Sequence[Tool]) -> None:
    """Raises ``Fault`` for a tool of the run that was not given."""
    names = {tool.name for tool in tools}
    if missing := [spec.name for spec in record.header.tools if spec.name not in names]:
        raise Fault(f"the run was begun with the tool {missing[0]!r}; give it, too, with --tools or --mcp")


def _check_edits(answers: Mapping[str, Approval], waiting: Sequence[Waiting], tools: Sequence[Tool]) -> None:
    """Raises ``Fault`` for arguments that the tool does not take."""
    from fsm_agent.cli.agent_run import short_key
    from fsm_agent.language import ENGLISH
    from fsm_agent.live.person import check_fits
    from fsm_agent.tools.schema import BadArguments

    named = {tool.name: tool for tool in tools}
    for each in waiting:
        answer = answers.get(each.call.key)
        if answer is not None and answer.arguments is not None and each.call.name in named:
            try:
                check_fits(named[each.call.name], dict(answer.arguments), ENGLISH)
            except BadArguments as error:
                raise Fault(f"--edit {short_key(each.call.key)}: {error}") from None


def _answering(answers: Mapping[str, Approval], then: Callable[[ApprovalRequest], Answer] | None) -> Callable[[ApprovalRequest], Answer]:
    """What was said, and for what comes later, whoever is there."""

    def approve(request: ApprovalRequest) -> Answer:
        if request.call.key in answers:
            return answers[request.call.key]
        return then(request) if then is not None else None

    return approve


# --- what is shown without a word ----------------------------------------------------------------------------------


def _tell_halted(stage: Stage, run: Run) -> None:
    from fsm_agent.cli.agent_run import ending, summary
    from fsm_agent.cli.common import print_json
    from fsm_agent.text import printable

    if stage.as_json:
        print_json(summary(run, stage.lang, (), ""))
        return
    click.echo(stage.lang.say("the run has halted ({reason}); there is nothing to go on with", reason=printable(run.reason or "")))
    for line in ending(run, stage.lang):
        click.echo(printable(line))


def _tell_waiting(stage: Stage, run: Run, waiting: Sequence[Waiting], context: click.Context, trace: Path) -> None:
    from fsm_agent.cli.agent_run import short_key, summary, waiting_lines
    from fsm_agent.cli.common import print_json
    from fsm_agent.events import ToolCalls
    from fsm_agent.text import first_line, printable

    line = resume_line(context, trace, *(part for each in waiting for part in ("--yes", short_key(each.call.key))))
    calls = tuple(each.call for each in waiting)
    if stage.as_json:
        print_json(summary(run, stage.lang, calls, line))
        return
    say = stage.lang.say
    lines = [say("the task: {text}", text=first_line(run.task))]
    if isinstance(run.decision, ToolCalls) and run.decision.thought.strip():
        lines.append(say("[step {k}] LLM output: {text}", k=run.step, text=first_line(run.decision.thought)))
    lines += waiting_lines(waiting, line, stage.lang)
    if context.params["model"] is None:
        lines.append(say("and with --model, --tools and --mcp as they were"))
    for each in lines:
        click.echo(printable(each))

"""An agent's run under a command: it is watched, a person is asked, and the picture, the last lines and the exit code say how it ended."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from fsm_agent.cli.common import DONE, HALTED, Fault, colour, console, faults, print_json
from fsm_agent.language import Language
from fsm_agent.text import printable, well_formed

if TYPE_CHECKING:
    from fsm_agent.cli.agent_words import Approving
    from fsm_agent.cli.waiting import Waiting
    from fsm_agent.drivers import Result
    from fsm_agent.drivers.approvals import Answer, ApprovalRequest
    from fsm_agent.events import ToolCall
    from fsm_agent.live import View
    from fsm_agent.machine import Run
    from fsm_agent.tools import Tool

WAITS = 4
"""The exit code of a run that waits for a person."""

MOST_OF_CALL = 2_000
"""Characters of a call that are shown in a line."""


@attrs.frozen
class Stage:
    """Where a run is shown, and the person who may be asked."""

    view: View
    ask: Callable[[ApprovalRequest], Answer] | None
    """Asks the person at the terminal; None: there is none."""
    lang: Language
    as_json: bool

    @classmethod
    def of(cls, lang: Language, *, as_json: bool) -> Stage:
        """The live view on a terminal, plain lines elsewhere; with ``as_json``, stdout is for the object, and stderr has the view."""
        from fsm_agent.live import LiveView, Person, PlainView, View, can_draw, can_type

        shown = console(err=as_json, markup=False, emoji=False)
        view: View
        if can_draw(shown):
            view = LiveView(lang, shown)
        elif as_json:
            view = View(lang)
        else:
            view = PlainView(lang, lambda text: click.echo(text, nl=False))
        screens = (shown, console(err=True, markup=False, emoji=False), console(markup=False, emoji=False))
        screen = next((each for each in screens if can_type(each)), None)
        return cls(view, None if screen is None else Person(view, screen, lang), lang, as_json)

    def approver(self, approving: Approving) -> Callable[[ApprovalRequest], Answer] | None:
        """Who answers; None: nobody does, and the run waits."""
        from fsm_agent.events import Approval

        if approving.who == "ask":
            return self.ask
        if approving.who == "wait":
            return None
        words = self.lang.say("nobody may agree to such calls in this run")
        answer = Approval("yes") if approving.who == "yes" else Approval("no", words)
        return lambda request: None if request.interrupted else answer  # that takes a word on the very call

    def quiet_stdout(self) -> AbstractContextManager[object]:
        """As a context: what tools print is kept out of the object on stdout."""
        return redirect_stdout(sys.stderr) if self.as_json else nullcontext()

    @contextmanager
    def opened(self, tools: AbstractContextManager[tuple[Tool, ...]]) -> Iterator[tuple[Tool, ...]]:
        """As a context: the tools. What their files print as they are imported is kept out of stdout, too."""
        with ExitStack() as stack:
            with self.quiet_stdout():
                there = stack.enter_context(tools)
            yield there

    def on_text(self, *, stream: bool) -> Callable[[str], None] | None:
        """What is called with the pieces of a streamed reply."""
        return self.view.text if stream and self.view.shows else None


def perform(stage: Stage, work: Callable[[], Result], picture: Path | None, resumed_by: Callable[[Result], str]) -> int:
    """Do the run, and tell its end. Gives the exit code.

    ``resumed_by``: the command line that takes up a run that waits. Raises ``Fault`` in one line, and ``KeyboardInterrupt`` after Ctrl-C,
    when its record is whole, its end was told and the picture is drawn.
    """
    try:
        with faults(), stage.quiet_stdout():
            result = work()
    except KeyboardInterrupt:
        if stage.view.run is not None and stage.view.run.reason is not None:
            _tell(stage, stage.view.run, None, "")
            _draw(stage.view.run, picture)
        raise
    run = stage.view.run
    assert run is not None  # noqa: S101  # it has been driven
    line, lost = "", None
    if result.awaiting:
        try:
            with faults():
                line = resumed_by(result)
        except Fault as fault:  # what waits is told first
            lost = fault
    _tell(stage, run, result, line)
    _draw(run, picture)
    if lost is not None:
        raise lost
    return code_of(run)


def code_of(run: Run) -> int:
    """The exit code for a run as it is."""
    return WAITS if run.reason is None else DONE if run.reason == "final_answer" else HALTED


def _draw(run: Run, picture: Path | None) -> None:
    from fsm_agent.cli.draw import draw_run

    if picture is not None:
        with faults():
            draw_run(run, title_of(run.task), picture, None)


def title_of(task: str) -> str:
    """A run's title: the beginning of its task."""
    from fsm_agent.text import first_line

    return first_line(task, 60)


# --- the end -------------------------------------------------------------------------------------------------------


def _tell(stage: Stage, run: Run, result: Result | None, line: str) -> None:
    from fsm_agent.cli.waiting import Waiting

    if stage.as_json:
        print_json(summary(run, stage.lang, result.awaiting if result else (), line))
        return
    if result is not None and result.awaiting:
        for each in waiting_lines([Waiting(call) for call in result.awaiting], line, stage.lang):
            _say(each)
        return
    for each in ending(run, stage.lang):
        _say(each, bold=True)
    _say(spent(run, stage.lang))


def _say(line: str, *, bold: bool = False) -> None:
    click.echo(click.style(printable(line), bold=True) if bold and colour() else printable(line))


def ending(run: Run, lang: Language) -> list[str]:
    """The answer, or why there is none; of a last chance, both."""
    from fsm_agent.outcome import answer_of, message_of

    message, answer = message_of(run, lang), answer_of(run)
    if run.reason == "final_answer":
        return [lang.say("final answer: {text}", text=message)]
    return [message] if answer is None else [message, lang.say("its last word: {text}", text=answer)]


def waiting_lines(waiting: Sequence[Waiting], line: str, lang: Language) -> list[str]:
    """What a run waits for, and how it is taken up: by ``line``, or if that is empty, not at all."""
    say = lang.say
    asked, running = [each for each in waiting if not each.interrupted], [each for each in waiting if each.interrupted]
    lines = []
    if asked:
        lines.append(lang.count("waits for a person to agree to {n} call:", "waits for a person to agree to {n} calls:", len(asked)))
        lines += [f"  {short_key(each.call.key)}  {call_line(each.call, lang)}" for each in asked]
        if line:
            lines.append(say("to go on (or with --no KEY=WHY, --edit KEY=JSON, --approve ask):"))
    if running:
        lines.append(
            lang.count(
                "{n} call was running when the process ended, and nobody knows what came of it:",
                "{n} calls were running when the process ended, and nobody knows what came of them:",
                len(running),
            )
        )
        lines += [f"  {short_key(each.call.key)}  {call_line(each.call, lang)}" for each in running]
        lines.append(say("to make such a call again (or with --no KEY, and the model is told that its outcome is unknown):"))
    return [*lines, f"  {line}"] if line else lines


def call_line(call: ToolCall, lang: Language) -> str:
    """A call in one line: its name, and its arguments as JSON."""
    from fsm_agent.machine.history import cut

    return cut(f"{call.name} {json.dumps(call.arguments, ensure_ascii=False, default=str)}", MOST_OF_CALL, lang).replace("\n", " ")


def short_key(key: str) -> str:
    """A call's key without its run: STEP/NUMBER."""
    return "/".join(key.rsplit("/", 2)[-2:])


def spent(run: Run, lang: Language) -> str:
    """Model calls, tokens and dollars, in one line."""
    used = usage(run)
    said = [lang.say("LLM calls: {n}", n=run.step)]
    if used["prompt_tokens"] or used["completion_tokens"]:
        said.append(lang.say("tokens: {read} read, {written} written", read=used["prompt_tokens"], written=used["completion_tokens"]))
    if used["cost"] is not None:
        said.append(lang.say("cost: ${cost}", cost=f"{used['cost']:.4g}"))
    return " · ".join(said)


def usage(run: Run) -> Mapping[str, Any]:
    """What the run's replies and summaries told of tokens and dollars. ``cost`` is None where none told one."""
    from fsm_agent.events import ContextCompacted, ModelReplied

    told = [
        entry.reply.usage if isinstance(entry, ModelReplied) else entry.usage
        for entry in run.log
        if isinstance(entry, ModelReplied | ContextCompacted)
    ]
    costs = [each.cost for each in told if each is not None and each.cost is not None]
    return {
        "prompt_tokens": sum(each.prompt_tokens or 0 for each in told if each is not None),
        "completion_tokens": sum(each.completion_tokens or 0 for each in told if each is not None),
        "cost": sum(costs) if costs else None,
    }


def summary(run: Run, lang: Language, awaiting: tuple[ToolCall, ...], line: str) -> dict[str, object]:
    """The run as the object that ``--json`` prints: as that of ``fsm-agent run``, with what it spent and whom it waits for."""
    from fsm_agent.cli.run import summary as played
    from fsm_agent.drivers.setup import AWAITING

    said = {**played(run, lang), "usage": usage(run)}
    if awaiting:
        calls = [{"key": call.key, "tool": call.name, "arguments": call.arguments} for call in awaiting]
        said |= {"reason": AWAITING, "message": "", "awaiting": calls, "resume": well_formed(line) or None}
    return said

"""Asking the person at the terminal whether a call may be made: y / n / edit / why."""

from __future__ import annotations

import json
import os
from typing import Any

import attrs
import click
import msgspec
from rich.console import Console
from rich.text import Text

from fsm_agent.drivers.approvals import ApprovalRequest
from fsm_agent.events import Approval, AskApproval, Message
from fsm_agent.language import Language
from fsm_agent.live.typing import typed_line
from fsm_agent.live.view import View, shortened
from fsm_agent.machine.history import cut
from fsm_agent.text import printable
from fsm_agent.tools import Tool
from fsm_agent.tools.foreign import check_by_schema
from fsm_agent.tools.schema import BadArguments, check_arguments

MOST_SHOWN = 4_000
"""Characters of an argument that are shown; of a longer one its beginning and its end, and all of it for ``why``."""
MESSAGES = 4
"""Of the history's end that is shown for ``why``."""
MOST_OF_MESSAGE = 1_000
"""Characters of one of them."""

_MEANT = {
    **dict.fromkeys(("y", "yes", "是"), "yes"),
    **dict.fromkeys(("n", "no", "否"), "no"),
    **dict.fromkeys(("e", "edit"), "edit"),
    **dict.fromkeys(("w", "why", "?"), "why"),
}


def check_fits(tool: Tool, arguments: dict[str, Any], lang: Language) -> None:
    """Raises ``BadArguments`` for arguments that the tool does not take."""
    if tool.schema is None:
        check_arguments(tool.name, tool.parameters, arguments, lang)
    else:
        check_by_schema(tool.name, tool.parameters, tool.schema, arguments, lang)


@attrs.frozen
class Person:
    """Asks. It is an ``Approver``."""

    view: View
    """It is paused meanwhile."""
    console: Console
    """The person's terminal."""
    lang: Language

    def __call__(self, request: ApprovalRequest) -> Approval | None:
        """What the person says; None for later (Ctrl-D), which is a no of a call that was interrupted.

        Raises ``KeyboardInterrupt`` for Ctrl-C.
        """
        with self.view.paused():
            return self._decided(request)

    def _decided(self, request: ApprovalRequest) -> Approval | None:
        say = self.lang.say
        changed: dict[str, Any] | None = None
        self.console.print()
        self._show_call(request, None)
        while True:
            typed = typed_line(self.console, self._keys(request))
            if typed is None:
                return None
            match _MEANT.get(typed.strip().lower()):
                case "yes":
                    return Approval("yes") if changed is None else Approval("edit", arguments=changed)
                case "no":
                    words = "" if request.interrupted else typed_line(self.console, say("Why not? The model reads it (or nothing): "))
                    if words is not None:
                        return Approval("no", words.strip())
                case "edit" if not request.interrupted:
                    edited = self._edited(request, changed)
                    if edited is not None:
                        changed = edited
                        self._show_call(request, changed)
                case "why":
                    self._show_why(request)
                case _:
                    self._note(say("please answer y or n, or e to change the arguments, or w to see why"))

    # --- what is shown ---

    def _keys(self, request: ApprovalRequest) -> str:
        say = self.lang.say
        if request.interrupted:
            return say("y yes, n no (the model is told that nobody knows), w why: ")
        return say("y yes, n no, e edit, w why, Ctrl-D later: ")

    def _show_call(self, request: ApprovalRequest, changed: dict[str, Any] | None) -> None:
        say, tool = self.lang.say, printable(request.call.name)
        if request.interrupted:
            heading = say("{tool} was running when the process ended, and nobody knows what came of it. Call it again?", tool=tool)
        elif changed is not None:
            heading = say("May {tool} be called so?", tool=tool)
        else:
            heading = say("May {tool} be called?", tool=tool)
        self.console.print(Text(f"{heading}{self._place(request)}", "bold"))
        self._show_arguments(request.call.arguments if changed is None else changed, MOST_SHOWN)

    def _place(self, request: ApprovalRequest) -> str:
        """Which of several calls it is."""
        effect = self.view.run.effect if self.view.run is not None else None
        if not isinstance(effect, AskApproval) or len(effect.asked) < 2:
            return ""
        number = effect.asked.index(int(request.call.key.rpartition("/")[2]) - 1) + 1
        return self.lang.say(" ({k} of {n})", k=number, n=len(effect.asked))

    def _show_arguments(self, arguments: Any, most: int | None) -> None:
        if not arguments:
            self.console.print(Text(f"  {self.lang.say('(no arguments)')}"))
        for name, value in arguments.items():
            text = value if isinstance(value, str) else _as_json(value)
            self._item(name, text if most is None else cut(text, most, self.lang))

    def _show_why(self, request: ApprovalRequest) -> None:
        """The task, the end of the conversation, and what the model said with the call; and what was not shown of the arguments."""
        say = self.lang.say
        self._item(say("the task"), request.task)
        before = self._before()
        if len(before) > MESSAGES:
            self._note(self.lang.count("({n} earlier message)", "({n} earlier messages)", len(before) - MESSAGES))
        for message in before[-MESSAGES:]:
            self._message(message)
        self._item(say("thought"), request.thought.strip() or say("(the model said nothing with the call)"))
        if any(len(value if isinstance(value, str) else _as_json(value)) > MOST_SHOWN for value in request.call.arguments.values()):
            self._show_arguments(request.call.arguments, None)

    def _before(self) -> list[Message]:
        """The conversation after the task, up to the reply that is asked about."""
        history = self.view.run.history if self.view.run is not None else []
        after_task = next((at for at, message in enumerate(history) if message.role == "user"), -1) + 1
        return history[after_task:-1]

    def _message(self, message: Message) -> None:
        calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
        text = "\n".join(part for part in (message.content, *calls) if part)
        self._item(f"{message.role} {message.tool}".strip(), shortened(text, self.lang, MOST_OF_MESSAGE))

    def _item(self, head: str, text: str) -> None:
        first, *more = printable(text.expandtabs(4)).split("\n")
        self.console.print(Text.assemble((f"  {printable(head)}: ", "cyan"), first))
        for line in more:
            self.console.print(Text(f"    {line}"))

    def _note(self, text: str) -> None:
        self.console.print(Text(printable(text), "italic"))

    # --- changing the arguments ---

    def _edited(self, request: ApprovalRequest, changed: dict[str, Any] | None) -> dict[str, Any] | None:
        """Arguments that fit the tool; None: the person changed nothing."""
        before = dict(request.call.arguments) if changed is None else changed
        text: str | None = _as_json(before, pretty=_has_editor())
        if not _has_editor():
            self._note(self.lang.say("change the arguments (an empty line: never mind)"))
        while True:
            text = self._opened(text or "")
            if text is None or not text.strip():
                return None
            try:
                arguments = msgspec.json.decode(text, type=dict[str, Any])
                check_fits(request.tool, arguments, self.lang)
            except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
                problem = self.lang.say("that is no JSON object: {problem}", problem=str(error))
            except BadArguments as error:
                problem = str(error)
            else:
                return None if arguments == before else arguments
            self._note(problem)
            if _has_editor() and typed_line(self.console, self.lang.say("Enter: edit it again, Ctrl-D: leave it ")) is None:
                return None

    def _opened(self, text: str) -> str | None:
        """The text as the person leaves it, in an editor of the person's choice, or else in a line; None: never mind."""
        if _has_editor():
            try:
                return click.edit(text, extension=".json")
            except click.ClickException as error:
                self._note(error.format_message())
        return typed_line(self.console, "> ", text)


def _has_editor() -> bool:
    return any(os.environ.get(name) for name in ("VISUAL", "EDITOR"))


def _as_json(value: Any, *, pretty: bool = False) -> str:
    """JSON that can be typed over: what would steer the terminal stands as escapes, which mean the same."""
    text = json.dumps(value, ensure_ascii=False, indent=2 if pretty else None, default=str)
    return "".join(char if printable(char) == char else json.dumps(char)[1:-1] for char in text)

"""A run as lines of text for people: what the model said, what the tools returned, why it ended."""

from __future__ import annotations

from collections.abc import Iterator

from fsm_agent.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptFailed,
    ContextCompacted,
    Event,
    Final,
    Malformed,
    ModelFailed,
    ModelReplied,
    Reply,
    ToolsFailed,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.language import Language
from fsm_agent.machine import Run, Taken
from fsm_agent.outcome import message_of
from fsm_agent.text import first_line, printable
from fsm_agent.wording import details, heading


class Transcript:
    """Turns a run's log into lines while it goes: each call of ``lines`` gives those that are new."""

    def __init__(self, lang: Language) -> None:
        self._lang = lang
        self._done = 0
        self._replies = 0

    def lines(self, run: Run) -> Iterator[str]:
        """The lines for what ``run`` has logged since the last time."""
        for at, entry in enumerate(run.log[self._done :], self._done + 1):
            if not isinstance(entry, Taken):
                taken = next(edge for edge in run.log[at:] if isinstance(edge, Taken))
                yield from map(printable, self._event(entry, taken.step, run))
        self._done = len(run.log)

    def end(self, run: Run) -> Iterator[str]:
        """The last lines: the answer, or why there is none; and what it cost."""
        say = self._lang.say
        yield printable(say("final answer: {text}", text=message_of(run, self._lang)))
        yield say("LLM calls: {n}", n=run.step)

    def _event(self, event: Event, step: int, run: Run) -> Iterator[str]:
        say = self._lang.say
        match event:
            case ModelReplied(reply=reply):
                yield say("[step {k}] LLM output: {text}", k=step, text=_said(reply))
                self._replies += 1
                match run.decisions[self._replies - 1]:
                    case Malformed(problem=problem):
                        yield say("[step {k}] correction: {text}", k=step, text=first_line(problem))
                    case Final():
                        yield say("[step {k}] FINAL received, the loop ends normally", k=step)
            case ToolsReturned(observations=observations):
                for seen in observations:
                    yield say("[step {k}] tool {tool} returned: {text}", k=step, tool=seen.tool, text=seen.text)
            case ModelFailed(error=error, message=message):
                yield say("[step {k}] the model failed: {error}: {message}", k=step, error=error, message=message)
            case UserSpoke(text=text):
                yield say("[step {k}] user: {text}", k=step, text=text)
            case AttemptFailed() | ApprovalAsked() | ApprovalGiven() | ContextCompacted() | ToolsFailed():
                told = ": ".join(part for part in (heading(event, self._lang), first_line(details(event, self._lang))) if part)
                yield say("[step {k}] {text}", k=step, text=told)


def _said(reply: Reply) -> str:
    calls = [f"{call.name}({call.arguments})" for call in reply.tool_calls]
    return "\n".join(part for part in (reply.text, *calls) if part)

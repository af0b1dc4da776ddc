"""A run as lines of text for people: what the model said, what the tools returned, why it ended."""

from __future__ import annotations

from collections.abc import Iterator

from fsm_agent.events import Event, Final, Malformed, ModelFailed, ModelReplied, Reply, ToolsReturned, UserSpoke
from fsm_agent.language import Language
from fsm_agent.machine import Run, Taken
from fsm_agent.outcome import message_of
from fsm_agent.text import first_line, printable


class Transcript:
    """Turns a run's log into lines while it goes: each call of ``lines`` gives those that are new."""

    def __init__(self, lang: Language) -> None:
        self._lang = lang
        self._done = 0
        self._step = 0

    def lines(self, run: Run) -> Iterator[str]:
        """The lines for what ``run`` has logged since the last time."""
        for entry in run.log[self._done :]:
            if not isinstance(entry, Taken):
                yield from map(printable, self._event(entry, run))
        self._done = len(run.log)

    def end(self, run: Run) -> Iterator[str]:
        """The last lines: the answer, or why there is none; and what it cost."""
        say = self._lang.say
        yield printable(say("final answer: {text}", text=message_of(run, self._lang)))
        yield say("LLM calls: {n}", n=run.step)

    def _event(self, event: Event, run: Run) -> Iterator[str]:
        say = self._lang.say
        match event:
            case ModelReplied(reply=reply):
                self._step += 1
                yield say("[step {k}] LLM output: {text}", k=self._step, text=_said(reply))
                match run.decisions[self._step - 1]:
                    case Malformed(problem=problem):
                        yield say("[step {k}] correction: {text}", k=self._step, text=first_line(problem))
                    case Final():
                        yield say("[step {k}] FINAL received, the loop ends normally", k=self._step)
            case ToolsReturned(observations=observations):
                for seen in observations:
                    yield say("[step {k}] tool {tool} returned: {text}", k=self._step, tool=seen.tool, text=seen.text)
            case ModelFailed(error=error, message=message):
                self._step += 1
                yield say("[step {k}] the model failed: {error}: {message}", k=self._step, error=error, message=message)
            case UserSpoke(text=text):
                yield say("[step {k}] user: {text}", k=self._step, text=text)


def _said(reply: Reply) -> str:
    calls = [f"{call.name}({call.arguments})" for call in reply.tool_calls]
    return "\n".join(part for part in (reply.text, *calls) if part)

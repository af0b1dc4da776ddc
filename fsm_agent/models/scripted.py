"""A model that plays a script: the deterministic stand-in for a real one, in scenarios, lessons and tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fsm_agent.events import Message, Reply


class ScriptEnded(RuntimeError):
    """The script has no reply for this step."""


class ScriptedModel:
    """Plays ``replies`` in order, then ``then`` without end, its ``{n}`` counting 1, 2, 3, ..."""

    def __init__(self, replies: Iterable[str | Reply] = (), then: str | None = None) -> None:
        """``replies``: text, or a whole ``Reply`` (with tool calls, a finish reason, usage). ``then``: a template, or None."""
        if isinstance(replies, str):
            raise TypeError("replies is a string; give a list of replies")
        self.replies = tuple(replies)
        self.then = then
        self.calls = 0
        """How often the model was asked."""

    def __call__(self, _messages: Sequence[Message]) -> str | Reply:
        """The next reply. Raises ``ScriptEnded`` where the script ran out and there is no template."""
        self.calls += 1
        if self.calls <= len(self.replies):
            return self.replies[self.calls - 1]
        if self.then is None:
            raise ScriptEnded(f"the script ran out at step {self.calls}: it has {len(self.replies)} replies and no template")
        return self.then.replace("{n}", str(self.calls - len(self.replies)))

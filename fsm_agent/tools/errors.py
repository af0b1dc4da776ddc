"""What can go wrong with a tool, as exceptions: what its own code raises, and what those who make the call for it do."""

from __future__ import annotations


class ToolError(Exception):
    """Raise it in a tool to tell the model what went wrong; its message is what the model reads."""


class TimedOut(Exception):
    """A call was given up, as its time was up: what came of it is not known."""

    def __init__(self, after_s: float) -> None:
        super().__init__(f"no result after {after_s:.1f} s")
        self.after_s = after_s
        """So long it had run, in seconds."""


class ServerLost(Exception):
    """The server on which a call ran died, or the connection to it was lost: what came of the call is not known."""

    def __init__(self, server: str) -> None:
        super().__init__(f"the server {server} was lost")
        self.server = server
        """The server's name."""


class ToolServerError(Exception):
    """A server of tools cannot be used. The message names it, and says how to mend it where that is known."""


class ToolServerDead(ToolServerError):
    """A server of tools died and cannot be brought back. No model can mend that: a call lets it through, and the run halts."""

    def __init__(self, server: str, why: str, *, under_way: bool = False) -> None:
        unknown = "; it died while a call ran, and whether that took effect is not known" if under_way else ""
        super().__init__(f"the server {server} is dead: {why}{unknown}")
        self.server = server
        """The server's name."""
        self.why = why
        self.under_way = under_way
        """The call had begun when it died: what came of it is not known. False: the call was not made."""

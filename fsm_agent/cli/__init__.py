"""The command line: ``fsm-agent``, one module a command. What a command needs is imported when it runs.

This module imports nothing of them: Ctrl-C while the commands are still being imported is a cancelled command like any other.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fsm_agent.cli.commands import cli

__all__ = ["cli", "main"]


def main() -> None:
    """The entry point."""
    try:
        from fsm_agent.cli.streams import make_ready

        make_ready()
        from fsm_agent.cli.commands import perform

        code = perform()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("cancelled\n")
        code = 130  # as common.CANCELLED, which may not be there yet
    sys.exit(code)


def __getattr__(name: str) -> Any:
    if name != "cli":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fsm_agent.cli.commands import cli

    return cli

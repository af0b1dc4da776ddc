"""What of a memory a guard's verdicts to come depend on, where that is much less than all of it.

A gist is used only for a guard that is searched alone, or with guards that see nothing but that the model was heard, and only between
two steps. There, memories with equal gists must have the same future: whatever step the one can take, the other can take
one to an equal gist. ``tests/test_proof_gists.py`` tries that on random runs.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from fsm_agent.guards import Guard, NoProgress
from fsm_agent.proof.shapes import StepNumber


@singledispatch
def gist(guard: Guard, memory: Any) -> str | None:  # noqa: ARG001  # of most guards nothing better is known
    """The gist of ``memory``, a memory of ``guard``; None: all of it."""
    return None


def has_gist(guard: Guard) -> bool:
    """Something is known of what its verdicts depend on."""
    return gist.dispatch(type(guard)) is not gist.dispatch(object)


@gist.register
def _(guard: NoProgress, memory: Any) -> str:  # noqa: ARG001  # by its type the function is chosen
    """Which of the last steps did the same, and for how long each period has held.

    It compares the keys of steps and nothing else of them, and every step can be done again, but for one whose key is its own number.
    """
    met: list[Any] = []
    pattern = []
    for key in memory.keys:
        if type(key) is StepNumber or isinstance(key, int):
            pattern.append("-")
            continue
        if key not in met:
            met.append(key)
        pattern.append(str(met.index(key)))
    return f"{'.'.join(pattern)} {memory.runs}"

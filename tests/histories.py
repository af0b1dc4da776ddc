"""Histories as runs write them, for tests of what is shown of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from fsm_agent.context.estimate import Estimator
from fsm_agent.context.tokens import Tokens
from fsm_agent.events import Message, Messages, ToolRequest

SYSTEM, TASK = Message("system", "Be brief."), Message("user", "What is the sum?")
HEAD = [SYSTEM, TASK]

LETTERS = Estimator("letters", len)
"""One token a character: sums that can be done in the head."""


def counting() -> Tokens:
    return Tokens(estimator=LETTERS)


def step(n: int, *outputs: str, structured: bool = True) -> list[Message]:
    """A reply that calls tools, each with its output."""
    requests = tuple(ToolRequest(f"c{n}_{i}", "read", f'{{"part":{i}}}') for i in range(len(outputs)))
    said = Message("assistant", f"I read {n}.", requests) if structured else Message("assistant", f"TOOL read part={n}")
    return [said, *(Message("tool", text, (), "read", f"c{n}_{i}" if structured else "") for i, text in enumerate(outputs))]


def history(*parts: Sequence[Message]) -> list[Message]:
    return [message for part in parts for message in part]


def messages(given: Iterable[Message]) -> Messages:
    """As a run gives them."""
    kept = list(given)
    return Messages(kept, len(kept))


OUTPUTS = st.sampled_from(["", "7", "x" * 40, "word " * 100, "y" * 5000, "数" * 300])
SPOKEN = st.lists(st.builds(lambda text: Message("user", text), st.sampled_from(["Hurry.", "Warning: again."])), max_size=2)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """A task, and steps of calls, of text, or of prose, with the words of people and warnings between them."""
    made = [*([SYSTEM] if draw(st.booleans()) else []), TASK, *draw(SPOKEN)]
    for n in range(draw(st.integers(0, 8))):
        outputs = draw(st.lists(OUTPUTS, max_size=3))
        made += [*step(n, *outputs, structured=draw(st.booleans())), *draw(SPOKEN)]
    return made


def is_whole(shown: Sequence[Message]) -> bool:
    """Whether each structured call is followed by its result, and no result is alone."""
    at = 0
    while at < len(shown):
        ids = [call.id for call in shown[at].tool_calls]
        results = [message.tool_call_id for message in shown[at + 1 : at + 1 + len(ids)] if message.role == "tool"]
        if ids != results:
            return False
        at += 1 + len(ids)
        if at < len(shown) and shown[at].role == "tool" and shown[at].tool_call_id:
            return False
    return True

"""The last steps of a conversation, and its task."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from fsm_agent.context.base import Context, Summary
from fsm_agent.context.steps import first_step, last_steps
from fsm_agent.context.tokens import Tokens
from fsm_agent.events import Message
from fsm_agent.guards.base import at_least
from fsm_agent.language import ENGLISH, Language


@attrs.frozen
class KeepLast(Context):
    """The model is shown the task and the last ``steps`` steps. What it did before it forgets."""

    steps: int = attrs.field(validator=at_least(1))
    """How many steps are shown: replies of the model, each with all that follows it up to the next."""

    def shown(
        self,
        messages: Sequence[Message],
        tokens: Tokens,  # noqa: ARG002  # steps are counted
        lang: Language = ENGLISH,
        summary: Summary | None = None,  # noqa: ARG002  # none is made
    ) -> Sequence[Message]:
        first, kept = first_step(messages), last_steps(messages, self.steps)
        if kept <= first:
            return messages
        told = lang.count(
            "({n} earlier message is left out here, to save space.)",
            "({n} earlier messages are left out here, to save space.)",
            kept - first,
        )
        return [*messages[:first], Message("user", told), *messages[kept:]]

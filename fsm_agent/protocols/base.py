"""What a protocol is: the form in which a model is asked to answer, and the pure function that reads its replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import attrs

from fsm_agent.events import Decision, Reply, ToolSpec
from fsm_agent.language import ENGLISH, Language


@attrs.frozen
class Protocol(ABC):
    """Reads replies of one form. It is pure, and raises for no reply whatever."""

    name: ClassVar[str]
    """Its name in records."""

    sends_tools: ClassVar[bool] = False
    """Whether the tools are told to the model's server, and not only in the prompt."""

    lang: Language = ENGLISH
    """In which the model is spoken to."""

    def for_tools(self, tools: tuple[ToolSpec, ...]) -> Self:  # noqa: ARG002  # most forms are the same for all tools
        """The protocol for a run with these tools."""
        return self

    def kept(self, reply: Reply) -> str:
        """The reply's text as it goes into the history."""
        return reply.text

    @abstractmethod
    def system_prompt(self, tools: tuple[ToolSpec, ...]) -> str:
        """The form and the tools, for the model; empty: no system message."""

    @abstractmethod
    def parse(self, reply: Reply) -> Decision:
        """What the reply means. What it cannot read is ``Malformed``, with a problem that the model can mend."""

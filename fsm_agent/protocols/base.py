"""What a protocol is: the form in which a model is asked to answer, and the pure function that reads its replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import attrs

from fsm_agent.events import Decision, Reply, ToolSpec
from fsm_agent.language import ENGLISH, Language


@attrs.frozen
class Protocol(ABC):
    """Reads replies of one form. It is pure, and raises for no reply whatever."""

    name: ClassVar[str]
    """Its name in records."""

    lang: Language = ENGLISH
    """In which the model is spoken to."""

    @abstractmethod
    def system_prompt(self, tools: tuple[ToolSpec, ...]) -> str:
        """The form and the tools, for the model; empty: no system message."""

    @abstractmethod
    def parse(self, reply: Reply) -> Decision:
        """What the reply means. What it cannot read is ``Malformed``, with a problem that the model can mend."""

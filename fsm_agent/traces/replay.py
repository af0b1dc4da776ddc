"""A recorded run of another system, fed through the machine: the same events, no model and no tools."""

from __future__ import annotations

from collections.abc import Sequence

from fsm_agent.guards import Guard
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine import Run
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.traces.recordings import Recording


def replay(recording: Recording, guards: Sequence[Guard], lang: Language = ENGLISH) -> Run:
    """The run that the recording makes under these guards: it goes on until a guard halts it or the recording ends."""
    run = Run(recording.task, guards=guards, protocol=RecordedProtocol(lang), tools=recording.tools)
    for event in recording.events:
        if run.feed(event) is None:
            break
    return run

"""Readers of other systems' recordings: files of many formats as runs that the machine replays."""

from fsm_agent.traces.recordings.base import Damaged, Ending, Outcome, Reader, Recording, RecordingError, UnreadableError
from fsm_agent.traces.recordings.registry import Registry, detect, read, registry, remarks

__all__ = [
    "Damaged",
    "Ending",
    "Outcome",
    "Reader",
    "Recording",
    "RecordingError",
    "Registry",
    "UnreadableError",
    "detect",
    "read",
    "registry",
    "remarks",
]

"""Readers of other systems' recordings: files of many formats as runs that the machine replays."""

from fsm_agent.traces.recordings.base import Damaged, Ending, Outcome, Reader, Recording, RecordingError
from fsm_agent.traces.recordings.registry import Registry, detect, read, registry

__all__ = ["Damaged", "Ending", "Outcome", "Reader", "Recording", "RecordingError", "Registry", "detect", "read", "registry"]

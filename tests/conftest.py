"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fsm_agent", deadline=None, database=None, derandomize=True)
settings.load_profile("fsm_agent")

"""Traces: recorded runs, written as they go, read back, replayed and verified."""

from fsm_agent.traces.load import load
from fsm_agent.traces.record import Header, Trace, TraceError
from fsm_agent.traces.verify import Verdict, verify

__all__ = ["Header", "Trace", "TraceError", "Verdict", "load", "verify"]

"""The audit as one HTML page that opens from disk: every table, the pictures, and the runs worth a look."""

from fsm_agent.report.collect import Collected, collect
from fsm_agent.report.page import Told, page

__all__ = ["Collected", "Told", "collect", "page"]

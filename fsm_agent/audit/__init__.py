"""Why agents stopped, over many recorded runs, and what other limits would have done."""

from fsm_agent.audit.audit import Audit, audit_runs
from fsm_agent.audit.case import Case, case_of_recording, case_of_trace
from fsm_agent.audit.certificate import Certificate, certify
from fsm_agent.audit.figures import Share
from fsm_agent.audit.plan import Plan, Sweep, parse_sweep, plan_of
from fsm_agent.audit.tables import Tables

__all__ = [
    "Audit",
    "Case",
    "Certificate",
    "Plan",
    "Share",
    "Sweep",
    "Tables",
    "audit_runs",
    "case_of_recording",
    "case_of_trace",
    "certify",
    "parse_sweep",
    "plan_of",
]

"""What a run came to, in words: the answer, and one sentence that says why it halted."""

from __future__ import annotations

from fsm_agent.events import AttemptFailed, Final, ModelFailed, ToolsFailed
from fsm_agent.guards import Reading
from fsm_agent.language import Language
from fsm_agent.machine import Run


def answer_of(run: Run) -> str | None:
    """The model's final answer; None where there is none."""
    return run.decision.answer if isinstance(run.decision, Final) else None


def message_of(run: Run, lang: Language) -> str:
    """Why the run halted, in one sentence; the answer itself where it gave one."""
    say = lang.say
    match run.reason:
        case "model_error" | "tools_failed":
            return _failure(run, lang)
        case None:
            return say("the run did not end")
        case "final_answer":
            return answer_of(run) or ""
        case "cancelled":
            return say("stopped: cancelled by the user")
        case "recording_ended":
            return say("the recording ends here")
    guard = next(guard for guard in run.wiring.guards if guard.reason == run.reason)
    reading = halting_reading(run)
    return guard.explain(reading, lang) if reading else say("stopped: {guard} holds", guard=guard.reason)


def _failure(run: Run, lang: Language) -> str:
    failed = next(entry for entry in reversed(run.log) if isinstance(entry, ModelFailed | AttemptFailed | ToolsFailed))
    if isinstance(failed, ToolsFailed):
        return lang.say("stopped: the tools are gone ({error}: {message})", error=failed.error, message=failed.message)
    return lang.say("stopped: the model failed ({error}: {message})", error=failed.error, message=failed.message)


def halting_reading(run: Run) -> Reading | None:
    """The reading that halted the run; None where no guard did."""
    if run.reason is None or run.edge is None:
        return None
    judged = [guard for guard in run.wiring.guards if guard.watches == run.edge.row.source]
    return next((reading for guard, reading in zip(judged, run.readings, strict=False) if guard.reason == run.reason), None)

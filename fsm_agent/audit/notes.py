"""What has to be said beside an audit's figures, so that nobody takes them for more than they are."""

from __future__ import annotations

from collections.abc import Iterator

from fsm_agent.audit.audit import Audit
from fsm_agent.audit.figures import POOLED, percent
from fsm_agent.audit.runs import BUDGETS
from fsm_agent.audit.tables import Tables
from fsm_agent.language import Language


def notes(audit: Audit, lang: Language) -> Iterator[str]:
    """The notes, in the order of their weight."""
    pooled = audit.pooled
    if not pooled.runs:
        yield lang.say("There are no runs to audit.")
        return
    if uncapped := [found.plan.name for found in (audit.base, *audit.what_ifs) if not found.plan.capped]:
        yield lang.say("max_steps is not given, so no cap on steps is tried out ({plans}).", plans="; ".join(uncapped))
    if len(audit.group_names) > 1:
        yield pooled_note(audit.base, lang)
    if pooled.unknown:
        yield lang.count(
            "Of {n} run nobody said whether it succeeded: it is no success and no failure here.",
            "Of {n} runs nobody said whether they succeeded: they are no successes and no failures here.",
            pooled.unknown,
        )
    if any(isinstance(guard, BUDGETS) for guard in audit.base.plan.guards) and audit.base.near_misses[-1].near_misses.count:
        yield lang.say("Near a limit of tokens, cost or seconds is from 90% of it; near any other, within one.")
    helped = audit.base.capped[-1]
    if helped.no_guard_helped.count:
        yield lang.say(
            "{n} of {of} runs that ended at a cap: no guard would have helped.",
            n=helped.no_guard_helped.count,
            of=helped.no_guard_helped.of,
        )
    swept = (point for sweep in audit.sweeps for point in sweep.points)
    if any(found.groups[-1].beyond.count for found in (audit.base, *audit.what_ifs)) or any(
        (alone := point.alone(POOLED)) is not None and alone.let_beyond.count for point in swept
    ):
        yield lang.say(
            "Beyond the recording: nothing halts these runs where their own system did, and what would have come then is not known."
        )
    if any(row.tokens_unknown for row in audit.base.halts):
        yield lang.say("Tokens are those of the runs that tell them, whose number stands beside them; ? means that none does.")
    if audit.damaged:
        yield lang.count("{n} damaged run was left out.", "{n} damaged runs were left out.", len(audit.damaged))


def pooled_note(found: Tables, lang: Language) -> str:
    """The warning that belongs to every figure that is pooled over groups."""
    warning = lang.say("Most savings come from weak models: set limits by the rows of runs like yours, not by those of all runs.")
    saved = {row.group: found.together(row.group).calls_saved.count for row in found.groups[:-1]}
    total = sum(saved.values())
    if not total:
        return warning
    most = max(saved, key=lambda group: saved[group])
    return f"{warning} " + lang.say("Here {share} of the calls saved are of {group}.", share=percent(saved[most] / total), group=most)

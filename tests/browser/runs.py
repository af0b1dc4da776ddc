"""Runs for the player's tests: a hostile one, one with guards that warn and trip, and a long one."""

from __future__ import annotations

from fsm_agent.events import (
    Approval,
    ApprovalAsked,
    ApprovalGiven,
    AttemptFailed,
    Cancelled,
    ContextCompacted,
    ModelReplied,
    Observation,
    Reply,
    ToolRequest,
    ToolSpec,
    ToolsReturned,
    Usage,
    UserSpoke,
)
from fsm_agent.guards import classic, guards_from
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine import Run
from fsm_agent.options import Options
from fsm_agent.protocols import LineProtocol

HOSTILE = (
    "<script>window.harmed = 1</script>",
    "</script><script>window.harmed = 2</script>",
    "<!--<script>",
    '"><img src=x onerror="window.harmed = 3">',
    "<style>* { display: none }</style>",
    "<link rel=stylesheet href=https://example.invalid/x.css>",
    "javascript:window.harmed=4",
    "$data ${id} {{k}} {step} %s \\u003c &lt;script&gt;",
    "before\u2028line\u2029paragraph",
    "\u202egnirts \u2066desrever\u2069 \u200f",
    "\x00\x07\x1b[31mred\x85 \ufeff",
    "a lone \ud800 surrogate",
    "שלום עולם",
    "👩‍👩‍👧‍👦 e\u0301 天气",
)
"""What a model or a tool may say to do harm to a page."""
BIG = 1_000_000


def hostile_run() -> Run:
    """The hostile strings as task, reply, tool, arguments, observation, traceback, talk; and an observation of 1 MB."""
    everything = "\n".join(HOSTILE)
    run = Run(everything, guards=guards_from("classic"))
    run.feed(UserSpoke(everything))
    run.feed(ModelReplied(Reply(everything, (ToolRequest("1", everything, everything),), model=everything)))
    run.feed(ModelReplied(Reply(f"TOOL dump x={HOSTILE[0]}")))
    run.feed(ToolsReturned((Observation("dump", everything + "\n" + "x" * BIG + "THE END"),)))
    run.feed(ModelReplied(Reply('TOOL fail x="</script>"')))
    run.feed(ToolsReturned((Observation(HOSTILE[1], everything, "tool_error", everything),)))
    run.feed(ModelReplied(Reply(f"FINAL {everything}")))
    return run


def guarded_run(lang: Language = ENGLISH) -> Run:
    """A run in which a guard warns, then trips, with a budget whose value is the least that it can be."""
    guards = guards_from("production", max_steps=30, max_tokens=5000, max_same_errors=3)
    run, at = Run("multiply", guards=guards, protocol=LineProtocol(lang), at=100.0), 100.0
    for step in range(1, 10):
        if run.effect is None:
            break
        at += 1.25
        run.feed(ModelReplied(Reply(f"TOOL mul a={step // 3}", usage=Usage(300, None if step == 2 else 20)), at))
        if run.effect is not None:
            run.feed(ToolsReturned((Observation("mul", "unknown tool mul", "unknown_tool"),), at + 0.25))
    return run


def long_run(steps: int) -> Run:
    """A run of so many steps, each with something of its own, stopped by a person."""
    run = Run("a long task", guards=guards_from("production", max_steps=steps * 2, max_tokens=10**8), at=0.0)
    for step in range(1, steps + 1):
        run.feed(ModelReplied(Reply(f"TOOL search q=topic number {step}", usage=Usage(1000 + step, 30)), step * 2.0))
        run.feed(ToolsReturned((Observation("search", f"Result {step}: {'lorem ipsum dolor sit amet ' * 8}"),), step * 2.0 + 1))
    run.feed(Cancelled(at=steps * 2.0 + 2))
    return run


def optional_run(lang: Language = ENGLISH) -> Run:
    """A run with every option on: asked again, a person asked, summed up, and a last chance at the cap."""
    tools = (ToolSpec("send", "Send a mail.", side_effects=True),)
    options = Options(max_retries=2, approvals=True, compaction=True, last_chance=True, tool_servers=True)
    run = Run("write to Ann", guards=classic(max_steps=3), protocol=LineProtocol(lang), tools=tools, options=options, run_id="r", at=100.0)
    run.feed(AttemptFailed("RateLimitError", "429: slow down", 2.0, at=101.0))
    run.feed(AttemptFailed("RateLimitError", "429: slow down", at=103.0))
    run.feed(ModelReplied(Reply("TOOL send to=ann"), 104.0))
    run.feed(ApprovalAsked((0,), 104.5))
    run.feed(ApprovalGiven((Approval("no", "not before noon"),), 110.0))
    run.feed(ToolsReturned((Observation("send", "denied by a person: not before noon", "denied"),), 110.0))
    run.feed(ModelReplied(Reply("TOOL send to=bob"), 111.0))
    run.feed(ApprovalAsked((0,), 111.5))
    run.feed(ApprovalGiven((Approval("edit", arguments={"to": "eve"}),), 112.0))
    run.feed(ToolsReturned((Observation("send", "sent"),), 113.0))
    run.feed(ContextCompacted(4, "Ann was not written to, and Eve was.", at=114.0))
    run.feed(ModelReplied(Reply("TOOL send to=ann,when=noon"), 115.0))
    run.feed(ToolsReturned((Observation("send", "sent"),), 116.0))
    run.feed(ModelReplied(Reply("FINAL both were written to"), 117.0))
    return run

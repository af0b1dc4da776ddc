"""Budgets of tokens, money and tool calls, and the deadline."""

from __future__ import annotations

import pytest

from fsm_agent.events import Event, ModelReplied, Reply, Started, ToolCalls, ToolsReturned, Usage, UserSpoke
from fsm_agent.guards import CostBudget, Deadline, Evidence, Guard, MaxSteps, Reading, TokenBudget, ToolBudget
from fsm_agent.language import ENGLISH
from fsm_agent.machine import Run
from fsm_agent.outcome import answer_of, message_of
from fsm_agent.protocols import RecordedProtocol
from tests.guard_steps import EMPTY, batch, charged, did, end, failed, malformed, play, readings, said, values

TEN = Usage(7, 3, 0.01)


def last_reading(run: Run, reason: str) -> Reading:
    return readings(run, reason)[-1]


# --- tokens and money ---------------------------------------------------------------------------------------------


def test_prompt_and_completion_are_charged_when_the_reply_arrives_and_its_calls_are_not_made() -> None:
    run = play(TokenBudget(25), *[charged(TEN, n=i) for i in range(9)])
    assert end(run) == ("token_budget", 3)
    assert values(run, "token_budget") == [10, 20, 30]
    assert last_reading(run, "token_budget").evidence == (Evidence(3, "usage", "7 + 3"),)
    assert run.history[-1].content == "refused, the run was stopped first: token_budget"
    assert sum(isinstance(entry, ToolsReturned) for entry in run.log) == 2
    assert message_of(run, ENGLISH) == "stopped: 30 tokens spent, the budget is 25"


def test_a_budget_that_is_spent_to_the_last_token_halts() -> None:
    assert end(play(TokenBudget(20), *[charged(TEN)] * 9)) == ("token_budget", 2)


def test_a_reply_that_cannot_be_used_is_charged_too() -> None:
    unusable = (ModelReplied(Reply("I think", usage=TEN, taken_as="unparseable")),)
    run = play(TokenBudget(20), unusable, unusable)
    assert end(run) == ("token_budget", 2)


@pytest.mark.parametrize("guard", [TokenBudget(5), CostBudget(0.001)])
def test_an_answer_that_came_is_kept_whatever_it_cost(guard: Guard) -> None:
    run = play(guard, (ModelReplied(Reply("42", usage=TEN, taken_as="answer")),))
    assert (run.reason, answer_of(run), last_reading(run, guard.reason).trips) == ("final_answer", "42", True)


def test_an_unknown_usage_is_not_zero_and_the_reading_says_how_many_there_were() -> None:
    run = play(TokenBudget(100), charged(TEN), charged(None), charged(Usage(prompt_tokens=5)), charged(Usage(-1, 2)))
    assert [(reading.value, reading.unknown) for reading in readings(run, "token_budget")] == [(10, 0), (10, 1), (15, 2), (17, 3)]
    assert [reading.evidence[0].text for reading in readings(run, "token_budget")] == ["7 + 3", "? + ?", "5 + ?", "? + 2"]


def test_money_is_added_up_and_an_unknown_price_is_not_zero() -> None:
    run = play(
        CostBudget(0.025), charged(TEN), charged(Usage(7, 3)), charged(None), charged(Usage(cost=float("nan"))), charged(TEN), charged(TEN)
    )
    assert [(round(reading.value, 6), reading.unknown) for reading in readings(run, "cost_budget")] == [
        (0.01, 0),
        (0.01, 1),
        (0.01, 2),
        (0.01, 3),
        (0.02, 3),
        (0.03, 3),
    ]
    assert last_reading(run, "cost_budget").evidence == (Evidence(6, "usage", "$0.01"),)
    assert message_of(run, ENGLISH) == "stopped: $0.03 spent, the budget is $0.025"


def test_an_unknown_usage_or_price_halts_where_that_is_asked_for() -> None:
    tokens = play(TokenBudget(100, on_unknown="halt"), charged(TEN), charged(None))
    assert end(tokens) == ("token_budget", 2)
    assert message_of(tokens, ENGLISH) == "stopped: a reply did not tell its tokens, so the budget of 100 cannot be kept"
    money = play(CostBudget(2.5, on_unknown="halt"), charged(Usage(7, 3)))
    assert end(money) == ("cost_budget", 1)
    assert message_of(money, ENGLISH) == "stopped: the price of a reply is not known, so the budget of $2.5 cannot be kept"


# --- tool calls ---------------------------------------------------------------------------------------------------


def test_a_budget_of_two_calls_allows_two_and_the_third_is_not_made() -> None:
    run = play(ToolBudget(2), did(n=1), failed(n=2), malformed(), did(n=3))
    assert end(run) == ("tool_budget", 4)
    assert [(reading.value, reading.trips) for reading in readings(run, "tool_budget")] == [(1, False), (2, False), (2, False), (3, True)]
    assert last_reading(run, "tool_budget").evidence == (Evidence(4, "call", "look{n=3}"),)
    assert message_of(run, ENGLISH) == "stopped: 3 tool calls asked for, the budget is 2"


def test_a_batch_is_counted_before_any_of_it_starts() -> None:
    three = batch(("a", {}, "1", "ok"), ("a", {}, "1", "ok"), ("b", {}, "2", "ok"))
    run = play(ToolBudget(2), three)
    assert end(run) == ("tool_budget", 1)
    assert not any(isinstance(entry, ToolsReturned) for entry in run.log)
    assert [message.content for message in run.history[-3:]] == ["refused, the run was stopped first: tool_budget"] * 3


def test_a_tool_has_its_own_budget_and_reason_beside_the_budget_of_all() -> None:
    guards = (ToolBudget(1, "search"), ToolBudget(2, "look"), ToolBudget(4))
    run = play(guards, did("look"), did("search"), did("look"), did("search"))
    assert end(run) == ("tool_budget:search", 4)
    assert [(guard.reason, guard.label) for guard in run.wiring.guards] == [
        ("tool_budget", "calls"),
        ("tool_budget:search", "search calls"),
        ("tool_budget:look", "look calls"),
    ]
    assert [values(run, guard.reason) for guard in run.wiring.guards] == [[1, 2, 3, 4], [0, 1, 1, 2], [1, 1, 2, 2]]
    assert message_of(run, ENGLISH) == "stopped: 2 calls of search asked for, the budget is 1"
    assert end(play(guards, *[did("see")] * 9)) == ("tool_budget", 5)


def test_the_rows_of_tool_budgets_stand_together_in_the_table() -> None:
    run = play((MaxSteps(9), ToolBudget(1, "search"), ToolBudget(4), TokenBudget(9)))
    rows = [row.id for row in run.wiring.rows if row.source == "Parsing"]
    assert rows == ["final_answer", "tool_budget", "tool_budget:search", "token_budget", "malformed", "said", "call_tools"]


# --- the deadline -------------------------------------------------------------------------------------------------


def timed(*events: tuple[float | None, str], guard: Guard | None = None, latency_s: float | None = None) -> Run:
    """A run of one-call steps: the time and the kind (``model``, ``tools``, ``said``, ``user``) of each event."""
    run = Run("task", guards=(guard or Deadline(10),), protocol=RecordedProtocol())
    replied, returned = did()
    assert isinstance(replied, ModelReplied)
    assert isinstance(returned, ToolsReturned)
    for at, kind in events:
        event: Event
        match kind:
            case "model":
                event = ModelReplied(Reply("", replied.reply.tool_calls, latency_s=latency_s), at)
            case "said":
                event = ModelReplied(Reply("well?", latency_s=latency_s), at)
            case "user":
                event = UserSpoke("yes", at)
            case _:
                event = ToolsReturned(returned.observations, at)
        if run.effect is not None:
            run.feed(event)
    return run


def test_the_time_between_events_counts_and_the_longest_wait_is_the_evidence() -> None:
    run = timed((100, "model"), (103, "tools"), (104, "model"), (111.5, "tools"))
    assert end(run) == ("deadline", 2)
    assert [(reading.value, reading.evidence) for reading in readings(run, "deadline")] == [
        (3, (Evidence(1, "tools", "3 s"),)),
        (11.5, (Evidence(2, "tools", "7.5 s"),)),
    ]
    assert message_of(run, ENGLISH) == "stopped: 11.5 seconds passed, the deadline is 10"


def test_waiting_for_a_person_does_not_count() -> None:
    run = timed((100, "said"), (900, "user"), (904, "said"), (5_000, "user"), (5_003, "model"), (5_004, "tools"))
    assert [reading.value for reading in readings(run, "deadline")] == [0, 4, 8]


def test_the_first_model_call_counts_from_when_it_was_made_where_that_is_known() -> None:
    assert [reading.value for reading in readings(timed((100, "model"), (101, "tools"), latency_s=6), "deadline")] == [7]


def test_the_clock_starts_with_the_run_where_that_is_known() -> None:
    guard = Deadline(10)
    memory = guard.fold(guard.start(), Started((), at=90), 0)
    assert guard.judge(guard.fold(memory, ModelReplied(Reply(latency_s=3), at=96), 1)).value == 6


def test_after_a_message_without_a_time_the_clock_starts_anew() -> None:
    run = timed((100, "said"), (None, "user"), (5_000, "model"), (5_002, "tools"))
    assert [(reading.value, reading.unknown) for reading in readings(run, "deadline")] == [(0, 0), (2, 0)]


def test_an_event_without_a_time_is_not_zero() -> None:
    run = timed((100, "model"), (None, "tools"), (None, "model"), (106, "tools"))
    assert [(reading.value, reading.unknown) for reading in readings(run, "deadline")] == [(0, 1), (6, 2)]
    assert readings(play(Deadline(1), did(), EMPTY, said()), "deadline")[-1] == Reading("deadline", 0, 1, trips=False, unknown=4)


def test_a_clock_that_was_set_back_adds_nothing() -> None:
    run = timed((100, "model"), (40, "tools"), (43, "model"), (44, "tools"))
    assert [reading.value for reading in readings(run, "deadline")] == [0, 4]


def test_facts_of_other_kinds_change_nothing() -> None:
    guards: tuple[Guard, ...] = (Deadline(1), TokenBudget(1), CostBudget(1), ToolBudget(1))
    for guard in guards:
        memory = guard.start()
        assert guard.fold(memory, ToolCalls(()), 1) == memory


@pytest.mark.parametrize(
    ("guard", "error", "message"),
    [
        (lambda: TokenBudget(0), ValueError, "max_tokens is 0; it must be at least 1"),
        (lambda: TokenBudget(5, on_unknown="stop"), ValueError, "on_unknown is 'stop'; it must be one of go_on, halt"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: CostBudget(0), ValueError, "max_cost is 0; it must be a number above 0"),
        (lambda: CostBudget(float("nan")), ValueError, "max_cost is nan; it must be a number above 0"),
        (lambda: CostBudget(max_cost="1"), TypeError, "max_cost is '1'; it must be a number"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: ToolBudget(0), ValueError, "max_calls is 0; it must be at least 1"),
        (lambda: Deadline(-1), ValueError, "deadline_s is -1; it must be a number above 0"),
        (lambda: Deadline(True), TypeError, "deadline_s is True; it must be a number"),
    ],
)
def test_limits_are_refused_when_configured(guard: type[MaxSteps], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        guard()

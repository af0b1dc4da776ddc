"""The alphabet: nothing that can happen is missing from it, and nothing in it cannot happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import get_args

import pytest

from fsm_agent.events import (
    ApprovalAsked,
    ApprovalGiven,
    AskApproval,
    AskModel,
    AttemptFailed,
    CallTools,
    ContextCompacted,
    Decision,
    Effect,
    Event,
    Final,
    Malformed,
    ModelReplied,
    Observation,
    ObservationKind,
    Reply,
    ToolCall,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.guards import CostBudget, Deadline, Guard, MaxSteps, NoProgress, TokenBudget, ToolBudget, classic, production
from fsm_agent.machine import TRIGGERS, Run
from fsm_agent.options import OFF, Options
from fsm_agent.proof.alphabet import Alphabet, tools_for
from fsm_agent.proof.letters import Letter, Names
from fsm_agent.proof.options import options_from
from fsm_agent.proof.sight import Sight, sight_of
from fsm_agent.proof.states import new_run, used_up
from fsm_agent.proof.structure import PERSON
from fsm_agent.table import DECIDING, EXECUTING
from tests.proof_guards import Shouted

EVERYTHING: tuple[Guard, ...] = (*production(9), TokenBudget(9), CostBudget(1), Deadline(9), ToolBudget(9, "search"))


ON = options_from(["all"])


def alphabet(*guards: Guard, batch: int = 2, options: Options = OFF) -> Alphabet:
    sight = sight_of(guards)
    return Alphabet(sight, tools_for(sight), batch, options)


def new(used: dict[str, int]) -> Callable[[str, int], int]:
    return lambda kind, index: used.get(kind, 0) + index


def events(letters: tuple[Letter, ...], known: dict[str, int]) -> list[Event]:
    return [letter.event(Names({kind: range(n) for kind, n in known.items()}, new(known))) for letter in letters]


def waiting(guards: tuple[Guard, ...], options: Options = OFF) -> Iterator[Run]:
    """Runs of one step: in each waiting state, for whatever it may wait, and with whatever the step may have used up."""
    ahead = [new_run(guards, alphabet(*guards).tools, options)]
    known = set()
    while ahead:
        run = ahead.pop(0)
        key = run.state, type(run.effect), used_up(run), run.chance
        if run.effect is not None and key not in known and run.step <= 1:
            known.add(key)
            yield run
            for event in of_run(run, {}, *guards):
                after = run.copy()
                after.feed(event)
                ahead.append(after)


def of_run(run: Run, known: dict[str, int], *guards: Guard) -> list[Event]:
    assert run.effect is not None
    letters = alphabet(*guards, options=run.options).letters(run.effect, known, summed_up=run.summed_up, last=run.chance is not None)
    names = Names({kind: range(n) for kind, n in known.items()}, new(known), run.summary.covers if run.summary else 0)
    return [letter.event(names) for letter in letters]


@pytest.mark.parametrize("options", [OFF, ON], ids=["off", "on"])
@pytest.mark.parametrize("guards", [(), classic(1), EVERYTHING], ids=["none", "classic", "everything"])
def test_every_event_that_a_state_takes_is_tried_and_none_is_refused(guards: tuple[Guard, ...], options: Options) -> None:
    states = set()
    for run in waiting(guards, options):
        states.add((run.state, type(run.effect)))
        tried = of_run(run, {}, *guards)
        assert {type(event) for event in tried} == set(run.accepts)
        for event in tried:
            run.copy().feed(event)
    asks = {(EXECUTING, AskApproval)} if options.approvals else set()
    assert states == {(DECIDING, AskModel), (EXECUTING, CallTools)} | asks


def test_every_event_of_the_package_is_tried_in_some_state() -> None:
    tried = {type(event) for run in waiting(classic(), ON) for event in of_run(run, {}, *classic())}
    assert tried == set(get_args(Event)) == set(TRIGGERS)


def test_every_effect_has_letters() -> None:
    effects = {type(run.effect): run.effect for run in waiting(classic(), ON)}
    assert set(effects) == set(get_args(Effect))
    for effect in effects.values():
        assert effect is not None
        assert alphabet().letters(effect, {})


def test_of_the_last_word_what_it_is_is_tried_and_nothing_that_only_guards_could_see() -> None:
    last = next(run for run in waiting(classic(1), ON) if run.chance is not None)
    tried = of_run(last, {"work": 3}, *EVERYTHING)
    replies = [event for event in tried if isinstance(event, ModelReplied)]
    assert isinstance(after(last, replies[0]).decision, Final)
    assert {type(after(last, event).decision) for event in replies} == set(get_args(Decision))
    assert [event.at for event in replies] == [None] * len(replies)
    assert len(replies) < 15


def after(run: Run, event: Event) -> Run:
    copy = run.copy()
    copy.feed(event)
    return copy


def test_a_server_asks_for_no_wait_for_the_longest_that_is_waited_and_for_one_that_is_too_long() -> None:
    options = Options(max_retries=1, max_wait_s=7.0)
    tried = of_run(new_run((), (), options), {})
    waits = [(event.retry_after_s, options.wait_s(0, event.retry_after_s)) for event in tried if isinstance(event, AttemptFailed)]
    assert waits == [(None, 0.5), (0.0, 0.0), (7.0, 7.0), (15.0, None)]


def test_the_conversation_is_summed_up_once_a_step_a_little_further_each_time() -> None:
    (run,) = (run for run in waiting((), Options(compaction=True)) if run.summed_up)
    assert ContextCompacted not in {type(event) for event in of_run(run, {})}
    for event in (ModelReplied(Reply("hm", taken_as="unparseable")), ContextCompacted(2, "a summary")):
        run.feed(event)
    assert run.summary == ContextCompacted(2, "a summary")


def test_some_calls_are_asked_about_and_each_verdict_is_given_where_a_guard_can_tell() -> None:
    pair = CallTools((ToolCall("work", {}), ToolCall("work", {})))
    options = Options(approvals=True)

    def asked(*guards: Guard) -> list[tuple[int, ...]]:
        letters = alphabet(*guards, options=options).letters(pair, {})
        return [event.calls for event in events(letters, {}) if isinstance(event, ApprovalAsked)]

    def given(*guards: Guard) -> list[tuple[str, ...]]:
        letters = alphabet(*guards, options=options).letters(AskApproval(pair.calls, (0, 1)), {})
        return [tuple(each.verdict for each in event.approvals) for event in events(letters, {}) if isinstance(event, ApprovalGiven)]

    assert asked(*classic()) == [(0, 1)]
    assert given(*classic()) == [("yes", "yes"), ("no", "no"), ("edit", "edit")]
    assert asked(Shouted()) == [(0, 1), (0,), (1,)]
    assert given(Shouted()) == list(product(("yes", "no", "edit"), repeat=2))


def test_a_person_who_was_asked_is_not_asked_again_and_what_was_settled_comes_back_as_it_was() -> None:
    no = Observation("work", "no!", "denied")
    effect = CallTools((ToolCall("work", {}), ToolCall("work", {})), (no, None), may_ask=False)
    tried = events(alphabet(options=ON).letters(effect, {}), {})
    assert not any(isinstance(event, ApprovalAsked) for event in tried)
    assert {event.observations[0] for event in tried if isinstance(event, ToolsReturned)} == {no}
    assert len({event.observations[1].kind for event in tried if isinstance(event, ToolsReturned)}) == 3


def test_every_decision_and_every_kind_of_malformed_reply_is_tried() -> None:
    decisions: list[Decision] = []
    run = next(waiting(EVERYTHING))
    for event in of_run(run, {}, *EVERYTHING):
        decisions += after(run, event).decisions
    assert {type(decision) for decision in decisions} == set(get_args(Decision))
    assert {decision.kind for decision in decisions if isinstance(decision, Malformed)} == {"unparseable", "empty", "truncated"}


def test_every_kind_of_observation_is_tried_of_a_single_call() -> None:
    seen = [event.observations[0].kind for event in returned(CallTools((ToolCall("work", {}),)), {})]
    assert set(seen) == set(get_args(ObservationKind))


def test_in_batches_two_kinds_stand_for_those_that_no_guard_names() -> None:
    pair = CallTools((ToolCall("work", {}), ToolCall("work", {})))
    assert sight_of([MaxSteps(3)]).kinds == ("ok", "tool_error", "unknown_tool")
    kinds = {tuple(seen.kind for seen in event.observations) for event in returned(pair, {})}
    assert len(kinds) == 9
    assert set(sight_of(production(9)).kinds) == {"ok", "tool_error", "unknown_tool", "bad_arguments", "timeout", "denied"}


def returned(effect: CallTools, known: dict[str, int], *guards: Guard) -> list[ToolsReturned]:
    return [event for event in events(alphabet(*guards).letters(effect, known), known) if isinstance(event, ToolsReturned)]


def test_what_a_memory_holds_is_tried_again() -> None:
    known = {"work": 2, "text": 1, "talk": 1}
    tried = events(alphabet().letters(next(waiting(())).effect or CallTools(()), known), known)
    calls = {tuple(call.arguments for call in event.reply.tool_calls) for event in tried if isinstance(event, ModelReplied)}
    one, other, fresh, newer = ('{"n":"work#0"}', '{"n":"work#1"}', '{"n":"work#2"}', '{"n":"work#3"}')
    assert {(one,), (other,), (fresh,)} <= calls
    assert {(fresh, newer), (fresh, one), (one, other), (one, one), (fresh, fresh)} <= calls
    assert (newer,) not in calls
    assert (newer, newer) not in calls
    assert {event.text for event in tried if isinstance(event, UserSpoke)} == {"talk#0", "talk#1"}
    texts = {event.reply.text for event in tried if isinstance(event, ModelReplied)}
    assert texts == {"", "text#0", "text#1"}


def test_a_returned_text_may_be_new_or_one_that_was_seen() -> None:
    effect = CallTools((ToolCall("work", {}), ToolCall("work", {})))
    good = {tuple(seen.text for seen in event.observations) for event in returned(effect, {"seen": 1}) if all_ok(event.observations)}
    old, fresh, newer = "seen#0", "seen#1", "seen#2"
    assert good == {(fresh, newer), (fresh, fresh), (fresh, old), (old, old), (old, fresh)}


def all_ok(observations: tuple[Observation, ...]) -> bool:
    return all(not seen.is_error for seen in observations)


def test_payloads_that_no_guard_can_see_are_not_varied() -> None:
    def replies(*guards: Guard) -> int:
        return sum(isinstance(event, ModelReplied) for event in of_run(next(waiting(guards)), {}, *guards))

    plain = replies()
    assert replies(TokenBudget(9)) == 4 * plain
    assert replies(Deadline(9)) == 4 * plain
    assert replies(TokenBudget(9), Deadline(9)) == 16 * plain
    assert replies(MaxSteps(9)) == plain


def test_usage_is_known_to_be_nothing_or_too_much_or_not_known() -> None:
    run = next(waiting((TokenBudget(70),)))
    tried = of_run(run, {}, TokenBudget(70))
    usages = [event.reply.usage for event in tried if isinstance(event, ModelReplied)]
    told = {(usage.prompt_tokens, usage.completion_tokens) if usage else None for usage in usages}
    assert told == {(0, 0), None, (0, None), (1000, 1000)}


def test_a_polling_tool_and_the_tools_that_guards_name_are_called_where_it_matters() -> None:
    assert [tool.name for tool in alphabet(MaxSteps(3)).tools] == ["work"]
    assert [(tool.name, tool.polls) for tool in alphabet(NoProgress(), ToolBudget(2, "search")).tools] == [
        ("work", False),
        ("poll", True),
        ("search", False),
    ]


def test_letters_of_a_person_are_those_of_the_edges_that_only_a_person_can_take() -> None:
    letters = [letter for run in waiting((), ON) if run.effect for letter in alphabet(options=ON).letters(run.effect, {})]
    person = {TRIGGERS[type(letter.event(Names({}, new({}))))] for letter in letters if letter.person}
    machine = {TRIGGERS[type(letter.event(Names({}, new({}))))] for letter in letters if not letter.person}
    assert person == PERSON
    assert not person & machine


def test_the_first_letter_is_the_most_harmless() -> None:
    asking, calling = list(waiting(()))[:2]
    (call,) = of_run(asking, {})[0].reply.tool_calls  # type: ignore[union-attr]  # the first letter is a reply
    assert call.arguments == '{"n":"work#0"}'
    first = of_run(calling, {})[0]
    assert isinstance(first, ToolsReturned)
    assert first.observations[0].kind == "ok"


def test_without_guards_only_what_the_machine_sees_is_tried() -> None:
    assert sight_of([]) == Sight(kinds=("ok", "tool_error", "unknown_tool"))

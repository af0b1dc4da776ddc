"""``Run``: what it asks for, what it writes down, what it refuses."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import attrs
import pytest

from fsm_agent.events import (
    AskModel,
    CallTools,
    Cancelled,
    Event,
    Fact,
    Malformed,
    Message,
    Messages,
    ModelFailed,
    ModelReplied,
    Observation,
    RecordingEnded,
    Reply,
    ToolCall,
    ToolCalls,
    ToolRequest,
    ToolSpec,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.guards import Evidence, Guard, Reading, Summary, at_least, classic, predicate
from fsm_agent.language import Language
from fsm_agent.machine import GuardError, Run, Taken, UnexpectedEvent, wire
from fsm_agent.protocols import RecordedProtocol

ADD = ModelReplied(Reply("TOOL add a=1,b=2"))
THREE = ToolsReturned((Observation("add", "3"),))
FINAL = ModelReplied(Reply("FINAL 3"))
TWO_CALLS = ModelReplied(Reply("both", (ToolRequest("x", "add", '{"a": 1}'), ToolRequest("y", "mul", '{"a": 2}'))))


def run_of(*events: Event, guards: tuple[Guard, ...] = classic(), structured: bool = False, **options: Any) -> Run:
    run = Run("task", guards=guards, protocol=RecordedProtocol() if structured else None, **options)
    for event in events:
        run.feed(event)
    return run


def snapshot(run: Run) -> dict[str, object]:
    """All that a run is, its lists copied."""
    values = {name: getattr(run, name) for name in Run.__slots__}
    return {name: list(value) if isinstance(value, list) else value for name, value in values.items()}


# --- what it asks for --------------------------------------------------------------------------------------------


def test_a_new_run_asks_the_model_and_has_done_nothing() -> None:
    run = run_of(structured=True, tools=(ToolSpec("add"),))
    assert run.effect == AskModel(Messages([Message("user", "task")], 1), (ToolSpec("add"),))
    assert (run.state, run.reason, run.step, run.log, run.decisions) == ("Deciding", None, 0, [], [])


def test_a_protocols_system_prompt_comes_first() -> None:
    run = run_of()
    assert [message.role for message in run.history] == ["system", "user"]


def test_a_reply_with_calls_asks_for_them_and_then_for_the_model_again() -> None:
    run = run_of()
    assert run.feed(ADD) == CallTools((ToolCall("add", {"a": "1", "b": "2"}),))
    assert (run.state, run.step) == ("Executing", 1)
    ask = run.feed(THREE)
    assert isinstance(ask, AskModel)
    assert list(ask.messages)[2:] == [Message("assistant", "TOOL add a=1,b=2"), Message("tool", "3", tool="add")]
    assert (run.state, run.step) == ("Deciding", 1)


def test_a_halted_run_asks_for_nothing() -> None:
    run = run_of(FINAL)
    assert (run.state, run.reason, run.effect, run.step) == ("Halted", "final_answer", None, 1)


def test_the_log_has_every_event_then_the_edges_taken_on_it_with_their_readings() -> None:
    run = run_of(ADD, THREE, FINAL)
    call = Evidence(1, "call", "add{a=1, b=2}")
    assert run.log == [
        ADD,
        Taken("model_replied", 1),
        Taken("call_tools", 1, (Reading("repeated_call", 0, 2, trips=False, evidence=(call,)),)),
        THREE,
        Taken("tools_returned", 1),
        Taken("go_on", 1, (Reading("consecutive_errors", 0, 2, trips=False), Reading("max_steps", 1, 10, trips=False))),
        FINAL,
        Taken("model_replied", 2),
        Taken("final_answer", 2, (Reading("repeated_call", 0, 2, trips=False, evidence=(call,)),)),
    ]


def test_the_model_is_shown_the_whole_history_and_an_older_question_keeps_its_own() -> None:
    run = run_of()
    first = run.effect
    assert isinstance(first, AskModel)
    shown = list(first.messages)
    run.feed(ADD)
    run.feed(THREE)
    assert list(first.messages) == shown
    assert isinstance(run.effect, AskModel)
    assert list(run.effect.messages) == run.history
    assert run.effect.messages[:2] == shown


# --- the history -------------------------------------------------------------------------------------------------


def test_observations_answer_their_calls_by_id_and_in_order() -> None:
    run = run_of(TWO_CALLS, ToolsReturned((Observation("add", "1"), Observation("mul", "2"))), structured=True)
    assert run.history == [
        Message("user", "task"),
        Message("assistant", "both", TWO_CALLS.reply.tool_calls),
        Message("tool", "1", (), "add", "x"),
        Message("tool", "2", (), "mul", "y"),
    ]


def test_a_malformed_reply_is_answered_by_its_correction() -> None:
    run = run_of(ModelReplied(Reply("well")))
    assert isinstance(run.decision, Malformed)
    assert run.history[2:] == [Message("assistant", "well"), Message("user", run.decision.problem)]
    assert (run.state, run.step) == ("Deciding", 1)


def test_no_call_of_a_reply_that_was_cut_off_is_made_and_each_is_told_why() -> None:
    reply = changed(TWO_CALLS.reply, finish_reason="length")
    run = run_of(ModelReplied(reply), structured=True)
    problem = "The reply was cut off, so none of its tool calls was made. Answer again, and shorter."
    assert run.decision == Malformed(problem, "truncated")
    assert run.history[2:] == [Message("tool", problem, (), "", "x"), Message("tool", problem, (), "", "y")]
    assert isinstance(run.effect, AskModel)


def changed(reply: Reply, **changes: Any) -> Reply:
    return Reply(**{name: getattr(reply, name) for name in Reply.__struct_fields__} | changes)


def test_an_answer_that_was_cut_off_is_still_an_answer() -> None:
    run = run_of(ModelReplied(Reply("FINAL thr", finish_reason="length")))
    assert run.reason == "final_answer"


def test_calls_that_a_guard_refuses_are_answered_as_refused() -> None:
    run = run_of(ADD, THREE, ADD, THREE, ADD)
    assert (run.state, run.reason, run.step) == ("Halted", "repeated_call", 3)
    assert run.history[-1] == Message("tool", "refused, the run was stopped first: repeated_call", tool="add")


def test_a_cancelled_batch_keeps_what_came_back_before() -> None:
    run = run_of(TWO_CALLS, Cancelled((Observation("add", "1"), Observation("mul", "?", "cancelled"))), structured=True)
    assert (run.reason, run.step) == ("cancelled", 1)
    assert [message.content for message in run.history[-2:]] == ["1", "?"]


def test_a_person_may_speak_while_the_model_is_about_to_be_asked() -> None:
    run = run_of(UserSpoke("in euros, please"))
    assert run.history[-1] == Message("user", "in euros, please")
    assert run.log == [UserSpoke("in euros, please"), Taken("user_spoke", 0)]
    assert run.step == 0


@pytest.mark.parametrize(
    ("events", "reason", "step"),
    [
        ((ModelFailed("Timeout", "no answer"),), "model_error", 1),
        ((Cancelled(),), "cancelled", 1),
        ((Cancelled(asked=False),), "cancelled", 0),
        ((ADD, THREE, Cancelled(asked=False)), "cancelled", 1),
        ((RecordingEnded(),), "recording_ended", 0),
        ((ADD, RecordingEnded()), "recording_ended", 1),
        ((ADD, THREE, Cancelled()), "cancelled", 2),
    ],
)
def test_the_world_can_end_a_run(events: tuple[Event, ...], reason: str, step: int) -> None:
    run = run_of(*events)
    assert (run.state, run.reason, run.step, run.effect) == ("Halted", reason, step, None)


# --- what it refuses ---------------------------------------------------------------------------------------------

ONE, OTHER = Observation("add", "3"), Observation("mul", "2")


@pytest.mark.parametrize(
    ("before", "event", "message"),
    [
        (
            (),
            ToolsReturned((ONE,)),
            "ToolsReturned in Deciding (step 0): this state takes ModelReplied, ModelFailed, UserSpoke, Cancelled, RecordingEnded",
        ),
        (
            (ADD,),
            FINAL,
            "ModelReplied in Executing (step 1): this state takes ToolsReturned, Cancelled, RecordingEnded",
        ),
        (
            (ADD,),
            ModelFailed("Timeout", "late"),
            "ModelFailed in Executing (step 1): this state takes ToolsReturned, Cancelled, RecordingEnded",
        ),
        (
            (ADD,),
            UserSpoke("wait"),
            "UserSpoke in Executing (step 1): this state takes ToolsReturned, Cancelled, RecordingEnded",
        ),
        ((FINAL,), ADD, "ModelReplied in Halted (step 1): this state takes nothing, ever again"),
        ((FINAL,), Cancelled(), "Cancelled in Halted (step 1): this state takes nothing, ever again"),
        ((ADD,), ToolsReturned(()), "ToolsReturned in Executing (step 1): 0 observations: 1 calls wait for one each"),
        ((ADD,), ToolsReturned((ONE, OTHER)), "ToolsReturned in Executing (step 1): 2 observations: 1 calls wait for one each"),
        ((ADD,), Cancelled(), "Cancelled in Executing (step 1): 0 observations: 1 calls wait for one each"),
        ((), Cancelled((ONE,)), "Cancelled in Deciding (step 0): 1 observations: 0 calls wait for one each"),
        (
            (),
            "FINAL 3",
            "str in Deciding (step 0): this state takes ModelReplied, ModelFailed, UserSpoke, Cancelled, RecordingEnded",
        ),
    ],
)
@pytest.mark.parametrize("stock", [False, True], ids=["lean", "stock"])
def test_an_event_that_cannot_happen_raises_and_changes_nothing(before: tuple[Event, ...], event: Any, message: str, stock: bool) -> None:
    run = run_of(*before, stock=stock)
    as_it_was = snapshot(run)
    with pytest.raises(UnexpectedEvent, match=f"^{re.escape(message)}$"):
        run.feed(event)
    assert snapshot(run) == as_it_was


def test_what_happened_before_a_refused_event_goes_on_after_it() -> None:
    run = run_of(ADD)
    with pytest.raises(UnexpectedEvent):
        run.feed(FINAL)
    run.feed(THREE)
    run.feed(FINAL)
    assert run.reason == "final_answer"
    assert run.log == run_of(ADD, THREE, FINAL).log


@pytest.mark.parametrize(
    ("events", "accepts"),
    [
        ((), (ModelReplied, ModelFailed, UserSpoke, Cancelled, RecordingEnded)),
        ((ADD,), (ToolsReturned, Cancelled, RecordingEnded)),
        ((FINAL,), ()),
    ],
)
def test_a_run_tells_which_events_can_happen(events: tuple[Event, ...], accepts: tuple[type, ...]) -> None:
    assert run_of(*events).accepts == accepts


# --- copies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [(), (ADD,), (ADD, THREE), (FINAL,)], ids=["new", "Executing", "Deciding", "Halted"])
def test_a_copy_is_equal_and_goes_its_own_way(before: tuple[Event, ...]) -> None:
    run = run_of(*before)
    copy = run.copy()
    assert snapshot(copy) == snapshot(run)
    as_it_was = snapshot(run)
    for event in {"Deciding": (ADD, THREE, FINAL), "Executing": (THREE, FINAL), "Halted": ()}[run.state]:
        copy.feed(event)
    assert copy.reason == "final_answer"
    assert snapshot(run) == as_it_was


def test_the_original_of_a_copy_goes_its_own_way_too() -> None:
    run = run_of(ADD, THREE)
    copy = run.copy()
    as_it_was = snapshot(copy)
    shown = list(copy.effect.messages) if isinstance(copy.effect, AskModel) else []
    run.feed(ADD)
    run.feed(THREE)
    run.feed(ADD)
    assert snapshot(copy) == as_it_was
    assert isinstance(copy.effect, AskModel)
    assert list(copy.effect.messages) == shown == copy.history
    copy.feed(FINAL)
    assert (run.reason, copy.reason) == ("repeated_call", "final_answer")


# --- guards of users, and wiring ---------------------------------------------------------------------------------


@attrs.frozen
class TooManySearches(Guard):
    """A user's own guard, which warns before it halts."""

    reason: ClassVar[str] = "too_many_searches"
    limit: int = attrs.field(default=2, validator=at_least(1))
    warn_at: int | None = None

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        return memory + sum(call.name == "search" for call in fact.calls) if isinstance(fact, ToolCalls) else memory

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, self.limit, memory >= self.limit, warns=memory == self.warn_at)

    def nudge(self, reading: Reading, lang: Language) -> str:
        return f"{reading.value} searches; {reading.limit} are too many"


def searches(n: int) -> list[Event]:
    found = ToolsReturned((Observation("search", "nothing"),))
    return [event for i in range(n) for event in (ModelReplied(Reply(f"TOOL search q={i}")), found)]


def test_a_users_guard_halts_with_its_reason_and_is_on_record() -> None:
    run = run_of(*searches(2), guards=(*classic(), TooManySearches()))
    assert (run.reason, run.step) == ("too_many_searches", 2)
    assert run.log[-1] == Taken(
        "too_many_searches",
        2,
        (
            Reading("consecutive_errors", 0, 2, trips=False),
            Reading("too_many_searches", 2, 2, trips=True),
            Reading("max_steps", 2, 10, trips=False),
        ),
    )


def test_a_guard_that_warns_gives_the_model_a_word_and_goes_on() -> None:
    run = run_of(*searches(1), guards=(TooManySearches(limit=3, warn_at=1),))
    assert run.log[-1] == Taken("nudge", 1, (Reading("too_many_searches", 1, 3, trips=False, warns=True),))
    assert run.history[-1] == Message("user", "1 searches; 3 are too many")
    assert run.effect == AskModel(Messages(run.history, len(run.history)))


def test_a_halt_comes_before_a_warning() -> None:
    run = run_of(*searches(1), guards=(*classic(max_steps=1), TooManySearches(limit=3, warn_at=1)))
    assert run.reason == "max_steps"


def test_a_run_without_guards_goes_on_and_on() -> None:
    step: list[Event] = [ADD, THREE]
    run = run_of(*step * 50, guards=())
    assert (run.state, run.step, run.readings) == ("Deciding", 50, ())


def test_equal_guards_share_one_wiring() -> None:
    assert wire(classic(3, 2, 1)) is wire(list(classic(3, 2, 1)))
    assert wire(classic(3, 2, 1)) is not wire(classic(4, 2, 1))
    assert wire(classic(3, 2, 1)) is not wire(classic(3, 2, 1), stock=True)


def test_a_guard_that_cannot_be_hashed_is_wired_anew() -> None:
    @attrs.define(eq=True)
    class Listed(TooManySearches):
        names: list[str] = attrs.field(factory=list)

    guard = Listed()
    assert wire([guard]) is not wire([guard])
    assert run_of(*searches(2), guards=(guard,)).reason == "too_many_searches"


def test_the_order_in_which_guards_are_given_changes_nothing() -> None:
    events = [ModelReplied(Reply("?"))] * 2
    given = [run_of(*events, guards=guards) for guards in (classic(max_steps=2), classic(max_steps=2)[::-1])]
    assert given[0].log == given[1].log
    assert given[0].reason == "consecutive_errors"


def test_two_guards_of_one_reason_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^MaxSteps and MaxSteps both halt with the reason 'max_steps'; give one of them another$"):
        run_of(guards=(*classic(), classic(max_steps=3)[-1]))


# --- guards that are wrong ----------------------------------------------------------------------------------------


@attrs.frozen
class Wrong(Guard):
    """A user's guard that does what it is told."""

    reason: ClassVar[str] = "wrong"
    reading: Any = None
    raises_in: str = ""

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        if self.raises_in == "fold" and isinstance(fact, ToolsReturned):
            raise LookupError("no\nsuch thing")
        return memory

    def judge(self, memory: int) -> Reading:
        if self.raises_in == "judge":
            raise LookupError
        return self.reading  # type: ignore[no-any-return]  # whatever it is


def wrong_reading(**fields: Any) -> Reading:
    given: dict[str, Any] = {"guard": "wrong", "value": 0, "limit": 1, "trips": False}
    return Reading(**given | fields)


WRONG = "the guard Wrong (wrong): judge returned a wrong reading: "


@pytest.mark.parametrize(
    ("reading", "problem"),
    [
        (None, "None is no Reading"),
        (wrong_reading(guard="right"), "guard is 'right'; it must be the guard's reason"),
        (wrong_reading(guard=3), "guard is 3; it must be text that a file can hold"),
        (wrong_reading(value=float("nan")), "value is nan; it must be a finite number"),
        (wrong_reading(value=True), "value is True; it must be a finite number"),
        (wrong_reading(limit=float("inf")), "limit is inf; it must be a finite number"),
        (wrong_reading(limit="3"), "limit is '3'; it must be a finite number"),
        (wrong_reading(value=2**64), f"value is {2**64}; it must be a finite number"),
        (wrong_reading(trips=1), "trips is 1; it must be True or False"),
        (wrong_reading(warns=None), "warns is None; it must be True or False"),
        (wrong_reading(period="x"), "period is 'x'; it must be a whole number or None"),
        (
            wrong_reading(evidence=(Evidence(1, "call", "\ud800"),)),
            "evidence is (Evidence(step=1, kind='call', text='\\ud800'),); it must be a tuple of Evidence that a file can hold",
        ),
        (wrong_reading(parts=(wrong_reading(value="x"),)), "value is 'x'; it must be a finite number"),
    ],
)
@pytest.mark.parametrize("stock", [False, True], ids=["lean", "stock"])
def test_a_wrong_reading_of_a_users_guard_is_one_clear_error(reading: Any, problem: str, stock: bool) -> None:
    run = run_of(ADD, guards=(*classic(), Wrong(reading)), stock=stock)
    with pytest.raises(GuardError, match=f"^{re.escape(f'{WRONG}{problem} (in Observing, step 1)')}$"):
        run.feed(THREE)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("fold", "the guard Wrong (wrong): fold raised LookupError: no (in Observing, step 1)"),
        ("judge", "the guard Wrong (wrong): judge raised LookupError (in Observing, step 1)"),
    ],
)
def test_a_users_guard_that_raises_is_named_and_the_event_is_in_the_log(where: str, message: str) -> None:
    run = run_of(ADD, guards=(Wrong(wrong_reading(), where),))
    place = message if where == "judge" else message.replace("Observing", "Executing")
    with pytest.raises(GuardError, match=f"^{re.escape(place)}$") as error:
        run.feed(THREE)
    assert isinstance(error.value.__cause__, LookupError)
    assert THREE in run.log


def test_the_parts_of_a_combined_guard_and_predicates_are_watched_too() -> None:
    def fails(summary: Summary) -> bool:
        raise ZeroDivisionError("division by zero")

    for guard, name in ((Wrong("x") & classic()[-1], "AllOf (wrong_and_max_steps)"), (predicate(fails), "Predicate (fails)")):
        run = run_of(ADD, guards=(guard,))
        with pytest.raises(GuardError, match=re.escape(name)):
            run.feed(THREE)


def test_guards_of_this_package_are_asked_directly() -> None:
    wiring = wire(classic())
    assert [judge.__self__ for judges in wiring.judges.values() for _, judge in judges] == list(wiring.guards)  # type: ignore[attr-defined]  # a method


# --- Messages ----------------------------------------------------------------------------------------------------


def test_messages_are_a_sequence_that_does_not_grow() -> None:
    history = [Message("user", text) for text in "abc"]
    view = Messages(history, 2)
    history.append(Message("user", "d"))
    assert (len(view), [message.content for message in view]) == (2, ["a", "b"])
    assert (view[0], view[-1], view[1:], view[::-1]) == (history[0], history[1], [history[1]], history[1::-1])
    assert view == history[:2]
    assert view == Messages(list(history), 2)
    assert view != history
    assert view != "ab"
    assert history[2] not in view
    with pytest.raises(IndexError):
        view[2]
    with pytest.raises(TypeError):
        hash(view)
    assert repr(Messages(history, 1)) == f"Messages([{history[0]!r}])"

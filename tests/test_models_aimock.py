"""The adapters against aimock, which speaks the servers' real protocols: OpenAI and Anthropic, sync and async, whole and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from fsm_agent import Result, Tool, arun, run, tool
from fsm_agent.context import KeepLast, Summarise
from fsm_agent.events import ContextCompacted, Malformed, Message, ModelReplied, Observation, Reply, ToolRequest, ToolsReturned, Usage
from fsm_agent.guards import CostBudget, classic
from fsm_agent.models.base import ChatModel
from fsm_agent.models.errors import ContextOverflow, ModelError, ModelRefused, ModelUnavailable
from fsm_agent.outcome import answer_of
from fsm_agent.protocols import JsonTextProtocol, LineProtocol, Protocol, ReactProtocol
from fsm_agent.tools.builtin import add, mul
from tests.aimock import Aimock, aimock_fixture, aimock_server, started
from tests.asked import WAYS, Way
from tests.raw_server import Answer, RawServer, raw_server

__all__ = ["aimock_fixture", "aimock_server", "raw_server"]

TASK = [Message("system", "Be brief."), Message("user", "What is 3 + 4?")]

DRIVEN = [way for way in WAYS if not way.streamed]

every_way = pytest.mark.parametrize("way", WAYS, ids=str)


@pytest.fixture(scope="module")
def careless() -> Iterator[Aimock]:
    """A server whose answers are wrong in ways that aimock does not allow later."""
    torn = {"id": "call_1", "name": "add", "arguments": '{"a": 3, '}
    answers: list[dict[str, Any]] = [
        {"match": {"userMessage": "nothing"}, "response": {"content": ""}},
        {"match": {"userMessage": "reply is empty"}, "response": {"content": ""}},
        {"match": {"userMessage": "torn", "hasToolResult": False}, "response": {"toolCalls": [torn]}},
        {"match": {"toolResultContains": "not a JSON object"}, "response": {"content": "I give up."}},
    ]
    with started(answers) as server:
        yield server


every_driver = pytest.mark.parametrize("way", DRIVEN, ids=str)


def driven(
    way: Way,
    url: str,
    task: str,
    tools: Sequence[Tool] = (),
    prices: tuple[float, float] | None = None,
    beside: ChatModel | None = None,
    **options: Any,
) -> Result:
    """A whole run, by ``run`` or ``arun``. ``beside``: another model that it uses, whose connections are closed, too."""
    model = way.model(url, prices=prices)
    chosen: dict[str, Any] = {"tools": tools, "protocol": "function_calling", "guards": classic(), "lang": "en", **options}
    if not way.awaited:
        with model, beside or nullcontext():
            return run(task, model=model, **chosen)

    async def awaited() -> Result:
        async with model, beside or nullcontext():
            return await arun(task, model=model, **chosen)

    return asyncio.run(awaited())


def told(result: Result) -> list[Reply | tuple[Observation, ...]]:
    """What happened in a run: replies, without their times, and observations."""
    happened: list[Reply | tuple[Observation, ...]] = []
    for event in result.trace.log:
        match event:
            case ModelReplied(reply=reply):
                happened.append(Reply(reply.text, reply.tool_calls, reply.finish_reason))
            case ToolsReturned(observations=observations):
                happened.append(observations)
    return happened


def output(text: str, tool: str = "add") -> str:
    return f'<tool_output tool="{tool}">\n{text}\n</tool_output>'


def timeless(reply: Reply) -> Reply:
    assert reply.latency_s is not None
    assert 0 < reply.latency_s < 30
    return Reply(reply.text, reply.tool_calls, reply.finish_reason, reply.usage, reply.model)


@every_way
def test_a_tool_call_its_result_and_the_answer(aimock: Aimock, way: Way) -> None:
    call = {"id": "call_1", "name": "add", "arguments": {"a": 3, "b": 4}}
    aimock.add(
        {"match": {"hasToolResult": False}, "response": {"content": "I add.", "toolCalls": [call]}},
        {"match": {"toolCallId": "call_1", "toolResultContains": "7"}, "response": {"content": "It is 7."}},
    )
    run = way.run(way.model(aimock.url), "What is 3 + 4?", [add])
    assert (run.reason, answer_of(run), run.step) == ("final_answer", "It is 7.", 2)
    assert run.history[1:] == [
        Message("user", "What is 3 + 4?"),
        Message("assistant", "I add.", (ToolRequest("call_1", "add", '{"a":3,"b":4}'),)),
        Message("tool", "7", (), "add", "call_1"),
        Message("assistant", "It is 7."),
    ]
    first, second = (request["body"] for request in aimock.requests())
    function = {"name": "add", "description": "Add two integers.", "parameters": dict(add.spec.parameters)}
    assert first["tools"] == second["tools"] == [{"type": "function", "function": function}]
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert second["messages"][2:] == [
        {
            "role": "assistant",
            "content": "I add.",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a":3,"b":4}'}}],
        },
        {"role": "tool", "content": output("7"), "tool_call_id": "call_1"},
    ]


@every_way
@pytest.mark.parametrize(
    ("protocol", "call", "answer"),
    [
        (ReactProtocol(), 'Thought: I add.\nAction: add\nAction Input: {"a": 3, "b": 4}', "Final Answer: It is 7."),
        (JsonTextProtocol(), '{"tool": "add", "arguments": {"a": 3, "b": 4}}', '{"answer": "It is 7."}'),
        (LineProtocol(), "TOOL add a=3,b=4", "FINAL It is 7."),
    ],
    ids=["react", "json_text", "line"],
)
def test_a_text_protocol_needs_no_tools_of_the_server(aimock: Aimock, way: Way, protocol: Protocol, call: str, answer: str) -> None:
    aimock.add(
        {"match": {"userMessage": "What is 3 + 4?"}, "response": {"content": call}},
        {"match": {"userMessage": "Observation: "}, "response": {"content": answer}},
    )
    run = way.run(way.model(aimock.url), "What is 3 + 4?", [add], protocol)
    assert (run.reason, answer_of(run), run.step) == ("final_answer", "It is 7.", 2)
    body = aimock.requests()[1]["body"]
    assert "tools" not in body
    assert [(message["role"], message["content"]) for message in body["messages"][1:]] == [
        ("user", "What is 3 + 4?"),
        ("assistant", call),
        ("user", f"Observation: {output('7')}"),
    ]


@every_way
def test_three_parallel_calls_get_three_results_in_their_order(aimock: Aimock, way: Way) -> None:
    calls = [{"id": f"call_{n}", "name": name, "arguments": {"a": n, "b": 2}} for n, name in enumerate(["add", "mul", "add"])]
    aimock.add(
        {"match": {"hasToolResult": False}, "response": {"toolCalls": calls}},
        {"match": {"toolCallId": "call_2"}, "response": {"content": "2, 2 and 4"}},
    )
    run = way.run(way.model(aimock.url), "Three sums", [add, mul])
    assert answer_of(run) == "2, 2 and 4"
    assert [message["content"] for message in aimock.requests()[1]["body"]["messages"][-3:]] == [
        output("2"),
        output("2", "mul"),
        output("4"),
    ]
    assert [message["tool_call_id"] for message in aimock.requests()[1]["body"]["messages"][-3:]] == ["call_0", "call_1", "call_2"]


@every_way
def test_a_reply_has_its_usage_finish_reason_and_model(aimock: Aimock, way: Way) -> None:
    aimock.says({"content": "Seven.", "model": "some-model-2026", "usage": {"prompt_tokens": 11, "completion_tokens": 3}})
    assert timeless(way.ask(way.model(aimock.url), TASK)) == Reply("Seven.", (), "stop", Usage(11, 3), "some-model-2026")


@every_way
def test_streamed_text_is_shown_as_it_arrives_and_the_reply_is_complete(aimock: Aimock, way: Way) -> None:
    text = "It is seven, as three and four make seven. 三加四等于七。"
    aimock.says({"content": text, "toolCalls": [{"name": "add", "arguments": {"a": 1}}]}, chunkSize=7)
    shown: list[str] = []
    reply = way.ask(way.model(aimock.url), TASK, (add.spec,), shown.append)
    assert reply.text == text
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("add", '{"a":1}')]
    assert shown == ([text[i : i + 7] for i in range(0, len(text), 7)] if way.streamed else [])


@every_way
def test_a_429_says_how_long_to_wait_and_the_next_ask_succeeds(aimock: Aimock, way: Way) -> None:
    limit = {"error": {"message": "Slow down.", "type": "rate_limit_error"}, "status": 429, "retryAfter": 7}
    aimock.add(
        {"match": {"userMessage": "3", "sequenceIndex": 0}, "response": limit},
        {"match": {"userMessage": "3", "sequenceIndex": 1}, "response": {"content": "7"}},
    )
    with pytest.raises(ModelUnavailable) as caught:
        way.ask(way.model(aimock.url), TASK)
    assert (str(caught.value), caught.value.status, caught.value.retry_after_s) == (
        f"{way.provider}:some-model answered 429: Slow down.",
        429,
        7.0,
    )
    assert way.ask(way.model(aimock.url), TASK).text == "7"


@every_way
def test_a_500_is_worth_asking_again_and_an_adapter_does_not_do_so_itself(aimock: Aimock, way: Way) -> None:
    aimock.says({"error": {"message": "Out of order.", "type": "api_error"}, "status": 500})
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match=r"some-model answered 500: Out of order\.") as caught:
            way.ask(way.model(aimock.url), TASK)
        assert caught.value.retry_after_s is None
    assert [request["response"]["status"] for request in aimock.requests()] == [500, 500]


@every_way
@pytest.mark.parametrize("status", [400, 401])
def test_a_refused_request_has_the_words_of_the_server(aimock: Aimock, way: Way, status: int) -> None:
    aimock.says({"error": {"message": "Not with me.", "type": "invalid_request_error"}, "status": status})
    with pytest.raises(ModelRefused) as caught:
        way.ask(way.model(aimock.url), TASK)
    assert (type(caught.value), caught.value.status) == (ModelRefused, status)
    assert str(caught.value) == f"{way.provider}:some-model answered {status}: Not with me."


@every_way
def test_a_context_that_is_too_long_is_told_from_other_refusals(aimock: Aimock, way: Way) -> None:
    aimock.says(
        {"error": {"message": "prompt is too long: 213462 tokens > 200000 maximum", "type": "invalid_request_error"}, "status": 400}
    )
    with pytest.raises(ContextOverflow) as caught:
        way.ask(way.model(aimock.url), TASK)
    assert caught.value.status == 400


@every_way
def test_a_reply_that_was_cut_off_says_length(aimock: Aimock, way: Way) -> None:
    aimock.says({"content": "It is", "finishReason": "length"})
    reply = way.ask(way.model(aimock.url), TASK)
    assert (reply.text, reply.finish_reason) == ("It is", "length")


@every_way
def test_an_empty_reply_is_empty(careless: Aimock, way: Way) -> None:
    run = way.run(way.model(careless.url), "nothing", [])
    assert (run.reason, run.step) == ("consecutive_errors", 2)
    assert run.decisions[0] == Malformed("The reply is empty. Call a tool, or answer in plain text.", "empty")


@every_way
def test_a_refusal_of_the_model_is_a_reply(aimock: Aimock, way: Way) -> None:
    aimock.says({"content": "I cannot help with that.", "finishReason": "refusal"})
    reply = way.ask(way.model(aimock.url), TASK)
    assert (reply.text, reply.finish_reason) == ("I cannot help with that.", "refusal")


@pytest.mark.parametrize("way", [way for way in WAYS if way.provider == "openai"], ids=str)
def test_malformed_arguments_arrive_as_they_came_and_are_sent_back_as_an_object(careless: Aimock, way: Way) -> None:
    run = way.run(way.model(careless.url), "torn", [add])
    assert run.history[2] == Message("assistant", "", (ToolRequest("call_1", "add", '{"a": 3, '),))
    assert isinstance(run.decisions[0], Malformed)
    assert answer_of(run) == "I give up."
    assert careless.requests()[-1]["body"]["messages"][2]["tool_calls"][0]["function"]["arguments"] == '{"INVALID_JSON":"{\\"a\\": 3, "}'


@pytest.mark.parametrize("way", [way for way in WAYS if way.streamed], ids=str)
def test_a_stream_that_breaks_off_is_worth_asking_again(aimock: Aimock, way: Way) -> None:
    aimock.says({"content": "It is seven, I think, or eight"}, chunkSize=5, truncateAfterChunks=4)
    with pytest.raises(ModelUnavailable, match=r"the connection .* was lost|no connection|broke off"):
        way.ask(way.model(aimock.url), TASK)


@every_way
def test_a_connection_that_breaks_before_an_answer_is_worth_asking_again(aimock: Aimock, way: Way) -> None:
    aimock.says({"content": "7"}, chaos={"disconnectRate": 1})
    with pytest.raises(ModelUnavailable, match=r"no connection to http://127.0.0.1:\d+(/v1)?, or it was lost"):
        way.ask(way.model(aimock.url), TASK)


@every_way
def test_an_answer_that_is_no_json_is_not_worth_asking_again(aimock: Aimock, way: Way) -> None:
    aimock.says({"content": "7"}, chaos={"malformedRate": 1})
    with pytest.raises(ModelError, match="something that is no reply of its protocol; is http://127") as caught:
        way.ask(way.model(aimock.url), TASK)
    assert type(caught.value) is ModelError


# --- whole runs, by the drivers ------------------------------------------------------------------------------------


@every_driver
def test_a_run_calls_a_tool_tells_its_result_and_ends_with_the_answer(aimock: Aimock, way: Way) -> None:
    call = {"id": "call_1", "name": "add", "arguments": {"a": 3, "b": 4}}
    aimock.add(
        {"match": {"hasToolResult": False}, "response": {"content": "I add.", "toolCalls": [call]}},
        {"match": {"toolCallId": "call_1", "toolResultContains": "7"}, "response": {"content": "It is 7."}},
    )
    result = driven(way, aimock.url, "What is 3 + 4?", [add])
    assert (result.reason, result.answer, result.model_calls) == ("final_answer", "It is 7.", 2)
    assert told(result) == [
        Reply("I add.", (ToolRequest("call_1", "add", '{"a":3,"b":4}'),), "tool_calls"),
        (Observation("add", "7"),),
        Reply("It is 7.", (), "stop"),
    ]


@every_driver
def test_a_run_makes_three_parallel_calls_one_of_which_fails(aimock: Aimock, way: Way) -> None:
    arguments: list[dict[str, object]] = [{"a": 1, "b": 2}, {"a": "one"}, {"a": 5, "b": 6}]
    calls = [{"id": f"call_{n}", "name": "add", "arguments": each} for n, each in enumerate(arguments)]
    aimock.add(
        {"match": {"hasToolResult": False}, "response": {"toolCalls": calls}},
        {"match": {"toolCallId": "call_2"}, "response": {"content": "3 and 11"}},
    )
    result = driven(way, aimock.url, "Three sums", [add])
    assert (result.reason, result.answer) == ("final_answer", "3 and 11")
    observations = told(result)[1]
    assert isinstance(observations, tuple)
    assert [(each.text if each.kind == "ok" else each.kind) for each in observations] == ["3", "bad_arguments", "11"]
    sent = aimock.requests()[1]["body"]["messages"][-3:]
    assert [(message["tool_call_id"], message["content"]) for message in sent] == [
        (f"call_{n}", output(each.text)) for n, each in enumerate(observations)
    ]


@every_driver
def test_a_run_ends_with_what_a_refusing_model_says(aimock: Aimock, way: Way) -> None:
    aimock.says({"content": "I cannot help with that.", "finishReason": "refusal"})
    result = driven(way, aimock.url, "Harm.", [add])
    assert (result.reason, result.answer) == ("final_answer", "I cannot help with that.")
    assert told(result) == [Reply("I cannot help with that.", (), "refusal")]


@every_driver
def test_a_run_halts_after_replies_that_are_empty(careless: Aimock, way: Way) -> None:
    result = driven(way, careless.url, "nothing", [add])
    assert (result.reason, result.answer, result.model_calls) == ("consecutive_errors", None, 2)
    assert "The reply is empty. Call a tool, or answer in plain text." in str(careless.requests()[-1]["body"]["messages"][-1])


@every_driver
def test_no_call_of_a_reply_that_was_cut_off_is_made(raw: RawServer, way: Way) -> None:
    raw.first = [called(way, {"a": 3, "b": 4}, "length")]
    raw.answer = said(way, "It is 7.")
    result = driven(way, raw.url, "What is 3 + 4?", [add])
    assert (result.reason, result.answer, result.model_calls) == ("final_answer", "It is 7.", 2)
    assert told(result) == [Reply("", (ToolRequest("call_1", "add", '{"a":3,"b":4}'),), "length"), Reply("It is 7.", (), "stop")]
    assert "none of its tool calls was made" in str(raw.requests[1][1]["messages"][-1])


@every_driver
@pytest.mark.parametrize("torn", ['{"a": 3, ', "[3, 4]", '"3"', ""], ids=["torn", "a list", "text", "nothing"])
def test_a_run_goes_on_after_arguments_that_are_malformed(raw: RawServer, way: Way, torn: str) -> None:
    raw.first = [called(way, torn)]
    raw.answer = said(way, "I give up.")
    result = driven(way, raw.url, "What is 3 + 4?", [add])
    assert (result.reason, result.answer, result.model_calls) == ("final_answer", "I give up.", 2)
    assert told(result)[0] == Reply("", (ToolRequest("call_1", "add", torn),), "tool_calls")
    messages = raw.requests[1][1]["messages"]
    if way.provider == "openai":
        assert [message["role"] for message in messages[-2:]] == ["assistant", "tool"]
        assert messages[-1]["tool_call_id"] == "call_1"
    else:
        assert [block["type"] for message in messages[-2:] for block in message["content"]] == ["tool_use", "tool_result"]
        assert isinstance(messages[-2]["content"][0]["input"], dict)


def called(way: Way, arguments: object, finish: str = "tool_calls") -> Answer:
    """A reply that calls a tool."""
    if way.provider == "openai":
        text = arguments if isinstance(arguments, str) else '{"a":3,"b":4}'
        call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": text}}
        return Answer({"choices": [{"message": {"content": None, "tool_calls": [call]}, "finish_reason": finish}]})
    stop = {"tool_calls": "tool_use", "length": "max_tokens"}[finish]
    return Answer({"content": [{"type": "tool_use", "id": "call_1", "name": "add", "input": arguments}], "stop_reason": stop})


def said(way: Way, text: str) -> Answer:
    """A reply of text."""
    if way.provider == "openai":
        return Answer({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
    return Answer({"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"})


@every_driver
def test_a_run_shows_text_as_it_is_streamed_and_its_machine_sees_the_whole_reply(aimock: Aimock, way: Way) -> None:
    call = {"id": "call_1", "name": "add", "arguments": {"a": 3, "b": 4}}
    first = {"match": {"hasToolResult": False}, "response": {"content": "I add them now.", "toolCalls": [call]}, "chunkSize": 5}
    aimock.add(first, {"match": {"toolCallId": "call_1"}, "response": {"content": "It is seven."}, "chunkSize": 6})
    shown: list[str] = []
    result = driven(way, aimock.url, "What is 3 + 4?", [add], on_text=shown.append)
    assert shown == ["I add", " them", " now.", "It is ", "seven."]
    assert told(result) == [
        Reply("I add them now.", (ToolRequest("call_1", "add", '{"a":3,"b":4}'),), "tool_calls"),
        (Observation("add", "7"),),
        Reply("It is seven.", (), "stop"),
    ]


@every_driver
def test_a_run_shows_its_model_the_last_steps_and_records_all(aimock: Aimock, way: Way) -> None:
    for n in range(3):
        call = {"id": f"call_{n}", "name": "add", "arguments": {"a": n, "b": 1}}
        match = {"hasToolResult": False} if n == 0 else {"toolCallId": f"call_{n - 1}"}
        aimock.add({"match": match, "response": {"toolCalls": [call]}})
    aimock.add({"match": {"toolCallId": "call_2"}, "response": {"content": "1, 2 and 3"}})
    result = driven(way, aimock.url, "Three sums", [add], context=KeepLast(1))
    assert result.answer == "1, 2 and 3"
    assert len(told(result)) == 7
    last = aimock.requests()[-1]["body"]["messages"]
    assert [message["role"] for message in last if message["role"] != "system"][-2:] == ["assistant", "tool"]
    assert [message["tool_call_id"] for message in last if message["role"] == "tool"] == ["call_2"]
    assert "Three sums" in str(last)
    assert "(4 earlier messages are left out here, to save space.)" in str(last)


@every_driver
def test_a_run_goes_on_with_a_summary_that_its_model_made(aimock: Aimock, way: Way) -> None:
    call = {"id": "call_0", "name": "read", "arguments": {}}
    again = {"id": "call_1", "name": "read", "arguments": {}}
    aimock.add(
        {"match": {"userMessage": "What is in the file?", "hasToolResult": False, "sequenceIndex": 0}, "response": {"toolCalls": [call]}},
        {"match": {"toolCallId": "call_0"}, "response": {"toolCalls": [again]}},
        {"match": {"systemMessage": "Sum it up"}, "response": {"content": "The file is long."}},
        {"match": {"toolCallId": "call_1"}, "response": {"content": "Words."}},
    )

    @tool
    def read() -> str:
        """Read the file."""
        return "word " * 1000

    summariser = way.model(aimock.url)
    result = driven(way, aimock.url, "What is in the file?", [read], beside=summariser, context=Summarise(summariser, 2500))
    assert (result.reason, result.answer, result.model_calls) == ("final_answer", "Words.", 3)
    (made,) = [event for event in result.trace.log if isinstance(event, ContextCompacted)]
    assert made.summary == "The file is long."
    last = aimock.requests()[-1]["body"]["messages"]
    assert "<summary>\nThe file is long.\n</summary>" in str([message["content"] for message in last]).replace("\\n", "\n")
    assert [message["tool_call_id"] for message in last if message["role"] == "tool"] == ["call_1"]


@every_driver
def test_a_run_halts_when_its_money_is_spent_and_is_refused_where_no_price_is_known(raw: RawServer, way: Way) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "input_tokens": 1000, "output_tokens": 100}
    answer = called(way, {"a": 3, "b": 4}).body
    assert isinstance(answer, dict)
    raw.answer = Answer({**answer, "usage": usage})
    guards = (*classic(max_steps=10), CostBudget(0.005))
    with pytest.raises(ValueError, match=rf"^the price of {way.provider}:some-model is not known, and a cost budget needs it: "):
        driven(way, raw.url, "What is 3 + 4?", [add], guards=guards)
    assert raw.requests == []
    result = driven(way, raw.url, "What is 3 + 4?", [add], prices=(2, 10), guards=guards)
    assert (result.reason, result.message, result.model_calls) == ("cost_budget", "stopped: $0.006 spent, the budget is $0.005", 2)


# --- the last word -------------------------------------------------------------------------------------------------


@every_way
def test_without_tools_a_model_that_called_some_is_told_of_them_as_text_and_can_but_answer(aimock: Aimock, way: Way) -> None:
    aimock.says({"content": "It is 7."})
    called = Message("assistant", "I add.", (ToolRequest("call_1", "add", '{"a":3,"b":4}'),))
    history = [*TASK, called, Message("tool", "7", (), "add", "call_1"), Message("user", "Answer now.")]
    assert way.ask(way.model(aimock.url), history).text == "It is 7."
    (request,) = aimock.requests()
    assert request["response"]["status"] == 200
    body = request["body"]
    assert not body.get("tools")
    assert not body.get("tool_choice")
    assert [(message["role"], message["content"]) for message in body["messages"]] == [
        ("system", "Be brief."),
        ("user", "What is 3 + 4?"),
        ("assistant", 'I add.\n\nAction: add {"a":3,"b":4}'),
        ("user", f"Observation: {output('7')}\n\nAnswer now."),
    ]
    assert "tool_calls" not in body["messages"][2]


@every_driver
def test_a_run_that_is_stopped_may_answer_once_more_and_the_server_is_told_of_no_tools(aimock: Aimock, way: Way) -> None:
    call = {"id": "call_1", "name": "add", "arguments": {"a": 3, "b": 4}}
    aimock.add(
        {"match": {"userMessage": "Give your final answer now."}, "response": {"content": "It is 7."}},
        {"match": {"hasToolResult": False}, "response": {"toolCalls": [call]}},
    )
    result = driven(way, aimock.url, "What is 3 + 4?", [add], guards=classic(max_steps=1), last_chance=True)
    assert (result.reason, result.answer, result.model_calls) == ("max_steps", "It is 7.", 2)
    body = aimock.requests()[-1]["body"]
    assert not body.get("tools")
    assert [message["role"] for message in body["messages"] if message["role"] != "system"] == ["user", "assistant", "user"]
    assert "tool_calls" not in body["messages"][-2]
    assert 'Action: add {"a":3,"b":4}' in str(body["messages"][-2])
    assert output("7") in str(body["messages"][-1]["content"])

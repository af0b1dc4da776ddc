"""The adapters against servers that misbehave: what they raise says what happened, and the key is nowhere."""

from __future__ import annotations

import asyncio
import threading
import traceback

import pytest

from fsm_agent.events import Message, Reply, ToolRequest, Usage
from fsm_agent.models.errors import ContextOverflow, ModelError, ModelRefused, ModelUnavailable
from tests.asked import KEY, WAYS, Way
from tests.raw_server import Answer, RawServer, events, raw_server

__all__ = ["raw_server"]

TASK = [Message("user", "What is 3 + 4?")]
every_way = pytest.mark.parametrize("way", WAYS, ids=str)


def failing(way: Way, raw: RawServer, answer: Answer, **options: object) -> ModelError:
    """The error of an ask that is answered so. In nothing that it brings along is the key."""
    raw.answer = answer
    model = way.model(raw.url, **options)
    with pytest.raises(ModelError) as caught:
        way.ask(model, TASK)
    error = caught.value
    told = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error)) + repr(model)
    assert KEY not in told
    assert error.__cause__ is error.__context__ is None
    return error


@every_way
def test_the_key_is_sent_and_no_answer_that_echoes_it_gets_it_out(raw: RawServer, way: Way) -> None:
    words = f"Incorrect API key provided: {KEY}. Also seen: sk-ant-another-key-0123, Bearer abcdef012345."
    error = failing(way, raw, Answer({"error": {"message": words, "type": "authentication_error"}}, 401))
    assert (type(error), error.status) == (ModelRefused, 401)
    assert str(error) == (f"{way.provider}:some-model answered 401: Incorrect API key provided: ***. Also seen: sk-***, Bearer ***.")
    headers, _ = raw.requests[0]
    assert [value.removeprefix("Bearer ") for value in headers.values() if KEY in value] == [KEY]


@every_way
@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (Answer("<html>Bad gateway</html>", 502), ModelUnavailable, "answered 502: <html>Bad gateway</html>"),
        (Answer(b"\xff\xfe", 503), ModelUnavailable, "answered 503"),
        (Answer({}, 529), ModelUnavailable, "answered 529"),
        (Answer({"error": {"message": "no"}}, 409), ModelUnavailable, "answered 409: no"),
        (Answer({"error": {"message": "no", "code": "insufficient_quota"}}, 429), ModelRefused, "answered 429: no"),
        (Answer({"error": {"message": "no"}}, 429, {"x-should-retry": "false"}), ModelRefused, "answered 429: no"),
        (Answer({"error": {"message": "no"}}, 400, {"x-should-retry": "true"}), ModelUnavailable, "answered 400: no"),
        (Answer({"detail": [{"msg": "bad"}]}, 422), ModelRefused, "answered 422: [{'msg': 'bad'}]"),
        (Answer({"error": "model not found"}, 404), ModelRefused, "answered 404: model not found"),
        (Answer({"message": "w" * 600}, 403), ModelRefused, f"answered 403: {'w' * 499}…"),
        (Answer({"error": {"code": 400, "message": "too big", "type": "exceed_context_size_error"}}, 400), ContextOverflow, "answered 400: too big"),
        (Answer({"type": "error", "error": {"type": "request_too_large", "message": "too big"}}, 413), ContextOverflow, "answered 413: too big"),
        (Answer({"error": {"message": "max_tokens is too large: 99999"}}, 400), ModelRefused, "answered 400: max_tokens is too large: 99999"),
    ],
)  # fmt: skip
def test_what_an_error_means(raw: RawServer, way: Way, answer: Answer, kind: type[ModelError], said: str) -> None:
    error = failing(way, raw, answer)
    assert type(error) is kind
    assert str(error).startswith(f"{way.provider}:some-model {said}")
    assert error.status == answer.status
    assert len(raw.requests) == 1


@every_way
@pytest.mark.parametrize(
    "answer",
    [
        Answer("<html>welcome</html>", headers={"Content-Type": "text/html"}),
        Answer(""),
        Answer("null"),
        Answer([1]),
        Answer({"choices": [], "content": None}),
        Answer({"object": "list"}),
        Answer('{"choices": [{"mess'),
    ],
    ids=["html", "nothing", "null", "a list", "no choice", "something else", "torn JSON"],
)
def test_an_answer_of_another_protocol_asks_for_the_address(raw: RawServer, way: Way, answer: Answer) -> None:
    error = failing(way, raw, answer)
    assert type(error) is ModelError
    where = f"{raw.url}/v1" if way.provider == "openai" else raw.url
    assert (
        str(error) == f"{way.provider}:some-model answered with something that is no reply of its protocol; is {where} the right address?"
    )


@every_way
def test_an_error_within_a_good_status_is_told_by_its_code(raw: RawServer, way: Way) -> None:
    error = failing(way, raw, Answer({"error": {"code": 429, "message": "upstream is busy"}}))
    assert (type(error), str(error)) == (ModelUnavailable, f"{way.provider}:some-model answered 429: upstream is busy")


@every_way
def test_a_body_that_is_cut_is_a_lost_connection(raw: RawServer, way: Way) -> None:
    error = failing(
        way, raw, Answer('{"choices": [', cut=True, headers={"Content-Type": "text/event-stream" if way.streamed else "application/json"})
    )
    assert type(error) is ModelUnavailable
    assert "lost" in str(error)


@every_way
def test_silence_is_a_timeout(raw: RawServer, way: Way) -> None:
    error = failing(way, raw, Answer("", wait_s=20), timeout_s=2)
    assert (type(error), str(error)) == (ModelUnavailable, f"{way.provider}:some-model said nothing for 2 s")
    raw.closing.set()


@every_way
def test_where_nobody_listens_the_address_is_named_without_its_secrets(way: Way) -> None:
    model = way.model("http://user:secret@127.0.0.1:9")
    with pytest.raises(ModelUnavailable) as caught:
        way.ask(model, TASK)
    told = str(caught.value) + repr(model)
    assert "127.0.0.1:9" in told
    assert "secret" not in told


# --- streams -------------------------------------------------------------------------------------------------------

STREAMS = [way for way in WAYS if way.streamed]


def chunk(finish: str | None = None, **delta: object) -> dict[str, object]:
    return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_an_error_in_mid_stream_is_told_by_its_type(raw: RawServer, way: Way) -> None:
    complaint = {
        "type": "error",
        "error": {"type": "overloaded_error" if way.provider == "anthropic" else "server_error", "message": "busy"},
    }
    begun = chunk(content="It") if way.provider == "openai" else {"type": "message_start", "message": {}}
    error = failing(way, raw, events(begun, complaint, named=way.provider == "anthropic"))
    assert type(error) is ModelUnavailable
    assert str(error).startswith(f"{way.provider}:some-model answered 5")
    assert str(error).endswith(": busy")


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_a_stream_that_ends_before_the_reply_does_is_broken_off(raw: RawServer, way: Way) -> None:
    begun = chunk(content="It") if way.provider == "openai" else {"type": "message_start", "message": {}}
    error = failing(way, raw, events(begun, named=way.provider == "anthropic"))
    assert (type(error), str(error)) == (ModelUnavailable, f"{way.provider}:some-model broke off its answer")


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_garbage_in_a_stream_is_of_another_protocol(raw: RawServer, way: Way) -> None:
    error = failing(way, raw, Answer("event: message_start\ndata: {torn\n\n", headers={"Content-Type": "text/event-stream"}))
    assert type(error) is ModelError


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_a_server_that_does_not_stream_is_understood(raw: RawServer, way: Way) -> None:
    raw.answer = Answer(
        {
            "choices": [{"message": {"content": "7"}, "finish_reason": "stop"}],
            "content": [{"type": "text", "text": "7"}],
            "stop_reason": "end_turn",
        }
    )
    shown: list[str] = []
    reply = way.ask(way.model(raw.url), TASK, (), shown.append)
    assert (reply.text, reply.finish_reason, shown) == ("7", "stop", ["7"])


def test_a_streamed_refusal_and_the_usage_after_the_end_are_read(raw: RawServer) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}
    raw.answer = events(chunk(refusal="I can"), chunk(refusal="not."), chunk("stop"), usage, "[DONE]")
    for way in STREAMS[:2]:
        reply = way.ask(way.model(raw.url), TASK)
        assert (reply.text, reply.finish_reason, reply.usage) == ("I cannot.", "refusal", Usage(3, 2))
    assert raw.requests[0][1]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("way", [way for way in STREAMS if way.provider == "anthropic"], ids=str)
def test_torn_arguments_of_the_messages_api_arrive_as_they_came(raw: RawServer, way: Way) -> None:
    raw.answer = events(
        {"type": "message_start", "message": {"model": "claude", "usage": {"input_tokens": 9, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "add", "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a": 3,'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 8}},
        {"type": "message_stop"},
        named=True,
    )
    reply = way.ask(way.model(raw.url), TASK)
    assert reply == Reply("", (ToolRequest("t", "add", '{"a": 3,'),), "tool_calls", Usage(9, 8), "claude", reply.latency_s)


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_what_a_callback_raises_is_not_taken_for_the_servers(raw: RawServer, way: Way) -> None:
    raw.answer = Answer({"choices": [{"message": {"content": "7"}}], "content": [{"type": "text", "text": "7"}]})

    def show(text: str) -> None:
        raise LookupError(text)

    with pytest.raises(LookupError, match="7"):
        way.ask(way.model(raw.url), TASK, (), show)


# --- requests ------------------------------------------------------------------------------------------------------

GOOD = Answer({"choices": [{"message": {"content": "7"}, "finish_reason": "stop"}], "content": [{"type": "text", "text": "7"}], "stop_reason": "end_turn"})  # fmt: skip


def test_options_are_fields_of_each_request(raw: RawServer) -> None:
    raw.answer = GOOD
    for provider, fields in (("openai", {"max_tokens": 50, "temperature": 0}), ("anthropic", {"max_tokens": 50, "temperature": 0})):
        way = Way(provider, awaited=False, streamed=False)
        way.ask(way.model(raw.url, max_tokens=50, temperature=0), TASK)
        sent = raw.requests[-1][1]
        assert {name: value for name, value in sent.items() if name != "messages"} == {"model": "some-model", **fields}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_one_model_serves_several_threads_and_event_loops(raw: RawServer, provider: str) -> None:
    raw.answer = GOOD
    model = Way(provider, awaited=False, streamed=False).model(raw.url)
    replies: list[str] = []
    threads = [threading.Thread(target=lambda: replies.append(model.ask(TASK).text)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    model.close()

    async def both() -> list[str]:
        async with model:
            return [reply.text for reply in await asyncio.gather(model.aask(TASK), model.aask(TASK))]

    assert [*replies, *asyncio.run(both()), *asyncio.run(both())] == ["7"] * 8


def test_cancelling_the_task_ends_the_request(raw: RawServer) -> None:
    raw.answer = Answer("", wait_s=20)

    async def ask(way: Way) -> None:
        async with way.model(raw.url) as model:
            async with asyncio.timeout(0.3):
                await model.aask(TASK)

    for provider in ("openai", "anthropic"):
        with pytest.raises(TimeoutError):
            asyncio.run(ask(Way(provider, awaited=True, streamed=False)))
    raw.closing.set()

"""The yardstick: an agent loop as most people write it, forty lines with the same three protections and no record but its messages.

Calls are structured, with arguments in JSON; their canonical signature stops a model that repeats itself, a counter is the
circuit breaker, and a cap ends the rest.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

BareModel = Callable[[list[dict[str, Any]]], dict[str, Any]]


def bare_loop(
    task: str, model: BareModel, tools: Mapping[str, Callable[..., Any]], *, max_steps: int, max_repeats: int = 2, max_errors: int = 2
) -> tuple[str, int, list[dict[str, Any]]]:
    """Why it ended, after how many model calls, and the messages."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    last, repeats, errors, step = "", 0, 0, 0
    while step < max_steps:
        step += 1
        reply = model(messages)
        messages.append(reply)
        calls = reply["tool_calls"]
        if not calls:
            return "final_answer", step, messages
        parsed, failed = [], 0
        for call in calls:
            try:
                parsed.append((call["function"]["name"], json.loads(call["function"]["arguments"])))
            except ValueError:
                parsed.append((call["function"]["name"], None))
        signature = json.dumps(parsed, sort_keys=True)
        repeats = repeats + 1 if signature == last else 0
        last = signature
        if repeats >= max_repeats:
            return "repeated_call", step, messages
        for call, (name, arguments) in zip(calls, parsed, strict=True):
            try:
                text = json.dumps(tools[name](**arguments))
            except Exception as error:  # noqa: BLE001  # a tool's error is an observation
                text, failed = f"TOOL_ERROR: {type(error).__name__}: {error}", failed + 1
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        errors = errors + 1 if failed == len(calls) else 0
        if errors >= max_errors:
            return "consecutive_errors", step, messages
    return "max_steps", step, messages


AsyncBareModel = Callable[[list[dict[str, Any]]], Awaitable[dict[str, Any]]]


async def async_bare_loop(
    task: str,
    model: AsyncBareModel,
    tools: Mapping[str, Callable[..., Awaitable[Any]]],
    *,
    max_steps: int,
    max_repeats: int = 2,
    max_errors: int = 2,
) -> tuple[str, int, list[dict[str, Any]]]:
    """As ``bare_loop``, word for word, for asyncio."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    last, repeats, errors, step = "", 0, 0, 0
    while step < max_steps:
        step += 1
        reply = await model(messages)
        messages.append(reply)
        calls = reply["tool_calls"]
        if not calls:
            return "final_answer", step, messages
        parsed, failed = [], 0
        for call in calls:
            try:
                parsed.append((call["function"]["name"], json.loads(call["function"]["arguments"])))
            except ValueError:
                parsed.append((call["function"]["name"], None))
        signature = json.dumps(parsed, sort_keys=True)
        repeats = repeats + 1 if signature == last else 0
        last = signature
        if repeats >= max_repeats:
            return "repeated_call", step, messages
        for call, (name, arguments) in zip(calls, parsed, strict=True):
            try:
                text = json.dumps(await tools[name](**arguments))
            except Exception as error:  # noqa: BLE001  # a tool's error is an observation
                text, failed = f"TOOL_ERROR: {type(error).__name__}: {error}", failed + 1
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        errors = errors + 1 if failed == len(calls) else 0
        if errors >= max_errors:
            return "consecutive_errors", step, messages
    return "max_steps", step, messages

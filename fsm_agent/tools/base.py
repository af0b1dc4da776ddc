"""``@tool``: a plain function as a tool that a model can call, and whatever it does becomes an observation."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import attrs
import msgspec

from fsm_agent.events import ERROR_PREFIX, Observation, ObservationKind, ToolCall, ToolSpec
from fsm_agent.language import ENGLISH, Language
from fsm_agent.text import well_formed
from fsm_agent.tools.schema import BadArguments, Parameter, check_arguments, json_schema, parameters_of


class ToolError(Exception):
    """Raise it in a tool to tell the model what went wrong; its message is what the model reads."""


_PLAIN = frozenset({str, int, float, bool, type(None), dict, list, tuple})
"""Results that need no second look."""


@attrs.frozen
class Tool:
    """A function that a model can call. It is still callable as the function that it was."""

    function: Callable[..., Any]
    name: str
    description: str
    parameters: tuple[Parameter, ...]
    polls: bool = False
    """Calling it again and again is how it is used: its repeats are no loop."""
    volatile: tuple[str, ...] = ()
    """Fields of its arguments and of its JSON observations that say nothing of progress, at whatever depth they stand."""
    idempotent: bool = False
    """A second run of the same call changes nothing."""
    timeout_s: float | None = None
    """Seconds after which a call is not waited for any more; None: it is waited for."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model is told of it."""
        return ToolSpec(self.name, self.description, json_schema(self.parameters), self.polls, self.volatile, self.idempotent)

    @property
    def is_async(self) -> bool:
        """It has to be awaited."""
        return inspect.iscoroutinefunction(self.function)

    def observe(self, call: ToolCall, lang: Language = ENGLISH) -> Observation:
        """Make the call. Whatever happens is an observation; only ``KeyboardInterrupt`` is raised."""
        try:
            return _returned(call, lang, self.function(**check_arguments(self.name, self.parameters, call.arguments, lang)))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # a tool never breaks the loop, whatever it raises
            return _raised(call, lang, error)

    async def aobserve(self, call: ToolCall, lang: Language = ENGLISH) -> Observation:
        """Make the call of an async tool. Whatever happens is an observation; only cancellation and ``KeyboardInterrupt`` are raised."""
        import asyncio

        try:
            return _returned(call, lang, await self.function(**check_arguments(self.name, self.parameters, call.arguments, lang)))
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise
        except BaseException as error:  # noqa: BLE001  # as above
            return _raised(call, lang, error)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    polls: bool = False,
    volatile: Sequence[str] = (),
    idempotent: bool = False,
    timeout_s: float | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    polls: bool = False,
    volatile: Sequence[str] = (),
    idempotent: bool = False,
    timeout_s: float | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a ``Tool`` of a plain function: ``@tool`` or ``@tool(name=..., description=...)``.

    Name, description and parameters come from the function's name, docstring and signature. What makes its repeats legitimate it
    can declare: ``polls=True`` (asking again and again is how it is used), ``volatile=("pid", "elapsed")`` (fields of its arguments and of
    its JSON observations that are left out when two calls are compared), ``idempotent=True`` (a second run changes nothing).
    A call that takes longer than ``timeout_s`` seconds is given up on: its outcome is not known, and the observation says so.
    Raises ``TypeError`` for a lambda without ``name``, for a signature that a model cannot call (``*args``, positional-only
    parameters, types that JSON cannot hold), for a generator function, and for ``volatile`` that is no list of names.
    """
    if isinstance(volatile, str) or not all(isinstance(field, str) for field in volatile):
        raise TypeError(f"volatile is {volatile!r}; it must be a tuple of field names, such as ('pid', 'elapsed')")

    if timeout_s is not None and not timeout_s > 0:
        raise ValueError(f"timeout_s is {timeout_s!r}; it must be above 0")

    def make(function: Callable[..., Any]) -> Tool:
        _check(function)
        if name is None and function.__name__ == "<lambda>":
            raise TypeError("a lambda has no name for the model to call; give it one: tool(name=...)(lambda ...)")
        called = function.__name__ if name is None else name
        if not called or any(char.isspace() or char in '=,"' for char in called):
            raise TypeError(f"the tool name {called!r} cannot be called: leave out white space, '=', ',' and '\"'")
        summary, told = _docstring(function)
        described = summary if description is None else description
        return Tool(function, called, described, parameters_of(function, told), polls, tuple(volatile), idempotent, timeout_s)

    return make if function is None else make(function)


def observe(tools: Mapping[str, Tool], call: ToolCall, lang: Language = ENGLISH) -> Observation:
    """Make one call with these tools, by name; an unknown name is an error observation."""
    found = tools.get(call.name)
    if found is None:
        return _failed(call, lang.say("unknown tool {name}", name=call.name), "unknown_tool")
    return found.observe(call, lang)


def as_text(value: Any) -> str:
    """What a tool returned, as the model reads it: text as it is, everything else as JSON, or as ``str`` where JSON cannot hold it."""
    if isinstance(value, str):
        return well_formed(str.__str__(value))
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, UnicodeEncodeError, RecursionError):
        return well_formed(str(value))


def described(error: BaseException) -> str:
    """The exception's message, also where it cannot tell it."""
    try:
        return well_formed(str(error))
    except Exception as second:  # noqa: BLE001  # a foreign exception's own code
        return f"(its message raised {type(second).__name__})"


def _returned(call: ToolCall, lang: Language, value: Any) -> Observation:
    if type(value) not in _PLAIN and (inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value)):
        if inspect.iscoroutine(value) or inspect.isgenerator(value):
            value.close()
        kind = type(value).__name__
        return _failed(call, lang.say("{tool} returned an object of type {kind}, and no result", tool=call.name, kind=kind), "tool_error")
    text = as_text(value)
    return Observation(call.name, text, "tool_error" if text.startswith(ERROR_PREFIX) else "ok")


def _raised(call: ToolCall, lang: Language, error: BaseException) -> Observation:
    if isinstance(error, BadArguments):
        return _failed(call, str(error), "bad_arguments")
    if isinstance(error, ToolError):
        told = described(error)
        return _failed(call, told if told.strip() else lang.say("{tool} failed and did not say why", tool=call.name), "tool_error")
    trace = well_formed("".join(traceback.format_exception(error)))
    return _failed(call, f"{type(error).__name__}: {described(error)}", "tool_error", trace)


def _failed(call: ToolCall, problem: str, kind: ObservationKind, trace: str | None = None) -> Observation:
    return Observation(call.name, f"{ERROR_PREFIX} {well_formed(problem)}", kind, trace)


def _check(function: Callable[..., Any]) -> None:
    if not inspect.isroutine(function):
        raise TypeError(f"{function!r} is not a function; a tool is made of one")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(f"tool {function.__name__}: it is a generator; a tool is a function that returns its result")


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    text = inspect.cleandoc(function.__doc__ or "").strip()
    if "\n" not in text:
        return text, {}
    from docstring_parser import parse  # 5 ms, for docstrings of more than a line

    parsed = parse(text)
    described = "\n".join(part for part in (parsed.short_description, parsed.long_description) if part)
    return described, {parameter.arg_name: parameter.description or "" for parameter in parsed.params}

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
from fsm_agent.tools.errors import ServerLost, TimedOut, ToolError, ToolServerDead
from fsm_agent.tools.foreign import check_by_schema
from fsm_agent.tools.schema import BadArguments, Parameter, check_arguments, json_schema, parameters_of

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
    side_effects: bool = False
    """It changes something in the world: a person is asked before it is run, unless a policy says otherwise."""
    call_parameters: tuple[str, ...] = ()
    """Parameters of the function that take the ``ToolCall`` itself. A model does not see them."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of its arguments where somebody else wrote it; None: it is made of ``parameters``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model is told of it."""
        schema = json_schema(self.parameters) if self.schema is None else self.schema
        return ToolSpec(self.name, self.description, schema, self.polls, self.volatile, self.idempotent, self.side_effects)

    @property
    def is_async(self) -> bool:
        """It can but be awaited."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def is_awaited(self) -> bool:
        """``arun`` awaits ``aobserve``, in place of ``observe`` in a thread."""
        return self.is_async

    def observe(self, call: ToolCall, lang: Language = ENGLISH) -> Observation:
        """Make the call. Whatever happens is an observation; only ``KeyboardInterrupt`` and ``ToolServerDead`` are raised."""
        try:
            return _returned(call, lang, self.make(call, self._checked(call, lang)))
        except (KeyboardInterrupt, ToolServerDead):
            raise
        except BaseException as error:  # noqa: BLE001  # a tool never breaks the loop, whatever it raises
            return _raised(call, lang, error)

    async def aobserve(self, call: ToolCall, lang: Language = ENGLISH) -> Observation:
        """As ``observe``, of a tool that is awaited. Raises ``CancelledError``, too, where its task is cancelled."""
        import asyncio

        try:
            return _returned(call, lang, await self.amake(call, self._checked(call, lang)))
        except (KeyboardInterrupt, ToolServerDead):
            raise
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
                raise
            return _raised(call, lang, error)

    def make(self, call: ToolCall, arguments: dict[str, Any]) -> Any:
        """Run the function with arguments that fit. Returns and raises what it does."""
        return self.function(**arguments, **dict.fromkeys(self.call_parameters, call))

    async def amake(self, call: ToolCall, arguments: dict[str, Any]) -> Any:
        """As ``make``, of a tool that is awaited."""
        return await self.make(call, arguments)

    def takes(self, call: ToolCall) -> bool:
        """Whether the call's arguments fit: with others, it is no call at all."""
        try:
            self._checked(call, ENGLISH)
        except BadArguments:
            return False
        except Exception:  # noqa: BLE001  # a user's type that fails as it is made: whether they fit is not known
            return True
        return True

    def _checked(self, call: ToolCall, lang: Language) -> dict[str, Any]:
        if self.schema is None:
            return check_arguments(self.name, self.parameters, call.arguments, lang)
        return check_by_schema(self.name, self.parameters, self.schema, call.arguments, lang)


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
    side_effects: bool = False,
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
    side_effects: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a ``Tool`` of a plain function: ``@tool`` or ``@tool(name=..., description=...)``.

    Name, description and parameters come from the function's name, docstring and signature. What makes its repeats legitimate it
    can declare: ``polls=True`` (asking again and again is how it is used), ``volatile=("pid", "elapsed")`` (fields of its arguments and of
    its JSON observations that are left out when two calls are compared), ``idempotent=True`` (a second run changes nothing).
    A call that takes longer than ``timeout_s`` seconds is given up on: its outcome is not known, and the observation says so.
    Before a tool with ``side_effects=True`` is run, a person is asked. A parameter that is annotated as a ``ToolCall``, such as
    ``call: ToolCall``, is given the call itself, whose ``key`` is the same when a run is taken up again; a model does not see it.
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
        takes, calls = parameters_of(function, told)
        return Tool(function, called, described, takes, polls, tuple(volatile), idempotent, timeout_s, side_effects, calls)

    return make if function is None else make(function)


def observe(tools: Mapping[str, Tool], call: ToolCall, lang: Language = ENGLISH) -> Observation:
    """Make one call with these tools, by name; an unknown name is an error observation."""
    found = tools.get(call.name)
    if found is None:
        return _failed(call, lang.say("unknown tool {name}", name=call.name), "unknown_tool")
    return found.observe(call, lang)


def timed_out(call: ToolCall, lang: Language, after_s: float) -> Observation:
    """Of a call that is not waited for any more."""
    text = lang.say("no result of {tool} after {seconds} s; whether it took effect is not known", tool=call.name, seconds=f"{after_s:.1f}")
    return _failed(call, text, "timeout")


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
    say = lang.say
    match error:
        case BadArguments():
            return _failed(call, str(error), "bad_arguments")
        case ToolError():
            told = described(error)
            return _failed(call, told if told.strip() else say("{tool} failed and did not say why", tool=call.name), "tool_error")
        case TimedOut():
            return timed_out(call, lang, error.after_s)
        case ServerLost():
            lost = say(
                "the server {server} was lost while {tool} ran; whether it took effect is not known", server=error.server, tool=call.name
            )
            return _failed(call, lost, "interrupted")
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

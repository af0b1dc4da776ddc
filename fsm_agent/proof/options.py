"""What is on in the runs that are searched, and how a user says so: ``retries=5,approvals,last_chance``."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fsm_agent.options import FEATURES, OFF, RETRIES, Options

SEARCHED = Options(max_retries=RETRIES, approvals=True, compaction=True, tool_servers=True)
"""What is searched where nothing else is said: all that ``run`` may have on without being told to. The last chance it is told to give."""

NONE, ALL = "none", "all"


def options_from(words: Iterable[str]) -> Options:
    """The options of these words: names of features, ``retries=N``, ``all`` or ``none``. Raises ``ValueError`` in one line."""
    options = OFF
    for word in (word.strip() for word in words):
        name, equals, number = word.partition("=")
        if name == ALL and not equals:
            options = msgspec.structs.replace(SEARCHED, last_chance=True)
        elif name not in {*FEATURES, NONE} or (equals and name != "retries"):
            raise ValueError(f"{word!r} is nothing that can be on; there are {', '.join(FEATURES)}, {ALL} and {NONE}, and retries=N")
        elif name == "retries":
            options = msgspec.structs.replace(options, max_retries=_number(number) if equals else RETRIES)
        elif name != NONE:
            options = msgspec.structs.replace(options, **{name: True})
    return options


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= MOST_RETRIES):
        raise ValueError(f"retries={text}: it must be a whole number from 0 to {MOST_RETRIES}")
    return int(text)


MOST_RETRIES = 100
"""Each of them is searched."""


def words_of(options: Options) -> list[str]:
    """The words that ``options_from`` takes for these options."""
    on = [f"retries={options.max_retries}" if feature == "retries" else feature for feature in FEATURES if feature in options.features]
    return on or [NONE]

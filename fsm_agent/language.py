"""The two languages in which people and models are spoken to: English and Chinese.

A sentence is written once, in English, where it is used: ``say("stopped: {why}", why=...)``. The English text is
the key of a stdlib ``gettext`` catalogue (``locale/zh/LC_MESSAGES``), from which the Chinese comes. The core is handed a
``Language`` and calls it; only ``language()`` reads a file, and only for a language that has a catalogue.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache

LANGUAGES = ("en", "zh")
"""The codes that ``--lang`` takes."""


def _same(text: str) -> str:
    return text


def _english_count(one: str, many: str, n: int) -> str:
    return one if n == 1 else many


class Language:
    """Turns an English format string and its fields into a sentence of one language. (No attrs: ``--help`` needs this module.)"""

    __slots__ = ("code", "translate", "translate_count")

    def __init__(
        self,
        code: str = "en",
        translate: Callable[[str], str] = _same,
        translate_count: Callable[[str, str, int], str] = _english_count,
    ) -> None:
        """``translate``: format string to format string (``gettext``); ``translate_count``: singular, plural, number to the one for it."""
        self.code = code
        self.translate = translate
        self.translate_count = translate_count

    def __repr__(self) -> str:
        return f"Language({self.code!r})"

    def say(self, text: str, /, **fields: object) -> str:
        """The sentence ``text`` in this language, its ``{fields}`` filled in."""
        return self.translate(text).format(**fields)

    def count(self, one: str, many: str, /, n: int, **fields: object) -> str:
        """The sentence for ``n`` things; ``{n}`` is a field like the others."""
        return self.translate_count(one, many, n).format(n=n, **fields)


ENGLISH = Language()


@lru_cache
def language(code: str) -> Language:
    """The language with this code. Raises ``ValueError`` for a code that is not in ``LANGUAGES``."""
    if code == "en":
        return ENGLISH
    if code not in LANGUAGES:
        raise ValueError(f"lang is {code!r}; it must be one of {', '.join(LANGUAGES)}")
    import gettext
    from importlib.resources import as_file, files

    with as_file(files("fsm_agent") / "locale") as folder:
        catalogue = gettext.translation("fsm_agent", folder, languages=[code])
    return Language(code, catalogue.gettext, catalogue.ngettext)


def locale_language(environ: Mapping[str, str] = os.environ) -> str:
    """The code that the locale's variables ask for, in POSIX order; on Windows without them, the user's own locale; else ``en``."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environ.get(name):
            return "zh" if value.lower().startswith("zh") else "en"
    import locale

    return "zh" if (locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"

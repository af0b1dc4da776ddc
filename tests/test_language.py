"""The two languages: the catalogue is complete and compiled, and the locale picks one."""

from __future__ import annotations

import re

import pytest

from fsm_agent.language import language, locale_language
from tests.catalogue import PO, compiled, extracted, translated


def _ids(messages: object) -> set[object]:
    return {message.id for message in messages if message.id}  # type: ignore[attr-defined]  # an iterable of babel messages


def test_every_sentence_in_the_code_is_in_the_catalogue_and_no_other() -> None:
    assert _ids(translated()) == _ids(extracted()), "run `make messages`"


def test_every_sentence_has_a_translation_with_the_same_fields() -> None:
    for message in translated():
        if not message.id:
            continue
        ids, strings = ((text if isinstance(text, tuple) else (text,)) for text in (message.id, message.string))
        assert all(strings), ids
        for text in strings:
            assert set(re.findall(r"{\w+}", str(text))) == set(re.findall(r"{\w+}", str(ids[-1]))), ids


def test_the_compiled_catalogue_is_current() -> None:
    assert PO.with_suffix(".mo").read_bytes() == compiled(translated()), "run `make messages`"


@pytest.mark.parametrize(
    ("environ", "code"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "en_GB.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "C"}, "en"),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_MESSAGES": "zh_TW", "LANG": "en_US"}, "zh"),
        ({"LC_ALL": "", "LANG": "zh_HK"}, "zh"),
    ],
)
def test_the_locale_picks_the_language_and_english_is_the_default(environ: dict[str, str], code: str) -> None:
    assert locale_language(environ) == code


def test_an_unknown_language_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"lang is 'fr'; it must be one of en, zh"):
        language("fr")


def test_english_counts_one_and_many() -> None:
    lang = language("en")
    assert lang.count("{n} step", "{n} steps", 1) == "1 step"
    assert lang.count("{n} step", "{n} steps", 2) == "2 steps"

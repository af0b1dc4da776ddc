"""Text of others inside a page: it can be neither markup nor script, wherever it stands.

Everything that a model, a tool or a file said is in one block of JSON in which no ``<``, ``>`` or ``&`` is left, and the script puts it on
the page as text. Beside that, the page's policy lets nothing run but the package's own script, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

import msgspec

from fsm_agent.text import printable

_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
"""In JSON these can only stand inside a string, where an escape is the same character."""

_encode = msgspec.json.Encoder(order="deterministic").encode


def safe_text(text: str) -> str:
    """Text that others wrote, as the page keeps it: whole, and what would turn the reading direction or cannot be seen is an escape."""
    return printable(text.replace("\r\n", "\n"))


def safe_json(value: object) -> str:
    """``value`` as JSON for a ``<script type="application/json">``: nothing in it can end the element, or begin another."""
    return _encode(value).decode().translate(_ESCAPES)


def content_policy(styles: Iterable[str], scripts: Iterable[str]) -> str:
    """The content security policy of a page with these texts in its ``<style>`` and ``<script>`` elements: they, and nothing else at all.

    It goes into ``<meta http-equiv="Content-Security-Policy" content="...">``. There, too, nothing may be loaded from anywhere.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_sources(scripts)}",
            f"style-src {_sources(styles)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _sources(texts: Iterable[str]) -> str:
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{each}'" for each in hashes) or "'none'"

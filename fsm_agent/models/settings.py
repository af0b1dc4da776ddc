"""Addresses and keys, as a user or the environment gave them: checked, and shown without what is secret."""

from __future__ import annotations

from urllib.parse import urlsplit

from fsm_agent.models.errors import ModelSetupError


def without_secrets(url: str) -> str:
    """``url`` without a user, a password and a query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def checked_url(url: str, source: str) -> str:
    """``url``. Raises ``ModelSetupError`` for one that is not of the web."""
    if not url.startswith(("http://", "https://")):
        shown = without_secrets(url) if "://" in url else url
        raise ModelSetupError(f"{source} is {shown!r}; it must begin with http:// or https://")
    return url


def checked_key(key: str, source: str) -> str:
    """The key, without the white space around it. Raises ``ModelSetupError``, which does not show it, for one that no header can hold."""
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ModelSetupError(f"{source} holds characters that no key has; copy it again, without quotes and line breaks")
    return key

"""What a server's tool answered, as the text that a model reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

import msgspec
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)


def text_of(result: CallToolResult) -> str:
    """Its texts, one below the other, with a word on each part that is none. Structured content stands in where there is no text."""
    shown = [_shown(block) for block in result.content]
    if result.structured_content is not None and not any(isinstance(block, TextContent) for block in result.content):
        shown.insert(0, _json(result.structured_content))
    return "\n".join(shown)


def _shown(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return _in_brackets([block.mime_type, _size(block.data)])
        case ResourceLink():
            return _in_brackets([block.name, str(block.uri), block.mime_type, block.description])
        case EmbeddedResource(resource=TextResourceContents() as inner):
            return f"{_in_brackets([str(inner.uri), inner.mime_type])}\n{inner.text}"
        case EmbeddedResource(resource=BlobResourceContents() as inner):
            return _in_brackets([str(inner.uri), inner.mime_type, _size(inner.blob)])
        case EmbeddedResource():
            raise AssertionError(block)
        case _:
            assert_never(block)


def _in_brackets(told: Sequence[str | None]) -> str:
    return f"[{', '.join(each for each in told if each)}]"


def _size(base64: str) -> str:
    return f"{len(base64.rstrip('=')) * 3 // 4:,} bytes"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()

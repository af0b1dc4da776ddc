"""What a tool said, delimited and named as data, so that a model can tell it from what it is asked to do.

A tool's output is whatever a web page, a file or a stranger wrote. What looks like a delimiter in it is made harmless.
"""

from __future__ import annotations

import re
from html import escape

from fsm_agent.text import first_line, printable

_DELIMITER = re.compile(r"[<＜﹤](?=[^a-z<]{0,8}tool[^a-z<]{0,4}output)", re.IGNORECASE)
"""The beginning of what a model may read as a delimiter, also with a space or an invisible character in it. Bounded: one pass."""


def tool_output(tool: str, text: str) -> str:
    """``text`` between ``<tool_output tool="NAME">`` and ``</tool_output>``."""
    name = escape(printable(first_line(tool, 64)))
    return f'<tool_output tool="{name}">\n{_DELIMITER.sub("&lt;", text)}\n</tool_output>'

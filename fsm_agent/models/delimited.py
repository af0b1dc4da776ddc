"""What a tool or another model said, delimited and named as data, so that a model can tell it from what it is asked to do.

A tool's output is whatever a web page, a file or a stranger wrote. What looks like a delimiter in it is made harmless.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape

from fsm_agent.text import first_line, printable


def tool_output(tool: str, text: str) -> str:
    """``text`` between ``<tool_output tool="NAME">`` and ``</tool_output>``."""
    return delimited("tool_output", text, f' tool="{escape(printable(first_line(tool, 64)))}"')


def delimited(name: str, text: str, attributes: str = "") -> str:
    """``text`` between ``<NAME>`` and ``</NAME>``, each on a line of its own."""
    return f"<{name}{attributes}>\n{_delimiter(name).sub('&lt;', text)}\n</{name}>"


@cache
def _delimiter(name: str) -> re.Pattern[str]:
    """The beginning of what a model may read as a delimiter, also with a space or an invisible character in it. Bounded: one pass."""
    return re.compile(rf"[<＜﹤](?=[^a-z<]{{0,8}}{'[^a-z<]{0,4}'.join(name.split('_'))})", re.IGNORECASE)

"""Lines broken as a reader of English and of Chinese expects: at spaces, and between Chinese characters, which have none."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

_NOT_FIRST = frozenset(",.;:!?)]}，。；：！？、）」』”’》…")
"""Marks that stand at the beginning of no line."""
_NOT_LAST = frozenset("([{（「『“‘《")
"""Marks that stand at the end of no line."""
_EMOJI = "\ufe0f"
"""Makes the character before it an emoji, which takes two cells where that took one."""


def wrapped(line: Text, width: int) -> list[Text]:
    """The line in pieces of at most ``width`` cells; a word that is longer is broken anywhere."""
    return list(line.divide(_breaks(line.plain, max(width, 2))))


def _breaks(text: str, width: int) -> list[int]:
    breaks: list[int] = []
    good = used = since_good = 0
    for i, char in enumerate(text):
        cells = 1 if char == _EMOJI else 1 if char.isascii() else cell_len(char)
        if i and _may_break(text[i - 1], char):
            good, since_good = i, 0
        if used + cells > width:
            begin = breaks[-1] if breaks else 0
            if char == " ":  # it hangs over the edge, where nobody sees it
                used += cells
                continue
            if good > begin:
                breaks.append(good)
                used = since_good
            else:
                breaks.append(i)
                used = 0
        used += cells
        since_good += cells
    return breaks


def _may_break(before: str, after: str) -> bool:
    if before == " ":
        return after != " "
    if after in _NOT_FIRST or before in _NOT_LAST or after == " ":
        return False
    wide = [not char.isascii() and cell_len(char) == 2 for char in (before, after)]
    return all(wide) or (wide[0] and after.isalnum()) or (wide[1] and before.isalnum())

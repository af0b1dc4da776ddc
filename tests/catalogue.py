"""Keeps the Chinese catalogue in step with the code: ``python tests/catalogue.py`` updates the .po and compiles the .mo."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from fsm_agent.guards import BUILT_IN
from fsm_agent.table import ROWS

PACKAGE = Path(__file__).parent.parent / "fsm_agent"
PO = PACKAGE / "locale" / "zh" / "LC_MESSAGES" / "fsm_agent.po"
KEYWORDS: dict[str, tuple[int, ...] | None] = {"say": None, "count": (1, 2)}


def extracted() -> Catalog:
    """Every sentence that the package says."""
    catalogue = Catalog()
    for path, _, message, _, _ in extract_from_dir(PACKAGE, method_map=[("**.py", "python")], keywords=KEYWORDS):
        catalogue.add(message, locations=[(f"fsm_agent/{Path(path).as_posix()}", 0)])
    labels = (*(row.label for row in ROWS), *(guard.label for guard in BUILT_IN.values() if isinstance(guard.label, str)))
    for label in labels:
        catalogue.add(str(label), locations=[("fsm_agent/table.py", 0)])
    return catalogue


def translated() -> Catalog:
    """The catalogue as it is committed."""
    with PO.open("rb") as file:
        return read_po(file, locale="zh")


def compiled(catalogue: Catalog) -> bytes:
    """The catalogue as gettext reads it."""
    buffer = io.BytesIO()
    write_mo(buffer, catalogue)
    return buffer.getvalue()


def update() -> list[str]:
    """Bring the .po and the .mo up to date. Gives the sentences that still have no translation."""
    catalogue = translated()
    catalogue.update(extracted(), no_fuzzy_matching=True, update_creation_date=False)
    catalogue.obsolete.clear()
    catalogue.msgid_bugs_address = catalogue.last_translator = catalogue.language_team = "fsm_agent"
    catalogue.creation_date = catalogue.revision_date = datetime(2026, 12, 1, tzinfo=UTC)
    with PO.open("wb") as file:
        write_po(file, catalogue, width=140, include_lineno=False, sort_output=True)
    PO.with_suffix(".mo").write_bytes(compiled(catalogue))
    return [
        str(message.id)
        for message in catalogue
        if message.id and not all(message.string if isinstance(message.string, tuple) else [message.string])
    ]


if __name__ == "__main__":
    for missing in update():
        print("no translation:", missing)

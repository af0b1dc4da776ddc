"""Puts the current transition table into the README: ``python tests/update_readme.py``."""

import re
from pathlib import Path

from fsm_agent.cli.table import markdown
from fsm_agent.table import ROWS

README = Path(__file__).parent.parent / "README.md"

if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    table = f"\\g<1>\n{markdown(ROWS)}\n\\g<2>"
    README.write_text(re.sub(r"(<!-- table: .*? -->)\n.*?(<!-- end of table -->)", table, text, flags=re.DOTALL), encoding="utf-8")

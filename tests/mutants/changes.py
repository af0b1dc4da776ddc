"""The mutants of a source text: one change each, found in its syntax tree."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import attrs

SWAPPED: dict[type[ast.cmpop], str] = {
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
LEFT_OUT = {
    "begins_step": ("False", "begins no step"),
    "spends": ('""', "spends nothing"),
    "needs": ("None", "needs no option"),
}
"""Fields of a row, each with the value of a row that does not have it."""
FOLDING = ("fold", "_returned", "_stepped", "_passed", "grown", "passed_over", "_plus", "_kept")
"""Functions that make the next memory from one."""


@attrs.frozen
class Mutant:
    """A source text with one change."""

    name: str
    """The file, where in it, and the change; no line number, so that it stays when others change."""
    file: str
    line: int
    source: str


@attrs.frozen
class Change:
    """A piece of text to put in the place of another."""

    where: str
    line: int
    start: int
    end: int
    """Bytes from the beginning of the file."""
    text: str
    what: str


def mutants(file: str, source: str) -> list[Mutant]:
    """Every mutant of the source text of ``file``."""
    changes = [*(table_changes(source) if file.endswith("table.py") else ()), *guard_changes(source)]
    data = source.encode()
    names: Counter[str] = Counter()
    found = []
    for change in changes:
        name = f"{file} {change.where}: {change.what}"
        names[name] += 1
        if names[name] > 1:
            name += f" ({names[name]})"
        changed = (data[: change.start] + change.text.encode() + data[change.end :]).decode()
        ast.parse(changed)
        found.append(Mutant(name, file, change.line, changed))
    return found


class Places:
    """Where the nodes of a source text are, in bytes."""

    def __init__(self, source: str) -> None:
        self.data = source.encode()
        self._lines = [0]
        for line in self.data.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Its first byte, and the one after its last."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt) -> str:
        """Its source, on one line."""
        start, end = self.span(node)
        return " ".join(self.data[start:end].decode().split())

    def operand(self, node: ast.expr) -> str:
        """Its source, in parentheses where it names what it gives."""
        text = self.data[slice(*self.span(node))].decode()
        return f"({text})" if isinstance(node, ast.NamedExpr) else text

    def change(self, where: str, node: ast.expr | ast.stmt, text: str, what: str = "") -> Change:
        """Put ``text`` in the node's place."""
        start, end = self.span(node)
        return Change(where, node.lineno, start, end, text, what or f"{self.text(node)} -> {text}")


# --- the table ---------------------------------------------------------------------------------------------------


def table_changes(source: str) -> Iterator[Change]:
    """Each edge removed, each edge swapped with the next of its group, each step not begun, nothing spent, there without its option, and,
    where a predicate decides, always taken."""
    places = Places(source)
    rows = _rows(source)
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        name = ast.literal_eval(row.args[0])
        start, end = places.span(row)
        comma = places.data.index(b",", end) + 1
        yield Change("ROWS", row.lineno, start, comma, "", f"without {name}")
        for keyword in row.keywords:
            if keyword.arg in LEFT_OUT:
                value, what = LEFT_OUT[keyword.arg]
                yield places.change("ROWS", keyword.value, value, f"{name} {what}")
        guard = row.args[3]
        if isinstance(guard, ast.Constant) and isinstance(guard.value, str) and guard.value.startswith(("is_", "has_", "can_")):
            yield places.change("ROWS", guard, "None", f"{name} is always taken")
        if following is not None and _group(row) == _group(following):
            first, second = places.span(row), places.span(following)
            between = places.data[first[1] : second[0]]
            swapped = places.data[slice(*second)] + between + places.data[slice(*first)]
            yield Change("ROWS", row.lineno, first[0], second[1], swapped.decode(), f"{name} after {ast.literal_eval(following.args[0])}")


def _rows(source: str) -> list[ast.Call]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "ROWS" and isinstance(node.value, ast.Tuple):
            return [row for row in node.value.elts if isinstance(row, ast.Call)]
    raise LookupError("the table has no ROWS")


def _group(row: ast.Call) -> tuple[str, str]:
    return ast.unparse(row.args[1]), ast.unparse(row.args[2])


# --- guards ------------------------------------------------------------------------------------------------------


def guard_changes(source: str) -> Iterator[Change]:
    """Each comparison shifted or turned round, each connective swapped, each count and each reset left out."""
    places = Places(source)
    for where, function in _functions(ast.parse(source), ""):
        if function.name.startswith(("explain", "nudge", "__")):
            continue  # words, and what the classes of values are made of
        for node in ast.walk(function):
            if isinstance(node, ast.Compare):
                yield from _compared(places, where, node)
            elif isinstance(node, ast.BoolOp):
                word = " or " if isinstance(node.op, ast.And) else " and "
                text = f"({word.join(places.operand(value) for value in node.values)})"
                yield places.change(where, node, text)
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                yield places.change(where, node, f"({places.text(node.operand)})")
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_one(node.right):
                yield places.change(where, node, f"({places.text(node.left)})")
            elif isinstance(node, ast.Return) and function.name in FOLDING and node.value is not None:
                memory = "memory" if any(arg.arg == "memory" for arg in function.args.args) else "self"
                if places.text(node.value) != memory:
                    yield places.change(where, node, f"return {memory}")


def _functions(node: ast.AST, where: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            inside = f"{where}.{child.name}" if where else child.name
            if isinstance(child, ast.FunctionDef):
                yield inside, child
            else:
                yield from _functions(child, inside)


def _compared(places: Places, where: str, node: ast.Compare) -> Iterator[Change]:
    """Each operator of a comparison in turn."""
    parts = [node.left, *node.comparators]
    texts = [places.operand(part) for part in parts]
    for i, operator in enumerate(node.ops):
        words = [SWAPPED[type(each)] if at == i else _word(each) for at, each in enumerate(node.ops)]
        text = texts[0] + "".join(f" {word} {part}" for word, part in zip(words, texts[1:], strict=True))
        yield places.change(where, node, f"({text})", f"{places.text(node)} -> {SWAPPED[type(operator)]}")


def _word(operator: ast.cmpop) -> str:
    return ast.unparse(ast.Compare(ast.Name("a"), [operator], [ast.Name("b")]))[2:-2]


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1

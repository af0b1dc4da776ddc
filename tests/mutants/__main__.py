"""Try every mutant, and print who noticed it."""

from __future__ import annotations

import argparse
import queue
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.mutants.changes import Mutant, mutants
from tests.mutants.workshop import ROOT, Outcome, Workshop

FILES = (
    *("table.py", "options.py", *(f"machine/{name}.py" for name in ("run", "wiring", "fitting", "history"))),
    *(f"guards/{name}.py" for name in ("base", "identity", "streaks", "classic", "errors", "replies", "progress", "budgets")),
)
MORE = ("guards/deadline.py", "guards/combined.py", "guards/predicate.py")
EQUIVALENT = Path(__file__).parent / "equivalent.toml"


def explained() -> dict[str, str]:
    """Mutants that change nothing, by name, with the reason."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"]
    return {entry["name"]: entry["reason"] for entry in entries}


def all_mutants(only: str) -> list[Mutant]:
    """The mutants whose name has the word ``only``."""
    found: list[Mutant] = []
    for name in (*FILES, *MORE):
        file = f"fsm_agent/{name}"
        found += mutants(file, (ROOT / file).read_text(encoding="utf-8"))
    return [mutant for mutant in found if only in mutant.name]


def outcomes(wanted: Sequence[Mutant], jobs: int) -> Iterator[Outcome]:
    """Each mutant tried, as they come; ``jobs`` at the same time, each in its own copy of the project."""
    with tempfile.TemporaryDirectory(prefix="mutants") as folder, ThreadPoolExecutor(jobs) as pool:
        benches: queue.Queue[Workshop] = queue.Queue()
        for bench in pool.map(Workshop, [Path(folder) / str(n) for n in range(jobs)]):
            for test in bench.failing if benches.empty() else ():
                print(f"note: {test} fails without any mutant, and is left out", flush=True)
            benches.put(bench)

        def tried(mutant: Mutant) -> Outcome:
            bench = benches.get()
            try:
                return bench.tried(mutant)
            finally:
                benches.put(bench)

        for done in as_completed([pool.submit(tried, mutant) for mutant in wanted]):
            yield done.result()


def table(found: Sequence[Outcome], reasons: dict[str, str]) -> Iterator[str]:
    """By file, how many mutants were noticed by whom."""
    heads = ("file", "mutants", "check", "tests", "hang", "equivalent", "unnoticed")
    yield f"{heads[0]:<30}" + "".join(f"{head:>11}" for head in heads[1:])
    files = dict.fromkeys(outcome.mutant.file for outcome in sorted(found, key=lambda each: each.mutant.file))
    for file in (*files, ""):
        of_file = [outcome for outcome in found if not file or outcome.mutant.file == file]
        fates = [outcome.fate for outcome in of_file]
        survived = [outcome for outcome in of_file if outcome.fate == "survived"]
        known = sum(outcome.mutant.name in reasons for outcome in survived)
        numbers = (len(of_file), fates.count("check"), fates.count("tests"), fates.count("hangs"), known, len(survived) - known)
        yield f"{file or 'together':<30}" + "".join(f"{number:>11}" for number in numbers)


def main() -> int:
    """Exit code: 0 when every mutant was noticed or is explained."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Try every mutant of the table, the machine and the guards."
    )
    parser.add_argument("--only", default="", metavar="WORD", help="only mutants whose name has this word")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at the same time")
    parser.add_argument("--list", action="store_true", help="list the mutants, and try none")
    parser.add_argument("--verbose", action="store_true", help="tell of every mutant who noticed it")
    options = parser.parse_args()
    wanted = all_mutants(options.only)
    if options.list:
        print(*(mutant.name for mutant in wanted), sep="\n")
        return 0
    reasons, begun, found = explained(), time.monotonic(), list[Outcome]()
    for outcome in outcomes(wanted, options.jobs):
        found.append(outcome)
        unknown = outcome.fate == "survived" and outcome.mutant.name not in reasons
        if options.verbose or unknown:
            print(
                f"[{len(found)}/{len(wanted)}] {'UNNOTICED' if unknown else outcome.fate}: {outcome.mutant.name}  {outcome.noticed}",
                flush=True,
            )
    print(*table(found, reasons), sep="\n")
    print(f"{time.monotonic() - begun:.0f} s")
    unnoticed = [o.mutant.name for o in found if o.fate == "survived" and o.mutant.name not in reasons]
    noticed = [o.mutant.name for o in found if o.fate != "survived" and o.mutant.name in reasons]
    gone = sorted(reasons.keys() - {mutant.name for mutant in wanted}) if not options.only else []
    for title, names in (
        ("unnoticed", unnoticed),
        ("said to be equivalent, and noticed", noticed),
        ("said to be equivalent, and not there", gone),
    ):
        for name in names:
            print(f"{title}: {name}")
    return 1 if unnoticed or noticed or gone else 0


if __name__ == "__main__":
    sys.exit(main())

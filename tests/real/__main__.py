"""``python -m tests.real``: each task must end for a named reason within its limits, with a record that holds. Being right is not asked."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.real.server import served
from tests.real.tasks import TASKS
from tests.real.trial import Outcome, tried
from tests.real.weights import SMOLLM2, NotToBeHad, fetched


def main() -> int:
    """Exit code: 0 when every task passed, 1 when one failed, 2 when the model cannot be had, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m tests.real", description="Run the loop with a real model on this machine.")
    parser.add_argument("--records", type=Path, default=Path("out", "real"), metavar="FOLDER", help="where the records go (out/real)")
    records: Path = parser.parse_args().records
    begun, outcomes = time.monotonic(), list[Outcome]()
    try:
        weights = fetched(SMOLLM2)
        shutil.rmtree(records, ignore_errors=True)
        records.mkdir(parents=True)
        with served(weights) as base_url:
            print(_row("", "task", "run", "reason", "steps", "s", "answer"))
            for number, task in enumerate(TASKS, 1):
                outcomes.append(tried(task, base_url, records / f"{number:02}.jsonl"))
                print(*_lines(number, outcomes[-1]), sep="\n", flush=True)
    except (NotToBeHad, OSError) as error:
        print(f"test-real: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"test-real: stopped after {len(outcomes)} of {len(TASKS)} tasks", file=sys.stderr)
        return 130
    print(*_summary(outcomes), f"{time.monotonic() - begun:.0f} s; the records are in {records}", sep="\n")
    failed = sum(bool(outcome.problems) for outcome in outcomes)
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _lines(number: int, outcome: Outcome) -> Iterator[str]:
    task = outcome.task
    told = f"{outcome.answer[:40]!r}{' (right)' if outcome.is_right else ''}" if outcome.answer else "-"
    yield _row(number, task.text, task.way, outcome.reason, outcome.steps, f"{outcome.seconds:.1f}", told)
    yield from (f"    FAILED: {problem}" for problem in outcome.problems)


def _row(number: object, task: str, way: str, reason: str, steps: object, seconds: str, answer: str) -> str:
    return f"{number:>2}  {task:<38} {way:<8}  {reason:<16} {steps:>5} {seconds:>5}  {answer}".rstrip()


def _summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """How often each reason, and how many answers were right, which is worth knowing and asserted nowhere."""
    yield ""
    for reason, times in Counter(outcome.reason for outcome in outcomes).most_common():
        yield f"{times:>4}  {reason}"
    yield f"{sum(outcome.is_right for outcome in outcomes):>4}  right answers"


if __name__ == "__main__":
    sys.exit(main())

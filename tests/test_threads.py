"""Work in threads: each piece at once, in a thread that does nothing else meanwhile; one that is stuck is nobody's loss."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from fsm_agent.drivers import threads
from fsm_agent.drivers.threads import MOST_IDLE, Raised, in_thread
from tests.driving import soon


def came_of(work: Any, name: str = "work") -> Any:
    """What comes of it, when the thread waits again."""
    results: SimpleQueue[Any] = SimpleQueue()
    idle = len(threads._idle)
    in_thread(work, results.put, name)
    came = results.get(timeout=20)
    soon(lambda: len(threads._idle) >= max(idle, 1))
    return came


def test_work_is_done_in_a_thread_with_a_name() -> None:
    name, daemon, ident = came_of(
        lambda: (threading.current_thread().name, threading.current_thread().daemon, threading.get_ident()), "tool x"
    )
    assert (name, daemon, ident != threading.get_ident()) == ("tool x", True, True)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt(), StopIteration(1), GeneratorExit()])
def test_what_is_raised_is_handed_on_and_the_thread_goes_on(error: BaseException) -> None:
    def work() -> None:
        raise error

    raised = came_of(work)
    assert isinstance(raised, Raised)
    assert raised.error is error
    assert came_of(lambda: 5) == 5


def test_threads_that_wait_are_used_again() -> None:
    assert len({came_of(threading.get_ident) for _ in range(30)}) < 30


def test_pieces_that_wait_for_each_other_have_a_thread_each() -> None:
    """However many there are: a bounded pool would stand still."""
    many = MOST_IDLE + 20
    barrier = threading.Barrier(many, timeout=20)
    results: SimpleQueue[Any] = SimpleQueue()
    for _ in range(many):
        in_thread(barrier.wait, results.put, "work")
    assert sorted(results.get(timeout=20) for _ in range(many)) == list(range(many))
    soon(lambda: len(threads._idle) == MOST_IDLE)


def test_a_thread_that_is_stuck_holds_up_nothing() -> None:
    held = threading.Event()
    in_thread(lambda: held.wait(20), lambda _: None, "stuck")
    assert came_of(lambda: "done") == "done"
    held.set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_has_threads_of_its_own() -> None:
    """As a server has that forks its workers after it made a run."""
    source = """
import os, queue, warnings
from fsm_agent.drivers.threads import in_thread
warnings.simplefilter("ignore", DeprecationWarning)
def ask():
    results = queue.SimpleQueue()
    in_thread(lambda: "done", results.put, "work")
    return results.get(timeout=20)
ask()
child = os.fork()
if child == 0:
    os._exit(0 if ask() == "done" else 1)
print(os.waitpid(child, 0)[1])
"""
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True, cwd=root)
    assert (done.stdout, done.stderr) == ("0\n", "")

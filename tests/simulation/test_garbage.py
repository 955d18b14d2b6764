"""When Python looks for garbage depends neither on what was made before a child, nor on other threads."""

import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_FORKED = """
import sys
sys.path[:0] = sys.argv[1:]
import gc
from children import forked

def work(say):
    first = gc.get_count()
    kept = [[] for _ in range(5000)]
    say(first, gc.get_count())

for number in 0, 100, 300, 650:
    gc.collect()
    kept, freed = [[] for _ in range(number)], [[] for _ in range(50)]
    del freed
    print(forked(work))
"""
_IN_THREADS = """
import sys
sys.path[:0] = sys.argv[1:]
import gc, threading
import garbage
from interrupts import Interrupter

def start(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread

def places():
    with Interrupter() as met:
        start(int).join()
    return met.places

places()
before = places()
garbage.install()
print(places() == before, bool(before), gc.isenabled())
garbage.go_on()
print(gc.isenabled(), gc.get_count()[1:])
goes_on = threading.Event()
last = start(goes_on.wait)
start(lambda: goes_on.set()).join()
garbage.go_on()
print(gc.isenabled(), last.is_alive())
"""


def _said(program: str) -> list[str]:
    command = [sys.executable, "-c", program, str(_HERE), str(_HERE.parent / "crash")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_child_counts_only_what_it_has_made():
    said = _said(_FORKED)
    assert len(said) == 4
    assert len({*said}) == 1, said


def test_nobody_looks_for_garbage_while_there_are_threads():
    """A thread that starts adds no place; one that was told to end is waited for."""
    assert _said(_IN_THREADS) == ["True True False", "True (0, 0)", "True False"]

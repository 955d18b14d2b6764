"""A program that forks while its threads use a memory: the child can close what it inherited and open its own."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, threading
from pathlib import Path
from klaw_core import KlawError, Memory
from klaw_core.config.load import load_config

root, way, forks = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
words = {"embedding": {"type": "none"}, "retrieval": [{"type": "fts5"}]}
config = load_config(data_dir=root, environment={"KLAW_CONFIG": os.devnull}, overrides={"memory": words})
memory = Memory.open(config)
ended, problems = threading.Event(), []
memory.save("first")  # what the first call imports is there: Python's own locks on modules are not Klaw's
memory.search("first")

def work(name):
    number = 0
    while not ended.is_set():
        number += 1
        try:
            memory.save(f"the harbour {name} {number} " + "word " * 40)
            memory.search("harbour")
        except KlawError as error:
            problems.append(repr(error))

threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in "abc"]
for thread in threads:
    thread.start()
failed = []
for number in range(forks):
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # a child that hangs is killed by it
        try:
            if way in {"close", "both"}:
                memory.close()
            if way in {"open", "both"}:
                with Memory.open(config) as own:
                    saved = own.save(f"child {number}")
                    assert own.search(f"child {number}")
                    assert own.get(saved.path).content == f"child {number}"
            if way == "use":
                try:
                    memory.search("harbour")
                    os._exit(3)
                except KlawError as error:
                    assert "open a new Memory after the fork" in error.hint
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(4)
    _, status = os.waitpid(child, 0)
    if status:
        failed.append(status)
ended.set()
for thread in threads:
    thread.join(300)
assert not any(thread.is_alive() for thread in threads), "a thread of the parent hangs"
memory.index()
assert not [finding for finding in memory.doctor().findings if finding.severity == "error"], memory.doctor().findings
memory.close()
assert not problems, problems[:3]
sys.exit(f"{len(failed)} of {forks} children failed: {failed}" if failed else 0)
"""


@pytest.mark.parametrize("way", ["close", "open", "both", "use"])
def test_a_fork_next_to_running_threads_works(tmp_path, way, cases):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-W", "ignore", str(program), str(tmp_path / "data"), way, str(cases.number(3, 12))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_child_does_not_keep_the_lock_of_its_parent(tmp_path):
    """A child that was forked while a thread held a lock keeps a copy of what it was held through."""
    program = """
import os, sys, threading
from pathlib import Path
from klaw_core import locked

place = Path(sys.argv[1])
held, go = threading.Event(), threading.Event()

def hold():
    with locked(place):
        held.set()
        go.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.close(writer)
    os.read(reader, 1)  # lives on
    os._exit(0)
os.close(reader)
go.set()
thread.join()
waited = []
with locked(place, lambda: waited.append(True) or os.close(writer)):
    pass
assert not waited, "the child held it"
os.close(writer)
os.waitpid(child, 0)
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    command = [sys.executable, "-W", "ignore", str(path), str(tmp_path / "locks")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

"""Several processes on one file: nothing that was acknowledged is lost, nobody hears of a lock, the log stays small.

The workers are this file, run as a program: they wait for a line on their standard input, so that all begin at once,
and print what was acknowledged. The commands are real ``klaw`` processes.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from klaw_core import Memory, StoreError
from klaw_core.config.load import load_config
from klaw_core.plugins.discover import discover
from klaw_journals.chats import Chat
from klaw_journals.messages import Message

FAKES = Path(__file__).parents[1] / "packaging" / "fakes"
MOMENT = datetime(2026, 2, 24, 12, 0, tzinfo=UTC)
SECONDS = 2.0
# SQLite copies the log back after 1,000 pages (4 MB) and begins it anew once no reader is in it. Under readers that
# come and go it was 10.9 MB at most in six seconds; a log that is never begun anew has no bound.
MAX_LOG = 32_000_000


def open_memory(root):
    """Open a memory whose vectors need no model, and which waits for the others however busy the machine is."""
    sys.path.insert(0, str(FAKES / "klaw-hello"))
    tables = {
        "store": {"type": "sqlite", "busy_timeout_seconds": 300.0},
        "retrieval": [{"type": "sqlite-vec"}, {"type": "fts5"}],
        "embedding": {"type": "hashing"},
    }
    config = load_config(data_dir=root / "data", environment={"KLAW_CONFIG": os.devnull}, overrides={"memory": tables})
    points = [*entry_points(group="klaw"), EntryPoint("hello", "klaw_hello", "klaw")]
    return Memory.open(config, registry=discover(points=points))


# What the workers do


def write(root, name, seconds):
    """Save, append and index for so long; return every text that was acknowledged."""
    done = {"saved": [], "said": [], "noted": [], "notices": []}
    with open_memory(root) as memory:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            number = len(done["saved"])
            moment = MOMENT + timedelta(seconds=number)
            saved = memory.save(f"{name}saved{number} is kept", created_at=moment)
            done["saved"].append(f"{name}saved{number}")
            chat = Chat("telegram", name)
            memory.conversations.append(Message("user", f"{name}said{number} aloud", moment, meta=chat.meta))
            done["said"].append(f"{name}said{number}")
            (root / "notes" / f"{name}.md").write_text(f"{name}noted{number} down")
            report = memory.index(root / "notes")
            done["noted"] = [f"{name}noted{number}"]
            done["notices"] += [saved.notice] * bool(saved.notice) + list(report.notices)
    return done


def read(root, _name, seconds):
    """Search and look at the status for so long; return what was noticed, and how large the log was at most."""
    notices, log, rounds = set(), 0, 0
    with open_memory(root) as memory:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for found in (memory.search("kept", mode="fts"), memory.search("kept aloud")):
                notices |= {*found.notices} - {*found.hints}
            log = max(log, memory.status().statistics["log_bytes"])
            rounds += 1
    return {"notices": sorted(notices), "log": log, "rounds": rounds}


def create(root, name, _seconds):
    """Make the database, together with others who do."""
    with open_memory(root) as memory:
        return {"notice": memory.save(f"{name}saved").notice}


@contextmanager
def workers(root, *roles, seconds=SECONDS):
    """Start processes that wait; give what lets them begin and returns what each printed."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, __file__, role, str(root), f"w{number}", str(seconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for number, role in enumerate(roles)
    ]  # fmt: skip

    def begin():
        for process in started:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
        for process in started:
            process.stdin.write("go\n")
            process.stdin.flush()
        results = []
        for process in started:
            out, err = process.communicate(timeout=300)
            assert process.returncode == 0, err
            results.append(json.loads(out))
        return results

    try:
        yield begin
    finally:
        for process in started:
            process.kill()
            process.communicate()


@pytest.fixture
def root(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "first.md").write_text("the harbour at night")
    return tmp_path.resolve()


@pytest.mark.needs("klaw-conversations")
def test_four_writers_and_two_readers_work_at_the_same_time(root):
    with open_memory(root) as memory:
        memory.index(root / "notes")
    with workers(root, *["write"] * 4, *["read"] * 2) as begin:
        *written, one, two = begin()
    with open_memory(root) as memory:
        for done in written:
            assert done["notices"] == []
            assert done["saved"]
            for word in done["saved"]:
                assert len(memory.search(word, mode="fts")) == 1, word
        saved, said = (sum(len(done[kind]) for done in written) for kind in ("saved", "said"))
        assert memory._assembly.collection("memory").lacking() == 0
        for word in (word for done in written for word in done["noted"]):
            assert len(memory.search(word, mode="fts")) == 1, word
        status = memory.status()
        assert status.origins == {"saved": (saved, saved), "notes": (5, 5)}
        memory.index()  # the conversations, which nobody has indexed yet
        with memory._assembly.store.read() as snapshot:
            messages = snapshot.messages
            assert sum(len(messages.all(chat)) for chat in messages.chats()) == said
        for done in written:
            for word in done["said"]:
                assert len(memory.conversations.search(word)) == 1, word
        assert memory.doctor().findings == ()
    for seen in (one, two):
        assert seen["rounds"] > 0
        # Between the words and the vectors of a text, which are written one after the other.
        known = re.compile(r"\d+ chunks? ha(s|ve) no vector yet, .*|notes: the last index run has not finished; .*")
        assert [notice for notice in seen["notices"] if not known.fullmatch(notice)] == []
        assert seen["log"] < MAX_LOG


def test_several_processes_can_create_the_database_at_the_same_time(root):
    """SQLite does not wait when two switch a new file to write-ahead mode; Klaw does."""
    for attempt in range(2):
        place = root / str(attempt)
        with workers(place, *["create"] * 5) as begin:
            assert begin() == [{"notice": ""}] * 5
        with open_memory(place) as memory:
            assert memory.status().origins == {"saved": (5, 5)}


@pytest.mark.needs("klaw-conversations")
def test_threads_can_use_one_memory(root):
    failures = []
    with open_memory(root) as memory:
        memory.index(root / "notes")
        barrier = threading.Barrier(6)

        def work(name, writes):
            try:
                barrier.wait()
                for number in range(12):
                    if writes:
                        assert memory.save(f"{name}saved{number}").notice == ""
                        chat = Chat("telegram", name)
                        message = Message(
                            "user", f"{name}said{number}", MOMENT + timedelta(seconds=number), meta=chat.meta
                        )
                        memory.conversations.append(message)
                    memory.search("harbour")
                    memory.status()
            except Exception as error:  # noqa: BLE001  # shown below
                failures.append(error)

        threads = [threading.Thread(target=work, args=(f"t{number}", number < 4)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        memory.index()
        assert memory.status().origins["saved"] == (48, 48)
        assert memory.doctor().findings == ()


def test_the_log_shrinks_after_a_long_reader_ends(root):
    with open_memory(root) as memory, open_memory(root) as other:
        memory.index(root / "notes")

        def save(count, kind):
            for number in range(count):
                memory.save(f"{kind}{number} " + "kept " * 2000)
            return memory.status().statistics["log_bytes"]

        with other._assembly.store.read() as snapshot:
            before = snapshot.keys("memory").tolist()
            save(40, "during")
            pinned = save(40, "still")
            assert snapshot.keys("memory").tolist() == before
            assert memory.search("still39", mode="fts")
        assert pinned > 4_000_000, "or this shows nothing"
        save(3, "after")
        assert save(40, "later") <= pinned + 1_000_000, "the log is used from its beginning again"
        assert memory.doctor().findings == ()


def test_a_long_reader_does_not_block_forgetting_and_writing(root):
    with open_memory(root) as memory, open_memory(root) as other, open_memory(root) as reader:
        paths = [memory.save(f"kept{number}").path for number in range(3)]
        with reader._assembly.store.read() as snapshot:
            assert snapshot.keys("memory").size == 3
            forgetting = [threading.Thread(target=memory.forget, args=(path,)) for path in paths]
            for thread in forgetting:
                thread.start()
            for number in range(5):
                assert other.save(f"meanwhile{number}").notice == ""
            for thread in forgetting:
                thread.join()
        assert memory.status().origins == {"saved": (5, 5)}


def test_use_after_a_fork_is_an_error_in_the_child(root):
    """In a process of its own, which has no other thread.

    Before its embedder is asked: a model's runtime that has lost its threads does not answer.
    """
    program = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_processes import open_memory, Path
memory = open_memory(Path({str(root)!r}))
memory.save("before")
memory.search("in the parent")
if os.fork() == 0:
    embedder, embed = memory._assembly.embedder, memory._assembly.embedder.embed_query
    embedder.embed_query = lambda text: os._exit(1)
    try:
        memory.search("before")
    except Exception as error:
        print(type(error).__name__, error)
    embedder.embed_query = embed
    print(memory.save("in the child").notice)
    memory.close()
    sys.stdout.flush()
    os._exit(0)
os.wait()
print(memory.save("after").notice == "", bool(memory.search("before")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    told, kept, parent = done.stdout.splitlines()
    assert told.startswith("StoreError")
    assert "open a new Memory after the fork" in told
    assert kept.startswith("saved, but not searchable before the next `klaw index`")
    assert parent == "True True"
    with open_memory(root) as memory:
        memory.index(root / "notes")
        memory.index()
        assert memory.search("child", mode="fts")


def test_use_of_a_memory_that_another_thread_closed_is_an_error(root):
    memory = open_memory(root)
    memory.index(root / "notes")
    told = []

    def search():
        try:
            while True:
                memory.search("harbour")
        except StoreError as error:
            told.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    time.sleep(0.1)
    memory.close()
    thread.join(300)
    assert not thread.is_alive()
    assert "is closed" in str(told[0])


# Two commands at once

CONFIG = """\
[memory.embedding]
type = "none"

[memory.store]
busy_timeout_seconds = {busy_seconds}
"""


@pytest.fixture
def klaw(root, monkeypatch):
    """Begin ``klaw`` commands in a home of their own; each returns what waits and gives (exit code, all it printed)."""
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(root / name.lower()))
    monkeypatch.setenv("KLAW_DATA_DIR", str(root / "data"))
    monkeypatch.setenv("NO_COLOR", "1")
    configure(root, busy_seconds=300.0)

    def begin(*arguments):
        command = [sys.executable, "-m", "klaw_core", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        def end():
            out, _ = process.communicate(timeout=300)
            return process.returncode, out

        return end

    for number in range(40):
        words = " ".join(f"note{number}word{part}" for part in range(100))
        (root / "notes" / f"{number}.md").write_text(f"# Note\n\n{words}\n")
    with configured(root) as memory:
        memory.index(root / "notes")
        memory.save("the lantern is blue")
    return begin


def configure(root, busy_seconds):
    (root / "config" / "klaw").mkdir(parents=True, exist_ok=True)
    (root / "config" / "klaw" / "config.toml").write_text(CONFIG.format(busy_seconds=busy_seconds))


def configured(root):
    """Open what the commands open, in this process."""
    file = root / "config" / "klaw" / "config.toml"
    return Memory.open(load_config(environment={**os.environ, "KLAW_CONFIG": str(file)}))


def found_afterwards(root, *words):
    """Look whether another index run leaves nothing wrong; return the path where each word is found, or nothing."""
    with configured(root) as memory:
        memory.index()
        memory.reindex()
        assert memory.doctor().findings == ()
        found = [memory.search(word, mode="fts") for word in words]
        return [results[0].path if results else "" for results in found]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (("index", "--force", "notes"), ("index", "--force", "notes")),
        (("index", "--force", "notes"), ("reindex",)),
        (("reindex",), ("reindex",)),
        (("forget", "--yes", "notes/3.md"), ("index", "--force", "notes")),
        (("save", "a heron"), ("reindex",)),
        (("save", "a heron"), ("save", "a second heron")),
    ],
    ids=lambda arguments: arguments[0],
)
def test_two_commands_can_run_at_the_same_time(root, klaw, one, two):
    """Both succeed, or one says which process it met and what to do; then all is well."""
    ends = [klaw(*(str(root / word) if word == "notes" else word for word in words)) for words in (one, two)]
    answers = [end() for end in ends]
    assert 0 in [code for code, _ in answers], answers
    for code, out in answers:
        assert code == 0 or (code == 1 and "is locked" in out and "→ wait for it to finish" in out), out
        assert "Traceback" not in out
        assert "database is locked" not in out
    last, gone, heron, second = found_afterwards(root, "note39word7", "note3word1", "heron", "second")
    assert last == "notes/39.md"
    assert gone == ("notes/3.md" if one[0] != "forget" else "")
    assert bool(heron) == (one[0] == "save")
    assert bool(second) == (two[0] == "save")


REBUILDING = "is rebuilding it"
# This process holds the lock; only Linux says which one does.
WRITING = f"is locked by process {os.getpid()} (" if sys.platform == "linux" else "is locked by another process"


@pytest.mark.parametrize(
    ("held", "command", "code", "says"),
    [
        ("rebuild", ("save", "a heron"), 0, ("saved, but not searchable", REBUILDING)),
        ("rebuild", ("index", "--force"), 1, (REBUILDING, "→ wait for it to finish")),
        ("rebuild", ("reindex",), 1, (REBUILDING, "→ wait for it to finish")),
        ("rebuild", ("forget", "--yes", "notes/3.md"), 1, (REBUILDING, "→ wait for it to finish")),
        ("rebuild", ("search", "lantern"), 0, ("the lantern is blue",)),
        ("rebuild", ("status",), 0, ("notes",)),
        ("rebuild", ("doctor",), 0, (REBUILDING,)),
        ("write", ("save", "a heron"), 0, ("saved, but not searchable", WRITING)),
        ("write", ("index", "--force"), 1, (WRITING, "→ wait for it to finish")),
        ("write", ("reindex",), 1, ("another process is writing to it", "→ wait for it to finish")),
        ("write", ("forget", "--yes", "notes/3.md"), 1, (WRITING, "→ wait for it to finish")),
        ("write", ("search", "lantern"), 0, ("the lantern is blue",)),
    ],
)
def test_a_command_next_to_a_blocked_one_reports_it(root, klaw, held, command, code, says):  # noqa: PLR0917
    configure(root, busy_seconds=0.2)
    with configured(root) as memory:
        hold = memory._assembly.store.rebuild if held == "rebuild" else memory._assembly.store.write
        with suppress(KeyboardInterrupt), hold():
            answer = klaw(*command)()
            raise KeyboardInterrupt
    assert answer[0] == code, answer[1]
    for words in says:
        assert words in answer[1].replace("\n", " ")
    lantern, refused, heron = found_afterwards(root, "lantern", "note3word1", "heron")
    assert lantern
    assert refused == "notes/3.md", "what was refused has changed nothing"
    assert bool(heron) == (command[0] == "save")


if __name__ == "__main__":
    role, place, name, seconds = sys.argv[1:]
    print("ready", flush=True)  # noqa: T201  # a program
    sys.stdin.readline()
    print(json.dumps({"write": write, "read": read, "create": create}[role](Path(place), name, float(seconds))))  # noqa: T201

"""Ctrl-C costs only the current call: at each place of every operation where CPython may deliver a signal.

After each interrupt, with its exception kept or dropped, no lock, transaction or descriptor is left, and the next call
works: in this thread, in another one, and for another connection. A sample by default; ``--campaigns``
(``nox -s campaigns``) takes every place of every operation.
"""

import ast
import os
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from inspect import isgeneratorfunction
from itertools import count
from pathlib import Path
from types import FunctionType

import apsw
import pytest
from attrs import define, field
from interrupts import Place, Sides, interrupt, places_of
from scenes import CHAT, NOON, Home, make_registry

from klaw_core import (
    Agents,
    FileLock,
    Flag,
    Memory,
    Message,
    NewDocument,
    StoreLockedError,
    ThreadLock,
    holds,
    locked,
)
from klaw_core.extensions.open_memory import OpenMemory
from klaw_core.files import held
from klaw_core.holds import Hold, operation
from klaw_facts.facts import Facts
from klaw_facts.keeper import FactKeeper
from klaw_memories import CoreMemory
from klaw_watch import BackgroundIndexer
from klaw_watch.watcher import Watcher

chats = import_module("klaw_conversations")
Conversations, HistoryStore = chats.Conversations, chats.HistoryStore
WorkspaceManager = import_module("klaw_notes.management").WorkspaceManager

ROOT = Path(__file__).parents[2]
#: Places of each operation in a default run; of those that take long, fewer.
SAMPLE, FEW = 3, 1
SLOW = {"index", "reindex", "doctor", "open"}


@define
class Life:
    """A memory in use, and what can be done with it."""

    memory: Memory
    home: Home
    sides: Sides
    numbers: Iterator[int] = field(factory=lambda: count(1))

    def number(self) -> int:
        return next(self.numbers)

    def saved(self) -> str:
        return self.memory.save(f"thing{self.number()} to forget").path

    def message(self) -> Message:
        number = self.number()
        return Message("user", f"said{number}", NOON + timedelta(seconds=number), meta=CHAT.meta)

    def opened(self) -> None:
        with Memory.open(self.home.config(self.home.data), registry=self.home.registry) as memory:
            memory.search("thing")

    def operations(self) -> dict[str, Callable[[], Callable[[], object]]]:
        """Return, by name, what prepares an operation and returns it."""
        memory, facts = self.memory, self.memory.extension("facts")

        def note() -> Callable[[], object]:
            number = self.number()
            self.home.write(f"{number % 5}.md", f"# Note {number}\n\nnoteword{number} stands here\n")
            return memory.index

        def forget() -> Callable[[], object]:
            path = self.saved()
            return lambda: memory.forget(path)

        def forget_message() -> Callable[[], object]:
            said = memory.conversations.append(self.message())
            return lambda: memory.conversations.forget(CHAT, [said.id])

        def purge() -> Callable[[], object]:
            memory.conversations.append(self.message())
            return lambda: memory.conversations.purge(CHAT)

        def delete() -> Callable[[], object]:
            memory.add([NewDocument("gone", f"document {self.number()}")])
            return lambda: memory.delete(["gone"])

        def always(call: Callable[[], object]) -> Callable[[], Callable[[], object]]:
            return lambda: call

        return {
            "save": always(lambda: memory.save(f"thing{self.number()} to keep")),
            "search": always(lambda: memory.search(f"question {self.number()} about thing1")),
            "context": always(lambda: memory.context(f"question {self.number()} about thing1")),
            "forget": forget,
            "index": note,
            "reindex": always(memory.reindex),
            "add": always(lambda: memory.add([NewDocument(f"d{self.number()}", "a document")])),
            "delete": delete,
            "documents": always(memory.documents),
            "recent": always(memory.recent),
            "append": always(lambda: memory.conversations.append(self.message())),
            "find": always(lambda: memory.conversations.search("said")),
            "forget message": forget_message,
            "purge": purge,
            "core": always(lambda: memory.core.update("user", "key", f"value {self.number()}")),
            "remember": always(lambda: facts.remember(f"fact {self.number()}", by="agent")),
            "status": always(memory.status),
            "doctor": always(memory.doctor),
            "export": always(lambda: memory.export(self.home.root / "exported.jsonl")),
            "open": always(self.opened),
        }


OPERATIONS = (
    "save",
    "search",
    "context",
    "forget",
    "index",
    "reindex",
    "add",
    "delete",
    "documents",
    "recent",
    "append",
    "find",
    "forget message",
    "purge",
    "core",
    "remember",
    "status",
    "doctor",
    "export",
    "open",
)


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    with pytest.MonkeyPatch.context() as limits:
        limits.setattr("klaw_core.holds.LOCK_SECONDS", 20.0)  # what would hang is a finding
        limits.setattr("klaw_core.files.held.FILE_LOCK_SECONDS", 20.0)
        home = Home(tmp_path_factory.mktemp("interrupts"), make_registry(), facts=True)
        home.data.mkdir()
        for number in range(3):
            home.write(f"{number}.md", f"# Note {number}\n\nnoteword{number} stands here\n")
        with home.open() as memory:
            memory.index(home.notes)
            sides = Sides(memory, home.data)
            yield Life(memory, home, sides)
            sides.close()


def interrupted(life: Life, name: str, places: list[Place], *, keep: Callable[[int], bool]) -> dict[str, list[str]]:
    """Interrupt an operation at each of these places; return what was wrong after each."""
    prepare = life.operations()[name]
    wrong = {}
    life.sides.settle()
    for number, place in enumerate(places):
        _, problems = interrupt(prepare(), place, life.sides, keep=keep(number))
        if problems:
            wrong[str(place)] = problems
            life.sides.settle()
    return wrong


def places(life: Life, name: str) -> list[Place]:
    """Return the places of an operation, once it has done what only its first call does."""
    prepare = life.operations()[name]
    for _ in range(2):
        prepare()()
    return places_of(prepare())


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_interrupt_costs_only_the_current_call(life, cases, name):
    found = places(life, name)
    assert len(found) > 50
    if not cases.whole:
        wanted = FEW if name in SLOW else SAMPLE
        found = found[len(found) // (2 * wanted) :: len(found) // wanted][:wanted]
    wrong = interrupted(life, name, found, keep=lambda number: number % 2 == 0)
    cases.add(len(found), len(wrong))
    assert wrong == {}


def test_every_operation_is_interrupted(life):
    assert set(life.operations()) == set(OPERATIONS)


def read_by(life: Life) -> apsw.Connection:
    """Return a connection of its own that has read the database."""
    connection = apsw.Connection(str(life.home.data / "klaw.db"))
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    return connection


def test_descriptors_that_sqlite_keeps_for_the_next_connections_are_no_leak(life):
    """SQLite keeps those of closed connections while another has a lock: as many as there were at once."""
    life.sides.settle()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for connection in [read_by(life) for _ in range(8)]:
        connection.close()
    assert len(list(Path("/proc/self/fd").iterdir())) > before
    assert list(life.sides.problems()) == []


@pytest.mark.parametrize("what", ["a file", "a connection"])
def test_one_descriptor_that_is_left_open_is_seen(life, what):
    """However many idle connections were open before, and are closed by the look."""
    life.sides.settle()
    left = Path(os.devnull).open() if what == "a file" else read_by(life)  # noqa: SIM115  # it is left open
    idle = [read_by(life) for _ in range(8)]
    for connection in idle:
        connection.close()
    try:
        (problem,) = life.sides.problems()
    finally:
        left.close()
    assert problem.endswith("descriptors more than before")
    assert list(life.sides.problems()) == []


#: Places at which a lock, a transaction or a thread was once left behind: the operation, the file, the code, the event
#: and the name of the C function.
KNOWN = {
    "the transaction has just begun": ("save", "connections.py", "Connections._transaction", "c_return", "execute"),
    "the lock of a file was just acquired, or released": ("save", "platform.py", "lock", "c_return", "flock"),
    "a cursor is half read": ("search", "snapshot.py", "SqliteSnapshot._rows", "c_return", ""),
    "a row is being read": ("search", "snapshot.py", "_stored", "call", ""),
    "a lock between threads was just acquired": ("search", "holds.py", "_LockHold.take", "c_return", "acquire"),
    "a lock between threads was just released": ("search", "holds.py", "_LockHold.give_back", "c_return", "release"),
    "a fork is looked for": ("search", "forking.py", "InsideSqlite.take", "call", ""),
    "a block begins": ("save", "contextlib.py", "_GeneratorContextManager.__enter__", "call", ""),
    "a block ends": ("save", "contextlib.py", "_GeneratorContextManager.__exit__", "call", ""),
    "the vector is asked for": ("search", "query_vectors.py", "QueryVectors.embed", "c_return", ""),
    "a thread is asked for it": ("search", "query_vectors.py", "QueryVectors._submit", "c_return", ""),
}


@pytest.mark.promise("D25")
@pytest.mark.parametrize("what", KNOWN)
@pytest.mark.parametrize("keep", [True, False], ids=["kept", "dropped"])
def test_an_interrupt_at_a_known_place_leaves_nothing(life, what, keep):
    name, file, code, event, called = KNOWN[what]
    found = [
        place
        for place in places(life, name)
        if (Path(place.file).name, place.code, place.event) == (file, code, event) and called in {"", place.name}
    ]
    assert found
    assert interrupted(life, name, found[:: max(1, len(found) // 3)][:3], keep=lambda _: keep) == {}


def test_a_hold_that_is_not_given_back_is_seen(life, monkeypatch):
    """Without the operation around it, an interrupt as a transaction begins to end would leave it open."""
    leaves = [
        place
        for place in places(life, "save")
        if (place.code, place.event) == ("Hold.__exit__", "call") and "Connections._transaction" in place.caller
    ]
    assert leaves
    with monkeypatch.context() as broken:
        broken.setattr("klaw_core.holds._end_all", lambda _holds: None)
        wrong = interrupted(life, "save", leaves[:1], keep=lambda _: True)
    assert wrong
    for hold in [hold for ledger in holds._ledgers.values() for hold in ledger]:
        hold.end()
    assert interrupted(life, "save", leaves, keep=lambda _: True) == {}


#: What the public classes of a memory are: an instance is used from programs.
PUBLIC = [
    Agents,
    BackgroundIndexer,
    Conversations,
    CoreMemory,
    FactKeeper,
    Facts,
    HistoryStore,
    Memory,
    OpenMemory,
    Watcher,
    WorkspaceManager,
]


@pytest.mark.parametrize("kind", PUBLIC)
def test_every_public_method_gives_back_what_it_holds(kind):
    methods = {name: value for name, value in vars(kind).items() if isinstance(value, FunctionType)}
    public = {name: value for name, value in methods.items() if not name.startswith("_")}
    assert public
    left_out = [
        name
        for name, value in public.items()
        if not (hasattr(value, "__wrapped__") or isgeneratorfunction(value) or hasattr(value, "__isabstractmethod__"))
    ]
    assert left_out == []


#: Where a thread waits inside of the standard library's own code in Python, an exception leaves a lock locked.
UNSAFE = {"Barrier", "BoundedSemaphore", "Condition", "Event", "Lock", "RLock", "Semaphore", "Timer"}
QUEUES = {"LifoQueue", "PriorityQueue", "Queue"}
#: Files that may use them, or open and lock files themselves.
OWN = {"klaw_core/holds.py", "klaw_core/files/held.py", "klaw_core/files/platform.py"}
#: Programs, which end when they are interrupted, and what tests use.
PROGRAMS = ("/cli/", "/testing", "/klaw_testing/", "worker.py", "/stdio.py", "/klaw_eval/", "/warm/")


def shipped(*words: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the files of all distributions that contain one of these words, parsed, except those above."""
    for path in [*ROOT.glob("klaw_*/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]:
        name, text = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        if name not in OWN and not any(part in name for part in PROGRAMS) and any(word in text for word in words):
            yield name, ast.parse(text)


def test_locks_between_threads_are_holds():
    found = []
    for name, tree in shipped("threading", "queue", "multiprocessing"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in {"threading", "queue", "multiprocessing"}:
                found += [f"{name}: {alias.name}" for alias in node.names if alias.name in UNSAFE | QUEUES]
            if isinstance(node, ast.Attribute) and node.attr in UNSAFE | QUEUES:
                module = getattr(node.value, "id", "")
                found += [f"{name}: {module}.{node.attr}"] * (module in {"threading", "queue", "multiprocessing"})
    # The time of a parser on Windows, where a pipe cannot be waited for.
    assert found == ["plugins/klaw-documents/src/klaw_documents/process.py: threading.Timer"]


def test_files_are_opened_and_locked_by_holds():
    found = []
    for name, tree in shipped("os.open", "os.dup", "os.pipe", "fcntl", "mkstemp"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                called = f"{node.value.id}.{node.attr}"
                if called in {"os.open", "os.dup", "os.pipe", "fcntl.flock", "fcntl.lockf", "tempfile.mkstemp"}:
                    found.append(f"{name}: {called}")
    assert found == []


def test_no_generator_releases_what_it_holds_itself():
    """A generator behind ``contextmanager`` may never be resumed: its ``finally`` is no place to release a lock.

    A server ends with its blocks.
    """
    found = []
    for name, tree in shipped("contextmanager"):
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            decorators = {getattr(item, "attr", getattr(item, "id", "")) for item in node.decorator_list}
            if "contextmanager" in decorators and any(
                isinstance(inner, ast.Try) and inner.finalbody for inner in ast.walk(node)
            ):
                found.append(f"{name}: {node.name}")
    assert [place for place in found if "/klaw_serve/" not in place] == []


class Steps(Hold[str]):
    """Notes what is called; ``fails`` says how many attempts to give back are interrupted."""

    def __init__(self, fails: int = 0) -> None:
        self.fails = fails
        self.done: list[str] = []

    def take(self) -> str:
        self.done.append("take")
        return "value"

    def give_back(self) -> None:
        self.done.append("give back")
        if self.fails:
            self.fails -= 1
            raise KeyboardInterrupt


class TestHolds:
    def test_a_hold_ends_with_its_block(self):
        hold = Steps()
        with hold as value:
            assert value == "value"
            assert hold.done == ["take"]
        assert hold.done == ["take", "give back"]
        hold.end()
        assert hold.done == ["take", "give back"]

    def test_a_hold_whose_end_is_interrupted_is_given_back_again(self):
        hold = Steps(fails=1)
        with pytest.raises(KeyboardInterrupt), hold:
            pass
        assert hold.done == ["take", "give back", "give back"]

    @pytest.mark.promise("D25")
    def test_an_operation_ends_the_holds_that_were_begun_in_it_the_last_first(self):
        ended = []

        class Named(Steps):
            def give_back(self) -> None:
                ended.append(self)

        before, first, second = Named(), Named(), Named()

        @operation
        def leave_two():
            first.__enter__()
            second.__enter__()
            raise KeyboardInterrupt

        with before:
            with pytest.raises(KeyboardInterrupt):
                leave_two()
            assert ended == [second, first]
        assert ended == [second, first, before]

    def test_a_kept_hold_outlives_its_block_and_its_operation(self):
        hold = Steps()

        @operation
        def begin():
            with hold:
                hold.keep()

        begin()
        assert hold.done == ["take"]
        thread = threading.Thread(target=hold.end)
        thread.start()
        thread.join()
        assert hold.done == ["take", "give back"]

    def test_a_generator_that_ends_late_does_not_release_the_lock_of_a_later_block(self):
        lock = ThreadLock("a test")
        left = lock.hold()

        @operation
        def leave():
            left.__enter__()
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            leave()
        with lock.hold():
            left.__exit__(None, None, None)
            assert lock.is_mine
            assert not acquired_elsewhere(lock)
        assert acquired_elsewhere(lock)

    def test_a_lock_can_be_entered_again_and_is_released_by_the_outermost_block(self):
        lock = ThreadLock("a test")
        with lock.hold():
            with lock.hold():
                pass
            assert not acquired_elsewhere(lock)
        assert acquired_elsewhere(lock)

    @pytest.mark.promise("D26")
    def test_a_wait_for_a_thread_ends_and_names_it(self, monkeypatch):
        monkeypatch.setattr("klaw_core.holds.LOCK_SECONDS", 0.01)
        lock, holds_it, may_end = ThreadLock("the shelf"), threading.Event(), threading.Event()

        def hold():
            with lock.hold():
                holds_it.set()
                may_end.wait(300)

        thread = threading.Thread(target=hold, name="librarian")
        thread.start()
        holds_it.wait(300)
        with pytest.raises(StoreLockedError, match=r"the shelf is in use by the thread 'librarian'"), lock.hold():
            pass
        may_end.set()
        thread.join()
        with lock.hold():
            pass

    def test_a_wait_for_a_file_ends_and_names_the_process(self, tmp_path):
        with (
            locked(tmp_path),
            pytest.raises(StoreLockedError, match=r"is locked by this process for more than 0\.01 seconds"),
            locked(tmp_path, limit_seconds=0.01),
        ):
            pass

    def test_a_wait_for_a_file_names_another_process(self, tmp_path):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            with FileLock(tmp_path):
                os.write(writer, b"x")
                signal.pause()
            os._exit(0)
        os.read(reader, 1)
        with (
            pytest.raises(StoreLockedError, match=rf"is locked by process {child} \("),
            locked(tmp_path, limit_seconds=0),
        ):
            pass
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)

    def test_a_descriptor_is_closed_once(self, tmp_path):
        (tmp_path / "file").write_bytes(b"")
        opened = held.Descriptor(tmp_path / "file", os.O_RDONLY)
        with opened as descriptor:
            os.fstat(descriptor)
            opened.give_back()
            other = os.open(tmp_path / "file", os.O_RDONLY)
            assert other == descriptor, "the number is used again"
        os.fstat(other)
        os.close(other)

    def test_threads_wait_for_a_flag(self):
        flag, woken = Flag(), []
        threads = [threading.Thread(target=lambda: woken.append(flag.wait(300))) for _ in range(3)]
        for thread in threads:
            thread.start()
        assert not flag.wait(0.001)
        flag.set()
        for thread in threads:
            thread.join(300)
        assert woken == [True, True, True]
        assert flag.wait(0)


def acquired_elsewhere(lock: ThreadLock) -> bool:
    """Return whether another thread can acquire a lock at once."""
    got: list[bool] = []

    def attempt() -> None:
        got.append(lock.lock.acquire(blocking=False))
        if got[0]:
            lock.lock.release()

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return got[0]

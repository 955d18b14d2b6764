"""Raise KeyboardInterrupt at a place of an operation where CPython may deliver a signal, and look at what is left.

CPython runs the handlers of signals where its loop looks for them: when a function of Python is entered, and after a
call of a function of C. ``sys.setprofile`` reports both (``call``, ``c_return``), and an exception that its function
raises appears exactly there. (Not reported are loops without calls, which hold nothing new from one round to the next.)
"""

import fcntl
import gc
import os
import stat
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from inspect import isgenerator
from pathlib import Path
from types import FrameType
from typing import Any, Self

import apsw
from attrs import define, field, frozen

from klaw_core import KlawError, Memory, holds
from klaw_store_sqlitevec.connections import Connections

#: Files of the standard library that hold something on behalf of Klaw.
_STANDARD = {"contextlib.py", "threading.py", "tempfile.py", "pathlib.py", "functools.py", "_weakrefset.py"}
#: Files whose places differ by who called them.
_SERVING = _STANDARD | {"holds.py", "held.py", "atomic.py"}
_TESTS = str(Path(__file__).parents[1])  # what records and judges, not what is judged
_ROOTS = (str(Path(__file__).parents[2]), sysconfig.get_path("stdlib"))
_LOOKS = 1200  # for a minute, of real time: a simulator replaces `time.sleep`
_sleep = time.sleep


@frozen
class Place:
    """A file, below the checkout or the library, the name of the code, the offset of the instruction, the event, the C
    function, and for whom it runs.
    """

    file: str
    code: str
    offset: int
    event: str
    name: str
    caller: str

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.code}+{self.offset} {self.event} {self.name} for {self.caller}"


def counts(file: str) -> bool:
    """Return whether places in a file count: those of Klaw, and of what holds something on its behalf."""
    if file.startswith((_TESTS, "<")) or "importlib" in file:
        return False
    return "klaw" in Path(file).parent.as_posix() or Path(file).name in _STANDARD


@cache
def _short(file: str) -> str:
    root = next((root for root in _ROOTS if file.startswith(f"{root}{os.sep}")), "")
    return file.removeprefix(f"{root}{os.sep}")


def _is_callback(code: Any) -> bool:
    """Return whether this is a callback of a weak reference, in which Python itself ignores and prints an exception."""
    return bool(code.co_qualname.endswith("<locals>._remove"))


def _interrupt() -> None:
    raise KeyboardInterrupt


@define
class Interrupter:
    """Notes the places of a block in this thread in ``places``, or raises at one of them (or does ``then``)."""

    place: Place | None = None
    then: Callable[[], None] = _interrupt
    places: dict[Place, int] = field(factory=dict)
    raised: bool = False
    #: By the number of a code object, which is kept, so that no other one gets it: its hash is that of its content.
    _known: dict[int, tuple[bool, bool, Any]] = field(factory=dict)

    def __enter__(self) -> Self:
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _kind(self, code: Any) -> tuple[bool, bool, Any]:
        """Return whether places of this code count, and whether they differ by who called it."""
        kind = self._known.get(id(code))
        if kind is None:
            file = code.co_filename
            kind = counts(file) and not _is_callback(code), Path(file).name in _SERVING, code
            self._known[id(code)] = kind
        return kind

    def _look(self, frame: FrameType, event: str, called: Any) -> None:
        if event not in {"call", "c_return"}:
            return
        wanted = self.place
        if wanted is not None and (frame.f_lasti != wanted.offset or event != wanted.event or self.raised):
            return  # most places are another one, which is told at once
        code = frame.f_code
        counts, serves, _ = self._kind(code)
        if not counts:
            return
        name = "" if event == "call" else getattr(called, "__name__", "")
        called = None  # the traceback keeps this frame, which would keep a cursor that a signal does not keep
        caller = ""
        if serves:
            outer = self._caller(frame)
            if outer is not None and outer.f_code.co_filename.startswith(_TESTS):
                return
            caller = "" if outer is None else f"{outer.f_code.co_qualname}:{outer.f_lineno}"
        place = Place(_short(code.co_filename), code.co_qualname, frame.f_lasti, event, name, caller)
        if wanted is None:
            self.places[place] = self.places.get(place, 0) + 1
        elif place == wanted:
            self.raised = True
            sys.setprofile(None)
            self.then()

    def _caller(self, frame: FrameType) -> FrameType | None:
        """Return the nearest frame that called this one and is not of the same kind."""
        outer = frame.f_back
        while outer is not None and self._kind(outer.f_code)[1]:
            outer = outer.f_back
        return outer


def _held() -> list[object]:
    """Return what is held: by this thread now, and by any other, which may go on with its work, after a while."""
    mine = threading.get_ident()
    for _ in range(_LOOKS):
        held = {thread: list(ledger) for thread, ledger in list(holds._ledgers.items()) if ledger}
        if not held or mine in held:
            break
        _sleep(0.05)
    return [hold for ledger in held.values() for hold in ledger]


@define
class Sides:
    """Looks at a memory from four sides: this thread, another thread, another connection, and another descriptor."""

    memory: Memory
    data: Path
    _stranger: apsw.Connection = field(init=False)
    #: How many descriptors are open, with idle connections and without any.
    _descriptors: int = field(init=False)
    _fewest: int = field(init=False)
    _threads: int = field(init=False)
    _probes: int = 0

    def __attrs_post_init__(self) -> None:
        self._stranger = self._connect()
        self.settle()

    def _connect(self) -> apsw.Connection:
        return apsw.Connection(str(self.data / "klaw.db"))

    def settle(self) -> None:
        """Take what is open now as what should be open."""
        list(self.problems(settled=False))
        self._close_idle()
        self._fewest = _open_files()
        list(self.problems(settled=False))  # idle connections are what they will be at each look
        self._descriptors, self._threads = _open_files(), threading.active_count()

    def _close_idle(self) -> None:
        """Close what is no leak: idle connections, of which a pool has as many as there were readers at once.

        While any connection of this process has a lock on the database, as each one has in WAL mode, SQLite keeps the
        descriptors of those that were closed, for the next ones. So the stranger's is closed too, and opened again.
        """
        for pool in [item for item in gc.get_objects() if isinstance(item, Connections)]:
            pool.renew()
        self._stranger.close()
        self._stranger = self._connect()

    def close(self) -> None:
        self._stranger.close()

    def problems(self, *, settled: bool = True, kept: bool = False) -> Iterator[str]:
        """Yield what is not as it should be after an interrupt, first without touching the memory.

        If the exception is ``kept``, its frames still read the files that they were reading.
        """
        if left := _held():
            yield f"still held: {[type(hold).__name__ for hold in left]}"
        yield from locks_left(self.data, self._stranger)
        if settled and _open_files() > self._descriptors:
            self._close_idle()
            if (now := _open_files(writable=kept)) > self._fewest:
                yield f"{now - self._fewest} descriptors more than before"
        if settled and threading.active_count() > self._threads:
            for _ in range(_LOOKS):  # one of an event loop that has ended was told to end, and soon does
                if threading.active_count() <= self._threads:
                    break
                _sleep(0.05)
        if settled and threading.active_count() > self._threads:
            yield f"threads: {[thread.name for thread in threading.enumerate()]}"
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(self._probe()), daemon=True)
        thread.start()
        thread.join(300)
        if thread.is_alive():
            yield "another thread hangs"
            return
        yield from (f"in another thread: {problem}" for problem in found if problem)
        if problem := self._probe():
            yield f"in the same thread: {problem}"

    def _probe(self) -> str:
        """Save a text and find it; return what went wrong."""
        self._probes += 1
        word = f"probe{self._probes}quartz"
        try:
            saved = self.memory.save(f"{word} was saved after an interrupt")
            if saved.notice and "the configured embedder is" not in saved.notice:
                return saved.notice
            found = [result.path for result in self.memory.search(word, 3, mode="fts")]
        except KlawError as error:
            return f"{type(error).__name__}: {error}"
        return "" if saved.path in found else "what was saved is not found"


def locks_left(data: Path, stranger: apsw.Connection) -> Iterator[str]:
    """Yield what is locked in a data directory, as a connection of nobody who works there sees it."""
    try:
        stranger.execute("BEGIN IMMEDIATE")
        stranger.execute("ROLLBACK")
        if next(stranger.execute("PRAGMA wal_checkpoint(TRUNCATE)"))[0]:
            yield "somebody reads an old snapshot"
    except apsw.BusyError:
        yield "the database is locked"
    for path in [data, *data.rglob("*")]:
        if path.is_dir() or path.suffix in {".jsonl", ".lock"}:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield f"{path.name} is locked"
            finally:
                os.close(descriptor)


def _open_files(*, writable: bool = False) -> int:
    """Return the number of descriptors, or of those that are not regular files which are only read."""
    descriptors = os.listdir("/proc/self/fd")  # noqa: PTH208  # names only
    return sum(not (writable and _is_only_read(int(each))) for each in descriptors)


def _is_only_read(descriptor: int) -> bool:
    try:
        is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return is_regular and fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    except OSError:  # that of the directory that was listed
        return False


@contextmanager
def _said_on_stderr() -> Iterator[list[str]]:
    """Collect what Python would print of exceptions that nobody catches. A file that is closed late is no defect."""
    said: list[str] = []
    before = sys.unraisablehook, threading.excepthook

    def note(unraisable: Any) -> None:
        # The profiler reports a call when a generator is closed, where no signal can come.
        if not isinstance(unraisable.exc_value, ResourceWarning) and not isgenerator(unraisable.object):
            said.append(f"{unraisable.err_msg}: {unraisable.exc_value!r}")

    sys.unraisablehook = note
    threading.excepthook = lambda failed: said.append(f"{failed.thread}: {failed.exc_value!r}")
    try:
        yield said
    finally:
        sys.unraisablehook, threading.excepthook = before


def places_of(operation: Callable[[], object]) -> list[Place]:
    """Return the places of an operation, in the order in which they are met."""
    with Interrupter() as seen:
        operation()
    return list(seen.places)


def interrupt(operation: Callable[[], object], place: Place, sides: Sides, *, keep: bool) -> tuple[bool, list[str]]:
    """Interrupt an operation at a place; return whether it came there, and what is wrong afterwards.

    With ``keep``, the exception is kept until everything was looked at, as by a notebook.
    """
    kept: list[BaseException] = []
    problems: list[str] = []
    interrupter = Interrupter(place)
    with _said_on_stderr() as said:
        try:
            with interrupter:
                operation()
        except KeyboardInterrupt as error:
            if keep:
                kept.append(error)
        except BaseException as error:  # noqa: BLE001  # it took the place of the interrupt
            problems.append(f"raised {type(error).__name__}: {error}")
        problems += sides.problems(kept=keep)
        kept.clear()
    return interrupter.raised, [*problems, *said]

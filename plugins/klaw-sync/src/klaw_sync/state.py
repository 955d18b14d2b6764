"""What a machine knows of the versions of all machines: ``sync/state.db``, derived from journals and remotes."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from klaw_core import Closing, Hold, StoreCorruptError, StoreError, StoreFullError, StoreLockedError
from klaw_sync.erasing import ERASED, SCRUB
from klaw_sync.segments import is_name, place_of
from klaw_sync.values import KINDS, Removal, Trace, Version

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS versions (
    v TEXT PRIMARY KEY, kind TEXT, place TEXT, machine TEXT, number INT, t INT, scopes TEXT, seen TEXT, over TEXT,
    body TEXT, bad INT
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS traces (scope TEXT, name TEXT, done INT, PRIMARY KEY (name, scope)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS here (key TEXT PRIMARY KEY, v TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS segments (remote TEXT, name TEXT, PRIMARY KEY (remote, name)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS carried (
    remote TEXT, item TEXT, segment TEXT, body INT, PRIMARY KEY (remote, item, segment)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outbox (remote TEXT, name TEXT, data BLOB, PRIMARY KEY (remote, name)) STRICT;
CREATE TABLE IF NOT EXISTS machines (remote TEXT, machine TEXT, host TEXT, last INT, t INT,
    PRIMARY KEY (remote, machine)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS removals (name TEXT PRIMARY KEY, machine TEXT, number INT) STRICT, WITHOUT ROWID;
"""

# The name in `meta` of the journals whose index may lack a change, after a token of the run that names them.
_DUE = "due"
_PLAIN = "plain"  # the beginning of the name in `meta` of the mark that a machine writes without encryption
_PRIMARY = 0xFF  # the part of an error code of SQLite that names its kind


def gaps(versions: Iterable[Version], unnumbered: Container[str]) -> dict[str, int]:
    """Return how many records of each machine lie between some of these versions, and are not among them.

    A machine numbers its records without gaps, and no version ever leaves the segments: these were in a file that is
    missing. Nothing is known of the machines in ``unnumbered``.
    """
    numbers = defaultdict[str, set[int]](set)
    for version in versions:
        if version.machine not in unnumbered:
            numbers[version.machine].add(version.number)
    missing = {machine: max(found) - min(found) + 1 - len(found) for machine, found in sorted(numbers.items())}
    return {machine: count for machine, count in missing.items() if count}


@frozen
class Due:
    """The journals whose index may lack what a run has changed in them. Each run that adds some has its own mark."""

    mark: str | None = ""
    kinds: frozenset[str] = frozenset()

    def with_kinds(self, kinds: Iterable[str]) -> Due:
        """Return these journals and others, with a new mark; without any journal, nothing is due."""
        both = self.kinds.union(kinds)
        return Due(" ".join((secrets.token_hex(8), *sorted(both))), both) if both else Due()


@define(eq=False)
class State:
    """The content of ``state.db``. Everything that is read is in memory; changes are written by :meth:`commit`."""

    database: sqlite3.Connection
    versions: dict[str, Version] = field(factory=dict)
    #: The names of the traces of each scope: all of them, and those whose texts have left the journals here.
    traces: dict[str, set[str]] = field(factory=lambda: defaultdict(set))
    done: dict[str, set[str]] = field(factory=lambda: defaultdict(set))
    #: The version that each record of the journals of this machine is, by :meth:`Kind.key`.
    here: dict[str, str] = field(factory=dict)
    meta: dict[str, str] = field(factory=dict)
    removals: set[Removal] = field(factory=set)
    _stored_here: dict[str, str] = field(factory=dict)
    _changed: set[str] = field(factory=set)

    @classmethod
    def open(cls, path: Path) -> Hold[State]:
        """Hold the file open during a block; make it if there is none. Raise StoreError, StoreCorruptError."""
        return _Opened(path)

    def load(self) -> None:
        """Read everything."""
        for row in self.database.execute("SELECT * FROM versions"):
            v, kind, place, machine, number, t, scopes, seen, over, body, bad = row
            self.versions[v] = Version(
                *(v, kind, place, machine, number, t, tuple(scopes.split())),
                *(frozenset(seen.split()), tuple(over.split()), None if body is None else json.loads(body), bool(bad)),
            )
        for scope, name, done in self.database.execute("SELECT scope, name, done FROM traces"):
            self.traces[scope].add(name)
            if done:
                self.done[scope].add(name)
        self.here = dict(self.database.execute("SELECT key, v FROM here"))
        self._stored_here = dict(self.here)

    def load_meta(self) -> None:
        """Read only what tells whether anything has changed."""
        self.meta = dict(self.database.execute("SELECT name, value FROM meta"))
        rows = self.database.execute("SELECT machine, number, name FROM removals")
        self.removals = {Removal(*row) for row in rows}

    @property
    def kinds(self) -> set[str]:
        """The journals of all versions, also those that this machine does not know."""
        return {version.kind for version in self.versions.values()}

    @property
    def due(self) -> Due:
        """The journals whose index may lack what a run has changed in them; all, if this file is new."""
        mark = self.meta.get(_DUE)
        return Due(mark, frozenset(KINDS if mark is None else KINDS.keys() & mark.split()))

    @due.setter
    def due(self, due: Due) -> None:
        self.meta[_DUE] = due.mark or ""

    def put(self, version: Version) -> None:
        """Add or replace a version."""
        self.versions[version.v] = version
        self._changed.add(version.v)

    def drop_body(self, version: Version) -> None:
        """Forget the text of a version. Its bytes are gone after :meth:`scrub`."""
        version.body, version.place = None, ""
        self.put(version)
        self.meta[SCRUB] = "1"

    @property
    def needs_scrubbing(self) -> bool:
        """Whether the file may have bytes of a text that was dropped."""
        return bool(self.meta.get(SCRUB))

    def scrub(self) -> None:
        """Write the file again, if a text was dropped: a row that SQLite had moved is in the rest of its old page."""
        if self.needs_scrubbing:
            self.database.execute("VACUUM")
            self.meta[SCRUB] = ""
            with self.commit():
                pass

    def erase(self, size: int, read: Callable[[], Iterable[tuple[str, str]]]) -> None:
        """Drop the texts that were forgotten, and what waits with them to be sent; then :meth:`scrub`.

        ``read`` returns the traces of this machine, from a list of this ``size``. Needs :meth:`load_meta` only.
        """
        if self.meta.get(ERASED) != str(size):
            told: dict[str, set[str]] = defaultdict(set)
            for scope, name in read():
                told[scope].add(name)
            self.meta[ERASED] = str(size)
            with self.commit():
                self._erase(told)
        self.scrub()

    def _erase(self, told: Mapping[str, set[str]]) -> None:
        rows = self.database.execute("SELECT v, scopes, seen FROM versions WHERE body IS NOT NULL")
        gone = [
            (v,)
            for v, scopes, seen in rows
            if any(not told[scope].issubset(seen.split()) for scope in scopes.split() if scope in told)
        ]
        if gone:
            self.meta[SCRUB] = "1"
            self.database.executemany("UPDATE versions SET body = NULL, place = '' WHERE v = ?", gone)
            # The next run misses these segments on the remote, and sends what they had without the texts.
            self.database.execute(
                "DELETE FROM outbox WHERE EXISTS (SELECT 1 FROM carried JOIN versions ON item = v"
                " WHERE carried.remote = outbox.remote AND segment = outbox.name AND carried.body"
                " AND versions.body IS NULL)"
            )

    def add_traces(self, traces: Iterable[Trace], *, done: bool) -> None:
        """Add traces; ``done`` if their texts have left the journals here."""
        for trace in traces:
            if trace.name not in self.traces[trace.scope] or done:
                self.traces[trace.scope].add(trace.name)
                if done:
                    self.done[trace.scope].add(trace.name)
                self.database.execute(
                    "INSERT INTO traces VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET done = max(done, excluded.done)",
                    (trace.scope, trace.name, int(done)),
                )

    def add_removals(self, removals: Iterable[Removal]) -> None:
        """Add removals of machines."""
        for removal in removals:
            self.removals.add(removal)
            row = removal.name, removal.machine, removal.number
            self.database.execute("INSERT OR IGNORE INTO removals VALUES (?, ?, ?)", row)

    @property
    def removed(self) -> dict[str, int]:
        """The last segment that counts of each machine that was removed."""
        last: dict[str, int] = {}
        for removal in self.removals:
            last[removal.machine] = max(removal.number, last.get(removal.machine, 0))
        return last

    def refused(self, names: Iterable[str]) -> set[str]:
        """Return the segments that machines wrote after they were removed."""
        removed = self.removed
        placed = ((name, *place_of(name)) for name in names if removed and is_name(name))
        return {name for name, machine, number in placed if machine in removed and number > removed[machine]}

    def note_plain(self, machine: str) -> None:
        """Note that a machine writes without encryption."""
        self.meta[f"{_PLAIN} {machine}"] = "1"

    @property
    def unnumbered(self) -> set[str]:
        """The machines of which gaps say nothing: those that were removed, and that keep some records to themselves."""
        plain = (name.removeprefix(f"{_PLAIN} ") for name in self.meta if name.startswith(f"{_PLAIN} "))
        return {*self.removed, *plain}

    @contextmanager
    def commit(self) -> Iterator[sqlite3.Connection]:
        """Write all changes in one transaction, with those that the block makes."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield self.database
            self._write()
            self.database.execute("COMMIT")
        except BaseException:
            self.roll_back()
            raise
        self._changed.clear()
        self._stored_here = dict(self.here)

    def roll_back(self) -> None:
        """End a transaction without its changes; SQLite has done so itself after some errors."""
        if self.database.in_transaction:
            self.database.execute("ROLLBACK")

    def _write(self) -> None:
        rows = (self.versions[v] for v in sorted(self._changed))
        self.database.executemany(
            "INSERT OR REPLACE INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    *(row.v, row.kind, row.place, row.machine, row.number, row.t),
                    *(" ".join(row.scopes), " ".join(sorted(row.seen)), " ".join(row.over)),
                    None if row.body is None else json.dumps(row.body, ensure_ascii=False),
                    int(row.is_bad),
                )
                for row in rows
            ),
        )
        gone = self._stored_here.keys() - self.here.keys()
        self.database.executemany("DELETE FROM here WHERE key = ?", ((key,) for key in gone))
        new = [(key, v) for key, v in self.here.items() if self._stored_here.get(key) != v]
        self.database.executemany("INSERT OR REPLACE INTO here VALUES (?, ?)", new)
        self.database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", self.meta.items())

    # -- remotes
    def segments(self, remote: str) -> set[str]:
        """Return the names of the segments of a remote that were read or written."""
        return {name for (name,) in self.database.execute("SELECT name FROM segments WHERE remote = ?", (remote,))}

    def carried(self, remote: str, gone: Container[str] = ()) -> set[str]:
        """Return the versions and traces that a remote has in other segments than those that are gone."""
        rows = self.database.execute("SELECT item, segment FROM carried WHERE remote = ?", (remote,))
        return {item for item, segment in rows if segment not in gone}

    def carried_whole(self, remote: str, names: Container[str]) -> set[str]:
        """Return the versions that a remote has in these segments with their body."""
        sql = "SELECT item, segment FROM carried WHERE remote = ? AND body"
        return {item for item, segment in self.database.execute(sql, (remote,)) if segment in names}

    def vanished(self, remote: str, names: Iterable[str]) -> set[str]:
        """Return the segments of this machine that a remote had, and that are neither there nor in the outbox."""
        own = f"{self.meta.get('machine', '')}/"
        rows = self.database.execute("SELECT DISTINCT segment FROM carried WHERE remote = ?", (remote,))
        present = {*names, *(name for name, _ in self.outbox(remote))}
        return {name for (name,) in rows if name.startswith(own)} - present

    def add_segment(self, remote: str, name: str, items: Iterable[tuple[str, bool]]) -> None:
        """Note a segment of a remote and what it has: versions with or without their body, and traces."""
        self.database.execute("INSERT OR IGNORE INTO segments VALUES (?, ?)", (remote, name))
        rows = ((remote, item, name, int(body)) for item, body in items)
        self.database.executemany("INSERT OR REPLACE INTO carried VALUES (?, ?, ?, ?)", rows)

    def drop_segments(self, remote: str, names: Sequence[str]) -> None:
        """Note that segments were deleted; that they were read stays known."""
        rows = [(remote, name) for name in names]
        self.database.executemany("DELETE FROM carried WHERE remote = ? AND segment = ?", rows)

    def dirty(self, remote: str) -> set[str]:
        """Return the segments of a remote with a text that was forgotten or replaced."""
        rows = self.database.execute(
            "SELECT DISTINCT segment FROM carried JOIN versions ON item = v"
            " WHERE remote = ? AND carried.body AND versions.body IS NULL",
            (remote,),
        )
        return {name for (name,) in rows}

    def outbox(self, remote: str) -> list[tuple[str, bytes]]:
        """Return the segments that wait to be written to a remote."""
        return list(self.database.execute("SELECT name, data FROM outbox WHERE remote = ? ORDER BY name", (remote,)))

    def enqueue(self, remote: str, name: str, data: bytes) -> None:
        """Put a segment into the outbox."""
        self.database.execute("INSERT OR REPLACE INTO outbox VALUES (?, ?, ?)", (remote, name, data))

    def sent(self, remote: str, name: str) -> None:
        """Remove a segment from the outbox."""
        self.database.execute("DELETE FROM outbox WHERE remote = ? AND name = ?", (remote, name))

    def machines(self) -> list[Mapping[str, Any]]:
        """Return the machines whose segments were read, with their last segment and moment."""
        rows = self.database.execute("SELECT machine, max(host), max(last), max(t) FROM machines GROUP BY machine")
        return [dict(zip(("machine", "host", "last", "t"), row, strict=True)) for row in rows]

    def see_machine(self, remote: str, machine: str, host: str, number: int, t: int) -> None:
        """Note the last segment of a machine, and its last moment."""
        self.database.execute(
            "INSERT INTO machines VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET host = excluded.host,"
            " last = max(last, excluded.last), t = max(t, excluded.t)",
            (remote, machine, host, number, t),
        )


class _Opened(Closing[State]):
    """An open file. An error of the database within the block says what to do with it."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        super().__init__(lambda: State(sqlite3.connect(path, isolation_level=None)))
        self._path = path

    def take(self) -> State:
        try:
            self._path.touch(mode=0o600)
            state = super().take()
            state.database.execute("PRAGMA secure_delete = ON")
            # With the directory: the log of a transaction that a power cut brings back would undo an erasure.
            state.database.execute("PRAGMA synchronous = EXTRA")
            state.database.executescript(_SCHEMA)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be opened: {error.strerror}") from error
        except sqlite3.Error as error:
            raise _failed(self._path, error) from error
        return state

    def close(self, made: State) -> None:
        made.database.close()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if len(error) > 1 and isinstance(error[1], sqlite3.DatabaseError):
            raise _failed(self._path, error[1]) from error[1]


def _failed(path: Path, error: sqlite3.Error) -> StoreError:
    """Return what an error means. Only a damaged file, or one of another version, may be deleted."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY
    message = f"{path} cannot be used: {error}"
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreLockedError(message, hint="close the program that has it open, then try again")
    if code == sqlite3.SQLITE_FULL:
        return StoreFullError(message, hint="free some space, then try again")
    if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
        return StoreError(message, hint=f"check the disk and the permissions of {path.parent}, then try again")
    return StoreCorruptError(
        f"{path} cannot be used: {error}", hint="delete it: the next `klaw sync` makes it again from the journals"
    )

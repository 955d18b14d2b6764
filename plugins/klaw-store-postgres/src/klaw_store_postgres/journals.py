"""Journals as tables: primary data on the server, so that all machines that use it share one memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

from attrs import define, field

from klaw_core import RecordError
from klaw_journals import JournalName, LogRecord, Replay
from klaw_journals.timestamps import require_clock
from klaw_store_postgres.errors import store_errors
from klaw_store_postgres.texts import digest, from_text, to_text

if TYPE_CHECKING:
    from klaw_store_postgres.session import Session

Transact: TypeAlias = Callable[..., AbstractContextManager["Session"]]
_Check: TypeAlias = Callable[[Mapping[str, Any]], object]

#: The largest record in bytes, as in a file.
MAX_RECORD_BYTES = 1 << 20
_READ_AT_ONCE = 500
_OWN = "tenant = %s AND journal = %s"
_LOG = 'tenant = %s AND folder = %s AND "group" = %s AND name = %s'


def encode(record: Mapping[str, Any]) -> str:
    """Return a record as JSON. Raise RecordError if JSON or a journal cannot hold it."""
    try:
        text = json.dumps(dict(record), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise RecordError("a string contains an unpaired surrogate, which is not valid Unicode") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"the record cannot be written as JSON: {error}") from error
    if size > MAX_RECORD_BYTES:
        raise RecordError(
            f"the record has {size:,} bytes; it may have {MAX_RECORD_BYTES:,}",
            hint="store the text in a file, and its path in the record",
        )
    return text


@define(eq=False)
class PostgresJournals:
    """The journals of one agent; implements ``Journals``. Each method is a separate transaction.

    Only a read inside of a write transaction of the same thread, which ``writing`` returns, uses that transaction's
    connection. With a second one, threads that write could hold all connections of the pool and wait for one more.
    """

    transact: Transact
    retrying: Callable[[Callable[[], Any]], Any]
    lock: Callable[[str], AbstractContextManager[None]]
    location: str
    writing: Callable[[], Session | None]

    def records(self, name: str, /, check: _Check = lambda _record: None) -> PostgresRecords:
        """Return a journal of records."""
        return PostgresRecords(self, name, check)

    def logs(self, name: str, /) -> PostgresLogs:
        """Return logs."""
        return PostgresLogs(self, name)

    def text(self, name: str, /) -> PostgresText:
        """Return a text."""
        return PostgresText(self, name)

    def names(self) -> Sequence[JournalName]:
        """Return the journals that were ever written."""
        sql = """SELECT journal, 'records' FROM journals WHERE tenant = %s
                 UNION SELECT folder, 'log' FROM logs WHERE tenant = %s
                 UNION SELECT name, 'text' FROM owned_texts WHERE tenant = %s"""
        rows = self.read(lambda session: session.rows(sql, (session.tenant,) * 3))
        return [JournalName(from_text(name), form) for name, form in rows]

    def do(self, work: Callable[[Session], Any], begin: str = "BEGIN") -> Any:
        """Return what ``work`` returns in a transaction; repeat it after a conflict with another transaction."""

        def attempt() -> Any:
            with self.transact(begin) as session:
                return work(session)

        return self.retrying(attempt)

    def write(self, work: Callable[[Session], Any]) -> Any:
        """Do the same, unless the clock cannot be right: no journal has a record of such a moment. Raise StoreError."""
        require_clock()
        return self.do(work)

    def read(self, work: Callable[[Session], Any]) -> Any:
        """Return what ``work`` returns, which only reads: in the thread's own write transaction if there is one."""
        session = self.writing()
        if session is None:
            return self.do(work, "BEGIN READ ONLY")
        with store_errors(self.location):
            return work(session)


@define(eq=False)
class PostgresRecords:
    """Records by id; implements ``RecordJournal``."""

    journals: PostgresJournals
    name: str
    check: _Check

    @property
    def exists(self) -> bool:
        """Whether anything has been written."""
        return bool(self.version)

    @property
    def location(self) -> str:
        """Where the records are."""
        return f"{self.journals.location}, journal {self.name}"

    @property
    def version(self) -> Hashable:
        """A value that changes with each write."""
        version: int = self.journals.read(
            lambda session: session.value(f"SELECT version FROM journals WHERE {_OWN}", self._place(session)) or 0
        )
        return version

    def append(self, records: Sequence[Mapping[str, Any]], /) -> Hashable:
        """Write records; a known id replaces that record in place. Return the version after the write."""
        encoded = self._encoded(records)
        if not encoded:
            return self.version

        def work(session: Session) -> int:
            version = self._begin_change(session)
            self._put(session, dict(encoded))
            return version

        version: int = self.journals.write(work)
        return version

    def add(
        self,
        records: Sequence[Mapping[str, Any]],
        /,
        is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = lambda held, new: held == new,
        ask: Callable[[], object] = lambda: None,
    ) -> frozenset[str]:
        """Write the records whose id is new; return the ids that already existed."""
        encoded = self._encoded(records)
        if not encoded:
            return frozenset()

        def work(session: Session) -> frozenset[str]:
            self._begin_change(session)
            ask()
            held = self._get(session, [name for name, _ in encoded])
            refused = set()
            kept = {}
            for name, text in encoded:
                new = json.loads(text)
                if name in held and not is_same(held[name], new):
                    refused.add(name)
                    continue
                held[name] = new
                kept[name] = text
            self._put(session, kept)
            return frozenset(refused)

        refused: frozenset[str] = self.journals.write(work)
        return refused

    def replay(self) -> Replay:
        """Return every record."""
        sql = f"SELECT id, record FROM journal_records WHERE {_OWN} ORDER BY position"
        rows = self.journals.read(lambda session: session.rows(sql, self._place(session)))
        return Replay({from_text(name): json.loads(from_text(text)) for name, text in rows})

    def get(self, ids: Sequence[str], /) -> Mapping[str, Mapping[str, Any]]:
        """Return the existing records of these ids."""
        found: dict[str, Any] = self.journals.read(lambda session: self._get(session, ids))
        return {name: found[name] for name in ids if name in found}

    def ids(self) -> Collection[str]:
        """Return the ids of all records."""
        sql = f"SELECT id FROM journal_records WHERE {_OWN} ORDER BY position"
        rows = self.journals.read(lambda session: session.rows(sql, self._place(session)))
        return [from_text(name) for (name,) in rows]

    def forget(self, ids: Sequence[str], /) -> int:
        """Remove records; return their number."""

        def work(session: Session) -> int:
            if not self._get(session, ids):
                return 0
            self._begin_change(session)
            sql = f"DELETE FROM journal_records WHERE {_OWN} AND digest = ANY(%s) AND id = ANY(%s)"
            return session.run(sql, (*self._place(session), *_named(ids)))

        count: int = self.journals.do(work)
        return count

    def finish(self) -> None:
        """Do nothing: a committed transaction leaves nothing to finish."""

    def _encoded(self, records: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
        encoded = []
        for record in records:
            if not isinstance(record.get("id"), str):
                raise RecordError("a record without an id", hint="give each a string under `id`")
            self.check(record)
            encoded.append((record["id"], encode(record)))
        return encoded

    def _begin_change(self, session: Session) -> int:
        """Lock the journal against other writers, and give it a new version."""
        sql = """INSERT INTO journals (tenant, journal, version) VALUES (%s, %s, nextval('journal_versions'))
                 ON CONFLICT (tenant, journal) DO UPDATE SET version = excluded.version RETURNING version"""
        return int(session.value(sql, self._place(session)))

    def _put(self, session: Session, records: Mapping[str, str]) -> None:
        """Write records by id; new records are added at the end."""
        session.run(
            f"""WITH new AS (
                    SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[]) WITH ORDINALITY
                        AS new (digest, id, record, place)
                ), changed AS (
                    UPDATE journal_records AS held SET record = new.record FROM new
                    WHERE {_OWN} AND held.digest = new.digest AND held.id = new.id RETURNING held.id
                )
                INSERT INTO journal_records (tenant, journal, digest, id, position, record)
                SELECT %s, %s, digest, id, nextval('journal_versions'), record FROM (
                    SELECT * FROM new WHERE id NOT IN (SELECT id FROM changed) ORDER BY place) AS added
                RETURNING tenant""",
            ([digest(name) for name in records], list(map(to_text, records)), list(map(to_text, records.values())),
             *self._place(session), *self._place(session)),
        )  # fmt: skip

    def _get(self, session: Session, ids: Sequence[str]) -> dict[str, Any]:
        sql = f"SELECT id, record FROM journal_records WHERE {_OWN} AND digest = ANY(%s) AND id = ANY(%s)"
        rows = session.rows(sql, (*self._place(session), *_named(ids)))
        return {from_text(name): json.loads(from_text(text)) for name, text in rows}

    def _place(self, session: Session) -> tuple[int, str]:
        return session.tenant, to_text(self.name)


def _named(ids: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return digests and texts of ids; values that are not strings are left out."""
    sound = [name for name in ids if name.isascii() or not any("\ud800" <= one <= "\udfff" for one in name)]
    return [digest(name) for name in sound], [to_text(name) for name in sound]


@define(eq=False)
class PostgresLogs:
    """Logs by group and name; implements ``LogFolder``."""

    journals: PostgresJournals
    name: str

    @property
    def location(self) -> str:
        """Where the logs are."""
        return f"{self.journals.location}, logs {self.name}"

    @property
    def exists(self) -> bool:
        """Whether anything has been written."""
        sql = "SELECT 1 FROM logs WHERE tenant = %s AND folder = %s LIMIT 1"
        values = (to_text(self.name),)
        return self.journals.read(lambda session: session.row(sql, (session.tenant, *values))) is not None

    def groups(self) -> Sequence[str]:
        """Return the names of the groups, in order."""
        sql = 'SELECT DISTINCT "group" FROM logs WHERE tenant = %s AND folder = %s'
        rows = self.journals.read(lambda session: session.rows(sql, (session.tenant, to_text(self.name))))
        return sorted(from_text(group) for (group,) in rows)

    def names(self, group: str, /) -> Sequence[str]:
        """Return the names of the logs of a group, in order."""
        sql = 'SELECT name FROM logs WHERE tenant = %s AND folder = %s AND "group" = %s'
        values = (to_text(self.name), to_text(group))
        rows = self.journals.read(lambda session: session.rows(sql, (session.tenant, *values)))
        return sorted(from_text(name) for (name,) in rows)

    def log(self, group: str, name: str, /) -> PostgresLog:
        """Return a log, whether it exists or not."""
        return PostgresLog(self, group, name)


@define(eq=False)
class PostgresLog:
    """JSON objects in order; implements ``Log``. An offset counts objects, those that were removed too."""

    folder: PostgresLogs
    group: str
    name: str
    _place: tuple[str, str, str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._place = (to_text(self.folder.name), to_text(self.group), to_text(self.name))

    @property
    def location(self) -> str:
        """Where the log is."""
        return f"{self.folder.location}, {self.group}/{self.name}"

    @property
    def exists(self) -> bool:
        """Whether the log exists."""
        return bool(self._read(lambda session: self._end(session) is not None))

    @property
    def size(self) -> int | None:
        """The offset of the next object."""
        return int(self._read(self._end) or 0)

    def append(self, *records: Any) -> tuple[LogRecord, ...]:
        """Append objects, all or none."""
        if not records:
            return ()

        def work(session: Session) -> tuple[LogRecord, ...]:
            sql = """INSERT INTO logs (tenant, folder, "group", name, "end") VALUES (%s, %s, %s, %s, 0)
                     ON CONFLICT (tenant, folder, "group", name) DO UPDATE SET "end" = logs."end" RETURNING "end" """
            start = int(session.value(sql, (session.tenant, *self._place)))
            texts = [encode(record(at) if callable(record) else record) for at, record in enumerate(records, start)]
            session.run(
                """INSERT INTO log_records (tenant, folder, "group", name, position, record)
                   SELECT %s, %s, %s, %s, new.* FROM unnest(%s::bigint[], %s::text[]) AS new RETURNING tenant""",
                (session.tenant, *self._place, [*range(start, start + len(texts))], [to_text(text) for text in texts]),
            )
            end = f'UPDATE logs SET "end" = %s WHERE {_LOG}'
            session.run(end, (start + len(texts), session.tenant, *self._place))
            return tuple(LogRecord(at, at + 1, json.loads(text)) for at, text in enumerate(texts, start))

        written: tuple[LogRecord, ...] = self.folder.journals.write(work)
        return written

    def read(self, start: int = 0) -> Iterator[LogRecord]:
        """Yield the objects from offset ``start`` on."""
        while rows := self._page(f"AND position >= {int(start)} ORDER BY position"):
            for position, text in rows:
                yield _record(position, text)
            start = rows[-1][0] + 1

    def read_backwards(self) -> Iterator[LogRecord]:
        """Yield the objects from the last to the first."""
        before = 2**62
        while rows := self._page(f"AND position < {before} ORDER BY position DESC"):
            for position, text in rows:
                yield _record(position, text)
            before = rows[-1][0]

    def remove(self, goes: Callable[[LogRecord], bool]) -> int:
        """Remove objects permanently; return their number."""

        def work(session: Session) -> int:
            sql = f"SELECT position, record FROM log_records WHERE {_LOG} ORDER BY position FOR UPDATE"
            rows = session.rows(sql, (session.tenant, *self._place))
            gone = [position for position, text in rows if goes(_record(position, text))]
            sql = f"DELETE FROM log_records WHERE {_LOG} AND position = ANY(%s)"
            return session.run(sql, (session.tenant, *self._place, gone)) if gone else 0

        count: int = self._do(work)
        return count

    def delete(self) -> None:
        """Remove the log permanently if it exists."""
        self._do(lambda session: session.run(f"DELETE FROM logs WHERE {_LOG}", (session.tenant, *self._place)))

    def drop_empty(self) -> None:
        """Do nothing: a log is one row, which says where the next object goes."""

    def checksum(self, start: int, end: int, before: int = 0, /) -> int | None:
        """Return the CRC-32 of the objects from ``start`` to ``end`` and their offsets, given that of those before."""
        for row in self.read(start):
            if row.offset >= end:
                break
            before = crc32(f"{row.offset} {encode(row.value)}\n".encode(), before)
        return before

    def is_end(self, offset: int, /) -> bool:
        """Return whether an object ends at this offset, or the log begins there."""
        sql = f"SELECT 1 FROM log_records WHERE {_LOG} AND position = %s"
        values = (*self._place, offset - 1)
        return offset == 0 or bool(self._read(lambda session: session.row(sql, (session.tenant, *values))))

    def count_blank(self, start: int, end: int, /) -> int:
        """Return 0: no object is blank."""
        del start, end
        return 0

    def _page(self, which: str) -> list[Any]:
        sql = f"SELECT position, record FROM log_records WHERE {_LOG} {which} LIMIT {_READ_AT_ONCE}"
        rows: list[Any] = self._read(lambda session: session.rows(sql, (session.tenant, *self._place)))
        return rows

    def _end(self, session: Session) -> int | None:
        end: int | None = session.value(f'SELECT "end" FROM logs WHERE {_LOG}', (session.tenant, *self._place))
        return end

    def _do(self, work: Callable[[Session], Any]) -> Any:
        return self.folder.journals.do(work)

    def _read(self, work: Callable[[Session], Any]) -> Any:
        return self.folder.journals.read(work)


def _record(position: int, text: str) -> LogRecord:
    return LogRecord(position, position + 1, json.loads(from_text(text)))


@define(eq=False)
class PostgresText:
    """A text that is replaced as a whole; implements ``OwnedText``."""

    journals: PostgresJournals
    name: str

    @property
    def location(self) -> str:
        """Where the text is."""
        return f"{self.journals.location}, text {self.name}"

    def read(self, most: int, /) -> bytes | None:
        """Return at most so many bytes of the text in UTF-8; None if there is none."""
        sql = "SELECT substring(content FOR %s) FROM owned_texts WHERE tenant = %s AND name = %s"
        value = self.journals.read(lambda session: session.value(sql, (most, session.tenant, to_text(self.name))))
        return None if value is None else bytes(value)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Lock the text, so that no other writer changes it within the block."""
        with self.journals.lock(f"text-{digest(self.name) & (2**64 - 1):016x}"):
            yield

    def replace(self, text: str, _forgotten: Iterable[str] = (), /) -> None:
        """Replace the text, which all machines share."""
        sql = """INSERT INTO owned_texts (tenant, name, content) VALUES (%s, %s, %s)
                 ON CONFLICT (tenant, name) DO UPDATE SET content = excluded.content"""
        data = text.encode()
        self.journals.write(lambda session: session.run(sql, (session.tenant, to_text(self.name), data)))

    def keep_aside(self, data: bytes, /) -> str:
        """Keep a copy of a text that cannot be used, once for each content; return where."""

        def work(session: Session) -> int:
            place = (session.tenant, to_text(self.name))
            own = "FROM owned_copies WHERE tenant = %s AND name = %s"
            found = session.value(f"SELECT number {own} AND content = %s", (*place, data))
            if found is None:
                found = session.value(f"SELECT COALESCE(MAX(number), 0) + 1 {own}", place)
                sql = "INSERT INTO owned_copies (tenant, name, number, content) VALUES (%s, %s, %s, %s)"
                session.run(sql, (*place, found, data))
            return int(found)

        return f"{self.location}, copy {self.journals.do(work)}"

    def remove_copies(self) -> None:
        """Remove the copies of texts that could not be used."""
        sql = "DELETE FROM owned_copies WHERE tenant = %s AND name = %s"
        self.journals.do(lambda session: session.run(sql, (session.tenant, to_text(self.name))))

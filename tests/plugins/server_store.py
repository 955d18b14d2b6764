"""A store that keeps the journals as a server does: the store in RAM, with rows of records, of logs and of texts."""

import json
from contextlib import contextmanager
from threading import RLock
from zlib import crc32

from attrs import define, field

from klaw_core import RecordError
from klaw_journals import JournalingStore, LogRecord, Replay
from klaw_journals.contents import JournalName
from klaw_journals.jsonl import encode, parse_json
from klaw_journals.timestamps import require_clock
from klaw_testing.memory_store import MemoryStore


@define(eq=False)
class Tables:
    """What a server would hold: rows of records, of logs and of texts."""

    records: dict[str, dict[str, dict]] = field(factory=dict)
    logs: dict[str, dict[tuple[str, str], list[LogRecord]]] = field(factory=dict)
    texts: dict[str, bytes] = field(factory=dict)
    aside: dict[str, list[bytes]] = field(factory=dict)
    writes: int = 0
    lock: object = field(factory=RLock)


@define(eq=False)
class TableRecords:
    tables: Tables
    name: str
    check: object = field(default=lambda _record: None)

    @property
    def exists(self):
        return self.name in self.tables.records

    @property
    def location(self):
        return f"records {self.name}"

    @property
    def version(self):
        return self.tables.writes

    def append(self, records, /):
        require_clock()
        for record in records:
            if not isinstance(record.get("id"), str):
                raise RecordError("a record without an id")
            self.check(record)
        with self.tables.lock:
            for record in records:
                self._rows[record["id"]] = parse_json(encode(record))
                self.tables.writes += 1
            return self.version

    def add(self, records, /, is_same=lambda held, new: held == new, ask=lambda: None):
        with self.tables.lock:
            ask()
            refused = set()
            for record in records:
                if record["id"] not in self._rows or is_same(self._rows[record["id"]], record):
                    self.append([record])
                else:
                    refused.add(record["id"])
        return frozenset(refused)

    def replay(self):
        return Replay(dict(self.tables.records.get(self.name, {})))

    def get(self, ids, /):
        held = self.tables.records.get(self.name, {})
        return {name: held[name] for name in ids if name in held}

    def ids(self):
        return list(self.tables.records.get(self.name, {}))

    def forget(self, ids, /):
        with self.tables.lock:
            self.tables.writes += 1
            return sum(self._rows.pop(name, None) is not None for name in ids)

    def finish(self):
        pass

    @property
    def _rows(self):
        return self.tables.records.setdefault(self.name, {})


@define(eq=False)
class TableLog:
    tables: Tables
    folder: str
    place: tuple[str, str]

    @property
    def location(self):
        return f"log {self.folder} {'/'.join(self.place)}"

    @property
    def exists(self):
        return self.place in self.tables.logs.get(self.folder, {})

    @property
    def size(self):
        rows = self._rows
        return rows[-1].end if rows else 0

    def append(self, *records):
        require_clock()
        with self.tables.lock:
            new, at = [], self.size
            for record in records:
                value = parse_json(encode(record(at) if callable(record) else record))
                new.append(LogRecord(at, at + 1, value))
                at += 1
            self.tables.logs.setdefault(self.folder, {}).setdefault(self.place, []).extend(new)
        return tuple(new)

    def read(self, start=0):
        yield from (row for row in list(self._rows) if row.offset >= start)

    def read_backwards(self):
        yield from reversed(list(self._rows))

    def remove(self, goes):
        with self.tables.lock:
            gone = [row for row in self._rows if goes(row)]
            for row in gone:
                self._rows.remove(row)
        return len(gone)

    def delete(self):
        self.tables.logs.get(self.folder, {}).pop(self.place, None)

    def checksum(self, start, end, before=0, /):
        for row in self._rows:
            if start <= row.offset < end:
                before = crc32(json.dumps([row.offset, row.value]).encode(), before)
        return before

    def is_end(self, offset, /):
        return offset == 0 or any(row.end == offset for row in self._rows)

    def count_blank(self, _start, _end, /):
        return 0

    def drop_empty(self):
        """Do nothing: without rows there is no log."""

    @property
    def _rows(self):
        return self.tables.logs.get(self.folder, {}).get(self.place, [])


@define(eq=False)
class TableLogs:
    tables: Tables
    name: str

    @property
    def location(self):
        return f"logs {self.name}"

    @property
    def exists(self):
        return self.name in self.tables.logs

    def groups(self):
        return sorted({group for group, _ in self.tables.logs.get(self.name, {})})

    def names(self, group, /):
        return sorted(name for other, name in self.tables.logs.get(self.name, {}) if other == group)

    def log(self, group, name, /):
        return TableLog(self.tables, self.name, (group, name))


@define(eq=False)
class TableText:
    tables: Tables
    name: str

    @property
    def location(self):
        return f"text {self.name}"

    def read(self, most, /):
        found = self.tables.texts.get(self.name)
        return None if found is None else found[:most]

    @contextmanager
    def changing(self):
        with self.tables.lock:
            yield

    def replace(self, text, _forgotten=(), /):
        require_clock()
        self.tables.texts[self.name] = text.encode()

    def keep_aside(self, data, /):
        kept = self.tables.aside.setdefault(self.name, [])
        if data not in kept:
            kept.append(data)
        return f"text {self.name}, copy {kept.index(data)}"

    def remove_copies(self):
        self.tables.aside.pop(self.name, None)


@define(eq=False)
class TableJournals:
    tables: Tables

    def records(self, name, /, check=lambda _record: None):
        return TableRecords(self.tables, name, check)

    def logs(self, name, /):
        return TableLogs(self.tables, name)

    def text(self, name, /):
        return TableText(self.tables, name)

    def names(self):
        tables = self.tables
        forms = {
            "records": set(tables.records),
            "log": {folder for folder, logs in tables.logs.items() if logs},
            "text": set(tables.texts),
        }
        return [JournalName(name, form) for form, names in forms.items() for name in sorted(names)]


class ServerStore(MemoryStore, JournalingStore):
    """The store in RAM, with journals; like a server it is there when a memory is not."""

    def __init__(self):
        super().__init__()
        self.journals = TableJournals(Tables())

    def close(self):
        pass

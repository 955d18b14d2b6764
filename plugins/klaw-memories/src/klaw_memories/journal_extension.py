"""What people own as records: one source, one export, one import and one check for every journal of records."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from attrs import define, field

from klaw_core import (
    AttachedExtension,
    CheckedExtension,
    Document,
    Entry,
    Finding,
    Forgetful,
    Forgettable,
    Host,
    IndexReport,
    KlawError,
    RecordError,
    SkippedEntry,
    Source,
    SourcedExtension,
)
from klaw_core.errors import ESCAPING, of_system
from klaw_core.values.collections import MEMORY
from klaw_core.values.findings import FIX
from klaw_journals import (
    ImportCounts,
    Journals,
    Record,
    RecordedExtension,
    RecordJournal,
    check_lines,
    check_private,
    journals_of,
    make_private,
)
from klaw_journals.checked_names import check_name, secret_in_name
from klaw_journals.traces import Traces
from klaw_redaction import Redactor

_BATCH = 500
_MAX_SHOWN = 3

JsonRecord: TypeAlias = Mapping[str, Any]


@define(eq=False)
class JournalExtension(AttachedExtension, SourcedExtension, CheckedExtension, RecordedExtension):
    """An extension whose data is one journal of records, each of which is a document.

    The journal and the origin have the name of the extension. ``kind`` names its records in an export, ``plural`` and
    ``label`` (before an id) name them for people. A record is a JSON object with the strings ``id`` and ``text``; it
    belongs to the collection that its field ``collection`` names, without one to ``memory``. ``files`` are the journals
    of the data directory; an attached extension uses those of the memory.
    """

    files: Journals = field(repr=False)
    _host: Host | None = field(default=None, init=False, repr=False)
    _journal: RecordJournal | None = field(default=None, init=False, repr=False)

    kind = ""
    plural = "records"
    label = ""

    @abstractmethod
    def parse(self, record: JsonRecord, /) -> JsonRecord:
        """Return the record as this version would write it. Raise RecordError if it is not a record of the journal."""

    @abstractmethod
    def document_of(self, record: JsonRecord, /) -> Document:
        """Return the document of a record."""

    def path_of(self, record: JsonRecord, /) -> str:
        """Return the path of the document of a record, by default its id."""
        path: str = record["id"]
        return path

    def id_of(self, _collection: str, path: str, /) -> str:
        """Return the id of the record whose document has this path in a collection."""
        return path

    def current(self, records: Mapping[str, JsonRecord], /) -> Mapping[str, JsonRecord]:
        """Return those of the records of the journal that are documents, by default all."""
        return records

    def with_earlier(self, ids: Sequence[str], /) -> Sequence[str]:
        """Return ids with those of the records that must be forgotten with them, by default no others."""
        return ids

    @property
    def origins(self) -> Sequence[str]:
        """The origin of its documents."""
        return (self.name,)

    @property
    def record_kinds(self) -> Sequence[str]:
        """The kind of its records."""
        return (self.kind,)

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host, self._journal = host, None

    @property
    def host(self) -> Host:
        """The memory. Raise KlawError if there is none."""
        if self._host is None:
            raise KlawError(f"the extension {self.name} is not attached to a memory")
        return self._host

    @property
    def redactor(self) -> Redactor:
        """The redactor of the memory."""
        return Redactor() if self._host is None else self._host.config.conversations.redactor

    @property
    def journal(self) -> RecordJournal:
        """The journal. It is one object, because it caches the places of records."""
        if self._journal is None:
            journals = self.files if self._host is None else journals_of(self._host)
            self._journal = journals.records(self.name, self.parse)
        return self._journal

    def secret_in_name(self, what: str, name: str, /) -> str:
        """Return why a name is refused; empty if it contains no secret. ``what`` is the thing that has the name."""
        return secret_in_name(self.redactor, what, name)

    def check_name(self, what: str, name: str, /) -> None:
        """Raise RecordError if a name contains a secret. ``what`` is the thing that has the name."""
        check_name(self.redactor, what, name)

    def index(
        self, records: Sequence[JsonRecord], collection: str = MEMORY, /, version: Hashable = None
    ) -> IndexReport:
        """Index records that are in the journal, and what others changed since the journal had this version.

        Raise KlawError. The next index run then indexes them.
        """
        try:
            report = self.host.index_documents([self.document_of(record) for record in records], collection)
            self.follow({record["id"]: record for record in records}, collection, version)
        except ESCAPING as error:
            raise of_system(error) from error
        return report

    def follow(self, indexed: Mapping[str, JsonRecord | None], collection: str, version: Hashable) -> None:
        """Index what others changed since the journal had this version. None means that a record is not indexed.

        Two writers of one id may write to the journal in one order and to the index in the other. The order of the
        journal decides.
        """
        failure: Exception | None = None
        while self.journal.version != version:
            version = self.journal.version
            current = self.journal.get(list(indexed))
            changed = [record for name, record in current.items() if record != indexed[name]]
            if changed:
                self.host.index_documents([self.document_of(record) for record in changed], collection)
            gone = [self.path_of(record) for name, record in indexed.items() if record and name not in current]
            if gone:
                failure = self.host.remove_documents(gone, collection) or failure
            if not changed and not gone:  # a later change is indexed by its own writer
                break
            indexed = {name: current.get(name) for name in indexed}
        if failure is not None:
            raise failure

    def sources(self) -> Sequence[Source]:
        """Return the journal as a source; none if it does not exist."""
        return (self.source(),) if self.journal.exists else ()

    def source(self, collection: str = MEMORY, /) -> Source:
        """Return the records of one collection as a source."""
        return JournalSource(self, collection)

    def check(self) -> Iterator[Finding]:
        """Report broken lines of the journal, and forgotten texts that are still in it."""
        location = self.journal.location
        yield from check_private([Path(location)])
        replayed = self.journal.replay()
        yield from check_lines(f"{self.kind}-lines", location, replayed.broken)
        if replayed.unfinished:
            what = f"{len(replayed.unfinished):,} forgotten {self.plural} still have their text in the file"
            yield Finding(f"{self.kind}-unfinished", "error", what, location, FIX, replayed.unfinished)

    def fix(self, _findings: Sequence[Finding], /) -> None:
        """Complete forgetting that a crash interrupted, and make the file private. Raise StoreError."""
        make_private([Path(self.journal.location)])
        self.journal.finish()

    def records(self) -> Iterator[Record | SkippedEntry]:
        """Yield every record by its time, as the lines of two machines with equal records may have another order."""
        replayed = self.journal.replay()
        found = replayed.records.values()
        ordered = sorted(found, key=lambda record: (str(record.get("created_at", "")), record["id"]))
        yield from (Record(self.kind, {"value": record}) for record in ordered)
        yield from (SkippedEntry(f"{bad.location}@{bad.position}", bad.reason, keep=True) for bad in replayed.broken)

    def check_record(self, record: Record, /) -> None:
        """Raise RecordError unless this is a record of the journal."""
        value = record.value.get("value")
        if not isinstance(value, Mapping):
            raise RecordError(f"not a record of kind {self.kind!r}: not a JSON object")
        self.parse(value)

    def add(self, records: Iterator[Record], /) -> ImportCounts:
        """Add records. An existing record with other content is not changed."""
        known = dict(self.journal.replay().records)
        counts = ImportCounts()
        batch: list[JsonRecord] = []
        was_forgotten = self.was_forgotten()
        back: dict[str, str] = {}
        for record in (self.parse(item.value["value"]) for item in records):
            if refusal := self.refusal(record):
                counts += ImportCounts(kept=(refusal,))
                continue
            here = known.setdefault(record["id"], record)
            if here is record:
                batch.append(record)
                if was_forgotten(record["id"]):
                    back[record["id"]] = self.path_of(record)
            elif _without_class(self.parse(here)) == _without_class(record):
                counts += ImportCounts(present=1)
            else:
                counts += ImportCounts(kept=(self._differs(record["id"]),))
            if len(batch) == _BATCH:
                counts += self._keep(batch)
        counts += self._keep(batch)
        return counts + ImportCounts(notices=_told_of(list(back.values()))) if back else counts

    def was_forgotten(self) -> Callable[[str], bool]:
        """Return what says of an id whether it was forgotten. Only a memory of several machines has traces of that."""
        if self._host is None:
            return lambda _name: False
        return Traces(self._host.config.data_dir).forgotten_records(self.name)

    def refusal(self, _record: JsonRecord, /) -> str:
        """Return why an import does not add a record; usually empty."""
        return ""

    def _keep(self, batch: list[JsonRecord]) -> ImportCounts:
        refused = self.journal.add(batch)  # another program has added it since `known` was read
        counts = ImportCounts(len(batch) - len(refused), kept=tuple(map(self._differs, sorted(refused))))
        batch.clear()
        return counts

    def _differs(self, name: str) -> str:
        return f"{self.label}{name} already exists with other content"


def _told_of(paths: Sequence[str]) -> tuple[str, ...]:
    """Return what an import says of records that had been forgotten."""
    named = ", ".join(paths[:_MAX_SHOWN]) + (f" and {len(paths) - _MAX_SHOWN:,} others" if paths[_MAX_SHOWN:] else "")
    verb = "is" if len(paths) == 1 else "are"
    return (f"{named} had been forgotten and {verb} back, on all machines of this memory: `klaw forget` removes them",)


def _without_class(record: JsonRecord) -> JsonRecord:
    """Return a record for comparison: a second import may give another class, and changes nothing."""
    return {key: value for key, value in record.items() if key != "trust"}


@define(eq=False)
class JournalSource(Source, Forgettable, Forgetful):
    """The records of an extension's journal as documents of a collection. ``read`` returns those of the last scan."""

    owner: JournalExtension
    collection: str = MEMORY
    _found: dict[str, JsonRecord] = field(factory=dict, init=False, repr=False)
    _forgotten: set[str] = field(factory=set, init=False, repr=False)
    #: The version of the journal at the last scan, and whether a part of it was broken.
    _scanned: tuple[Hashable, bool] = field(default=(None, False), init=False, repr=False)

    forgets_missing = True

    @property
    def origin(self) -> str:
        """The name of the journal."""
        return self.owner.name

    @property
    def stamp(self) -> Hashable:
        """The version of the journal."""
        return self.owner.journal.version

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return every record in the order of addition, and the broken parts of the journal."""
        version = self.owner.journal.version
        replayed = self.owner.journal.replay()
        self._scanned = version, bool(replayed.broken)
        current = self.owner.current(replayed.records)
        own = [each for each in current.values() if each.get("collection", MEMORY) == self.collection]
        self._found = {self.owner.path_of(record): record for record in own}
        entries = [Entry(path, len(record["text"])) for path, record in self._found.items()]
        # It is unknown which record a broken line belonged to. The index may hold the last copy, so keep all of them.
        return [*entries, *(SkippedEntry(self.origin, str(bad), keep=True) for bad in replayed.broken)]

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Return one record as a document."""
        record = self._found.get(entry.path)
        gone = SkippedEntry(entry.path, "was forgotten", keep=False)
        return gone if record is None else self.owner.document_of(record)

    def forget(self, paths: Sequence[str], /) -> None:
        """Forget records and erase their texts from the journal. Raise StoreError."""
        ids = [self.owner.id_of(self.collection, path) for path in paths]
        self.owner.journal.forget(self.owner.with_earlier(ids))
        self._forgotten.update(paths)

    def forgotten(self, paths: Iterable[str], /) -> Sequence[str]:
        """Return the documents that are no longer in the journal.

        A broken line may contain any record. If there is one, only what this object or another machine has forgotten
        counts.
        """
        version, is_broken = self._scanned
        if version is not None and version == self.owner.journal.version:  # nothing was written since the scan
            gone = [path for path in paths if path not in self._found]
        else:
            replayed = self.owner.journal.replay()
            is_broken = bool(replayed.broken)
            current = self.owner.current(replayed.records)
            gone = [path for path in paths if self.owner.id_of(self.collection, path) not in current]
        if not is_broken:
            return gone
        was_forgotten = self.owner.was_forgotten()
        return [
            path for path in gone if path in self._forgotten or was_forgotten(self.owner.id_of(self.collection, path))
        ]

    def prepare(self, _store: object, /) -> Sequence[SkippedEntry]:
        """Finish an erasure that a crash interrupted."""
        self.owner.journal.finish()
        return ()

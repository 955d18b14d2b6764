"""Journals by name in exports: those whose content no extension exports, also of extensions that are not installed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from attrs import define

from klaw_core import Extension, RecordError, SkippedEntry, quoted
from klaw_core.extensions.host import having
from klaw_doctor.records import MAX_EXPORT_LINE_BYTES
from klaw_journals import BadLine, ImportCounts, JournalName, Journals, OwnedText, Record, RecordedExtension
from klaw_journals.contents import is_file_name, is_journal_name
from klaw_journals.jsonl import MAX_LINE_BYTES, encode
from klaw_journals.sharing import SOURCES_JOURNAL
from klaw_journals.timestamps import shown

#: The kind of records of journals that no extension exports.
JOURNAL = "journal"

_BATCH = 100
_FIELDS = {"records": ("value",), "log": ("group", "log", "value"), "text": ("text",)}


def carriers(extensions: Mapping[str, Extension]) -> dict[str, RecordedExtension]:
    """Return the extension that exports the content of a journal, by the journal's name."""
    return {
        journal: extension
        for name, extension in having(extensions, RecordedExtension)
        for journal in extension.exported_journals or (name,)
    }


@define(eq=False)
class JournalRecords(RecordedExtension):
    """Exports and imports journals as they are. ``extensions`` are those installed, of which some export their own."""

    journals: Journals
    extensions: Mapping[str, Extension]

    name = JOURNAL
    record_kinds = (JOURNAL,)

    def exported(self) -> list[JournalName]:
        """Return the journals that no extension exports."""
        carried = carriers(self.extensions)
        found = (one for one in self.journals.names() if one.name not in {*carried, SOURCES_JOURNAL})
        return sorted(found, key=lambda one: (one.name, one.form))

    def is_owned(self, journal: str) -> bool:
        """Return whether an installed extension has this journal; its name begins with the extension's."""
        return any(journal.startswith(name) for name in self.extensions)

    def unowned(self) -> list[str]:
        """Return the exported journals that belong to no installed extension."""
        return list(dict.fromkeys(one.name for one in self.exported() if not self.is_owned(one.name)))

    def records(self) -> Iterator[Record | SkippedEntry]:
        """Yield the content of every such journal."""
        for journal in self.exported():
            if not is_journal_name(journal):
                yield SkippedEntry(journal.name, "cannot be imported: no file can have its name", keep=True)
            elif journal.form == "records":
                yield from self._records(journal.name)
            elif journal.form == "log":
                yield from self._logs(journal.name)
            else:
                yield from self._text(journal.name)

    def _records(self, name: str) -> Iterator[Record | SkippedEntry]:
        journal = self.journals.records(name)
        replay = journal.replay()
        if replay.broken and not replay.records:
            yield SkippedEntry(journal.location, "is not a journal: it has no record", keep=True)
            return
        yield from (_record(name, "records", value=record) for record in replay.records.values())
        yield from (SkippedEntry(f"{bad.location}@{bad.position}", bad.reason, keep=True) for bad in replay.broken)

    def _logs(self, name: str) -> Iterator[Record | SkippedEntry]:
        folder = self.journals.logs(name)
        for group in folder.groups():
            if isinstance(group, SkippedEntry):
                yield group
                continue
            for log in folder.names(group):
                if isinstance(log, SkippedEntry):
                    yield log
                    continue
                for line in folder.log(group, log).read():
                    if isinstance(line, BadLine):
                        yield SkippedEntry(f"{line.location}@{line.offset}", line.reason, keep=True)
                    else:
                        yield _record(name, "log", group=group, log=log, value=line.value)

    def _text(self, name: str) -> Iterator[Record | SkippedEntry]:
        text = self.journals.text(name)
        data = text.read(MAX_EXPORT_LINE_BYTES + 1)
        if data is None:
            return
        if len(data) > MAX_EXPORT_LINE_BYTES:
            yield SkippedEntry(text.location, "is too large for an export", keep=True)
            return
        try:
            yield _record(name, "text", text=data.decode())
        except UnicodeDecodeError:
            yield SkippedEntry(text.location, "is not valid UTF-8", keep=True)

    def check_record(self, record: Record, /) -> None:
        """Raise RecordError unless this is content of a journal that may be imported."""
        form, name = record.value.get("form"), record.value.get("journal")
        if form not in _FIELDS:
            raise RecordError(f"unknown form of a journal: {shown(form)}; known: {', '.join(_FIELDS)}")
        for field in ("journal", *(field for field in _FIELDS[form] if field != "value")):
            value = record.value.get(field)
            if not isinstance(value, str):
                raise RecordError(f"{field} is {'not a string' if field in record.value else 'missing'}")
            if field in {"group", "log"} and not is_file_name(value):
                raise RecordError(f"{quoted(value)} cannot be the name of a {field}")
        if not is_journal_name(JournalName(str(name), form)) or name in {SOURCES_JOURNAL, *carriers(self.extensions)}:
            raise RecordError(f"a journal that is imported as it is cannot have the name {quoted(name)}")
        if form != "text":
            _check_value(form, record.value.get("value"))

    def add(self, records: Iterator[Record], /) -> ImportCounts:
        """Add content. Existing records and texts stay; a line is added if its log has it less often."""
        counts = ImportCounts()
        names: dict[str, None] = {}
        for (name, form, *_), group in groupby(records, key=_place):
            names[name] = None
            if form == "records":
                counts += self._add_records(name, [item.value["value"] for item in group])
            elif form == "log":
                counts += self._add_lines([item.value for item in group])
            else:
                for item in group:
                    counts += _add_text(self.journals.text(name), item.value["text"])
        notices = tuple(
            f"no installed extension owns the journal {name!r}; it is kept for the one that does"
            for name in names
            if counts.added and not self.is_owned(name)
        )
        return counts + ImportCounts(notices=notices)

    def _add_records(self, name: str, records: list[Mapping[str, Any]]) -> ImportCounts:
        journal = self.journals.records(name)
        counts = ImportCounts()
        for first in range(0, len(records), _BATCH):
            batch = records[first : first + _BATCH]
            known = journal.get([record["id"] for record in batch])
            present = [record for record in batch if known.get(record["id"]) == record]
            new = [record for record in batch if known.get(record["id"]) != record]
            refused = journal.add(new)
            kept = tuple(f"{name}: {quoted(one)} already exists with other content" for one in sorted(refused))
            counts += ImportCounts(len(new) - len(refused), len(present), kept)
        return counts

    def _add_lines(self, lines: list[Mapping[str, Any]]) -> ImportCounts:
        log = self.journals.logs(lines[0]["journal"]).log(lines[0]["group"], lines[0]["log"])
        here = Counter(_canonical(line.value) for line in log.read() if not isinstance(line, BadLine))
        missing = []
        for line in lines:
            key = _canonical(line["value"])
            if here[key]:
                here[key] -= 1
            else:
                missing.append(line["value"])
        for first in range(0, len(missing), _BATCH):
            log.append(*missing[first : first + _BATCH])
        return ImportCounts(len(missing), len(lines) - len(missing))


def _check_value(form: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise RecordError("value is not a JSON object")
    if form == "log" and len(encode(value)) > MAX_LINE_BYTES:
        raise RecordError(f"a line of a log may have {MAX_LINE_BYTES:,} bytes")
    if form == "records" and not (isinstance(value.get("id"), str) and value["id"]):
        raise RecordError("a record of a journal has no id")


def routed(record: Record, carried: Mapping[str, RecordedExtension]) -> Record:
    """Return the record as the extension that exports this journal itself would have exported it.

    The memory that was exported did not have this extension. Raise RecordError if that cannot be told.
    """
    owner = carried.get(str(record.value.get("journal"))) if record.kind == JOURNAL else None
    if owner is None:
        return record
    if record.value.get("form") != "records" or len(owner.record_kinds) != 1:
        what = f"the journal {record.value['journal']!r} was exported without the extension that it belongs to"
        raise RecordError(what, hint="install the extension there, and export again")
    return Record(owner.record_kinds[0], {"value": record.value.get("value")})


def _add_text(place: OwnedText, text: str) -> ImportCounts:
    with place.changing():
        here = place.read(MAX_EXPORT_LINE_BYTES)
        if here is None:
            place.replace(text)
            return ImportCounts(added=1)
    if here == text.encode():
        return ImportCounts(present=1)
    return ImportCounts(kept=(f"{place.location} already exists with other content",))


def _record(name: str, form: str, **content: Any) -> Record:
    return Record(JOURNAL, {"journal": name, "form": form, **content})


def _place(record: Record) -> tuple[str, ...]:
    return tuple(str(record.value.get(field, "")) for field in ("journal", "form", "group", "log"))


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True)

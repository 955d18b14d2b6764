"""Import an export into a memory: existing records stay, missing ones are added, and a second import changes nothing.

The file is read twice: first to validate every line, before anything is changed, and then to add the records.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from klaw_core import Extension, KlawError, NotFoundError, RecordError, quoted, update_command
from klaw_core.errors import isolated
from klaw_core.extensions.host import having
from klaw_doctor.journals import JOURNAL, JournalRecords, carriers, routed
from klaw_doctor.records import MAX_EXPORT_LINE_BYTES, check_version, header, is_frame, is_header, parse_line
from klaw_journals import BadLine, ConsentExtension, ImportCounts, Journals, Record, RecordedExtension
from klaw_journals.jsonl import JsonLines
from klaw_journals.records import ImportReport
from klaw_journals.trust import FOREIGN, check_trust

# The kinds whose records have a class, and operations on facts that contain texts without one.
_CLASSED = frozenset({"message", "saved", "document", "fact"})
_CORE = "core"
_DERIVED = frozenset({"digest", "profile", "compact"})
_AGAIN = "write the export again: klaw export FILE"


def import_(
    extensions: Mapping[str, Extension],
    source: Path,
    *,
    journals: Journals | None = None,
    workspaces: bool = False,
    dry_run: bool = False,
    trust: str | None = None,
) -> ImportReport:
    """Add the records of an export to the extensions; existing data is neither changed nor removed.

    Journals that no extension exports are added to ``journals``, also if no installed extension owns them.

    ``trust`` is the class of all records; None leaves each its own.

    Records that change which directories and files are indexed are only listed, unless ``workspaces`` is set. With
    ``dry_run`` nothing is added, but the file is validated and its records are counted.

    Raise NotFoundError if there is no such file, and RecordError, with nothing changed, if a line is invalid or the
    end is missing. Raise StoreError if a file cannot be written. The error lists what was added before, and another
    import continues from there.
    """
    if not source.exists():
        raise NotFoundError(f"no such file: {source}", hint="create one with `klaw export FILE`")
    if source.is_dir():
        raise RecordError(f"{source} is a directory", hint="exports of other programs: klaw import --from PROGRAM PATH")
    owners = {kind: item for _, item in having(extensions, RecordedExtension) for kind in item.record_kinds}
    if journals is not None:
        owners[JOURNAL] = JournalRecords(journals, extensions)
    carried = carriers(extensions)
    if trust is not None:
        check_trust(trust)
    check(source, owners, carried)
    if dry_run:
        return _dry_run(source, owners, carried, consented=workspaces)
    added: Counter[str] = Counter()
    present: Counter[str] = Counter()
    kept: list[str] = []
    notices: list[str] = []
    if trust == FOREIGN and any(map(_is_derived, _records(source, carried))):
        notices.append("summaries, digests and profiles that others wrote are not imported")
    try:
        for kind, group in groupby(_records(source, carried, trust), key=lambda record: record.kind):
            with isolated(f"importing {kind!r}"):
                counts = _add(owners[kind], group, consented=workspaces)
            added[kind] += counts.added
            present[kind] += counts.present
            kept += counts.kept
            notices += counts.notices
    except KlawError as error:
        done = ", ".join(f"{count:,} × {kind}" for kind, count in added.items() if count) or "nothing"
        error.message = f"{error.message}; imported before the error: {done}"
        error.hint = f"{error.hint}; then import again: existing records are skipped".removeprefix("; ")
        raise
    return ImportReport(dict(+added), dict(+present), tuple(kept), tuple(dict.fromkeys(notices)))


def _dry_run(
    source: Path,
    owners: Mapping[str, RecordedExtension],
    carried: Mapping[str, RecordedExtension],
    *,
    consented: bool,
) -> ImportReport:
    """Count the records that an import would add, and those that exist already; list those that need consent."""
    here: Counter[str] = Counter()
    for owner in dict.fromkeys(owners[record.kind] for record in _records(source, carried)):
        here.update(_canonical(item) for item in owner.records() if isinstance(item, Record))
    added: Counter[str] = Counter()
    present: Counter[str] = Counter()
    kept: list[str] = []
    for record in _records(source, carried):
        if refused := _refusal(owners[record.kind], record, consented=consented):
            kept.append(refused)
            continue
        key = _canonical(record)
        (present if here[key] else added)[record.kind] += 1
        here[key] -= bool(here[key])
    return ImportReport(dict(added), dict(present), tuple(kept))


def _canonical(record: Record) -> str:
    """Return a record for comparison, without its class: another class does not make another record."""
    value = record.value.get("value")
    plain = {key: item for key, item in value.items() if key != "trust"} if isinstance(value, Mapping) else value
    return json.dumps([record.kind, {**record.value, "value": plain}], sort_keys=True)


def _add(owner: RecordedExtension, records: Iterator[Record], *, consented: bool) -> ImportCounts:
    """Add records, except those that need the user's consent."""
    if consented or not isinstance(owner, ConsentExtension):
        return owner.add(records)
    pairs = [(record, _refusal(owner, record, consented=False)) for record in records]
    kept = tuple(refused for _, refused in pairs if refused)
    return owner.add(record for record, refused in pairs if not refused) + ImportCounts(kept=kept)


def _refusal(owner: RecordedExtension, record: Record, *, consented: bool) -> str:
    """Return what is not imported without the user's consent; empty if the record is imported."""
    effect = "" if consented or not isinstance(owner, ConsentExtension) else owner.effect(record)
    return f"{effect}; `klaw import --workspaces` does that" if effect else ""


def check(source: Path, owners: Mapping[str, RecordedExtension], carried: Mapping[str, RecordedExtension]) -> None:
    """Raise RecordError, with the line number, unless this is a complete export for the installed extensions."""
    _check_is_export(source)
    count = -1  # the header does not count
    ended = False
    for number, line in enumerate(_lines(source).read(), start=1):
        where = f"{source}, line {number}"
        if isinstance(line, BadLine):
            raise RecordError(f"{where}: {line.reason}; nothing was imported", hint=_AGAIN)
        if ended:
            raise RecordError(f"{where}: there is data after the end record; nothing was imported", hint=_AGAIN)
        try:
            if number == 1:
                check_version(line.value)
            elif line.value.get("kind") == "end":
                ended = True
                if line.value.get("records") != count:
                    raise RecordError(f"found {count:,} records, the end record says {line.value.get('records')}")
            else:
                _check_record(routed(parse_line(line.value), carried), owners)
        except KlawError as error:
            raise RecordError(f"{where}: {error.message}; nothing was imported", hint=error.hint or _AGAIN) from error
        count += 1
    if not ended:
        raise RecordError(f"{source} is an incomplete export: its end is missing; nothing was imported", hint=_AGAIN)


def _check_is_export(source: Path) -> None:
    """Raise RecordError unless the first line is the header of an export, whatever the other lines are.

    A file that cannot be read may be one.
    """
    first = next(_lines(source).read(), None)
    if first.ends_reading if isinstance(first, BadLine) else first is not None and is_header(first.value):
        return
    why = "the file is empty" if first is None else f"the first line is not a header like {json.dumps(header())}"
    raise RecordError(
        f"{source} is not a Klaw export: {why}; nothing was imported",
        hint="`klaw export FILE` writes one; the export of another program: klaw import --from PROGRAM PATH",
    )


def _check_record(record: Record, owners: Mapping[str, RecordedExtension]) -> None:
    owner = owners.get(record.kind)
    if owner is None:
        raise RecordError(
            f"unknown kind {quoted(record.kind)}; known: {', '.join(owners)}",
            hint=f"{update_command()}, or install the extension that exported it",
        )
    try:
        owner.check_record(record)
    except KlawError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else "a value has the wrong type or is not allowed"
        raise RecordError(f"not a record of kind {quoted(record.kind)}: {why}") from error


def _lines(source: Path) -> JsonLines:
    return JsonLines(source, MAX_EXPORT_LINE_BYTES)


def _records(source: Path, carried: Mapping[str, RecordedExtension], trust: str | None = None) -> Iterator[Record]:
    """Yield the records of a validated export, of a class. Raise RecordError if a line has become invalid since."""
    for line in _lines(source).read():
        if isinstance(line, BadLine):
            raise RecordError(f"{source} changed during the import: {line.reason}")
        if not is_frame(line.value):
            record = routed(parse_line(line.value), carried)
            if trust is None:
                yield record
            elif trust != FOREIGN or not _is_derived(record):
                yield _of_class(record, trust)


def _is_derived(record: Record) -> bool:
    """Return whether a record is a text that was made of others, whose class is not in it."""
    return record.kind == "summary" or (record.kind == "fact" and record.value["value"].get("op") in _DERIVED)


def _of_class(record: Record, trust: str) -> Record:
    if record.kind == _CORE:
        return Record(record.kind, {**record.value, "trust": trust})
    if record.kind not in _CLASSED:
        return record
    return Record(record.kind, {**record.value, "value": {**record.value["value"], "trust": trust}})

"""An export into a memory: what is here stays, what is missing is added, and doing it twice changes nothing more.

The file is read twice: once to see that every line can be understood, before anything is changed, and once to add.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from itertools import groupby
from pathlib import Path

from attrs import define, field, frozen

from klaw_core.builtin.workspace import Workspace
from klaw_core.conversations.journal import ChatFile, Journal, JournalEntry
from klaw_core.conversations.summaries import SummaryFiles
from klaw_core.core_memory.facts import FILE_NAME as CORE_FILE
from klaw_core.core_memory.facts import CoreMemory
from klaw_core.errors import KlawError, NotFoundError, RecordError, WorkspaceError
from klaw_core.files.jsonl import BadLine, JsonLines
from klaw_core.maintenance.checks.owned_files import CONVERSATIONS, SAVED_FILE, SUMMARIES, WORKSPACES_FILE
from klaw_core.maintenance.records import (
    MAX_EXPORT_LINE_BYTES,
    CoreFact,
    Item,
    MessageRecord,
    SummaryRecord,
    check_header,
    kind_of,
    parse_line,
)
from klaw_core.sources.saved import Saved, SavedJournal
from klaw_core.sources.workspaces import Workspaces, is_gone

_BATCH = 100


@frozen
class ImportReport:
    """How many of each kind were added, how many were here already, and what stays because it is different here.

    ``missing`` are added workspaces whose directory is not here, by name; ``notice`` says why what was added cannot
    be found yet, if it cannot.
    """

    added: Mapping[str, int] = field(factory=dict)
    present: Mapping[str, int] = field(factory=dict)
    kept: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(factory=dict)
    notice: str = ""


def import_(data_dir: Path, source: Path) -> ImportReport:
    """Add what an export holds to the files in ``data_dir``; nothing that is there is changed or removed.

    Raise RecordError, with nothing changed, if any line cannot be understood or the end is missing; NotFoundError
    if there is no such file. Raise StoreError if a file cannot be written: it says what was added until then, and
    importing again goes on from there.
    """
    if not source.exists():
        raise NotFoundError(f"there is no file {source}", hint="klaw export FILE makes one")
    check(source)
    importer = _Importer(data_dir)
    try:
        importer.take(_items(source))
    except KlawError as error:
        done = ", ".join(f"{count:,} × {kind}" for kind, count in importer.added.items()) or "nothing"
        error.message = f"{error.message}; imported until then: {done}"
        error.hint = f"{error.hint}; then import again, what is there is passed over".removeprefix("; ")
        raise
    return ImportReport(dict(importer.added), dict(importer.present), tuple(importer.kept), importer.missing)


def check(source: Path) -> None:
    """Raise RecordError, naming the line, unless this is a whole export that this version understands."""
    count = -1  # the header
    ended = False
    for number, line in enumerate(_lines(source).read(), start=1):
        where = f"{source}, line {number}"
        if isinstance(line, BadLine):
            raise RecordError(f"{where}: {line.reason}; nothing was imported")
        if ended:
            raise RecordError(f"{where}: something follows the end; nothing was imported")
        try:
            if number == 1:
                check_header(line.value)
            elif line.value.get("kind") == "end":
                ended = True
                if line.value.get("records") != count:
                    raise RecordError(f"{count:,} records came before, it says {line.value.get('records')}")
            else:
                parse_line(line.value)
        except KlawError as error:
            raise RecordError(f"{where}: {error.message}; nothing was imported", hint=error.hint) from error
        count += 1
    if not ended:
        raise RecordError(f"{source} is not a whole export: its end is missing; nothing was imported")


@define
class _Importer:
    """Adds items to the files, and counts. Only the messages of one day and chat are held at a time."""

    data_dir: Path
    added: Counter[str] = field(factory=Counter)
    present: Counter[str] = field(factory=Counter)
    kept: list[str] = field(factory=list)
    missing: dict[str, str] = field(factory=dict)

    def take(self, items: Iterator[Item]) -> None:
        """Add what is missing, in the order of the export. Raise StoreError."""
        for kind, group in groupby(items, key=kind_of):
            if kind == "saved":
                self._saved(group)  # type: ignore[arg-type]  # one kind, one class
            elif kind == "message":
                self._messages(group)  # type: ignore[arg-type]  # one kind, one class
            elif kind == "summary":
                self._summaries(group)  # type: ignore[arg-type]  # one kind, one class
            else:
                for item in group:
                    self._add(item)  # type: ignore[arg-type]  # the other kinds

    def _add(self, item: Workspace | CoreFact) -> None:
        """Add a workspace or a fact; what clashes with what is here is kept as it is here, and named."""
        try:
            new = self._workspace(item) if isinstance(item, Workspace) else self._fact(item)
        except (WorkspaceError, RecordError) as error:
            self.kept.append(error.message)
        else:
            self._count(kind_of(item), new=new)

    def _workspace(self, workspace: Workspace) -> bool:
        new = Workspaces(self.data_dir / WORKSPACES_FILE).merge(workspace)
        if new and is_gone(workspace.root):
            self.missing[workspace.origin] = str(workspace.root)
        return new

    def _fact(self, fact: CoreFact) -> bool:
        core = CoreMemory(self.data_dir / CORE_FILE)
        known = core.get()
        here = (known.user if fact.section == "user" else known.agent).get(fact.key)
        if here is None:
            core.update(fact.section, fact.key, fact.value)
        elif here != fact.value:
            raise RecordError(f"core memory {fact.section}.{fact.key} is different here")
        return here is None

    def _saved(self, memories: Iterator[Saved]) -> None:
        journal = SavedJournal(self.data_dir / SAVED_FILE)
        known = {saved.id: saved for saved in journal.read().memories}
        batch: list[Saved] = []
        for saved in memories:
            here = known.setdefault(saved.id, saved)
            if here is saved:
                batch.append(saved)
            elif here == saved:
                self.present["saved"] += 1
            else:
                self.kept.append(f"{saved.id} is different here")
            if len(batch) >= _BATCH:
                self._flush(journal, batch)
        self._flush(journal, batch)

    def _flush(self, journal: SavedJournal, batch: list[Saved]) -> None:
        if batch:
            journal.append(*batch)
            self.added["saved"] += len(batch)
            batch.clear()

    def _messages(self, messages: Iterator[MessageRecord]) -> None:
        """Add messages to the files they came from; each line as often as it was there, or is here, if that is more."""
        journal = Journal(self.data_dir / CONVERSATIONS)
        for (chat, day), group in groupby(messages, key=lambda said: (said.chat, said.day)):
            path = journal.root / chat.name / f"{day}.jsonl"
            here = _records_in(journal, ChatFile(chat, date.fromisoformat(day), path))
            missing = []
            for said in group:
                record = said.message.record()
                key = _canonical(record)
                if here[key]:
                    here[key] -= 1
                    self.present["message"] += 1
                else:
                    missing.append(record)
            for first in range(0, len(missing), _BATCH):
                part = missing[first : first + _BATCH]
                JsonLines(path).append(*part)
                self.added["message"] += len(part)

    def _summaries(self, summaries: Iterator[SummaryRecord]) -> None:
        """Add summaries; a chat's last one counts, so those that are older than what is here are not put after it."""
        files = SummaryFiles(self.data_dir / SUMMARIES)
        for chat, group in groupby(summaries, key=lambda told: told.chat):
            here = files.read(chat)
            latest = here[-1].created_at if here else None
            for told in group:
                if told.summary in here:
                    self.present["summary"] += 1
                elif latest is not None and told.summary.created_at < latest:
                    self.kept.append(f"{chat.name} has a later summary than that of {told.summary.created_at}")
                else:
                    files.append(chat, told.summary)
                    self.added["summary"] += 1

    def _count(self, kind: str, *, new: bool) -> None:
        (self.added if new else self.present)[kind] += 1


def _records_in(journal: Journal, file: ChatFile) -> Counter[str]:
    """Return how often each message stands in a file."""
    lines = journal.read_file(file)
    return Counter(_canonical(line.message.record()) for line in lines if isinstance(line, JournalEntry))


def _canonical(record: Mapping[str, object]) -> str:
    return json.dumps(record, sort_keys=True)


def _lines(source: Path) -> JsonLines:
    return JsonLines(source, MAX_EXPORT_LINE_BYTES)


def _items(source: Path) -> Iterator[Item]:
    """Yield the items of an export that was checked; a line that has changed since ends it."""
    for line in _lines(source).read():
        if isinstance(line, BadLine):
            raise RecordError(f"{source} changed while it was imported: {line.reason}")
        if line.value.get("kind") not in {"header", "end"}:
            yield parse_line(line.value)

"""The journal of saved memories as a source: what `save` keeps is indexed, and rebuilt, like any document."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from attrs import field, frozen

from klaw_core.errors import RecordError
from klaw_core.files.timestamps import as_utc
from klaw_core.sources.saved import Saved, SavedJournal
from klaw_core.values.documents import Document, Entry
from klaw_core.values.runs import SkippedEntry
from klaw_core.values.text import text_hash

#: The origin of saved memories, and the beginning of their paths.
SAVED = "saved"

_MOST_CHARACTERS = 1_000_000


def make_saved(text: str, source: str, chat_id: str | None, created_at: datetime | None) -> Saved:
    """Return a text as the memory that is saved, dated now unless it says when. Raise RecordError if it cannot be."""
    if not text.strip():
        raise RecordError("there is nothing to save: the text is empty")
    if not source.strip():
        raise RecordError("a saved memory needs a source", hint='the default is "manual"')
    try:
        "".join((text, source, chat_id or "")).encode()
    except UnicodeEncodeError as error:
        raise RecordError("the text cannot be saved: it is not valid Unicode (a lone surrogate)") from error
    if len(text) > _MOST_CHARACTERS:
        raise RecordError(
            f"the text has {len(text):,} characters, at most {_MOST_CHARACTERS:,} can be saved at once",
            hint="put it in a file and `klaw index` its directory",
        )
    moment = as_utc(created_at or datetime.now(UTC)).replace(microsecond=0)
    digest = text_hash("\0".join((source, chat_id or "", text)))[:12]
    return Saved(f"{SAVED}/{moment.date().isoformat()}/{digest}", text, source, moment, chat_id)


def as_document(saved: Saved) -> Document:
    """Return a saved memory as the document that is indexed."""
    return Document(saved.id, saved.text, saved.source, SAVED, saved.created_at, saved.chat_id)


@frozen
class SavedSource:
    """The memories of a journal. A scan reads the journal; ``read`` answers from what the last scan found.

    With ``finish`` a scan also completes what a crash left of forgetting; without, it only looks.
    """

    journal: SavedJournal
    finish: bool = True
    _found: dict[str, Saved] = field(factory=dict, init=False, repr=False, eq=False)

    origin = SAVED
    forgets_missing = True

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return every memory in the order in which it was saved, and each line of the journal that is broken."""
        replayed = self.journal.read()
        if replayed.unfinished and self.finish:
            self.journal.finish()
        memories: Mapping[str, Saved] = {saved.id: saved for saved in replayed.memories}
        self._found.clear()
        self._found.update(memories)
        entries = [Entry(saved.id, len(saved.text)) for saved in memories.values()]
        # A broken line does not say which memory it was, and the index may hold the last copy: all of them stay.
        broken = (SkippedEntry(SAVED, str(bad), keep=True) for bad in replayed.bad)
        return [*entries, *broken]

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Return one memory as a document."""
        saved = self._found.get(entry.path)
        return SkippedEntry(entry.path, "was forgotten", keep=False) if saved is None else as_document(saved)

"""How the documents of a collection become chunks, and how one that has not changed is recognised.

What an index run remembers of a document (``DocumentRecord.seen``) has four lines: a hash of the recipe that it was cut
by, the entry's fingerprint, the digest of what was read, and what else the recipe depends on. While the fingerprint is
the same the document is not read; while the digest is, nothing is made of it. See
``docs/decisions/0041-unchanged-files.md``.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, field, frozen

from klaw_core.indexing.chunking import FormatChunker, TokenMeter, make_chunks
from klaw_core.indexing.redacting import DocumentRedactor
from klaw_core.values.documents import Document, DocumentRecord, Entry
from klaw_core.values.text import Chunk, text_hash

_DIGITS = 8  # of the hash of a recipe: it tells one from those that were there before
_LINES = 4
_NOTE, _OTHER = "note", "document"


@frozen
class Cutter:
    """How the documents of a collection become chunks, and how one that was cut so is recognised.

    ``chunker_of`` gives the chunker of a ``Document.format``, ``model`` names whose tokens are counted. A document is
    cut again when its chunker, the chunker's options, the model or what is struck out change.
    """

    chunker_of: Callable[[str], FormatChunker]
    model: str
    meter: TokenMeter
    redactor: DocumentRedactor
    _treatments: dict[tuple[str, str, str], bool] = field(factory=dict, init=False, eq=False, repr=False)

    def cut(self, document: Document) -> tuple[Document, tuple[Chunk, ...]]:
        """Return the document, with the recipe that it was cut by, and its chunks."""
        found = self.chunker_of(document.format)
        document = self.redactor.redact_labels(document)
        # The document keeps the text that was read, of which only the hash is stored: it tells the next run whether
        # that has changed, before anything is looked for in it.
        shown = evolve(document, text=self.redactor.text_of(document))
        chunks = make_chunks(shown, found.chunker, self.meter)
        return evolve(document, recipe=self._recipe(found, document, estimated=self.meter.estimated)), chunks

    def recognise(self, document: Document, record: DocumentRecord) -> Document | None:
        """Return the document with the recipe that it was cut by; None if it has changed, or is to be cut again."""
        found = self.chunker_of(document.format)
        document = self.redactor.redact_labels(document)
        cut = evolve(document, recipe=self._recipe(found, document, estimated=False))
        if record.content_hash == cut.content_hash:
            return cut
        cut = evolve(document, recipe=self._recipe(found, document, estimated=True))
        if record.content_hash != cut.content_hash:
            return None
        self.meter(["a"])  # it was cut by estimate: is there a tokenizer now?
        return cut if self.meter.estimated else None

    def note(self, document: Document, entry: Entry) -> str:
        """Return what to remember of a document that was cut, or recognised.

        Empty if its source can tell nothing without reading it, or if there was no tokenizer to cut it by.
        """
        recipe = self._recipe(self.chunker_of(document.format), document, estimated=False)
        if not (entry.fingerprint or document.digest) or document.recipe != recipe:
            return ""
        kind = f"{_NOTE if document.is_note else _OTHER} {document.format}"
        lines = (text_hash(recipe)[:_DIGITS], entry.fingerprint, document.digest, kind)
        # What another's source gives may be any text; what could not be read back is not remembered.
        return "\n".join(lines) if all(map(str.isprintable, lines)) else ""

    def is_seen(self, entry: Entry, seen: str, origin: str) -> bool:
        """Return whether an entry stands for the document of which this was noted, so that it need not be read."""
        if not entry.fingerprint or not seen:
            return False
        recipe, fingerprint, _, kind = _parts(seen)
        return fingerprint == entry.fingerprint and self._holds(recipe, kind, origin)

    def digest_of(self, seen: str, origin: str) -> str:
        """Return the digest of what was read, empty if a document of that digest may be another now."""
        if not seen:
            return ""
        recipe, _, digest, kind = _parts(seen)
        return digest if digest and self._holds(recipe, kind, origin) else ""

    def _holds(self, recipe: str, kind: str, origin: str) -> bool:
        """Return whether the recipe is still the one for documents of this kind."""
        known = self._treatments.get((recipe, kind, origin))
        if known is None:
            is_note, _, document_format = kind.partition(" ")
            suffix = self.redactor.recipe_of(origin, is_note=is_note == _NOTE)
            now = f"{self.chunker_of(document_format).recipe} {self.model}{suffix}"
            known = self._treatments[recipe, kind, origin] = recipe == text_hash(now)[:_DIGITS]
        return known

    def _recipe(self, found: FormatChunker, document: Document, *, estimated: bool) -> str:
        return f"{found.recipe} {self.model}{' estimated' if estimated else ''}{self.redactor.recipe(document)}"


def with_fingerprint(entry: Entry, seen: str) -> str:
    """Return what to note of a document whose digest is the one that was noted."""
    recipe, _, digest, kind = _parts(seen)
    return f"{recipe}\n{entry.fingerprint}\n{digest}\n{kind}"


def _parts(seen: str) -> list[str]:
    lines = seen.split("\n")
    return lines if len(lines) == _LINES else [""] * _LINES

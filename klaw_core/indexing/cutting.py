"""Split the documents of a collection into chunks, and recognise unchanged documents.

An index run stores four lines for each document (``DocumentRecord.seen``): a hash of the recipe that it was split with,
the entry's fingerprint, the digest of its bytes, and what else the recipe depends on. A document with the same
fingerprint is not read; a document with the same digest is read but not parsed.
See ``docs/decisions/0041-unchanged-files.md``.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, field, frozen

from klaw_core.indexing.chunking import FormatChunker, TokenMeter, make_chunks
from klaw_core.indexing.redacting import DocumentRedactor, treatment
from klaw_core.values.documents import Document, DocumentRecord, Entry
from klaw_core.values.text import Chunk, text_hash

_DIGITS = 8  # of the hash of a recipe, enough to distinguish it from earlier recipes
_LINES = 4


@frozen
class Cutter:
    """Splits the documents of a collection into chunks, and recognises documents that were split the same way.

    ``chunker_of`` returns the chunker of a ``Document.format``; ``model`` is the model whose tokens are counted. A
    document is split again if its chunker, the chunker's options, the model or the redaction changes.
    """

    chunker_of: Callable[[str], FormatChunker]
    model: str
    meter: TokenMeter
    redactor: DocumentRedactor
    _treatments: dict[tuple[str, str], bool] = field(factory=dict, init=False, eq=False, repr=False)

    def cut(self, document: Document) -> tuple[Document, tuple[Chunk, ...]]:
        """Return the document with its recipe, and its chunks."""
        found = self.chunker_of(document.format)
        document = self.redactor.redact_labels(document)
        # The document keeps the unredacted text. Only its hash is stored, so that the next run can compare the text
        # before redacting it.
        shown = evolve(document, text=self.redactor.text_of(document))
        chunks = make_chunks(shown, found.chunker, self.meter)
        return evolve(document, recipe=self._recipe(found, document, estimated=self.meter.estimated)), chunks

    def recognise(self, document: Document, record: DocumentRecord) -> Document | None:
        """Return the document with its recipe; None if it has changed or must be split again."""
        found = self.chunker_of(document.format)
        document = self.redactor.redact_labels(document)
        cut = evolve(document, recipe=self._recipe(found, document, estimated=False))
        if record.content_hash == cut.content_hash:
            return cut
        cut = evolve(document, recipe=self._recipe(found, document, estimated=True))
        if record.content_hash != cut.content_hash:
            return None
        self.meter(["a"])  # it was split by estimate; find out whether a tokenizer is available now
        return cut if self.meter.estimated else None

    def note(self, document: Document, entry: Entry) -> str:
        """Return the lines to store for a document that was split or recognised.

        Empty if its source has neither fingerprint nor digest, or if the document was split by estimate.
        """
        recipe = self._recipe(self.chunker_of(document.format), document, estimated=False)
        if not (entry.fingerprint or document.digest) or document.recipe != recipe:
            return ""
        kind = f"{treatment(document)} {document.format}"
        lines = (text_hash(recipe)[:_DIGITS], entry.fingerprint, document.digest, kind)
        # A third party's source may return any text. Text that could not be parsed again is not stored.
        return "\n".join(lines) if all(map(str.isprintable, lines)) else ""

    def is_seen(self, entry: Entry, seen: str) -> bool:
        """Return whether an entry is unchanged according to the stored lines, so that it need not be read."""
        if not entry.fingerprint or not seen:
            return False
        recipe, fingerprint, _, kind = _parts(seen)
        return fingerprint == entry.fingerprint and self._holds(recipe, kind)

    def digest_of(self, seen: str) -> str:
        """Return the stored digest; empty if the same bytes would be split differently now."""
        if not seen:
            return ""
        recipe, _, digest, kind = _parts(seen)
        return digest if digest and self._holds(recipe, kind) else ""

    def _holds(self, recipe: str, kind: str) -> bool:
        """Return whether documents of this kind still have this recipe."""
        known = self._treatments.get((recipe, kind))
        if known is None:
            treated_as, _, document_format = kind.partition(" ")
            suffix = self.redactor.recipe_of(treated_as)
            now = f"{self.chunker_of(document_format).recipe} {self.model}{suffix}"
            known = self._treatments[recipe, kind] = recipe == text_hash(now)[:_DIGITS]
        return known

    def _recipe(self, found: FormatChunker, document: Document, *, estimated: bool) -> str:
        suffix = self.redactor.recipe_of(treatment(document))
        return f"{found.recipe} {self.model}{' estimated' if estimated else ''}{suffix}"


def with_fingerprint(entry: Entry, seen: str) -> str:
    """Return the stored lines with the new fingerprint of an entry whose digest is unchanged."""
    recipe, _, digest, kind = _parts(seen)
    return f"{recipe}\n{entry.fingerprint}\n{digest}\n{kind}"


def _parts(seen: str) -> list[str]:
    lines = seen.split("\n")
    return lines if len(lines) == _LINES else [""] * _LINES

"""Redact secrets in documents of every source before they are split."""

from __future__ import annotations

from attrs import evolve, frozen

from klaw_core.values.documents import Document
from klaw_core.values.metadata import with_trust
from klaw_redaction import Redactor

#: What the redaction of a document depends on: a person's own note, any other document, one that is redacted already.
NOTE, OTHER, REDACTED = "note", "document", "redacted"


def treatment(document: Document) -> str:
    """Return which of the three a document is."""
    if document.is_redacted:
        return REDACTED
    return NOTE if document.is_note else OTHER


@frozen
class DocumentRedactor:
    """Redacts secrets in documents; in a person's own notes only if ``notes`` is set.

    Documents that their source has already redacted, such as conversations, are not changed here.
    """

    redactor: Redactor
    notes: bool = False

    def recipe_of(self, treated_as: str) -> str:
        """Return a string that identifies a treatment; empty if it redacts nothing."""
        return f" redacted {self.redactor.recipe}" if self._redacts(treated_as) else ""

    def redact_labels(self, document: Document) -> Document:
        """Return the document with its class, and without secrets in title, headings, source, chat and metadata."""
        document = evolve(document, metadata=with_trust(document.metadata, document.trust))
        if not self._redacts(treatment(document)):
            return document
        return evolve(
            document,
            title=self.redactor.text(document.title),
            source=self.redactor.text(document.source),
            chat_id=None if document.chat_id is None else self.redactor.text(document.chat_id),
            heading=tuple(map(self.redactor.text, document.heading)),
            metadata=self.redactor.metadata(document.metadata),
        )

    def text_of(self, document: Document) -> str:
        """Return the document's text without secrets. Line numbers do not change."""
        return self.redactor.lines(document.text) if self._redacts(treatment(document)) else document.text

    def for_model(self, text: str, *, is_note: bool) -> str:
        """Return the text of a document, read for a model, without secrets. Line numbers do not change."""
        return text if is_note and not self.notes else self.redactor.lines(text)

    def _redacts(self, treated_as: str) -> bool:
        if not self.redactor.patterns or treated_as == REDACTED:
            return False
        return self.notes or treated_as != NOTE

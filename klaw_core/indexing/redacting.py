"""Redact secrets in documents of every source before they are split."""

from __future__ import annotations

from attrs import evolve, frozen

from klaw_core.conversations.source import CONVERSATIONS
from klaw_core.redaction import Redactor
from klaw_core.values.documents import Document


@frozen
class DocumentRedactor:
    """Redacts secrets in documents; in a person's own notes only if ``notes`` is set.

    Conversations are not changed here, because their source has already redacted them.
    """

    redactor: Redactor
    notes: bool = False

    def recipe(self, document: Document) -> str:
        """Return a string that identifies the redaction of a document; empty if it is not redacted."""
        return self.recipe_of(document.origin, is_note=document.is_note)

    def recipe_of(self, origin: str, *, is_note: bool) -> str:
        """Return the same for notes, or for other documents, of an origin."""
        return f" redacted {self.redactor.recipe}" if self._treats(origin, is_note=is_note) else ""

    def redact_labels(self, document: Document) -> Document:
        """Return the document without secrets in its labels: title, headings, source, chat and metadata."""
        if not self._treats(document.origin, is_note=document.is_note):
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
        return (
            self.redactor.lines(document.text)
            if self._treats(document.origin, is_note=document.is_note)
            else document.text
        )

    def for_model(self, text: str, *, is_note: bool) -> str:
        """Return the text of a document, read for a model, without secrets. Line numbers do not change."""
        return text if is_note and not self.notes else self.redactor.lines(text)

    def _treats(self, origin: str, *, is_note: bool) -> bool:
        if origin == CONVERSATIONS or not self.redactor.patterns:
            return False
        return self.notes or not is_note

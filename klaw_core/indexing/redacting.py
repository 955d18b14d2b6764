"""Secrets are struck out of documents before they are cut, whatever source they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from klaw_core.conversations.redaction import Redactor
from klaw_core.conversations.source import CONVERSATIONS
from klaw_core.values.documents import Document
from klaw_core.values.metadata import Metadata


@frozen
class DocumentRedactor:
    """Strikes secrets out of documents, and out of a person's own notes only if ``notes`` says so.

    Conversations are left as they are: their source has struck out what is to be struck out.
    """

    redactor: Redactor
    notes: bool = False

    def recipe(self, document: Document) -> str:
        """Return what identifies how a document is treated, empty if it is left as it is."""
        return self.recipe_of(document.origin, is_note=document.is_note)

    def recipe_of(self, origin: str, *, is_note: bool) -> str:
        """Return what identifies how a person's notes, or other documents, of an origin are treated."""
        return f" redacted {self.redactor.recipe}" if self._treats(origin, is_note=is_note) else ""

    def redact_labels(self, document: Document) -> Document:
        """Return the document without secrets in its title, headings and metadata."""
        if not self._treats(document.origin, is_note=document.is_note):
            return document
        return evolve(
            document,
            title=self.redactor.text(document.title),
            heading=tuple(map(self.redactor.text, document.heading)),
            metadata=self._metadata(document.metadata),
        )

    def text_of(self, document: Document) -> str:
        """Return the document's text without secrets, each line at its number."""
        return (
            self.redactor.lines(document.text)
            if self._treats(document.origin, is_note=document.is_note)
            else document.text
        )

    def _treats(self, origin: str, *, is_note: bool) -> bool:
        if origin == CONVERSATIONS or not self.redactor.patterns:
            return False
        return self.notes or not is_note

    def _metadata(self, metadata: Metadata) -> Metadata:
        values: Mapping[str, Any] = metadata
        return {key: self._value(value) for key, value in values.items()}

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redactor.text(value)
        texts: Sequence[str] = value if isinstance(value, tuple) else ()
        return tuple(map(self.redactor.text, texts)) if isinstance(value, tuple) else value

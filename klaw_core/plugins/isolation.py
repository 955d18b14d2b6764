"""A plugin's source behind a wall: it raises only Klaw's errors, and what it yields is what its Protocol says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from attrs import frozen

from klaw_core.errors import PluginContractError, PluginError, WorkspaceError, isolated
from klaw_core.interfaces.source import Source
from klaw_core.values.documents import Document, Entry
from klaw_core.values.runs import SkippedEntry


@frozen
class IsolatedSource:
    """A source of a plugin. What it raises becomes a WorkspaceError that names it, what it returns is checked."""

    source: Source
    name: str
    origin: str

    @classmethod
    def of(cls, source: Source, name: str) -> IsolatedSource:
        """Wrap a source that has just been built. Raise PluginError if it cannot say what its origin is."""
        who = f"the source {name!r}"
        with isolated(who):
            origin: Any = source.origin
        if not isinstance(origin, str) or not origin or "/" in origin:
            raise PluginContractError(f"{who} has the origin {origin!r:.80}, not a name")
        return cls(source, who, origin)

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return what is there now. Raise WorkspaceError."""
        with self._alone():
            found: list[Any] = list(self.source.scan())
            for item in found:
                if not isinstance(item, Entry | SkippedEntry) or not isinstance(item.path, str):
                    raise PluginContractError(f"{self.name} yielded {item!r:.80}, neither an Entry nor a SkippedEntry")
        return found

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Read one entry. Raise WorkspaceError."""
        with self._alone():
            document: Any = self.source.read(entry)
            if isinstance(document, SkippedEntry):
                return document
            what = f"{self.name} read {entry.path!r:.80} as"
            if not isinstance(document, Document):
                raise PluginContractError(f"{what} {type(document).__name__}, no Document")
            problem = _problem(document, self.origin)
            if problem:
                raise PluginContractError(f"{what} a document {problem}")
        sound: Document = document
        return sound

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raise what fails inside as a WorkspaceError: it is this source's alone, and the others can be indexed."""
        try:
            with isolated(self.name):
                yield
        except PluginError as error:
            raise WorkspaceError(error.message, hint=error.hint) from error


def _problem(document: Any, origin: str) -> str:
    """Return what is wrong with a document, empty if nothing is."""
    texts = (document.path, document.text, document.source, document.origin, *document.heading)
    if not all(isinstance(text, str) for text in texts):
        return "whose path, text, source, origin or heading is no text"
    if document.origin != origin:
        return f"of the origin {document.origin!r:.80}, not {origin!r}"
    if not isinstance(document.created_at, datetime) or document.created_at.tzinfo is None:
        return "without a moment, zone included, of its making"
    try:
        "\0".join(texts).encode()
    except UnicodeEncodeError:
        return "that is not valid Unicode (a lone surrogate)"
    return ""

"""Isolate a source: convert its errors, check its results, and give its optional features defaults.

The core handles every source in this form, its own as well as those of plugins, and never checks its class.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_core.errors import KlawError, PluginContractError, PluginError, WorkspaceError, isolated
from klaw_core.interfaces.source import (
    CollectedSource,
    DivisibleSource,
    ForgetfulSource,
    ForgettableSource,
    LocatingSource,
    PartedSource,
    PreparedSource,
    RemovableSource,
    RetainingSource,
    RowSource,
    ShrinkingSource,
    Source,
    WatchableSource,
)
from klaw_core.interfaces.store import Store
from klaw_core.values.collections import MEMORY, check_collection_name
from klaw_core.values.documents import Document, Entry, is_path_of
from klaw_core.values.metadata import check_metadata
from klaw_core.values.runs import ForgetReport, SkippedEntry


@frozen(eq=False)
class IsolatedSource:
    """A source with all optional features. Its exceptions become WorkspaceErrors that name it.

    ``owner`` is the component or extension that it belongs to. ``configured``: it is in ``[[memory.sources]]``, so only
    the configuration can remove it.
    """

    source: Source
    owner: str
    origin: str
    collection: str = MEMORY
    forgets_missing: bool = False
    configured: bool = False

    @classmethod
    def of(cls, source: Source, name: str, *, configured: bool = False) -> IsolatedSource:
        """Wrap a source. Raise PluginError if its origin or its collection is invalid."""
        who = f"the source {name!r}"
        with isolated(who):
            origin: Any = source.origin
            collection: Any = source.collection if isinstance(source, CollectedSource) else MEMORY
            forgets = bool(source.forgets_missing) if isinstance(source, RetainingSource) else False
        if not isinstance(origin, str) or not origin or "/" in origin:
            raise PluginContractError(f"{who} has the origin {origin!r:.80}, not a name")
        try:
            check_collection_name(collection)
        except (KlawError, TypeError) as error:
            raise PluginContractError(f"{who} has the collection {collection!r:.80}, not a name") from error
        return cls(source, name, origin, collection, forgets, configured)

    @property
    def name(self) -> str:
        """Its name in errors."""
        return f"the source {self.owner!r}"

    @property
    def version(self) -> str:
        """The version of the software that the documents describe; empty if the source has none."""
        return str(getattr(self.source, "version", ""))

    @property
    def root(self) -> Path | None:
        """The directory that the documents come from; None for a source that is not a directory."""
        root = getattr(self.source, "root", None)
        return root if isinstance(root, Path) else None

    @property
    def excluded(self) -> int:
        """The number of patterns that a person has excluded from the source."""
        return int(getattr(self.source, "excluded", 0))

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return the present entries. Raise WorkspaceError."""
        with self._as_workspace_errors():
            found: list[Any] = list(self.source.scan())
            for item in found:
                sound = isinstance(item, Entry) and isinstance(item.fingerprint, str)
                if not (sound or isinstance(item, SkippedEntry)) or not isinstance(item.path, str):
                    raise PluginContractError(f"{self.name} yielded {item!r:.80}, expected an Entry or a SkippedEntry")
        return found

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Read one entry. Raise WorkspaceError."""
        with self._as_workspace_errors():
            document: Any = self.source.read(entry)
            return self._checked(entry, document)

    def read_changed(self, entry: Entry, digest: str, /) -> Document | SkippedEntry | None:
        """Read one entry, or return None if the document has this digest. Raise WorkspaceError."""
        read = getattr(
            self.source, "read_changed", None
        )  # not isinstance with a Protocol, which is slow, because this runs for every file
        if read is None:
            return self.read(entry)
        with self._as_workspace_errors():
            document: Any = read(entry, digest)
            return None if document is None else self._checked(entry, document)

    def _checked(self, entry: Entry, document: Any) -> Document | SkippedEntry:
        """Return the document. Raise PluginContractError if it is not a document of this source."""
        if isinstance(document, SkippedEntry):
            return document
        what = f"{self.name} read {entry.path!r:.80} as"
        if not isinstance(document, Document):
            raise PluginContractError(f"{what} {type(document).__name__}, expected a Document")
        problem = _problem(document, entry, self.origin)
        if problem:
            raise PluginContractError(f"{what} a document {problem}")
        sound: Document = document
        return sound

    @property
    def stamp(self) -> Hashable:
        """A value that stays equal as long as no document changes; None if the source has none."""
        with self._as_workspace_errors():
            found: Hashable = getattr(self.source, "stamp", None)
            return None if callable(found) else found  # a method of this name would always stay equal

    def prepare(self, store: Store[Any], /) -> Sequence[SkippedEntry]:
        """Run the source's preparation for an index run. Raise StoreError, WorkspaceError."""
        if not isinstance(self.source, PreparedSource):
            return ()
        with self._as_workspace_errors():
            return tuple(self.source.prepare(store))

    def carry_over(self, old: Store[Any], new: Store[Any], skipped: Sequence[SkippedEntry], /) -> None:
        """Copy the source's own rows for entries that a reindex had to skip. Raise StoreError, WorkspaceError."""
        if isinstance(self.source, RowSource):
            with self._as_workspace_errors():
                self.source.carry_over(old, new, skipped)

    @property
    def can_forget(self) -> bool:
        """Whether single documents can be forgotten."""
        return isinstance(self.source, ForgettableSource)

    def forget(self, paths: Sequence[str], /) -> None:
        """Forget documents, so that the next scan does not bring them back. Raise StoreError, WorkspaceError."""
        if isinstance(self.source, ForgettableSource):
            with self._as_workspace_errors():
                self.source.forget(paths)

    def forgotten(self, paths: Sequence[str], /) -> Sequence[str]:
        """Return which of these documents were forgotten since this source was made. Raise WorkspaceError."""
        if not isinstance(self.source, ForgetfulSource):
            return ()
        with self._as_workspace_errors():
            return list(self.source.forgotten(paths))

    def changed(self, paths: Sequence[str], /) -> Sequence[str]:
        """Return which of these documents have lost text since this source has read them. Raise WorkspaceError."""
        if not isinstance(self.source, ShrinkingSource):
            return ()
        with self._as_workspace_errors():
            return list(self.source.changed(paths))

    def still_forgotten(self, paths: Sequence[str], /) -> Sequence[str]:
        """Return which of these forgotten documents were not added again; all if the source cannot tell."""
        return self.forgotten(paths) if isinstance(self.source, ForgetfulSource) else paths

    def why_not_forgotten(self, path: str) -> tuple[str, str]:
        """Return why a document of this source cannot be forgotten, and what to do instead."""
        explain = getattr(self.source, "why_not_forgotten", None)
        if explain is not None:
            with self._as_workspace_errors():
                message, hint = explain(path)
                return str(message), str(hint)
        where = "the configuration" if self.configured else f"the source {self.origin!r}"
        relative = path.removeprefix(f"{self.origin}/")
        return (
            f"{path} comes from {where}, so the next `klaw index` would add it again",
            f"remove {relative!r} where it comes from, then `klaw index`",
        )

    def part(self, target: str, /) -> str | None:
        """Return the text of a part of a document that has its own path. Raise WorkspaceError."""
        if not isinstance(self.source, DivisibleSource):
            return None
        with self._as_workspace_errors():
            return self.source.part(target)

    def forget_part(self, target: str, /) -> ForgetReport | None:
        """Forget a part of a document that has its own path. Raise StoreError, WorkspaceError."""
        if not isinstance(self.source, DivisibleSource):
            return None
        with self._as_workspace_errors():
            return self.source.forget_part(target)

    @property
    def can_remove(self) -> bool:
        """Whether a person can remove the source as a whole."""
        return isinstance(self.source, RemovableSource)

    def remove(self) -> None:
        """Remove the source. Raise StoreError, WorkspaceError."""
        if isinstance(self.source, RemovableSource):
            with self._as_workspace_errors():
                self.source.remove()

    def why_left_out(self, path: str) -> str:
        """Return why the source leaves out an existing file; empty if it cannot say."""
        explain = getattr(self.source, "why_left_out", None)
        if explain is None:
            return ""
        with self._as_workspace_errors():
            return str(explain(path))

    def watch_paths(self) -> Sequence[Path]:
        """Return the files and directories to watch for this source. Raise WorkspaceError."""
        if not isinstance(self.source, WatchableSource):
            return ()
        with self._as_workspace_errors():
            return tuple(self.source.watch_paths())

    @property
    def can_locate(self) -> bool:
        """Whether the documents are files, so that a path in the file system can mean one."""
        return isinstance(self.source, LocatingSource)

    def locate(self, path: str, /) -> str | None:
        """Return the document path of a path in the file system; None if it does not belong to this source."""
        if not isinstance(self.source, LocatingSource):
            return None
        with self._as_workspace_errors():
            return self.source.locate(path)

    def documents_of(self, path: str, /) -> Sequence[str]:
        """Return the documents of a file; none if it does not belong to this source. Raise WorkspaceError."""
        if isinstance(self.source, PartedSource):
            with self._as_workspace_errors():
                return tuple(self.source.documents_of(path))
        located = self.locate(path)
        return () if located is None else (located,)

    def file_of(self, path: str, /) -> Path | None:
        """Return the file of a document; None if it has none."""
        if not isinstance(self.source, LocatingSource):
            return None
        with self._as_workspace_errors():
            return self.source.file_of(path)

    def file_text(self, path: str, /) -> str | SkippedEntry:
        """Return the text of a document as a person sees it: that of its file, or of :meth:`read`."""
        if isinstance(self.source, LocatingSource):
            with self._as_workspace_errors():
                return self.source.file_text(path)
        document = self.read(Entry(path))
        return document if isinstance(document, SkippedEntry) else document.text

    @contextmanager
    def _as_workspace_errors(self) -> Iterator[None]:
        """Convert errors to WorkspaceError, which affects only this source: the others can be indexed."""
        try:
            with isolated(self.name):
                yield
        except PluginError as error:
            raise WorkspaceError(error.message, hint=error.hint) from error


def _problem(document: Any, entry: Entry, origin: str) -> str:
    """Return what is wrong with a document; empty if nothing is."""
    texts = (document.path, document.text, document.source, document.origin, document.format, *document.heading)
    if not all(isinstance(text, str) for text in (*texts, document.digest)):
        return "whose path, text, source, origin, format, heading or digest is not a string"
    if document.origin != origin or document.path != entry.path or not is_path_of(document.path, origin):
        place = f"of the origin {document.origin!r:.80} with the path {document.path!r:.80}"
        return f"{place}, not {origin!r} with the entry's path below {origin}/"
    if not isinstance(document.created_at, datetime) or document.created_at.tzinfo is None:
        return "whose created_at is not a timezone-aware datetime"
    try:
        check_metadata(document.metadata)
    except KlawError as error:
        return f"with wrong metadata: {error.message}"
    try:
        "\0".join(texts).encode()
    except UnicodeEncodeError:
        return "that is not valid Unicode (an unpaired surrogate)"
    return ""

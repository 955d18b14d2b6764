"""Isolate a source: convert its errors, and check its results.

The core handles every source in this form, its own as well as those of plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from attrs import frozen

from klaw_core.errors import KlawError, PluginContractError, PluginError, WorkspaceError, check_base, isolated, quoted
from klaw_core.interfaces.source import Folder, Forgetful, Located, Source
from klaw_core.values.collections import check_collection_name
from klaw_core.values.documents import Document, Entry, is_path_of
from klaw_core.values.metadata import check_metadata
from klaw_core.values.runs import SkippedEntry

A = TypeVar("A")
P = ParamSpec("P")
R = TypeVar("R")


@frozen(eq=False)
class IsolatedSource:
    """A source whose exceptions become WorkspaceErrors that name it, and whose results are checked.

    ``owner`` is the component or extension that it belongs to. ``configured``: it is in ``[[memory.sources]]``, so only
    the configuration can remove it.
    """

    source: Source
    owner: str
    origin: str
    collection: str
    forgets_missing: bool
    root: Path | None
    configured: bool = False

    @classmethod
    def of(cls, source: Any, name: str, *, configured: bool = False) -> IsolatedSource:
        """Wrap a source. Raise PluginError if it is none, or if its origin or its collection is invalid."""
        who = f"the source {name!r}"
        check_base(source, Source, who)
        with isolated(who):
            origin: Any = source.origin
            collection: Any = source.collection
            forgets = bool(source.forgets_missing)
            root: Any = source.root if isinstance(source, Folder) else None
        if not isinstance(origin, str) or not origin or "/" in origin:
            raise PluginContractError(f"{who} has the origin {quoted(origin)}, not a name")
        try:
            check_collection_name(collection)
        except (KlawError, TypeError) as error:
            raise PluginContractError(f"{who} has the collection {quoted(collection)}, not a name") from error
        if not (root is None or isinstance(root, Path)):
            raise PluginContractError(f"{who} has the directory {quoted(root)}, not a Path")
        return cls(source, name, origin, collection, forgets, root, configured)

    @property
    def is_chosen(self) -> bool:
        """Whether a person has chosen it: a directory, or a source of the configuration."""
        return self.root is not None or self.configured

    @property
    def name(self) -> str:
        """Its name in errors."""
        return f"the source {self.owner!r}"

    def can(self, ability: type) -> bool:
        """Return whether the source declares an ability."""
        return isinstance(self.source, ability)

    def use(
        self, ability: type[A], method: Callable[Concatenate[A, P], R], *given: P.args, **named: P.kwargs
    ) -> R | None:
        """Call a method of an ability; return None if the source does not declare it. Raise WorkspaceError."""
        if not isinstance(self.source, ability):
            return None
        with self.guarded():
            found: R = getattr(self.source, method.__name__)(*given, **named)
            return found

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return the present entries. Raise WorkspaceError."""
        with self.guarded():
            found: list[Any] = list(self.source.scan())
            for item in (each for each in found if not _is_sound(each)):
                raise PluginContractError(f"{self.name} yielded {quoted(item)}, expected an Entry or a SkippedEntry")
        return found

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Read one entry. Raise WorkspaceError."""
        with self.guarded():
            return self._checked(entry, self.source.read(entry))

    def read_changed(self, entry: Entry, digest: str, /) -> Document | SkippedEntry | None:
        """Read one entry, or return None if the document has this digest. Raise WorkspaceError."""
        with self.guarded():
            document = self.source.read_changed(entry, digest)
            return None if document is None else self._checked(entry, document)

    @property
    def stamp(self) -> Hashable:
        """A value that stays equal as long as no document changes; None if the source has none."""
        with self.guarded():
            found = self.source.stamp
            return None if callable(found) else found  # a method of this name would always stay equal

    def still_forgotten(self, paths: Sequence[str], /) -> Sequence[str]:
        """Return which of these forgotten documents were not added again; all if the source cannot tell."""
        gone = self.use(Forgetful, Forgetful.forgotten, paths)
        return paths if gone is None else gone

    def why_left_out(self, path: str) -> str:
        """Return why the source leaves out an existing file; empty if it cannot say."""
        return self.use(Folder, Folder.why_left_out, path) or ""

    def file_of(self, path: str) -> Path | None:
        """Return the file of a document; None if it has none."""
        return self.use(Located, Located.file_of, path)

    def _checked(self, entry: Entry, document: Any) -> Document | SkippedEntry:
        """Return the document. Raise PluginContractError if it is not a document of this source."""
        if isinstance(document, SkippedEntry):
            return document
        is_document = isinstance(document, Document)
        kind = "" if is_document else f"{type(document).__name__}, expected a Document"
        if problem := kind or _problem(document, entry, self.origin):
            raise PluginContractError(f"{self.name} read {quoted(entry.path)} as {problem}")
        sound: Document = document
        return sound

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Convert errors to WorkspaceError, which affects only this source: the others can be indexed."""
        try:
            with isolated(self.name):
                yield
        except PluginError as error:
            raise WorkspaceError(error.message, hint=error.hint) from error


def _is_sound(item: Any) -> bool:
    """Return whether this is something that a scan may yield, with values of the right types."""
    if isinstance(item, Entry):
        return all(map(isinstance, (item.path, item.size, item.fingerprint), (str, int, str)))
    return isinstance(item, SkippedEntry) and all(map(isinstance, (item.path, item.reason), (str, str)))


def _problem(document: Any, entry: Entry, origin: str) -> str:
    """Return what a document is, if it is none of this source; otherwise an empty string."""
    texts = (document.path, document.text, document.source, document.origin, document.format, *document.heading)
    if not all(isinstance(text, str) for text in (*texts, document.digest)):
        return "a document whose path, text, source, origin, format, heading or digest is not a string"
    if document.origin != origin or document.path != entry.path or not is_path_of(document.path, origin):
        place = f"a document of the origin {quoted(document.origin)} with the path {quoted(document.path)}"
        return f"{place}, not {origin!r} with the entry's path below {origin}/"
    if not isinstance(document.created_at, datetime) or document.created_at.tzinfo is None:
        return "a document whose created_at is not a timezone-aware datetime"
    try:
        check_metadata(document.metadata)
    except KlawError as error:
        return f"a document with wrong metadata: {error.message}"
    try:
        "\0".join(texts).encode()
    except UnicodeEncodeError:
        return "a document that is not valid Unicode (an unpaired surrogate)"
    return ""

"""Decide which index run changes of files require: of these files, of a whole source, or none yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from attrs import define, field
from watchfiles import Change

from klaw_core import KlawError, Memory
from klaw_watch.background import BackgroundIndexer
from klaw_watch.files import FileChange
from klaw_watch.names import CONVERSATION, WATCH
from klaw_watch.roots import Root, changes_rules, files_below, identity_of

#: If more files change at once, whole sources are indexed, which is faster and also finds unreported changes.
MAX_FILES = 2000
_PAGE = 1000


@define(eq=False)
class Backlog:
    """Conversations that have grown by less than the threshold, and the size of each file when it was last indexed."""

    messages: int
    bytes: int
    _sizes: dict[Path, int] = field(factory=dict, init=False)
    _grown: dict[Path, tuple[int, int]] = field(factory=dict, init=False)

    def begin(self, roots: Iterable[Root]) -> None:
        """Treat the current content of files as indexed."""
        if self.messages or self.bytes:
            for root in roots:
                if root.is_conversation:
                    for file in files_below(root.path, MAX_FILES * 10) or ():
                        self._sizes[file] = _size(file)

    def add(self, files: Iterable[Path]) -> list[Path]:
        """Record changed files; return those to be indexed now."""
        if not (self.messages or self.bytes):
            return sorted(files)
        self._grown.update((file, _growth(file, self._sizes.get(file, 0))) for file in files)
        new_bytes, lines = (sum(grown[index] for grown in self._grown.values()) for index in (0, 1))
        if not (0 < self.messages <= lines or 0 < self.bytes <= new_bytes):
            return []
        due = sorted(self._grown)
        self._grown.clear()
        self._sizes.update((file, _size(file)) for file in due)
        return due


@define(eq=False)
class Requests:
    """Converts changes to requests for index runs."""

    memory: Memory
    indexer: BackgroundIndexer
    backlog: Backlog

    def handle(self, changes: Collection[FileChange], roots: Sequence[Root]) -> None:
        """Request the index runs for these changes."""
        if len(changes) > MAX_FILES:  # the kernel's queue may have overflowed and lost other changes
            self.indexer.request(reason=WATCH)
            return
        data_dir = self.memory.config.data_dir
        by_root: dict[Root, set[FileChange]] = {}
        for change, path in changes:
            root = next((root for root in roots if root.relative(path) is not None), None)
            # Ignore files that Klaw itself writes, unless a source has its files in the data directory.
            if root is not None and (not path.is_relative_to(data_dir) or root.path.is_relative_to(data_dir)):
                by_root.setdefault(root, set()).add((change, path))
        for root, found in by_root.items():
            if identity_of(root.path) is not None:  # otherwise it is missing, and its indexed documents stay
                self._handle(root, found)

    def _handle(self, root: Root, changes: set[FileChange]) -> None:
        reason = CONVERSATION if root.is_conversation else WATCH
        # A modified directory means that a file in it has changed, which is reported separately.
        others = [path for change, path in changes if path != root.path or change is not Change.modified]
        whole = any((path == root.path and path.is_dir()) or changes_rules(path) for path in others)
        files = None if whole else self._files(root, changes)
        if files is None:
            self.indexer.request(root.origin, reason=reason)
            return
        due = self.backlog.add(files) if root.is_conversation else sorted(files)
        if due:
            self.indexer.request(paths=due, reason=reason)

    def _files(self, root: Root, changes: Iterable[FileChange]) -> set[Path] | None:
        """Return the changed files, including those in new directories and the indexed ones of deleted directories.

        None if there are too many, or if the source does not list its files.
        """
        files: set[Path] = set()
        for change, path in changes:
            if path.is_dir() and not path.is_symlink():
                below = files_below(path, MAX_FILES) if change is Change.added else []
            elif change is Change.deleted and not path.exists():
                if root.is_conversation:
                    return None
                below = [path, *self._documents_below(root, path)]
            else:
                below = [path]
            if below is None or len(files) > MAX_FILES:
                return None
            files.update(below)
        return files

    def _documents_below(self, root: Root, directory: Path) -> Iterator[Path]:
        """Yield the files of the indexed documents of a deleted directory."""
        relative = root.relative(directory)
        prefix = f"{root.origin}/{relative.as_posix()}/" if relative is not None else ""
        for collection in self._collections(root.origin):
            after = ""
            while prefix and (page := self._page(collection, prefix, after)):
                yield from (root.path / path.removeprefix(f"{root.origin}/") for path in page)
                after = page[-1]

    def _page(self, collection: str, prefix: str, after: str) -> list[str]:
        try:
            found = self.memory.documents(collection=collection, prefix=prefix, after=after, limit=_PAGE)
        except KlawError:  # the store is busy; the next complete run removes the documents
            return []
        return [record.path for record in found]

    def _collections(self, origin: str) -> set[str]:
        return {source.collection for source in self.memory.sources() if source.origin == origin}


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _growth(file: Path, before: int) -> tuple[int, int]:
    """Return the bytes and lines by which a file has grown; its whole size if it has become shorter."""
    try:
        with file.open("rb") as opened:
            start = before if opened.seek(0, 2) >= before else 0
            opened.seek(start)
            new = opened.read()
    except OSError:
        return (0, 0)
    return (len(new), new.count(b"\n"))

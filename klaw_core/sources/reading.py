"""From a result back to its document: the file as it is now, or the text that only the store holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_core.builtin.workspace import Workspace
from klaw_core.errors import NotFoundError
from klaw_core.interfaces.store import Store
from klaw_core.sources.saved import SavedJournal
from klaw_core.values.documents import Entry
from klaw_core.values.lines import count_lines, line_starts, take_lines
from klaw_core.values.runs import Excerpt, SkippedEntry
from klaw_core.values.text import StoredChunk
from klaw_core.values.unicode import has_surrogates

_SHORTEST_ID = 6


@frozen
class Reader:
    """Finds documents by path or chunk id, in these collections and workspaces."""

    store: Store[Any]
    workspaces: Callable[[], Mapping[str, Workspace]]
    collections: Sequence[str]
    journal: SavedJournal

    def get(self, target: str, first_line: int = 1, lines: int | None = None) -> Excerpt:
        """Return lines of a document. ``target`` is a document's path, a file's path, or a chunk's id.

        Raise NotFoundError.
        """
        if first_line < 1 or (lines is not None and lines < 1):
            raise NotFoundError(f"line numbers count from 1, got {first_line}:{lines}")
        path, text, file = self._text_of(target)
        total = count_lines(text)
        if first_line > total:
            raise NotFoundError(f"{path} has {total} lines, there is no line {first_line}")
        last = min(total, first_line + (lines or total) - 1)
        return Excerpt(path, take_lines(text, first_line, lines or total), first_line, last, file)

    def find(self, target: str) -> tuple[str, str]:
        """Return the collection and path of the document that ``target`` names by path or beginning of a chunk's id.

        Raise NotFoundError.
        """
        if not target or has_surrogates(target):
            raise NotFoundError(f"{target!r} is not the path or id of anything")
        looks_like_id = len(target) >= _SHORTEST_ID and set(target) <= set("0123456789abcdef")
        found: set[tuple[str, str]] = set()
        with self.store.read() as snapshot:
            for collection in self.collections:
                if snapshot.outline(collection, target):
                    return collection, target
                if looks_like_id:
                    found |= {(collection, stored.path) for stored in snapshot.find(collection, target)}
        if len(found) == 1:
            return found.pop()
        if found:
            raise NotFoundError(f"{target!r} begins the ids of chunks in {len(found)} documents; give more of it")
        if target in self.workspaces():
            whole = f"`klaw search --path {target}/` looks in it, `klaw forget {target}/` forgets it"
            raise NotFoundError(f"{target} is a whole workspace", hint=whole)
        raise NotFoundError(f"nothing is indexed under {target!r}", hint="`klaw search` shows paths and ids")

    def _text_of(self, target: str) -> tuple[str, str, Path | None]:
        """Return a document's path, its text, and the file it stands in (None for what only the store holds)."""
        file = self._file_of(target)
        if file is None:
            try:
                collection, path = self.find(target)
            except NotFoundError:
                waiting = next((saved for saved in self.journal.read().memories if saved.id == target), None)
                if waiting is None:
                    raise
                return target, waiting.text, None  # it was saved, and is not indexed yet
            file = self._file_of(path)
        if file is None:
            with self.store.read() as snapshot:
                return path, joined(snapshot.outline(collection, path)), None
        workspace, path = file
        document = workspace.read(Entry(path))
        if isinstance(document, SkippedEntry):
            raise NotFoundError(f"{path} {document.reason}")
        return path, document.text, workspace.root / path.partition("/")[2]

    def _file_of(self, target: str) -> tuple[Workspace, str] | None:
        """Return the workspace and the document path of a file that exists, named either way."""
        workspaces = self.workspaces()
        origin, _, relative = target.partition("/")
        if origin in workspaces and workspaces[origin].holds(relative):
            return workspaces[origin], target
        for workspace in workspaces.values():
            found = workspace.locate(target)
            if found is not None:
                return workspace, f"{workspace.origin}/{found}"
        return None


def joined(chunks: Sequence[StoredChunk]) -> str:
    """Put a document's chunks together again, each at its own offset and line; what lay between was white space."""
    text = ""
    for stored in chunks:
        chunk = stored.chunk
        gap = chunk.start - len(text)
        if gap > 0:
            breaks = min(gap, chunk.start_line - len(line_starts(text)))
            text += "\n" * breaks + " " * (gap - breaks)
        text += chunk.text[len(text) - chunk.start :]
    return text

"""The workspaces of the list as sources, and the names that some had before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from glob import escape
from shlex import quote
from typing import TYPE_CHECKING, Any, Self

from attrs import astuple, field, frozen

from klaw_core import Forgetful, Forgettable, Removable, SkippedEntry, Source
from klaw_notes.patterns import comparable
from klaw_notes.walking import Patterns
from klaw_notes.workspace import Workspace

if TYPE_CHECKING:
    from klaw_core import Entry, Store
    from klaw_notes.workspace_list import Workspaces


@frozen(eq=False)
class RememberedWorkspace(Workspace, Forgettable, Forgetful, Removable):
    """A workspace that ``klaw index DIR`` has added. Its notes can be forgotten, and so can all of it."""

    registry: Workspaces = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, workspace: Workspace, registry: Workspaces) -> Self:
        """Return the source of a workspace in the list."""
        return cls(*astuple(workspace, recurse=False), registry=registry)

    def why_left_out(self, path: str, /) -> str:
        """Return why a scan leaves out a document, and how to include it again; empty if the scan finds it."""
        relative = path.removeprefix(f"{self.origin}/")
        reason = super().why_left_out(path)
        pattern = Patterns.of(self.exclude).first(relative)
        if not reason or not pattern:
            return reason
        if comparable(pattern) == comparable(escape(relative)):
            return f"was forgotten: `klaw restore {quote(path)}` restores it"
        return f"{reason}: `klaw workspace exclude {quote(self.origin)} --remove {quote(pattern)}` includes it again"

    def forget(self, paths: Sequence[str], /) -> None:
        """Exclude notes from indexing; their files stay. Raise StoreError."""
        for path in paths:
            self.registry.exclude(self.origin, path.removeprefix(f"{self.origin}/"))

    def forgotten(self, paths: Iterable[str], /) -> Sequence[str]:
        """Return the notes that were excluded after this object was made, or all if the workspace was forgotten."""
        current = self.registry.all().get(self.origin)
        if current is None:
            return list(paths)
        added = Patterns.of(sorted(set(current.exclude) - set(self.exclude)))
        return [path for path in paths if added.match(path.partition("/")[2])] if added.patterns else ()

    def remove(self) -> None:
        """Remove the workspace from the list; its directory stays. Raise StoreError."""
        self.registry.forget(self.origin)


@frozen
class EarlierName(Source):
    """A name of a workspace before a renaming that did not finish: it has no notes now, so a run removes them."""

    origin: str
    collection: str
    registry: Workspaces = field(repr=False)

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return nothing."""
        return ()

    def read(self, entry: Entry, /) -> SkippedEntry:
        """Return that nothing is there."""
        return SkippedEntry(entry.path, "has another name now", keep=False)

    def prepare(self, store: Store[Any], /) -> Sequence[SkippedEntry]:
        """Forget the name, once nothing of it is left in the index."""
        with store.read() as snapshot:
            is_left = bool(snapshot.manifest(self.collection, self.origin))
        if not is_left:
            self.registry.forget_earlier(self.origin)
        return ()

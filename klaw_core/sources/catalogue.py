"""Where the documents of a memory come from: workspaces, configured sources, saved memories, conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from klaw_core.builtin.workspace import Workspace
from klaw_core.conversations.source import CONVERSATIONS, ConversationSource
from klaw_core.errors import WorkspaceError
from klaw_core.sources.saved_source import SavedSource
from klaw_core.sources.workspaces import RESERVED, Workspaces
from klaw_core.values.runs import SkippedEntry
from klaw_core.values.text import COLLECTIONS

if TYPE_CHECKING:
    from pathlib import Path

    from klaw_core.assembly import Assembly
    from klaw_core.conversations.row_sync import RowSync, SyncReport
    from klaw_core.interfaces.source import Source
    from klaw_core.sources.saved import SavedJournal


@frozen
class Sources:
    """The sources of one memory, looked up anew at each call: other programs add to them."""

    assembly: Assembly
    workspaces: Workspaces
    journal: SavedJournal
    row_sync: RowSync

    def all(self) -> Sequence[Source]:
        """Return every source. Raise WorkspaceError if two have one origin: each would remove the other's documents."""
        sources: list[Source] = [*self.assembly.sources, *self.workspaces.all().values()]
        origins = Counter(source.origin for source in sources)
        for origin, count in origins.items():
            if count > 1 or origin in RESERVED:
                raise WorkspaceError(
                    f"{'two sources are' if count > 1 else 'a source is'} called {origin!r}",
                    hint=f"give the one in [[memory.sources]] another name, or `klaw forget {origin}/`",
                )
        if self.journal.path.exists():
            sources.append(SavedSource(self.journal))
        if self.row_sync.journal.root.exists():
            roles = self.assembly.config.conversations.include_roles
            sources.append(ConversationSource(self.row_sync.journal, roles, self.row_sync.redactor))
        return sources

    def of(self, collection: str) -> Sequence[Source]:
        """Return the sources of a collection. Raise WorkspaceError as :meth:`all` does."""
        return [source for source in self.all() if collection_of(source) == collection]

    def configured_workspaces(self) -> Sequence[Workspace]:
        """Return the workspaces of the configuration."""
        return [source for source in self.assembly.sources if isinstance(source, Workspace)]

    def known_workspaces(self) -> dict[str, Workspace]:
        """Return the remembered workspaces and those of the configuration, by name."""
        return {**{source.origin: source for source in self.configured_workspaces()}, **self.workspaces.all()}

    def strays(self) -> set[str]:
        """Return the origins that are indexed though no source of theirs is known any more."""
        with self.assembly.store.read() as snapshot:
            indexed = {origin for name in COLLECTIONS for origin in snapshot.counts(name)}
        return indexed - {*RESERVED, *self.workspaces.all(), *(source.origin for source in self.assembly.sources)}

    def paths(self, origin: str, collection: str) -> list[str]:
        """Return the documents of an origin that are indexed."""
        with self.assembly.store.read() as snapshot:
            return sorted(snapshot.manifest(collection, origin))


def bad_lines(report: SyncReport, root: Path) -> tuple[SkippedEntry, ...]:
    """Return the lines of the journal at ``root`` that hold no message, as what an index run left out."""
    return tuple(
        SkippedEntry(f"{CONVERSATIONS}/{line.file.relative_to(root).as_posix()}@{line.offset}", line.reason, keep=True)
        for line in report.bad
    )


def collection_of(source: Source) -> str:
    """Return the collection a source's documents belong to; only a workspace can choose."""
    return source.collection if isinstance(source, Workspace) else COLLECTIONS[0]

"""What a person has forgotten stays forgotten, also while another process is indexing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path

from attrs import frozen

from klaw_core.builtin.workspace import Workspace
from klaw_core.conversations.source import CONVERSATIONS, ConversationSource
from klaw_core.errors import NotFoundError
from klaw_core.indexing.collection import Collection
from klaw_core.interfaces.source import Source
from klaw_core.sources.catalogue import Sources
from klaw_core.sources.reading import Reader
from klaw_core.sources.saved import SavedJournal
from klaw_core.sources.saved_source import SAVED, SavedSource
from klaw_core.sources.workspaces import Workspaces
from klaw_core.values.runs import ForgetReport, SkippedEntry
from klaw_core.values.text import COLLECTIONS


@frozen(eq=False, repr=False)
class Forgetter:
    """Removes what a person names: from the index first, then from the record of what there is.

    First the index, where another process may hold the lock: a refusal has then changed nothing.
    """

    data_dir: Path
    get_collection: Callable[[str], Collection]
    reader: Reader
    sources: Sources
    workspaces: Workspaces
    journal: SavedJournal

    def forget(self, target: str) -> ForgetReport:
        """Forget a saved memory, a note or a whole workspace (``notes/``). Raise NotFoundError."""
        workspaces = self.workspaces.all()
        name = target.rstrip("/")
        if name != target and name in {*workspaces, *self.sources.strays()}:
            return self._forget_origin(name)
        if name != target and name in {source.origin for source in self.sources.assembly.sources}:
            raise NotFoundError(
                f"{name} is a source in the configuration, which would bring it back",
                hint=f"remove its [[memory.sources]] table, then `klaw forget {name}/`",
            )
        try:
            collection_name, path = self.reader.find(target)
        except NotFoundError:
            if all(saved.id != target for saved in self.journal.read().memories):
                raise
            self.journal.forget(target)  # it was not indexed yet
            return ForgetReport((target,), 0)
        collection = self.get_collection(collection_name)
        origin, _, relative = path.partition("/")
        if origin == CONVERSATIONS:
            raise NotFoundError(
                f"{path} is a day of a conversation, whose file would bring it back",
                hint=f"remove {self.data_dir / path}, then `klaw index`",
            )
        if origin not in {SAVED, *workspaces, *self.sources.strays()}:
            raise NotFoundError(
                f"{path} comes from a source in the configuration, which would bring it back",
                hint=f'add "{relative}" to exclude in its [[memory.sources]] table, then `klaw index`',
            )
        removed = collection.remove([path], forget=True)
        if origin == SAVED:
            self.journal.forget(path)
        elif origin in workspaces:
            self.workspaces.exclude(origin, relative)
        _drop_what_came_back(collection, origin, [path])
        return ForgetReport((path,), removed)

    def _forget_origin(self, origin: str) -> ForgetReport:
        removed, gone = 0, []
        for name in COLLECTIONS:
            paths = self.sources.paths(origin, name)
            removed += self.get_collection(name).remove(paths, forget=True)
            gone += paths
        self.workspaces.forget(origin)
        for name in COLLECTIONS:
            _drop_what_came_back(self.get_collection(name), origin, self.sources.paths(origin, name))
        return ForgetReport(tuple(gone), removed)


def drop_forgotten(collection: Collection, source: Source, workspaces: Workspaces) -> int:
    """Remove what was forgotten after a run over this source had begun; return how many documents that was.

    A run reads its source at its beginning and may write a document after ``forget`` has removed it. So
    ``forget`` removes and then records (an exclusion, a journal without the text), as ``purge`` does by removing the
    files of a chat, and every run ends by looking at the record.
    """
    with collection.store.read() as snapshot:
        indexed = list(snapshot.manifest(collection.name, source.origin))
    gone = _gone(source, indexed, workspaces)
    if gone:
        collection.remove(gone, forget=True)
    return len(gone)


def _drop_what_came_back(collection: Collection, origin: str, paths: Sequence[str]) -> None:
    """Remove what a run has written between the removal of these documents and its being recorded.

    Such a run has looked at the record before there was one.
    """
    with collection.store.read() as snapshot:
        back = [path for path in paths if snapshot.record(collection.name, origin, path) is not None]
    if back:
        collection.remove(back, forget=True)


def _gone(source: Source, indexed: Sequence[str], workspaces: Workspaces) -> list[str]:
    if isinstance(source, (SavedSource, ConversationSource)):
        now = list(source.scan())
        if any(isinstance(item, SkippedEntry) and item.keep for item in now):
            return []  # what cannot be read does not say what is gone
        kept = {item.path for item in now}
        return [path for path in indexed if path not in kept]
    if not isinstance(source, Workspace):
        return []
    current = workspaces.all().get(source.origin)
    if current is None:
        return list(indexed)
    added = set(current.exclude) - set(source.exclude)
    return [path for path in indexed if any(fnmatch(path.partition("/")[2], pattern) for pattern in added)]

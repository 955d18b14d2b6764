"""What a person has forgotten stays forgotten, also while another process is indexing it."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch

from klaw_core.builtin.workspace import Workspace
from klaw_core.collection import Collection
from klaw_core.conversations.source import ConversationSource
from klaw_core.documents import Skipped
from klaw_core.interfaces import Source
from klaw_core.saved_source import SavedSource
from klaw_core.workspaces import Workspaces


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


def drop_what_came_back(collection: Collection, origin: str, paths: Sequence[str]) -> None:
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
        if any(isinstance(item, Skipped) and item.keep for item in now):
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

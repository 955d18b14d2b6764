"""``Memory.workspaces``: the directories of notes that a memory reads, and what changes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from glob import escape
from pathlib import Path, PurePosixPath
from typing import Any

from attrs import frozen

from klaw_core.builtin.workspace import count_kinds
from klaw_core.errors import NotFoundError, WorkspaceError
from klaw_core.indexing.collection import Collection
from klaw_core.indexing.run_counts import ProgressCallback
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.sources.index_runs import IndexRuns, no_progress
from klaw_core.sources.workspaces import Workspaces, is_gone
from klaw_core.values.listings import ListedWorkspace
from klaw_core.values.runs import ForgetReport, IndexReport


@frozen(eq=False, repr=False)
class WorkspaceManager:
    """Lists, renames, removes and restricts workspaces, and takes back notes that were forgotten.

    ``forget`` removes a whole source; ``get_collection`` gives a collection by its name.
    """

    get_registry: Callable[[], Workspaces]
    runs: IndexRuns
    get_collection: Callable[[str], Collection]
    forget: Callable[[str], ForgetReport]

    def list(self) -> tuple[ListedWorkspace, ...]:
        """Return every directory of notes by name, those of the configuration among them. Raise StoreError."""
        counts = self.runs.sources.counts()
        found = [source for source in self.runs.sources.all() if source.root is not None]
        return tuple(_listed(source, counts) for source in sorted(found, key=lambda source: source.origin))

    def unread(self, name: str) -> Mapping[str, int]:
        """Count the files of a workspace whose kind is not read, by the ending of their names, the most first.

        Raise NotFoundError.
        """
        return self.get_registry().named(name).unread()

    def kinds(self, name: str) -> Mapping[str, int]:
        """Count the indexed files of a workspace by the ending of their names, the most first.

        Empty if no converter read any of them. Raise NotFoundError.
        """
        workspace = self.get_registry().named(name)
        converters = self.runs.assembly.converters
        names = [PurePosixPath(path).name for path in self.runs.sources.paths(name, workspace.collection)]
        return count_kinds(names) if any(map(converters.reads, names)) else {}

    def rename(self, name: str, new: str, *, on_progress: ProgressCallback = no_progress) -> IndexReport:
        """Rename a workspace: the paths of its notes start with the new name.

        Its notes are indexed under the new name with the vectors they have. Interrupted, the notes of the old name are
        still found; ``klaw doctor --fix`` removes them. Raise NotFoundError, WorkspaceError if the name is taken or
        the directory is not there, StoreError.
        """
        registry = self.get_registry()
        workspace = registry.named(name)
        if is_gone(workspace.root):
            hint = f"run `klaw index --name {name} DIR` with the present directory of its notes"
            raise WorkspaceError(f"{workspace.root} does not exist", hint=hint)
        taken = [source.origin for source in self.runs.sources.all()]
        registry.rename(name, new, taken=taken)
        report = self.runs.over(self.runs.sources.with_origin(new), on_progress=on_progress, alone=True)
        collection = self.get_collection(workspace.collection)
        collection.remove(self.runs.sources.paths(name, workspace.collection))
        self.runs.skipped.replace(name, ())
        return report

    def remove(self, name: str) -> ForgetReport:
        """Remove a workspace and its documents from the index; its directory stays. Raise NotFoundError, StoreError."""
        self.get_registry().named(name)
        return self.forget(f"{name}/")

    def exclude(
        self, name: str, *patterns: str, remove: Sequence[str] = (), on_progress: ProgressCallback = no_progress
    ) -> IndexReport:
        """Leave files out of a workspace whose path below its root matches a pattern, and take others back.

        ``*`` matches ``/`` as well; a pattern that matches a directory leaves out all of it. Raise NotFoundError for an
        unknown workspace, or a pattern in ``remove`` that it does not have, WorkspaceError, StoreError.
        """
        self.get_registry().change_patterns(name, add=patterns, remove=remove)
        return self.runs.over(self.runs.sources.with_origin(name), on_progress=on_progress, alone=True)

    def restore(self, path: str) -> IndexReport:
        """Restore a forgotten note, and index it. ``path`` is its path in results, or its file.

        Raise NotFoundError if it was not forgotten, or was something other than a note; StoreError.
        """
        registry = self.get_registry()
        name, relative = _split(path, registry)
        workspace = registry.named(name)
        document = f"{name}/{relative}"
        pattern = escape(relative)
        if pattern not in workspace.exclude:
            source = next((item for item in self.runs.sources.all() if item.origin == name), None)
            reason = "" if source is None else source.why_left_out(document)
            raise NotFoundError(f"{document} {reason or 'was not forgotten'}", hint=f"klaw workspace exclude {name}")
        registry.change_patterns(name, remove=[pattern])
        report = self.runs.over_files([workspace.root / relative])
        if not (report.added or report.changed or report.unchanged or report.skipped):
            what = f"{document} is missing now; it will be indexed when the file is back"
            return report + IndexReport(notices=(what,))
        return report


def _split(path: str, registry: Workspaces) -> tuple[str, str]:
    """Return the workspace and the relative path of a note. Raise NotFoundError."""
    known = registry.all()
    name, _, relative = path.partition("/")
    if name in known and relative:
        return name, relative
    if name in {"saved", "documents", "conversations"}:
        hint = "only notes can be restored, because their files are kept"
        raise NotFoundError(f"{path} cannot be restored: its text was deleted when it was forgotten", hint=hint)
    try:
        place = Path(path).expanduser().absolute()
    except (RuntimeError, ValueError):
        place = Path("/")
    for workspace in known.values():
        for root in {workspace.root, workspace.root.resolve()}:
            if place != root and place.is_relative_to(root):
                return workspace.origin, place.relative_to(root).as_posix()
    hint = f"known: {', '.join(known)}" if known else "klaw index DIR"
    raise NotFoundError(f"{path} is in no workspace", hint=hint)


def _listed(source: IsolatedSource, counts: Any) -> ListedWorkspace:
    documents, chunks = counts.get(source.collection, {}).get(source.origin, (0, 0))
    workspace = getattr(source.source, "workspace", source.source)
    root = source.root
    assert root is not None
    return ListedWorkspace(
        source.origin,
        root,
        source.collection,
        source.version,
        tuple(getattr(workspace, "include", ())),
        tuple(getattr(workspace, "exclude", ())),
        documents,
        chunks,
        source.configured,
        not is_gone(root),
    )

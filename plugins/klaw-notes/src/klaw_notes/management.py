"""``Memory.workspaces``: list and change the directories of notes that a memory indexes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from glob import escape
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from klaw_core import Folder, ForgetReport, IndexReport, NotFoundError, RecordError, StoreError, WorkspaceError
from klaw_core.cli.kit import visible
from klaw_core.holds import operations
from klaw_journals import JournalingStore
from klaw_journals.checked_names import check_name
from klaw_notes.patterns import as_patterns, comparable, forms
from klaw_notes.sharing import Sharing, forgotten_notes
from klaw_notes.workspace import Workspace, count_kinds
from klaw_notes.workspace_list import Workspaces, is_gone, problem_of_description

if TYPE_CHECKING:
    from klaw_core.indexing.collection import Collection
    from klaw_core.indexing.run_counts import ProgressCallback
    from klaw_core.plugins.isolation import IsolatedSource
    from klaw_core.sources.index_runs import IndexRuns


@frozen
class ListedWorkspace:
    """A directory of notes. ``include`` are patterns of file names, ``exclude`` of paths below ``root``.

    ``configured``: it is in ``[[memory.sources]]``. ``is_there``: the directory exists. ``trust`` is the class of its
    files. ``descriptions`` say what directories are, by their paths below ``root``; the path of ``root`` is empty.
    ``shared``: this machine shares it with others.
    """

    name: str
    root: Path
    collection: str
    version: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    documents: int
    chunks: int
    configured: bool
    is_there: bool
    trust: str = "owner"
    descriptions: Mapping[str, str] = field(factory=dict)
    shared: bool = False


_MAX_LOOKED_AT = 10_000  # files of a workspace: half a second


def no_progress(_progress: object) -> None:
    """Report nothing."""


@operations
@frozen(eq=False, repr=False)
class WorkspaceManager:
    """Lists, renames, removes and restricts workspaces, and restores forgotten notes.

    ``forget`` removes a whole source; ``get_collection`` returns a collection by name.
    """

    get_registry: Callable[[], Workspaces]
    get_runs: Callable[[], IndexRuns]
    get_collection: Callable[[str], Collection]
    forget: Callable[[str], ForgetReport]

    def list(self) -> tuple[ListedWorkspace, ...]:
        """Return all workspaces, including those of the configuration, sorted by name. Raise StoreError."""
        sources = self.get_runs().sources
        counts = sources.counts()
        found = [source for source in sources.all() if source.root is not None]
        shared = {name for name, each in Sharing(self.get_registry()).shared().items() if each.is_here}
        return tuple(_listed(source, counts, shared) for source in sorted(found, key=lambda source: source.origin))

    def unread(self, name: str) -> Mapping[str, int]:
        """Count a workspace's files of unsupported types by file name extension, the most frequent first.

        Only the first 10,000 files are looked at. Raise NotFoundError.
        """
        for each in self.get_runs().sources.all():
            if each.origin == name and isinstance(each.source, Workspace):  # also one of the configuration
                return each.source.unread(_MAX_LOOKED_AT)
        return self.get_registry().named(name).unread(_MAX_LOOKED_AT)

    def unmatched(self, name: str, include: Sequence[str], exclude: Sequence[str]) -> Sequence[str]:
        """Return a notice on patterns of file names, and of paths, that match nothing in a remembered workspace."""
        workspace = self.get_registry().all().get(name) if include or exclude else None
        if workspace is None:
            return ()
        names, paths = workspace.unmatched(as_patterns(include), as_patterns(exclude))
        return [f"no file in {name} matches {' or '.join(map(repr, [*names, *paths]))}"] if names or paths else ()

    def kinds(self, name: str, *, whole: bool = False) -> Mapping[str, int]:
        """Count a workspace's indexed files by file name extension, the most frequent first.

        The result is empty if no converter reads any of the files, unless ``whole``. Raise NotFoundError.
        """
        registry = self.get_registry()
        workspace = registry.named(name)
        assert registry.converters is not None
        names = [PurePosixPath(path).name for path in self.get_runs().sources.paths(name, workspace.collection)]
        return count_kinds(names) if whole or any(map(registry.converters.reads, names)) else {}

    def rename(self, name: str, new: str, *, on_progress: ProgressCallback = no_progress) -> IndexReport:
        """Rename a workspace: the paths of its notes start with the new name, and their vectors are reused.

        If this is interrupted, search still finds the notes under the old name; the next index run removes those.
        Notes that another machine has indexed under the old name stay.
        Raise NotFoundError, WorkspaceError if the name is taken or the directory does not exist, StoreError.
        """
        registry = self.get_registry()
        workspace = registry.named(name)
        runs = self.get_runs()
        check_name(runs.assembly.config.conversations.redactor, "the name of a workspace", new)
        if is_gone(workspace.root):
            hint = f"run `klaw index --name {quote(name)} DIR` with the current directory of its notes"
            raise WorkspaceError(f"{workspace.root} does not exist", hint=hint)
        sources = runs.sources
        elsewhere = (origin for origin, _ in sources.machines.elsewhere())
        own = (source.origin for source in sources.all() if source.origin not in workspace.earlier)
        taken = [*own, *elsewhere]
        registry.rename(name, new, taken=taken, check=partial(Sharing(registry).refuse_shared, name))
        runs = self.get_runs()  # under the new name
        report = runs.over(runs.sources.with_origin(new), on_progress=on_progress, alone=True)
        runs.skipped.replace(name, ())
        if (other := runs.sources.machines.elsewhere().get((name, workspace.collection))) is not None:
            registry.forget_earlier(name)
            what = f"{name}/ stays indexed, because {other} is indexed under this name"
            return report + IndexReport(notices=(what,))
        self.get_collection(workspace.collection).remove(sources.paths(name, workspace.collection))
        runs.sources.machines.forget(name, [workspace.collection])
        registry.forget_earlier(name)
        return report

    def share(self, name: str, *, on_progress: ProgressCallback = no_progress) -> IndexReport:
        """Share a workspace: its name, its collection and its patterns are the same on all machines that share it.

        ``klaw sync`` tells the others; the notes stay files. If another machine shares it already, this one takes part,
        and its index is updated. Raise NotFoundError, WorkspaceError, StoreError.
        """
        registry, runs = self.get_registry(), self.get_runs()
        if isinstance(runs.assembly.store, JournalingStore):
            raise StoreError("this store is shared by its machines already", hint="klaw index DIR, on each of them")
        sharing = Sharing(registry)
        if not sharing.share(name):
            return IndexReport()
        kept: list[Exception] = []
        sharing.adopt(lambda changed: kept.extend(self._forget_excluded(changed)))
        runs = self.get_runs()
        report = runs.over(runs.sources.with_origin(name), on_progress=on_progress, alone=True)
        told = f"another machine shares {name}: what is excluded there is excluded here"
        return report + IndexReport(notices=(told, *map(str, kept)))

    def _forget_excluded(self, changed: Mapping[str, Sequence[str]]) -> Iterator[Exception]:
        """Forget the notes that match patterns, by the name of their workspace; yield the failures of listeners."""
        known = self.get_registry().all()
        for name, patterns in changed.items():
            if paths := forgotten_notes(name, patterns):
                failure = self.get_runs().remove(paths, known[name].collection)
                if failure is not None:
                    yield failure

    def unshare(self, name: str) -> None:
        """Make a shared workspace private again, on all machines. Raise NotFoundError, StoreError."""
        Sharing(self.get_registry()).unshare(name)

    def remove(self, name: str) -> ForgetReport:
        """Remove a workspace and its documents from the index; its directory stays. Raise NotFoundError, StoreError."""
        self.get_registry().named(name)
        return self.forget(f"{name}/")

    def exclude(
        self, name: str, *patterns: str, remove: Sequence[str] = (), on_progress: ProgressCallback = no_progress
    ) -> IndexReport:
        """Exclude the files of a workspace whose relative path matches a pattern; remove the patterns in ``remove``.

        ``*`` also matches ``/``, and a pattern that matches a directory excludes everything in it. Raise NotFoundError
        if the workspace, or a pattern in ``remove``, is unknown. Raise WorkspaceError, StoreError.
        """
        self.get_registry().change_patterns(name, add=patterns, remove=remove)
        runs = self.get_runs()
        return runs.over(runs.sources.with_origin(name), on_progress=on_progress, alone=True)

    def describe(self, directory: str, text: str | None) -> str:
        """Store what a directory is, which answers show with its results; None removes that.

        ``directory`` is a workspace (``notes``), a path in it (``notes/People``) or a directory. Return its path as in
        results. Raise NotFoundError, WorkspaceError for a directory that is missing or in no workspace, RecordError
        for a text that is empty, too long or has a secret, StoreError.
        """
        registry = self.get_registry()
        if text is not None:
            text = " ".join(text.split())
            if problem := problem_of_description(text):
                raise RecordError(problem, hint=f"klaw workspace describe {quote(directory)} TEXT")
            check_name(self.get_runs().assembly.config.conversations.redactor, "the description of a directory", text)
        name, relative = split_path(directory.rstrip("/"), registry, directory=True)
        relative = "/".join(part for part in relative.split("/") if part not in {"", "."})
        registry.describe(name, relative, text)
        return f"{name}/{relative}".rstrip("/")

    def restore(self, path: str) -> IndexReport:
        """Restore a forgotten note, and index it. ``path`` is its path in results, also as it was shown, or its file.

        Raise NotFoundError if it was not forgotten or is not a note, StoreError.
        """
        registry = self.get_registry()
        name, relative = split_path(path, registry)
        workspace = registry.named(name)
        document = f"{name}/{relative}"
        pattern = escape(relative)
        if comparable(pattern) not in map(comparable, workspace.exclude):
            forgotten = set(map(comparable, forgotten_notes(name, workspace.exclude)))
            alike = [each for each in forgotten if visible(each) == visible(comparable(document))]
            if len(alike) == 1:
                return self.restore(alike[0])
            source = next((item for item in self.get_runs().sources.all() if item.origin == name), None)
            reason = "" if source is None else source.why_left_out(document)
            hint = f"`klaw workspace exclude {quote(name)}` lists the exclude patterns"
            raise NotFoundError(f"{document} {reason or 'was not forgotten'}", hint=hint)
        registry.change_patterns(name, remove=[pattern])
        files = [workspace.root / form for form in forms(relative)]
        report = self.get_runs().over_files([next(filter(Path.is_file, files), files[0])])
        if not (report.added or report.changed or report.unchanged or report.skipped):
            what = f"{document} is missing now; it will be indexed when the file is back"
            return report + IndexReport(notices=(what,))
        return report


def split_path(path: str, registry: Workspaces, *, directory: bool = False) -> tuple[str, str]:
    """Return the workspace and the relative path of a note, or of a directory. Raise NotFoundError."""
    known = registry.all()
    name, _, relative = path.partition("/")
    if name in known and (relative or directory):
        return name, relative
    if name in registry.reserved and not directory:
        hint = "only notes can be restored, because their files are kept"
        raise NotFoundError(f"{path} cannot be restored: its text was deleted when it was forgotten", hint=hint)
    try:
        place = Path(path).expanduser().absolute()
    except (RuntimeError, ValueError):
        place = Path("/")
    for workspace in known.values():
        for root in {workspace.root, workspace.root.resolve()}:
            if (place != root or directory) and place.is_relative_to(root):
                return workspace.origin, "/".join(place.relative_to(root).parts)
    hint = f"known: {', '.join(known)}" if known else "klaw index DIR"
    raise NotFoundError(f"{path} is in no workspace", hint=hint)


def _listed(source: IsolatedSource, counts: Any, shared: Container[str]) -> ListedWorkspace:
    documents, chunks = counts.get(source.collection, {}).get(source.origin, (0, 0))
    workspace, root = source.source, source.root
    own = source.source if isinstance(source.source, Workspace) else None
    assert isinstance(workspace, Folder)
    assert root is not None
    return ListedWorkspace(
        source.origin,
        root,
        source.collection,
        workspace.version,
        tuple(workspace.include),
        tuple(workspace.exclude),
        documents,
        chunks,
        source.configured,
        not is_gone(root),
        "owner" if own is None else own.trust,
        {} if own is None else dict(own.descriptions),
        source.origin in shared and not source.configured,
    )

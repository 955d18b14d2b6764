"""The extension ``workspaces``: directories of notes that ``klaw index DIR`` remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field

from klaw_core import (
    AttachedExtension,
    CheckedExtension,
    ComponentContext,
    Finding,
    Host,
    KlawError,
    RecordError,
    SkippedEntry,
    Source,
    SourcedExtension,
    StatusExtension,
    WorkspaceError,
)
from klaw_journals import ConsentExtension, ImportCounts, Record, check_private, make_private
from klaw_journals.checked_names import check_name
from klaw_notes.remembered import EarlierName, RememberedWorkspace
from klaw_notes.sharing import Sharing, check_declaration, forgotten_notes
from klaw_notes.workspace_list import (
    FILE_NAME,
    Workspaces,
    is_gone,
    parse_workspace,
    workspace_entry,
)
from klaw_notes.workspace_options import can_name

if TYPE_CHECKING:
    from klaw_core import ForgetReport
    from klaw_core.indexing.collection import Collection
    from klaw_core.sources.catalogue import Sources
    from klaw_core.sources.index_runs import IndexRuns
    from klaw_notes.converting import Converters
    from klaw_notes.management import WorkspaceManager
    from klaw_notes.workspace import Workspace

KIND = "workspace"


@define(eq=False)
class WorkspacesExtension(AttachedExtension, SourcedExtension, CheckedExtension, ConsentExtension, StatusExtension):
    """Remembers directories, provides their notes as sources, and exports the list."""

    context: ComponentContext
    origins: Sequence[str] = ()
    record_kinds: Sequence[str] = (KIND,)
    _host: Host | None = field(default=None, init=False)
    _converters: Converters | None = field(default=None, init=False, repr=False)

    name = "workspaces"
    checks_collections = True

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host = host

    @property
    def file(self) -> Path:
        """The file of the list."""
        return self.context.data_dir / FILE_NAME

    @property
    def converters(self) -> Converters:
        """The converters of files."""
        if self._converters is None:
            from klaw_notes.converting import Converters

            self._converters = Converters.of(self.context)
        return self._converters

    @property
    def registry(self) -> Workspaces:
        """The list of workspaces."""
        if self._host is None:
            return Workspaces(self.file)
        return Workspaces(self.file, self._host.reserved_origins(), self.converters)

    @property
    def sharing(self) -> Sharing:
        """The workspaces that several machines share."""
        return Sharing(self.registry)

    def forget_excluded(self, name: str, patterns: Sequence[str], /) -> None:
        """Forget the notes that other machines forgot, with their vectors and words. Raise StoreError."""
        paths = forgotten_notes(name, patterns)
        if paths and self._host is not None:
            self._host.forget(paths)

    def remember(
        self, sources: Sources, directory: str | Path, name: str | None, collection: str, **changes: Any
    ) -> str:
        """Return the name of a directory's workspace; add it if it is new. Options as for ``Workspaces.remember``.

        Raise QueryError for a collection of another extension, RecordError for a name with a secret, WorkspaceError.
        """
        assert self._host is not None
        self._host.check_writable(collection)
        redactor = self._host.config.conversations.redactor
        with suppress(OSError, RuntimeError, ValueError):  # no directory: what remembers it says why
            check_name(redactor, "the name of a workspace", name or Path(directory).resolve().name)
        check_name(redactor, "the name of a collection", collection)
        workspace = self.registry.remember(
            directory,
            name,
            collection=collection,
            configured={source.origin: source.root for source in sources.assembly.sources if source.root is not None},
            elsewhere=sources.machines.free_elsewhere(),
            **changes,
        )
        return workspace.origin

    def manager(
        self,
        get_runs: Callable[[], IndexRuns],
        get_collection: Callable[[str], Collection],
        forget: Callable[[str], ForgetReport],
    ) -> WorkspaceManager:
        """Return what ``Memory.workspaces`` offers."""
        from klaw_notes.management import WorkspaceManager

        return WorkspaceManager(lambda: self.registry, get_runs, get_collection, forget)

    def sources(self) -> Sequence[Source]:
        """Return the remembered workspaces, and names that some had before. Raise StoreError."""
        registry = self.registry
        known = registry.all()
        earlier = {name: each.collection for each in known.values() for name in each.earlier if name not in known}
        return [
            *(RememberedWorkspace.of(workspace, registry) for workspace in known.values()),
            *(EarlierName(name, collection, registry) for name, collection in earlier.items()),
        ]

    def status(self) -> dict[str, int | str]:
        """Return which renamings have not finished, if any; that the list cannot be read is a finding."""
        told = ""
        with suppress(KlawError):
            told = "; ".join(self._unfinished())
        return {"renaming": f"{told}; if none is running: `klaw index`"} if told else {}

    def _unfinished(self) -> Iterator[str]:
        known = self.registry.all()
        for workspace in known.values():
            for name in workspace.earlier:
                if name not in known:  # otherwise the documents are those of another directory now
                    yield f"{name} to {workspace.origin} has not finished"

    def check(self) -> Iterator[Finding]:
        """Check that the list can be read, and only by its owner, and that no renaming was interrupted."""
        yield from check_private([self.file, self.file.with_suffix(".jsonl")])
        try:
            self.registry.all()
        except KlawError as error:
            yield Finding("workspaces", "error", error.message, str(self.file), error.hint)
            return
        for told in self._unfinished():
            yield Finding("workspaces", "warning", f"the renaming of {told}", str(self.file), "klaw index")

    def fix(self, _findings: Sequence[Finding], /) -> None:
        """Make the file private."""
        make_private([self.file, self.file.with_suffix(".jsonl")])

    def records(self) -> Iterator[Record | SkippedEntry]:
        """Yield every workspace. Raise StoreError if the list cannot be read."""
        for workspace in self.registry.all().values():
            yield Record(
                KIND, {"name": workspace.origin, "value": workspace_entry(evolve(workspace, shared=False, earlier=()))}
            )

    def check_record(self, record: Record, /) -> None:
        """Raise RecordError unless this is a workspace, QueryError if its collection belongs to an extension."""
        workspace = _parse(record.value)
        if self._host is not None:
            self._host.check_writable(workspace.collection)

    def check_declaration(self, record: Mapping[str, Any], /) -> None:
        """Raise RecordError unless another machine may have written this record of a shared workspace."""
        check_declaration(record)

    def effect(self, record: Record, /) -> str:
        """Return the directory that would be indexed, or what an existing workspace would exclude. Raise StoreError."""
        workspace = _parse(record.value)
        here = self.registry.all().get(workspace.origin)
        if here is None:
            return f"{workspace.root} would be added as the workspace {workspace.origin!r}"
        new = [pattern for pattern in workspace.exclude if pattern not in here.exclude]
        if here.root != workspace.root or not new:
            return ""
        return f"the workspace {workspace.origin!r} would exclude {', '.join(map(repr, new))}"

    def add(self, records: Iterator[Record], /) -> ImportCounts:
        """Add workspaces. An existing workspace that conflicts with one is not changed."""
        counts = ImportCounts()
        for record in records:
            workspace = _parse(record.value)
            try:
                new = self.registry.merge(workspace)
            except WorkspaceError as error:
                counts += ImportCounts(kept=(error.message,))
                continue
            notices: tuple[str, ...] = ()
            if new and is_gone(workspace.root):
                command = f"`klaw index --name {quote(workspace.origin)} DIR`"
                notices = (f"{workspace.root} is missing: run {command} with the present directory of these notes",)
            counts += ImportCounts(added=int(new), present=int(not new), notices=notices)
        return counts


def _parse(value: Any) -> Workspace:
    try:
        workspace = parse_workspace(value["name"], value["value"])
    except KlawError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"not a workspace: {type(error).__name__}: {error}") from error
    if not workspace.root.is_absolute() or "\0" in str(workspace.root) or not can_name(workspace.origin):
        raise RecordError(
            f"not a workspace: {workspace.origin!r} is not a usable name, or {workspace.root} is not an absolute path"
        )
    return evolve(workspace, shared=False, earlier=())

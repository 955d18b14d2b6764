"""The sources of a memory: those of the configuration and those of extensions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from attrs import frozen

from klaw_core.errors import KlawError, NotFoundError, PluginError, QueryError, WorkspaceError
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.sources.machines import Machines, SharingStore
from klaw_core.values.collections import STANDARD_COLLECTIONS

if TYPE_CHECKING:
    from klaw_core.assembly import Assembly
    from klaw_core.indexing.flow import Indexer
    from klaw_core.interfaces.components import Embedder
    from klaw_core.interfaces.source import Source
    from klaw_core.interfaces.store import Store


@frozen(eq=False)
class OwnedSources:
    """The sources of one extension, and the origins that are reserved for them.

    ``failure`` is the error because of which the extension cannot list its sources. Its origins stay reserved, so
    documents that are indexed under them are not strays. The origins are unknown if the extension is not ``built``.
    ``checked``: the extension has checked their collections (``SourcedExtension.checks_collections``).
    """

    extension: str
    origins: frozenset[str]
    sources: Sequence[Source]
    failure: KlawError | None = None
    built: bool = True
    checked: bool = False


@frozen(eq=False)
class Sources:
    """The sources of one memory, listed once for one call of it, because other programs may add sources.

    ``get_owned`` lists the sources of the extensions. Methods raise the errors of an extension whose files cannot be
    read.
    """

    assembly: Assembly
    get_owned: Callable[[], Sequence[OwnedSources]]

    def again(self) -> Sources:
        """Return the sources as they are now, for a step that follows a long one."""
        return Sources(self.assembly, self.get_owned)

    @cached_property
    def owned(self) -> Sequence[OwnedSources]:
        """The sources of each extension."""
        return self.get_owned()

    @cached_property
    def known(self) -> Sequence[IsolatedSource]:
        """Every source, the configured ones first, without a check for conflicts."""
        owned = (IsolatedSource.of(source, row.extension) for row in self.owned for source in row.sources)
        return [*self.assembly.sources, *owned]

    @cached_property
    def reserved(self) -> frozenset[str]:
        """The origins that are reserved for extensions."""
        return frozenset(origin for row in self.owned for origin in row.origins)

    def all(self) -> Sequence[IsolatedSource]:
        """Return every source, the configured ones first.

        Raise WorkspaceError if two sources of a collection have the same origin, because each would remove the other's
        documents, or if a source uses an origin or a collection that belongs to an extension.
        """
        owner = {origin: row.extension for row in self.owned for origin in row.origins}
        checked = {row.extension for row in self.owned if row.checked}
        for source in self.known:
            _refuse_origin(source, owner)
            if source.configured or source.owner not in checked:
                self._refuse_collection(source)
        for (origin, _), count in Counter((source.origin, source.collection) for source in self.known).items():
            if count > 1:
                raise WorkspaceError(
                    f"two sources have the name {origin!r}",
                    hint=f"give the one in [[memory.sources]] another name, or `klaw forget {quote(origin)}/`",
                )
        return self.known

    def _refuse_collection(self, source: IsolatedSource) -> None:
        try:
            self.assembly.registry.check_writable(source.collection, "" if source.configured else source.owner)
        except QueryError as error:
            hint = "give it another `collection` in [[memory.sources]]" if source.configured else "klaw plugins"
            raise WorkspaceError(f"the source {source.origin!r} is not indexed: {error.message}", hint=hint) from error

    def watch_paths(self) -> Mapping[str, Sequence[Path]]:
        """Return the files and directories to watch for changes, by origin."""
        found: dict[str, list[Path]] = {}
        for source in self.all():
            with source.guarded():
                paths = tuple(source.source.watch_paths())
            if paths:
                found.setdefault(source.origin, []).extend(paths)
        return found

    def failures(self) -> Mapping[str, KlawError]:
        """Return the errors of extensions that cannot list their sources, by extension."""
        return {row.extension: row.failure for row in self.owned if row.failure is not None and row.built}

    def broken(self) -> Sequence[str]:
        """Return the extensions and plugins that do not work, each with the reason; they may have unknown sources."""
        extensions = (f"extension {row.extension}: {row.failure}" for row in self.owned if not row.built)
        plugins = (
            f"plugin {item.name}: {item.problem}" for item in self.assembly.registry.whole.plugins if item.problem
        )
        return [*extensions, *plugins]

    def complete(self) -> Sequence[IsolatedSource]:
        """Return every source, for operations that drop the documents of all other sources.

        Raise the errors of :meth:`all`. Raise PluginError if an extension cannot list its sources, or if an indexed
        origin has no known source while a plugin or extension, to which it may belong, does not work.
        """
        for failure in self.failures().values():
            raise failure
        if (broken := self.broken()) and (strays := self.strays()):
            names = ", ".join(f"{name}/" for name in sorted(strays))
            raise PluginError(
                f"{names} would leave the index, but may belong to a plugin or extension that does not work: "
                f"{'; '.join(broken)}",
                hint=f"`klaw plugins`; or, to delete its documents, `klaw forget {quote(min(strays))}/`",
            )
        return self.all()

    def of(self, collection: str) -> Sequence[IsolatedSource]:
        """Return the sources of a collection. Raise the errors of :meth:`all`."""
        return [source for source in self.all() if source.collection == collection]

    def with_origin(self, origin: str) -> Sequence[IsolatedSource]:
        """Return the sources of an origin, one for each collection.

        Raise NotFoundError if there is none, PluginError if its extension cannot list its sources.
        """
        sources = self.all()
        for row in self.owned:
            if row.failure is not None and origin in row.origins:
                raise row.failure
        found = [source for source in sources if source.origin == origin]
        if not found:
            known = ", ".join(dict.fromkeys(source.origin for source in sources)) or "none"
            raise NotFoundError(f"unknown source {origin!r}", hint=f"known: {known}")
        return found

    def collections(self) -> Sequence[str]:
        """Return every collection: the standard ones, those in the store, and those that sources name."""
        with self.assembly.store.read() as snapshot:
            held = snapshot.collections()
        named = (source.collection for source in self.all())
        return [*STANDARD_COLLECTIONS, *sorted({*held, *named} - set(STANDARD_COLLECTIONS))]

    def strays(self) -> set[str]:
        """Return the origins of indexed documents that no longer have a source and are not reserved."""
        elsewhere = (origin for origin, _ in self.machines.elsewhere())
        known = {*self.reserved, *(source.origin for source in self.all()), *elsewhere}
        return {origin for by_origin in self.counts().values() for origin in by_origin} - known

    @cached_property
    def machines(self) -> Machines:
        """The machines that index these and other sources of the store."""
        store = self.assembly.store
        return store.machines(self) if isinstance(store, SharingStore) else Machines()

    def indexer(
        self, source: IsolatedSource, *, store: Store[Any] | None = None, embedder: Embedder | None = None
    ) -> Indexer:
        """Return the indexer of a source, after recording that this machine indexes it.

        Everything that writes or removes documents of a source gets its indexer here, so that no way leads around the
        records. Other parameters as for ``Assembly.indexer``. Raise WorkspaceError if another machine uses its name for
        other notes, StoreError.
        """
        self.machines.claim(source)
        return self.assembly.indexer(source.collection, store=store, embedder=embedder)

    def counts(self) -> Mapping[str, Mapping[str, tuple[int, int]]]:
        """Return (documents, chunks) by collection and origin."""
        with self.assembly.store.read() as snapshot:
            return {name: snapshot.counts(name) for name in snapshot.collections()}

    def paths(self, origin: str, collection: str) -> list[str]:
        """Return the indexed documents of an origin."""
        with self.assembly.store.read() as snapshot:
            return sorted(snapshot.manifest(collection, origin))


def _refuse_origin(source: IsolatedSource, owner: Mapping[str, str]) -> None:
    belongs_to = owner.get(source.origin)
    if belongs_to is not None and (source.configured or source.owner != belongs_to):
        raise WorkspaceError(
            f"a source is named {source.origin!r}, but the extension {belongs_to!r} uses that name",
            hint="give the one in [[memory.sources]] another name",
        )

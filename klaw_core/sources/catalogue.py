"""The sources of a memory: those of the configuration and those of extensions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from attrs import frozen

from klaw_core.errors import KlawError, NotFoundError, PluginError, QueryError, WorkspaceError
from klaw_core.interfaces.sharing import SharedSource, SharedSources, SharingStore
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.values.collections import STANDARD_COLLECTIONS

if TYPE_CHECKING:
    from klaw_core.assembly import Assembly
    from klaw_core.indexing.flow import Indexer
    from klaw_core.interfaces.components import Embedder
    from klaw_core.interfaces.source import Source
    from klaw_core.interfaces.store import Store

# Files that are compared to decide whether two directories have the same notes.
_MAX_COMPARED_PATHS = 1000


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
        known = {*self.reserved, *(source.origin for source in self.all()), *self.elsewhere()}
        return {origin for by_origin in self.counts().values() for origin in by_origin} - known

    @property
    def shared(self) -> SharedSources:
        """The records of which machine indexes which source."""
        store = self.assembly.store
        if not isinstance(store, SharingStore):
            return SharedSources()
        return store.shared_sources(self.assembly.config.data_dir, self._has_notes)

    def _has_notes(self, held: SharedSource, root: Path) -> bool:
        """Return whether a directory has at least half of the files that are indexed under a record's name.

        Two machines often have different notes in directories with the same path, such as /root/notes.
        """
        paths = self.paths(held.origin, held.collection)
        compared = paths[:: len(paths) // _MAX_COMPARED_PATHS + 1]
        own = (os.path.join(root, path.removeprefix(f"{held.origin}/")) for path in compared)  # noqa: PTH118  # fast
        return 2 * sum(map(os.path.exists, own)) >= len(compared)

    def free_elsewhere(self) -> Mapping[str, Collection[str]]:
        """Return the names that other machines use, with the directories of this machine that have the same notes."""
        free: dict[str, list[str]] = {}
        for name, each in self.elsewhere().items():
            # The list of indexed files is long, so it is read only for directories that exist here.
            here = (one for one in each if one.directory and Path(one.directory).is_dir())
            free[name] = [one.directory for one in here if self._has_notes(one, Path(one.directory))]
        return free

    def elsewhere(self) -> Mapping[str, Sequence[SharedSource]]:
        """Return the sources that other machines index in the same store, and this one does not, by origin.

        A source of this machine whose name another machine uses for other notes is one of them.
        """
        found: dict[str, list[SharedSource]] = {}
        others = list(self.shared.elsewhere())
        here = {(source.origin, source.collection) for source in self.own(self.all())} if others else set()
        for shared in others:
            if (shared.origin, shared.collection) not in here:
                found.setdefault(shared.origin, []).append(shared)
        return found

    def own(self, sources: Sequence[IsolatedSource]) -> Sequence[IsolatedSource]:
        """Return those of some sources that this machine may index. Raise StoreError."""
        return [source for source in sources if self.problem(source) is None]

    def origins(self, collection: str) -> set[str]:
        """Return the origins whose documents a collection may hold: those of its sources, here or elsewhere."""
        shared = (one.origin for each in self.elsewhere().values() for one in each if one.collection == collection)
        return {*(source.origin for source in self.of(collection)), *shared}

    def not_here(self) -> Sequence[tuple[str, str]]:
        """Return the (origin, collection) of documents that belong, or may belong, to other machines."""
        recorded = {(one.origin, one.collection) for each in self.elsewhere().values() for one in each}
        found = {(origin, name) for name in self.collections() for origin in self.unrecorded(name)}
        return sorted(recorded | found)

    def unrecorded(self, collection: str) -> set[str]:
        """Return the indexed origins without a source that no machine has recorded; none in a store of one machine.

        They may belong to a machine whose version of Klaw records nothing yet, or to an extension that only other
        machines have, so only `klaw forget` removes their documents.
        """
        if not self.shared.are_recorded:
            return set()
        recorded = {one.origin for one in self.shared.all().values() if one.collection == collection}
        with self.assembly.store.read() as snapshot:
            indexed = set(snapshot.counts(collection))
        return indexed - recorded - self.origins(collection) - self.reserved

    def forget_records(self, origin: str, collections: Sequence[str]) -> None:
        """Remove the records of which machines index an origin in these collections, so that its name is free."""
        found = self.shared.all().values()
        self.shared.remove(one for one in found if one.origin == origin and one.collection in collections)

    def indexer(
        self, source: IsolatedSource, *, store: Store[Any] | None = None, embedder: Embedder | None = None
    ) -> Indexer:
        """Return the indexer of a source, after recording that this machine indexes it.

        Everything that writes or removes documents of a source gets its indexer here, so that no way leads around the
        records. The sources of an extension with a reserved origin are those of all machines. Other parameters as for
        ``Assembly.indexer``. Raise WorkspaceError if another machine uses its name for other notes, StoreError.
        """
        shared = self.shared
        if shared.are_recorded and source.origin not in self.reserved:
            shared.claim(source.origin, source.collection, source.root)
        return self.assembly.indexer(source.collection, store=store, embedder=embedder)

    def problem(self, source: IsolatedSource) -> KlawError | None:
        """Return why this machine may not index a source, None if it may. Raise StoreError."""
        shared = self.shared
        if not shared.are_recorded or source.origin in self.reserved:
            return None
        return shared.problem(source.origin, source.collection, source.root)

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

"""What a person has forgotten stays forgotten, also while another process is indexing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from attrs import define, field, frozen

from klaw_core.errors import NotFoundError
from klaw_core.indexing.collection import Collection
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.sources.catalogue import Sources
from klaw_core.sources.reading import Reader
from klaw_core.values.runs import ForgetReport


@frozen(eq=False, repr=False)
class Forgetter:
    """Removes what a person names: from the index first, then from what its source keeps.

    First the index, where another process may hold the lock: a refusal has then changed nothing.
    """

    get_collection: Callable[[str], Collection]
    reader: Reader
    sources: Sources

    def forget(self, target: str) -> ForgetReport:
        """Forget a document (by path or chunk id), a part of one (a message), or a whole source (``notes/``).

        Raise NotFoundError, QueryError.
        """
        sources = self.sources.all()
        name = target.rstrip("/")
        if name != target:
            own = [source for source in sources if source.origin == name]
            if any(source.can_remove for source in own) or name in self.sources.strays():
                return self._forget_origin(name, own)
            if any(source.configured for source in own):
                raise NotFoundError(
                    f"{name} is a source in the configuration, so the next `klaw index` would add it again",
                    hint=f"remove its [[memory.sources]] table, then `klaw forget {name}/`",
                )
        try:
            collection, path, origin = self.reader.locate(target, unique=True)
        except NotFoundError:
            for source in sources:
                if (report := source.forget_part(target)) is not None:
                    return report
            waiting = self.reader.waiting(target)
            if waiting is None or not waiting.can_forget:
                raise
            # It was not indexed yet, or no chunk of it can be read; and an index in the making may have its vectors.
            home = self.get_collection(waiting.collection)
            home.remove([target], forget=True)
            waiting.forget([target])
            self.sources.assembly.converters.forget([target])
            drop_what_came_back(home, waiting.origin, [target])
            return ForgetReport((target,), 0)
        found = [source for source in sources if (source.origin, source.collection) == (origin, collection)]
        if found and not found[0].can_forget:
            message, hint = found[0].why_not_forgotten(path)
            raise NotFoundError(message, hint=hint)
        removed = self.get_collection(collection).remove([path], forget=True)
        for source in found:
            source.forget([path])
        self.sources.assembly.converters.forget([path])
        drop_what_came_back(self.get_collection(collection), origin, [path])
        return ForgetReport((path,), removed)

    def _forget_origin(self, origin: str, own: Sequence[IsolatedSource]) -> ForgetReport:
        removed, gone = 0, []
        collections = self.sources.collections()
        for name in collections:
            paths = self.sources.paths(origin, name)
            removed += self.get_collection(name).remove(paths, forget=True)
            gone += paths
        for source in own:
            source.remove()
        self.sources.assembly.converters.keep_only(origin, tuple)
        for name in collections:
            drop_what_came_back(self.get_collection(name), origin, self.sources.paths(origin, name))
        return ForgetReport(tuple(gone), removed)


def drop_forgotten(collection: Collection, source: IsolatedSource) -> int:
    """Remove what was forgotten after a run over this source had begun; return how many documents that was.

    A run reads its source at its beginning and may write a document after ``forget`` has removed it. So ``forget``
    first removes the document and then records that it was forgotten, and every run ends by asking for the record.
    """
    gone = source.forgotten(_IndexedPaths(collection, source.origin))
    if gone:
        collection.remove(gone, forget=True)
    return len(gone)


@define(eq=False)
class _IndexedPaths(Sequence[str]):
    """The documents of an origin that are indexed now; read when somebody looks, since mostly nothing was forgotten."""

    collection: Collection
    origin: str
    _read: list[str] | None = field(default=None, init=False)

    def _paths(self) -> list[str]:
        if self._read is None:
            with self.collection.store.read() as snapshot:
                self._read = list(snapshot.manifest(self.collection.name, self.origin))
        return self._read

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self._paths()[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths())

    def __len__(self) -> int:
        return len(self._paths())


def drop_what_came_back(collection: Collection, origin: str, paths: Sequence[str]) -> None:
    """Remove what a run has written between the removal of these documents and its being recorded.

    Such a run has looked at the record before there was one.
    """
    with collection.store.read() as snapshot:
        back = [path for path in paths if snapshot.record(collection.name, origin, path) is not None]
    if back:
        collection.remove(back, forget=True)
    collection.forget_cached(paths)

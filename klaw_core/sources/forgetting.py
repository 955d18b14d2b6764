"""Forget documents permanently, even while another process is indexing them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from shlex import quote
from typing import TypeAlias, overload

from attrs import define, field, frozen

from klaw_core.errors import NotFoundError
from klaw_core.indexing.collection import Collection
from klaw_core.interfaces.source import Divisible, Forgetful, Forgettable, Removable
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.sources.catalogue import Sources
from klaw_core.sources.reading import Reader
from klaw_core.values.runs import ForgetReport

#: Returns which of some paths to remove.
_Choice: TypeAlias = Callable[[Sequence[str]], Sequence[str]]


@frozen(eq=False, repr=False)
class Forgetter:
    """Removes a document, a part or a whole source: first from the index, then from the source's own files.

    The index comes first, because another process may hold its lock. If so, the command fails with nothing changed.
    """

    get_collection: Callable[[str], Collection]
    reader: Reader
    sources: Sources

    def forget(self, target: str) -> ForgetReport:
        """Forget a document (by path or chunk id), a part of a document (a message), or a whole source (``notes/``).

        If another machine uses the name of a source for other notes, only the source is removed, and those notes stay.
        A single note of another machine cannot be forgotten here, because its file is there. Raise NotFoundError,
        QueryError.
        """
        sources = self.sources.all()
        name = target.rstrip("/")
        if name != target:
            own = [source for source in sources if source.origin == name]
            elsewhere = (origin for origin, _ in self.sources.machines.elsewhere())
            if any(source.can(Removable) for source in own) or name in {*self.sources.strays(), *elsewhere}:
                return self._forget_origin(name, own)
            if any(source.configured for source in own):
                raise NotFoundError(
                    f"{name} is a source in the configuration, so the next `klaw index` would add it again",
                    hint=f"remove its [[memory.sources]] table, then `klaw forget {quote(name)}/`",
                )
        try:
            collection, path, origin = self.reader.locate(target, unique=True)
        except NotFoundError:
            for source in sources:
                report = source.use(Divisible, Divisible.forget_part, target)
                if report is not None:
                    return report
            waiting = self.reader.waiting(target)
            if waiting is None or not waiting.can(Forgettable):
                raise
            # The document is not indexed yet, or none of its chunks can be read. A running rebuild may already have
            # cached its vectors, so it is removed from the collection too.
            collection_of_source = self.get_collection(waiting.collection)
            collection_of_source.remove([target], forget=True)
            waiting.use(Forgettable, Forgettable.forget, [target])
            self.sources.assembly.copies.drop([target])
            drop_indexed_again(collection_of_source, waiting.origin, [target], waiting.still_forgotten)
            return ForgetReport((target,), 0)
        self.sources.machines.check_own(path, origin, collection)
        found = [source for source in sources if (source.origin, source.collection) == (origin, collection)]
        if found and not found[0].can(Forgettable):
            raise _cannot_forget(found[0], path)
        removed = self.get_collection(collection).remove([path], forget=True).chunks
        still_forgotten: _Choice = _all
        for source in found:  # at most one
            source.use(Forgettable, Forgettable.forget, [path])
            still_forgotten = source.still_forgotten
        self.sources.assembly.copies.drop([path])
        drop_indexed_again(self.get_collection(collection), origin, [path], still_forgotten)
        return ForgetReport((path,), removed)

    def _forget_origin(self, origin: str, own: Sequence[IsolatedSource]) -> ForgetReport:
        removed, gone = 0, []
        taken = {name for other, name in self.sources.machines.elsewhere() if other == origin} if own else set()
        # If other machines use the name of a source, only the collections of its other sources have own documents.
        collections = sorted({source.collection for source in own} - taken) if taken else self.sources.collections()
        for name in collections:
            paths = self.sources.paths(origin, name)
            removed += self.get_collection(name).remove(paths, forget=True).chunks
            gone += paths
        for source in own:
            source.use(Removable, Removable.remove)
        self.sources.machines.forget(origin, collections)
        self.sources.assembly.copies.keep_only(origin, tuple)
        still_forgotten = {source.collection: source.still_forgotten for source in own}
        for name in collections:
            paths = self.sources.paths(origin, name)
            drop_indexed_again(self.get_collection(name), origin, paths, still_forgotten.get(name, _all))
        return ForgetReport(tuple(gone), removed)


def drop_forgotten(collection: Collection, source: IsolatedSource) -> int:
    """Remove the documents that were forgotten while this source was being indexed; return their number.

    An index run reads its source at the start and may write a document after ``forget`` has removed it. Therefore
    ``forget`` removes the document first and then records it as forgotten, and every run ends with a look at the
    records. The source is asked again in the transaction that removes: a document that was saved between its look at
    its records and at the index is in the index but was not forgotten.
    """
    indexed = _IndexedPaths(collection, source.origin)
    gone = source.use(Forgetful, Forgetful.forgotten, indexed) or ()
    if not gone:
        return 0
    return len(collection.remove(gone, forget=True, only=source.still_forgotten).paths)


@define(eq=False)
class _IndexedPaths(Sequence[str]):
    """The indexed documents of an origin, read on first use, because not every source needs them."""

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


def _cannot_forget(source: IsolatedSource, path: str) -> NotFoundError:
    """Return why a document of this source cannot be forgotten, and what to do instead."""
    with source.guarded():
        if (told := source.source.why_not_forgotten(path)) is not None:
            return NotFoundError(str(told[0]), hint=str(told[1]))
    where = "the configuration" if source.configured else f"the source {source.origin!r}"
    relative = path.removeprefix(f"{source.origin}/")
    return NotFoundError(
        f"{path} comes from {where}, so the next `klaw index` would add it again",
        hint=f"remove {relative!r} where it comes from, then `klaw index`",
    )


def _all(paths: Sequence[str]) -> Sequence[str]:
    return paths


def drop_indexed_again(collection: Collection, origin: str, paths: Sequence[str], still_forgotten: _Choice) -> None:
    """Remove forgotten documents that an index run has written again.

    This happens if a run writes a document after it was removed, and ends before it was recorded as forgotten.
    ``still_forgotten`` is called in the transaction that removes: what was saved again since then stays.
    """
    with collection.store.read() as snapshot:
        again = [path for path in paths if snapshot.record(collection.name, origin, path) is not None]
    if again:
        collection.remove(again, forget=True, only=still_forgotten)
    collection.forget_cached(paths)

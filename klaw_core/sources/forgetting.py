"""Forget documents permanently, even while another process is indexing them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from shlex import quote

from attrs import frozen

from klaw_core.errors import NotFoundError
from klaw_core.indexing.collection import Collection
from klaw_core.interfaces.source import Divisible, Forgetful, Forgettable, Removable
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.sources.catalogue import Sources
from klaw_core.sources.reading import Reader
from klaw_core.values.runs import ForgetReport


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
            return self._forget_document(waiting.collection, target, waiting)
        self.sources.machines.check_own(path, origin, collection)
        owner = next((each for each in sources if (each.origin, each.collection) == (origin, collection)), None)
        if owner is not None and not owner.can(Forgettable):
            raise _cannot_forget(owner, path)
        return self._forget_document(collection, path, owner)

    def _forget_document(self, name: str, path: str, source: IsolatedSource | None) -> ForgetReport:
        """Forget a document of a collection, and of its source, if it still has one.

        It may not be indexed yet, or none of its chunks may be readable. It is removed from the collection all the
        same, because a running rebuild may already have cached its vectors.
        """
        collection = self.get_collection(name)
        removed = collection.remove([path], forget=True)
        if source is not None:
            source.use(Forgettable, Forgettable.forget, [path])
        self.sources.assembly.copies.drop([path])
        drop_indexed_again(collection, [path], source)
        return ForgetReport((path,), removed.chunks)

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
        sources = {source.collection: source for source in own}
        for name in collections:
            drop_indexed_again(self.get_collection(name), self.sources.paths(origin, name), sources.get(name))
        return ForgetReport(tuple(gone), removed)


def drop_forgotten(collection: Collection, source: IsolatedSource) -> int:
    """Remove the documents that were forgotten while this source was being indexed; return their number.

    An index run reads its source at the start and may write a document after ``forget`` has removed it. Therefore
    ``forget`` removes the document first and then records it as forgotten, and every run ends with a look at the
    records. The source is asked again in the transaction that removes: a document that was saved between its look at
    its records and at the index is in the index but was not forgotten.
    """
    gone = source.use(Forgetful, Forgetful.forgotten, indexed_paths(collection, source.origin))
    return len(collection.remove(gone, forget=True, only=source.still_forgotten).paths) if gone else 0


def indexed_paths(collection: Collection, origin: str) -> Iterator[str]:
    """Yield the indexed documents of an origin. They are read when the first is asked for: not every source asks."""
    with collection.store.read() as snapshot:
        paths = list(snapshot.manifest(collection.name, origin))
    yield from paths


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


def drop_indexed_again(collection: Collection, paths: Sequence[str], source: IsolatedSource | None) -> None:
    """Remove forgotten documents that an index run has written again, and vectors that a rebuild has cached of them.

    This happens if a run writes a document after it was removed, and ends before it was recorded as forgotten. The
    source is asked in the transaction that removes: what was saved again since then stays.
    """
    with collection.store.read() as snapshot:
        again = [path for path in paths if snapshot.record(collection.name, path.partition("/")[0], path) is not None]
    if again:
        collection.remove(again, forget=True, only=(lambda found: found) if source is None else source.still_forgotten)
    collection.forget_cached(paths)

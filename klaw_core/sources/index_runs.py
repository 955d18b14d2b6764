"""Index runs over the sources of a memory: write changed documents, then embed the chunks without vectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from shlex import quote

from attrs import define, evolve, field, frozen

from klaw_core.assembly import Assembly
from klaw_core.embedding.run import EmbeddingRun
from klaw_core.errors import KlawError, NotFoundError, PluginContractError, StoreError, WorkspaceError, quoted
from klaw_core.files.layout import DataDirectory
from klaw_core.indexing.flow import Indexer
from klaw_core.indexing.run_counts import ProgressCallback
from klaw_core.indexing.turns import turn_to_embed
from klaw_core.interfaces.source import Located
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.sources.catalogue import Sources
from klaw_core.sources.forgetting import drop_forgotten
from klaw_core.sources.skipped import SkippedFiles
from klaw_core.values.collections import MEMORY
from klaw_core.values.documents import Document, Entry, is_path_of
from klaw_core.values.events import Event, ForgetEvent, IndexEvent
from klaw_core.values.runs import ForgetReport, IndexReport, SkippedEntry

# Chunks to embed before a search. The user is waiting, so the rest is left to `klaw embed` or the next index run.
_MAX_EMBEDDED_BEFORE_SEARCH = 64


def no_progress(_progress: object) -> None:
    """Report nothing."""


@frozen
class _LastRun:
    """The state of a source and its index after a complete run, and the number of its documents."""

    state: Hashable
    documents: int


@frozen(eq=False)
class IndexRuns:
    """Brings the index of a memory up to date. ``emit`` is called with an event when a run ends."""

    assembly: Assembly
    sources: Sources
    emit: Callable[[Event], None]
    #: What the last complete run of this process found, by origin and collection.
    _last: dict[tuple[str, str], _LastRun] = field(factory=dict, init=False, repr=False)

    def over(
        self,
        sources: Sequence[IsolatedSource],
        *,
        force: bool = False,
        verify: bool = False,
        embed: bool = True,
        on_progress: ProgressCallback = no_progress,
        alone: bool = False,
    ) -> IndexReport:
        """Bring the index up to date with these sources. For ``force`` and ``verify`` see ``Indexer.write``.

        A source that fails, such as one on a missing drive, is reported as skipped, and the others are still indexed.
        With ``alone`` its WorkspaceError is raised instead. Raise StoreError.
        """
        run = EmbeddingRun(stopped=not embed)
        report = IndexReport()
        for source in sources:
            try:
                written = self._write(source, run, force=force, verify=verify, on_progress=on_progress)
                if source.root is not None:
                    self.skipped.replace(source.origin, written.skipped)
                report += written
            except WorkspaceError as error:
                if alone:
                    raise
                report += IndexReport(skipped=(SkippedEntry(source.origin, str(error), keep=True),))
        if not alone:
            failures = self.sources.failures().items()
            report += IndexReport(skipped=tuple(SkippedEntry(name, str(error), keep=True) for name, error in failures))
        collections = tuple(dict.fromkeys(source.collection for source in sources))
        report = self.finish(report, run, collections, on_progress, patient=_has_work(run)) + self._limitations()
        with suppress(StoreError):  # a rebuild is running, or the store cannot be written
            self.assembly.store.tidy()
        origins = tuple(dict.fromkeys(source.origin for source in sources))
        self.emit(IndexEvent(report, origins, "forced" if force else ""))
        return report

    def refresh(self, collections: Sequence[str]) -> tuple[str, ...]:
        """Bring collections up to date before a search; return the problems as messages, without raising them.

        This does not wait for other processes and embeds few chunks; keyword search finds all new text at once.
        """
        run = EmbeddingRun()
        report = IndexReport()
        failures: list[str] = []
        try:
            sources = [source for source in self.sources.all() if source.collection in collections]
        except KlawError as error:
            return (f"the index may be out of date: {error}",)
        for source in sources:
            try:
                written = self._write(source, run, on_progress=no_progress)
            except KlawError as error:
                failures.append(f"{source.origin} may be out of date: {error}")
                continue
            if source.root is not None:
                self.skipped.replace(source.origin, written.skipped)
            report += written
        if report.added or report.changed or report.removed:
            try:
                report = self.finish(report, run, collections, no_progress, _MAX_EMBEDDED_BEFORE_SEARCH, patient=False)
            except KlawError as error:
                failures.append(f"new text is found by words alone: {error}")
            self.emit(IndexEvent(report, tuple(dict.fromkeys(source.origin for source in sources)), "search"))
        if report.lacking:
            failures.append(f"{report.lacking:,} chunks are found by words alone: run `klaw embed`")
        return tuple(failures)

    def over_files(
        self,
        paths: Iterable[str | Path],
        *,
        force: bool = False,
        embed: bool = True,
        on_progress: ProgressCallback = no_progress,
    ) -> IndexReport:
        """Bring the index up to date with single files of known sources; ``force`` chunks each again.

        A file that was deleted or is excluded is removed from the index; if it still exists, the report says why. A
        source that cannot map files to documents is indexed as a whole. A source whose name another machine uses is
        reported as skipped. Raise NotFoundError if a path is not in the directory of a source, StoreError.
        """
        run = EmbeddingRun(stopped=not embed)
        report = IndexReport()
        by_source = self._files_by_source(paths)
        for source, named in by_source.items():
            if (problem := self.sources.problem(source)) is not None:
                report += IndexReport(skipped=(SkippedEntry(source.origin, str(problem), keep=True),))
                continue
            if not source.can(Located):  # the source cannot map files to documents
                report += self._write(source, run, force=force, on_progress=on_progress)
                continue
            indexer = self.sources.indexer(source)
            written = indexer.write_entries(
                source, named.found, named.missing, run, force=force, on_progress=on_progress
            )
            written += IndexReport(skipped=tuple(named.left_out))
            if source.root is not None:
                documents = [*(entry.path for entry in named.found), *named.missing]
                unreadable = [item for item in written.skipped if item not in named.left_out]
                self.skipped.update(source.origin, documents, unreadable)
            report += written
        collections = tuple(dict.fromkeys(source.collection for source in by_source))
        report = self.finish(report, run, collections, on_progress, patient=_has_work(run)) + self._limitations()
        self.emit(IndexEvent(report, tuple(dict.fromkeys(source.origin for source in by_source))))
        return report

    def documents(self, documents: Sequence[Document], collection: str = MEMORY) -> IndexReport:
        """Index documents that their extension has just recorded; a document without text is removed from the index.

        Keyword search finds them at once. The report says why they could not be embedded, if so. Raise StoreError, and
        PluginContractError if a path does not begin with the document's origin.
        """
        for document in documents:
            if not is_path_of(document.path, document.origin):
                problem = f"a document of {document.origin!r} has the path {quoted(document.path)}"
                raise PluginContractError(f"{problem}, which does not begin with {document.origin}/")
        run = EmbeddingRun()
        report = self.assembly.indexer(collection).put(documents, run)
        self.emit(IndexEvent(report, tuple(dict.fromkeys(document.origin for document in documents))))
        return report

    def remove(self, paths: Sequence[str], collection: str | None = None) -> ForgetReport:
        """Remove documents from the rows, indexes and cache of one collection, or of all. Raise StoreError."""
        removed, gone = 0, []
        names = self.sources.collections() if collection is None else (collection,)
        for name in names:
            removed += self.assembly.collection(name).remove(paths, forget=True)
            gone = list(paths)
        self.emit(ForgetEvent(tuple(gone)))
        return ForgetReport(tuple(gone), removed)

    def forget_removed_text(self, origin: str, paths: Sequence[str]) -> None:
        """Forget the text that documents of an origin no longer have; the rest stays indexed. Raise StoreError."""
        own = {source.collection: source for source in self.sources.all() if source.origin == origin}
        for name in self.sources.collections():
            if name in own:
                self.assembly.indexer(name).forget_removed_text(own[name], paths)
            else:
                self.assembly.collection(name).remove(paths, forget=True)
        self.emit(ForgetEvent(tuple(paths)))

    def finish(
        self,
        report: IndexReport,
        run: EmbeddingRun,
        collections: Sequence[str],
        on_progress: ProgressCallback,
        limit: int | None = None,
        *,
        patient: bool = True,
    ) -> IndexReport:
        """Embed the chunks without vectors in these collections, and limit the size of the cache.

        If another run is embedding, a ``patient`` run waits for it; other runs skip the embedding.
        """
        asked = time.monotonic()
        turn = turn_to_embed(self.assembly.store, self.assembly.config.data_dir, run, on_progress, patient=patient)
        with turn as ours:
            report += IndexReport(seconds=time.monotonic() - asked)
            for name in collections if ours else ():
                left = None if limit is None else max(limit - report.embedded - report.cached, 0)
                report += self.assembly.indexer(name).embed(run, limit=left, on_progress=on_progress)
        off = (configured.complaint for configured in self.assembly.retrievers if configured.problem)
        report += IndexReport(notices=tuple(off))
        if report.embedded or report.cached:
            with self.assembly.store.write() as transaction:
                most = self.assembly.config.cache.max_entries
                transaction.tend_cache(most, found=report.cached, computed=report.embedded)
        return evolve(report, notices=tuple(dict.fromkeys(report.notices)))

    def _limitations(self) -> IndexReport:
        limited = (configured.complaint for configured in self.assembly.retrievers if configured.limitation)
        return IndexReport(notices=tuple(limited))

    def _write(
        self,
        source: IsolatedSource,
        run: EmbeddingRun,
        *,
        force: bool = False,
        verify: bool = False,
        on_progress: ProgressCallback,
    ) -> IndexReport:
        """Write the changed documents of one source, without embedding them."""
        indexer = self.sources.indexer(source)
        with source.guarded():
            skipped = tuple(source.source.prepare(self.assembly.store))
        place, stamp = (source.origin, source.collection), source.stamp
        last = self._last.get(place)
        if last is not None and not (force or verify or skipped) and last.state == self._state(indexer, stamp, source):
            return IndexReport(unchanged=last.documents)
        report = indexer.write(source, run, force=force, verify=verify, on_progress=on_progress)
        report += IndexReport(removed=drop_forgotten(indexer.collection, source), skipped=tuple(skipped))
        self.assembly.copies.keep_only(source.origin, partial(self._documents_of, source.origin, report))
        self._last.pop(place, None)
        if not report.skipped and (state := self._state(indexer, stamp, source)) is not None:
            self._last[place] = _LastRun(state, report.added + report.changed + report.unchanged)
        return report

    def _state(self, indexer: Indexer, stamp: Hashable, source: IsolatedSource) -> Hashable:
        """Return a value that stays equal as long as a run would change nothing; None if that is not known.

        The stamp was read before the source. It does not show whether another process has changed the index alone.
        """
        if stamp is None:
            return None
        with self.assembly.store.read() as snapshot:
            digest = snapshot.manifest_digest(source.collection, source.origin)
        return stamp, digest, indexer.cutter().model

    def _documents_of(self, origin: str, report: IndexReport) -> Iterator[str]:
        """Yield the documents of an origin, and the skipped ones, whose reasons may be copied too."""
        for collection in self.sources.collections():
            yield from self.sources.paths(origin, collection)
        yield from (item.path for item in report.skipped)

    @property
    def skipped(self) -> SkippedFiles:
        """The files that index runs have skipped."""
        return SkippedFiles(DataDirectory(self.assembly.config.data_dir).skipped)

    def _files_by_source(self, paths: Iterable[str | Path]) -> Mapping[IsolatedSource, _NamedFiles]:
        sources = self.sources.all()
        found: dict[IsolatedSource, _NamedFiles] = {}
        for path in map(str, paths):
            for source in sources:
                if documents := source.use(Located, Located.documents_of, path):
                    found.setdefault(source, _NamedFiles()).found.extend(map(Entry, documents))
                    break
                if (document := _document_below(source, path)) is not None:
                    named = found.setdefault(source, _NamedFiles())
                    named.missing.append(document)
                    if reason := source.why_left_out(document):
                        named.left_out.append(SkippedEntry(document, reason, keep=False))
                    break
            else:
                raise NotFoundError(f"{path} belongs to no source", hint=f"klaw index {quote(str(Path(path).parent))}")
        return found


def _has_work(run: EmbeddingRun) -> bool:
    """Return whether a run has written chunks without vectors."""
    return any(run.waiting.values())


@define(eq=False)
class _NamedFiles:
    """The documents of a source for given files: those that the source has, and those that it does not have."""

    found: list[Entry] = field(factory=list)
    missing: list[str] = field(factory=list)
    left_out: list[SkippedEntry] = field(factory=list)  # the missing documents whose files exist


def _document_below(source: IsolatedSource, path: str) -> str | None:
    """Return the document path of a file below a source's directory, even if the source does not have the document."""
    try:
        named = Path(path).expanduser().absolute()
        # Resolve ".." and links in the parent directories. The file itself may be missing, or a link.
        places = (named, named.parent.resolve() / named.name)
        with source.guarded():
            roots = tuple(source.source.watch_paths())
        found = ((place, root) for root in roots for place in places if place.is_relative_to(root))
        place, root = next(found, (None, None))
    except (OSError, RuntimeError, ValueError):
        return None
    if place is None or root is None or ".." in place.relative_to(root).parts:
        return None
    return f"{source.origin}/{place.relative_to(root).as_posix()}"

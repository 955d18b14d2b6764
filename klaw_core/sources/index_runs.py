"""Index runs over the sources of a memory: write changed documents, then embed the chunks without vectors."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Literal

from attrs import evolve, frozen

from klaw_core.assembly import Assembly
from klaw_core.embedding.run import EmbeddingRun
from klaw_core.errors import KlawError, NotFoundError, PluginContractError, StoreError, WorkspaceError, quoted
from klaw_core.indexing.flow import Indexer
from klaw_core.indexing.run_counts import NamedDocuments, ProgressCallback
from klaw_core.interfaces.source import Located
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.sources.catalogue import Sources
from klaw_core.sources.forgetting import drop_forgotten
from klaw_core.sources.skipped import SkippedFiles
from klaw_core.values.collections import MEMORY
from klaw_core.values.documents import Document, Entry, is_path_of
from klaw_core.values.events import Event, ForgetEvent, IndexEvent
from klaw_core.values.runs import IndexReport, Progress, SkippedEntry

#: The name of the lock that a run holds while it embeds; see ``Store.lock``.
EMBEDDING_LOCK = "embedding"
# Chunks to embed before a search. The user is waiting, so the rest is left to `klaw embed` or the next index run.
_MAX_BEFORE_SEARCH = 64


class _TakenError(Exception):
    """Another run holds the lock, and the caller does not wait."""


@frozen
class LastRun:
    """The state of a source and its index after a complete run, and the number of its documents."""

    state: Hashable
    documents: int


@frozen(eq=False)
class IndexRuns:
    """Brings the index of a memory up to date, in one call of it. ``emit`` is called with an event when a run ends.

    ``last`` is what the last complete run of this process has found, by origin and collection.
    """

    assembly: Assembly
    sources: Sources
    emit: Callable[[Event], KlawError | None]
    last: dict[tuple[str, str], LastRun]

    def over(
        self,
        sources: Sequence[IsolatedSource],
        named: Mapping[IsolatedSource, NamedDocuments] | None = None,
        *,
        force: bool = False,
        verify: bool = False,
        embed: bool = True,
        on_progress: ProgressCallback = lambda _: None,
        alone: bool = False,
    ) -> IndexReport:
        """Bring the index up to date with these sources, or with the documents of them that are ``named``.

        Write the changed documents of each source; then embed the chunks without a vector, remove what an interrupted
        rebuild has left, and tell the listeners. For ``force`` and ``verify`` see ``Indexer.write``.

        A source that fails, such as one on a missing drive, is reported as skipped, and the others are still indexed.
        With ``alone`` its WorkspaceError is raised instead. Raise StoreError.
        """
        run = EmbeddingRun(stopped=not embed)
        report = IndexReport()
        for source in sources:
            only = None if named is None else named[source]
            if only is not None and (problem := self.sources.machines.problem(source)) is not None:
                report += _skipped(source.origin, problem)
                continue
            try:
                report += self._write(source, run, only, force=force, verify=verify, on_progress=on_progress)
            except WorkspaceError as error:
                self.skipped.note_run(source.origin, finished=True)
                if alone:
                    raise
                report += _skipped(source.origin, error)
        for name, failure in () if alone else self.sources.failures().items():
            report += _skipped(name, failure)
        collections = tuple(dict.fromkeys(source.collection for source in sources))
        has_work = any(run.waiting.values())  # a run without chunks to embed does not wait for one that has
        report = self.embed(run, collections, on_progress, patient=has_work, before=report)
        limited = (configured.complaint for configured in self.assembly.retrievers if configured.limitation)
        report += IndexReport(notices=tuple(limited))
        if named is None:
            with suppress(StoreError):  # a rebuild is running, or the store cannot be written
                self.assembly.store.tidy()
        self._tell(report, sources, "forced" if force and named is None else "")
        return report

    def refresh(self, collections: Sequence[str]) -> tuple[str, ...]:
        """Bring collections up to date before a search; return the problems as messages, without raising them.

        This does not wait for other processes and embeds few chunks; keyword search finds all new text at once.
        """
        run, report = EmbeddingRun(), IndexReport()
        failures: list[str] = []
        try:
            sources = [source for source in self.sources.all() if source.collection in collections]
        except KlawError as error:
            return (f"the index may be out of date: {error}",)
        for source in sources:
            try:
                report += self._write(source, run)
            except KlawError as error:
                failures.append(f"{source.origin} may be out of date: {error}")
        if report.added or report.changed or report.removed:
            try:
                report = self.embed(run, collections, lambda _: None, _MAX_BEFORE_SEARCH, patient=False, before=report)
            except KlawError as error:
                failures.append(f"new text is found by words alone: {error}")
            self._tell(report, sources, "search")
        if report.lacking:
            failures.append(f"chunks found by words alone: {report.lacking:,}; run `klaw embed`")
        return tuple(failures)

    def over_files(
        self,
        paths: Iterable[str | Path],
        *,
        force: bool = False,
        embed: bool = True,
        on_progress: ProgressCallback = lambda _: None,
    ) -> IndexReport:
        """Bring the index up to date with single files of known sources; ``force`` chunks each again.

        A file that was deleted or is excluded is removed from the index; if it still exists, the report says why. A
        source that cannot map files to documents is indexed as a whole. A source whose name another machine uses is
        reported as skipped. Raise NotFoundError if a path is not in the directory of a source, StoreError.
        """
        named = self._named_by_source(paths)
        return self.over(list(named), named, force=force, embed=embed, on_progress=on_progress, alone=True)

    def embed(
        self,
        run: EmbeddingRun,
        collections: Sequence[str],
        on_progress: ProgressCallback,
        limit: int | None = None,
        *,
        patient: bool = True,
        before: IndexReport = IndexReport(),  # noqa: B008  # frozen
    ) -> IndexReport:
        """Embed the chunks without vectors in these collections, at most ``limit``, and limit the size of the cache.

        If another run is embedding, a ``patient`` run waits for it; other runs skip the embedding. ``before`` is the
        report of the run so far.
        """
        report, asked = before, time.monotonic()
        with self._turn_to_embed(run, on_progress, patient=patient) as ours:
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

    def remove(self, paths: Sequence[str], collection: str | None = None) -> KlawError | None:
        """Remove documents from one collection, or from all; see ``Host.remove_documents``. Raise StoreError."""
        for name in self.sources.collections() if collection is None else (collection,):
            self.assembly.collection(name).remove(paths, forget=True)
        return self.emit(ForgetEvent(tuple(paths)))

    def forget_removed_text(self, origin: str, paths: Sequence[str]) -> KlawError | None:
        """Forget the text that documents of an origin no longer have, as :meth:`remove` does; the rest stays."""
        own = {source.collection: source for source in self.sources.all() if source.origin == origin}
        for name in self.sources.collections():
            if name in own:
                self.assembly.indexer(name).forget_removed_text(own[name], paths)
            else:
                self.assembly.collection(name).remove(paths, forget=True)
        return self.emit(ForgetEvent(tuple(paths)))

    @contextmanager
    def _turn_to_embed(self, run: EmbeddingRun, on_progress: ProgressCallback, *, patient: bool) -> Iterator[bool]:
        """Wait until no other run embeds, so that a text that another run has sent is not sent, and paid for, again.

        Yield True when this run may embed. A run that has stopped embedding does not wait, and neither does a run in a
        read-only directory. If ``patient`` is false, do not wait: yield False while another run embeds.
        """
        if run.stopped or not os.access(self.assembly.config.data_dir, os.W_OK):
            yield True
            return

        def wait() -> None:
            on_progress(Progress("wait" if patient else "left", 0, 0))
            if not patient:
                raise _TakenError

        with ExitStack() as stack:
            try:
                stack.enter_context(self.assembly.store.lock(EMBEDDING_LOCK, wait))
            except _TakenError:
                yield False
            else:
                yield True

    def _write(
        self,
        source: IsolatedSource,
        run: EmbeddingRun,
        named: NamedDocuments | None = None,
        *,
        force: bool = False,
        verify: bool = False,
        on_progress: ProgressCallback = lambda _: None,
    ) -> IndexReport:
        """Write the changed documents of one source, or those that are ``named``, without embedding them.

        Nothing is scanned if neither the source nor the index has changed since the last run of this process.
        """
        indexer = self.sources.indexer(source)
        if named is not None and source.can(Located):  # other sources cannot map files to documents
            report = indexer.write(source, run, named, force=force, on_progress=on_progress)
            if source.is_chosen:
                self.skipped.update(source.origin, named.paths, report.skipped)
            return report + IndexReport(skipped=tuple(named.left_out))
        with source.guarded():
            prepared = tuple(source.source.prepare(self.assembly.store))
        place, stamp = (source.origin, source.collection), source.stamp
        last = self.last.get(place)
        known = last is not None and not (force or verify or prepared)
        if last is not None and known and last.state == self._state(indexer, stamp, source):
            report = IndexReport(unchanged=last.documents)
        else:
            if source.is_chosen:  # what the others have is indexed when it is recorded
                self.skipped.note_run(source.origin, finished=False)
            report = indexer.write(source, run, force=force, verify=verify, on_progress=on_progress)
            report += IndexReport(removed=drop_forgotten(indexer.collection, source), skipped=prepared)
            self.assembly.copies.keep_only(source.origin, partial(self._documents_of, source.origin, report))
            self.last.pop(place, None)
            if not report.skipped and (state := self._state(indexer, stamp, source)) is not None:
                self.last[place] = LastRun(state, report.added + report.changed + report.unchanged)
        if source.is_chosen:
            self.skipped.replace(source.origin, report.skipped)
        return report

    def _tell(
        self, report: IndexReport, sources: Iterable[IsolatedSource], trigger: Literal["", "search", "forced"]
    ) -> None:
        self.emit(IndexEvent(report, tuple(dict.fromkeys(source.origin for source in sources)), trigger))

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
        return SkippedFiles(self.assembly.config.data_dir)

    def _named_by_source(self, paths: Iterable[str | Path]) -> Mapping[IsolatedSource, NamedDocuments]:
        sources = self.sources.all()
        found: dict[IsolatedSource, NamedDocuments] = {}
        for path in map(str, paths):
            for source in sources:
                if documents := source.use(Located, Located.documents_of, path):
                    found.setdefault(source, NamedDocuments()).found.extend(map(Entry, documents))
                    break
                if (document := _document_below(source, path)) is not None:
                    named = found.setdefault(source, NamedDocuments())
                    named.missing.append(document)
                    if reason := source.why_left_out(document):
                        named.left_out.append(SkippedEntry(document, reason, keep=False))
                    break
            else:
                hint = f"klaw index {quote(str(Path(path).parent))} --include {quote(Path(path).name)}"
                raise NotFoundError(f"{path} belongs to no source", hint=hint)
        return found


def _skipped(name: str, error: KlawError) -> IndexReport:
    return IndexReport(skipped=(SkippedEntry(name, str(error), keep=True),))


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

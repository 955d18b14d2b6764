"""``Memory``: what users of Klaw hold. It is assembled from a configuration, then delegates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self

from attrs import evolve

from klaw_core.assembly import Assembly, option_problems
from klaw_core.config.load import load_config
from klaw_core.config.model import Config, Selection, named_embedding
from klaw_core.errors import ConfigError, KlawError, QueryError, WorkspaceError
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Registry
from klaw_core.values.search import Filters, SearchResults
from klaw_core.values.text import COLLECTIONS

# What only some methods need they import: a search in a fresh process should not wait for it.
if TYPE_CHECKING:
    from klaw_core.conversations.archive import Conversations
    from klaw_core.core_memory.facts import CoreMemory
    from klaw_core.embedding.run import EmbeddingRun
    from klaw_core.indexing.collection import Collection
    from klaw_core.indexing.flow import Indexer, ProgressCallback
    from klaw_core.interfaces.source import Source
    from klaw_core.maintenance.export import ExportReport
    from klaw_core.maintenance.importing import ImportReport
    from klaw_core.searching.flow import Mode, Searcher
    from klaw_core.sources.catalogue import Sources
    from klaw_core.sources.reading import Reader
    from klaw_core.sources.saved import SavedJournal
    from klaw_core.sources.workspaces import Workspaces
    from klaw_core.values.documents import Document
    from klaw_core.values.findings import Diagnosis
    from klaw_core.values.runs import Excerpt, ForgetReport, IndexReport, Status

_COLLECTION = COLLECTIONS[0]


class Memory:
    """Notes and saved facts, searchable by words and by meaning.

        with Memory.open() as memory:
            memory.index("~/notes")
            for result in memory.search("what did we decide about auth"):
                print(result.path, result.start_line, result.content)

    Safe to use from several threads. Every method raises only subclasses of KlawError.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    @classmethod
    def open(cls, config: Config | None = None, *, registry: Registry | None = None) -> Self:
        """Assemble a memory from its configuration (default: the user's file and the environment).

        Raise ConfigError, PluginError or StoreError. Models load later, when they are first needed.
        """
        config = config or load_config(check=option_problems)
        registry = registry or discover(disabled=config.disabled_plugins)
        return cls(Assembly(config, registry))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the store; closing twice is allowed."""
        self._assembly.store.close()

    @property
    def config(self) -> Config:
        """The configuration this memory was assembled from."""
        return self._assembly.config

    @cached_property
    def core(self) -> CoreMemory:
        """Core memory: the few facts about user and agent that every call to a model is given."""
        from klaw_core.core_memory.facts import FILE_NAME, CoreMemory

        return CoreMemory(self.config.data_dir / FILE_NAME)

    def index(
        self,
        directory: str | Path | None = None,
        *,
        name: str | None = None,
        collection: str = _COLLECTION,
        version: str | None = None,
        force: bool = False,
        embed: bool = True,
        on_progress: ProgressCallback = lambda _: None,
    ) -> IndexReport:
        """Bring the index up to date with a directory of notes, or (None) with everything indexed before.

        The directory is remembered under ``name`` (default: its own), in a collection, as documentation of a
        version of something if ``version`` is given. ``force`` cuts every document anew. Words find what is new at
        once; then it is embedded, unless ``embed`` is False. Where the embedder fails, the report says how many chunks
        lack a vector, and why; :meth:`embed` and the next run go on. Of several sources one that fails is ``skipped``.
        Raise WorkspaceError, PluginError, StoreError.
        """
        from klaw_core.embedding.run import EmbeddingRun
        from klaw_core.sources.catalogue import bad_lines, collection_of
        from klaw_core.values.runs import IndexReport, SkippedEntry

        run = EmbeddingRun(stopped=not embed)
        if directory is not None:
            _check_collection(collection)
            configured = self._sources.configured_workspaces()
            workspace = self._workspaces.remember(
                directory, name, collection=collection, version=version, configured=configured
            )
            report = self._write(workspace, run, force=force, on_progress=on_progress)
            return self._finish(report, run, [collection_of(workspace)], on_progress)
        sources = self._sources.all()
        if not sources:
            raise WorkspaceError("nothing has been indexed yet", hint="klaw index DIR")
        report = IndexReport(skipped=bad_lines(self.conversations.sync(), self.conversations.journal.root))
        for source in sources:
            try:
                report += self._write(source, run, force=force, on_progress=on_progress)
            except WorkspaceError as error:
                # A drive, or a plugin's server, that is not there now must not keep the others from being indexed.
                report += IndexReport(skipped=(SkippedEntry(source.origin, str(error), keep=True),))
        return self._finish(report, run, COLLECTIONS, on_progress)

    def embed(
        self,
        *,
        limit: int | None = None,
        texts_per_call: int | None = None,
        on_progress: ProgressCallback = lambda _: None,
    ) -> IndexReport:
        """Embed the chunks that have no vector, oldest first, at most ``limit`` of them.

        Idempotent; interrupted, the next call goes on where this one stopped. Where the embedder fails, the report
        says how many chunks still lack a vector, and why. Raise StoreError.
        """
        from klaw_core.embedding.run import EmbeddingRun
        from klaw_core.values.runs import IndexReport

        run = EmbeddingRun(texts_per_call)
        return self._finish(IndexReport(), run, COLLECTIONS, on_progress, limit)

    def reindex(
        self, embedding: Selection | str | None = None, *, on_progress: ProgressCallback = lambda _: None
    ) -> IndexReport:
        """Build the whole index anew from the files, beside the one in use, and put it in its place when complete.

        This is how an index moves to another model: the one that is configured, or ``embedding`` (``"ollama"``,
        ``"onnx:bge-small-en-v1.5"``), which this memory then goes on with; the configuration file is not changed.
        Searches go on meanwhile, in the old vector space until the new one is complete; an interrupted run changes
        nothing, and the next one embeds nothing twice. Raise WorkspaceError if a directory is missing,
        StoreLockedError if another process is writing, ConfigError, PluginError, EmbeddingError, StoreError.
        """
        from klaw_core.maintenance.reindex import reindex

        selection = named_embedding(embedding, self.config.embedding) if isinstance(embedding, str) else embedding
        if selection is not None and (selection.type == "none") != (self.config.embedding.type == "none"):
            raise ConfigError(
                ["without vectors on both sides there is nothing to build anew"],
                hint=f"klaw config set memory.embedding.type {selection.type}, then `klaw index`",
            )
        embedder = self._assembly.embedder_for_new_index(selection)
        report = reindex(self._assembly, self._sources, embedder, on_progress)
        self._assembly.move_to(embedder, selection)
        return report

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        mode: Mode = "hybrid",
        filters: Filters = Filters(),  # noqa: B008  # frozen
        collection: str = _COLLECTION,
        min_score: float | None = None,
    ) -> SearchResults:
        """Return the chunks that answer a question in plain words, best first.

        ``mode`` is ``hybrid``, ``fts`` or ``vector``. Scores compare within one answer only. Raise QueryError
        for an empty query; a retriever that fails is named in the answer's ``notices`` instead.
        """
        _check_collection(collection)
        return self._searcher.search(
            query, limit=limit, mode=mode, filters=filters, collection=collection, min_score=min_score
        )

    def get(self, path: str, first_line: int = 1, lines: int | None = None) -> Excerpt:
        """Return lines of a note or of a saved memory: the file as it is now, or the stored text.

        ``path`` is a result's path (``notes/a.md``), the path of a file in a workspace, or a chunk's id.
        Raise NotFoundError.
        """
        return self._reader.get(path, first_line, lines)

    def save(
        self, text: str, *, source: str = "manual", chat_id: str | None = None, created_at: datetime | None = None
    ) -> Excerpt:
        """Remember a text; it can be found at once.

        Once it is in the journal it is safe, and nothing raises: if it cannot be indexed or embedded now, the
        answer's ``notice`` says why, and the next :meth:`index` does it. Raise RecordError if the text is empty
        or too long, or ``created_at`` has no time zone, StoreError if it cannot be kept.
        """
        from klaw_core.sources.saved_source import as_document, make_saved
        from klaw_core.values.lines import count_lines
        from klaw_core.values.runs import Excerpt

        saved = make_saved(text, source, chat_id, created_at)
        self._journal.append(saved)
        return Excerpt(saved.id, text, 1, count_lines(text), notice=self._index_saved(as_document(saved)))

    def forget(self, target: str) -> ForgetReport:
        """Remove a saved memory (by path or chunk id), a note (by path) or a workspace (``notes/``) from the index.

        A note's file is not touched, but it is excluded from its workspace from now on. Raise NotFoundError.
        """
        from klaw_core.sources.forgetting import Forgetter

        forgetter = Forgetter(
            self.config.data_dir, self._collection_named, self._reader, self._sources, self._workspaces, self._journal
        )
        return forgetter.forget(target)

    def status(self) -> Status:
        """Return what is indexed, with what, and what does not work."""
        from klaw_core.maintenance.status import take_status

        return take_status(self._assembly, self._sources)

    def doctor(self, *, fix: bool = False) -> Diagnosis:
        """Examine everything: store, indexes, vector spaces, files, plugins; with ``fix`` mend what is safe to mend.

        Reads every document and every page of the store, and asks the model for one vector. What is wrong is in
        the answer, and does not raise.
        """
        from klaw_core.maintenance.doctor import Doctor

        by_collection = {name: partial(self._sources.of, name) for name in COLLECTIONS}
        return Doctor(self._assembly, by_collection, self.conversations.row_sync).run(fix=fix)

    @cached_property
    def conversations(self) -> Conversations:
        """What was said: append to it, read it, and search single messages."""
        from klaw_core.conversations.archive import Conversations
        from klaw_core.conversations.row_sync import RowSync

        row_sync = RowSync.over(self._assembly.store, self.config.data_dir, self.config.conversations)
        return Conversations(row_sync, lambda paths: self._collection_named(_COLLECTION).remove(paths, forget=True))

    @cached_property
    def _workspaces(self) -> Workspaces:
        from klaw_core.sources.workspaces import Workspaces

        return Workspaces(self.config.data_dir / "workspaces.json")

    @cached_property
    def _journal(self) -> SavedJournal:
        from klaw_core.sources.saved import SavedJournal

        return SavedJournal(self.config.data_dir / "saved.jsonl")

    def _collection_named(self, name: str) -> Collection:
        return self._assembly.collection(name)

    def export(self, target: str | Path | BinaryIO) -> ExportReport:
        """Write everything a person owns as JSON lines: workspaces, core memory, what was saved, said and summarised.

        To a file (atomically, 0600) or a stream. Notes are files of their own and stay where they are.
        Raise StoreError.
        """
        from klaw_core.maintenance.export import export

        return export(self.config.data_dir, Path(target) if isinstance(target, str) else target)

    def import_(self, source: str | Path) -> ImportReport:
        """Add what an export holds; what is here stays, and importing it again changes nothing.

        What was saved is indexed at once, everything else by the next :meth:`index`. Raise RecordError with nothing
        changed if the file is not a whole export, NotFoundError if it is not there, StoreError.
        """
        from klaw_core.maintenance.importing import import_
        from klaw_core.sources.saved_source import SavedSource

        report = import_(self.config.data_dir, Path(source))
        if report.added.get("saved"):
            try:
                notices = self._indexer().sync(SavedSource(self._journal)).notices
            except KlawError as error:  # everything is in the files, which are the truth
                return evolve(report, notice=f"nothing new is indexed yet: {error.message}")
            if notices:
                return evolve(report, notice=f"it is found by words, but not embedded yet: {notices[0]}")
        return report

    def _indexer(self, collection: str = _COLLECTION) -> Indexer:
        return self._assembly.indexer(collection)

    @cached_property
    def _reader(self) -> Reader:
        from klaw_core.sources.reading import Reader

        return Reader(self._assembly.store, self._sources.known_workspaces, COLLECTIONS, self._journal)

    @property
    def _sources(self) -> Sources:
        from klaw_core.sources.catalogue import Sources

        return Sources(self._assembly, self._workspaces, self._journal, self.conversations.row_sync)

    @cached_property
    def _searcher(self) -> Searcher:
        from klaw_core.searching.flow import Searcher

        assembly = self._assembly
        return Searcher(
            assembly.store, lambda: assembly.embedder, assembly.retrievers, assembly.fusion, assembly.stages
        )

    def _write(self, source: Source, run: EmbeddingRun, *, force: bool, on_progress: ProgressCallback) -> IndexReport:
        """Store what has changed in one source, to be found by words; nothing is embedded."""
        from klaw_core.sources.catalogue import collection_of
        from klaw_core.sources.forgetting import drop_forgotten
        from klaw_core.values.runs import IndexReport

        indexer = self._indexer(collection_of(source))
        report = indexer.write(source, run, force=force, on_progress=on_progress)
        if source in self._assembly.sources:
            return report
        return report + IndexReport(removed=drop_forgotten(indexer.collection, source, self._workspaces))

    def _finish(
        self,
        report: IndexReport,
        run: EmbeddingRun,
        collections: Sequence[str],
        on_progress: ProgressCallback,
        limit: int | None = None,
    ) -> IndexReport:
        """Embed what lacks a vector in these collections, and keep the cache within its bounds."""
        from klaw_core.indexing.flow import turn_to_embed

        with turn_to_embed(self.config.data_dir, run, on_progress):
            for name in collections:
                left = None if limit is None else max(limit - report.embedded - report.cached, 0)
                indexer = self._indexer(name)
                report += indexer.embed(run, limit=left, on_progress=on_progress)
        if report.embedded or report.cached:
            with self._assembly.store.write() as transaction:
                most = self.config.cache.max_entries
                transaction.tend_cache(most, found=report.cached, computed=report.embedded)
        return evolve(report, notices=tuple(dict.fromkeys(report.notices)))

    def _index_saved(self, document: Document) -> str:
        """Make a saved memory findable; return what keeps it, for now, from being found by meaning, or at all."""
        try:
            failure = self._indexer().add(document)
        except KlawError as error:  # the text is in the journal: whoever were told of a failure would save it twice
            return f"it is kept, and will be found after the next `klaw index`: {error}"
        return f"it is kept and found by words, but not embedded yet: {failure}" if failure else ""


def _check_collection(name: str) -> None:
    if name not in COLLECTIONS:
        raise QueryError(f"there is no collection {name!r}", hint=f"known: {', '.join(COLLECTIONS)}")

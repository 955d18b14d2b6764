"""``Memory``: what users of Klaw hold. It is assembled from a configuration, then delegates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self

from attrs import evolve

from klaw_core.assembly import Parts, option_problems
from klaw_core.builtin.none_embedder import NoEmbedder
from klaw_core.builtin.workspace import Workspace
from klaw_core.collection import Collection
from klaw_core.config import Config, load_config
from klaw_core.conversations import Journal
from klaw_core.conversations.archive import Conversations
from klaw_core.conversations.mirroring import Mirror, SyncReport
from klaw_core.conversations.redaction import BUILTIN_PATTERNS, Redactor
from klaw_core.conversations.source import CONVERSATIONS, ConversationSource
from klaw_core.conversations.summaries import SummaryFiles
from klaw_core.core_memory import FILE_NAME as CORE_FILE
from klaw_core.core_memory import CoreMemory
from klaw_core.errors import (
    EmbeddingError,
    KlawError,
    NotFoundError,
    PluginError,
    QueryError,
    StoreError,
    WorkspaceError,
)
from klaw_core.findings import Diagnosis
from klaw_core.forgetting import drop_forgotten
from klaw_core.indexing import Indexer, ProgressCallback
from klaw_core.lines import count_lines
from klaw_core.plugins import Registry, discover
from klaw_core.reading import Reader, has_surrogates
from klaw_core.saved import Saved, SavedJournal
from klaw_core.saved_source import SAVED, SavedSource, as_document
from klaw_core.values import (
    Document,
    Filters,
    Forgotten,
    IndexReport,
    Passage,
    SearchResults,
    Skipped,
    Status,
    text_hash,
)
from klaw_core.workspaces import RESERVED, Workspaces

if TYPE_CHECKING:
    from klaw_core.interfaces import Source
    from klaw_core.maintenance.export import ExportReport
    from klaw_core.maintenance.importing import ImportReport
    from klaw_core.searching import Mode, Searcher

_COLLECTION = "memory"
#: Notes and memories, and the documentation of software; one mechanism, tables of their own.
COLLECTIONS = (_COLLECTION, "docs")
_MAX_SAVED_CHARACTERS = 1_000_000


class Memory:
    """Notes and saved facts, searchable by words and by meaning.

        with Memory.open() as memory:
            memory.index("~/notes")
            for result in memory.search("what did we decide about auth"):
                print(result.path, result.start_line, result.content)

    Safe to use from several threads. Every method raises only subclasses of KlawError.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._workspaces = Workspaces(parts.config.data_dir / "workspaces.json")
        self._journal = SavedJournal(parts.config.data_dir / "saved.jsonl")

    @classmethod
    def open(cls, config: Config | None = None, *, registry: Registry | None = None) -> Self:
        """Assemble a memory from its configuration (default: the user's file and the environment).

        Raise ConfigError, PluginError or StoreError. Models load later, when they are first needed.
        """
        config = config or load_config(check=option_problems)
        registry = registry or discover(disabled=config.disabled_plugins)
        return cls(Parts(config, registry))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the store; closing twice is allowed."""
        self._parts.store.close()

    @property
    def config(self) -> Config:
        """The configuration this memory was assembled from."""
        return self._parts.config

    @cached_property
    def core(self) -> CoreMemory:
        """Core memory: the few facts about user and agent that every call to a model is given."""
        return CoreMemory(self.config.data_dir / CORE_FILE)

    def index(
        self,
        directory: str | Path | None = None,
        *,
        name: str | None = None,
        collection: str = _COLLECTION,
        version: str | None = None,
        force: bool = False,
        on_progress: ProgressCallback = lambda _: None,
    ) -> IndexReport:
        """Bring the index up to date with a directory of notes, or (None) with everything indexed before.

        The directory is remembered under ``name`` (default: its own), in a collection, as documentation of a
        version of something if ``version`` is given. ``force`` cuts every document anew. Raise WorkspaceError,
        EmbeddingError, VectorSpaceError, StoreError.
        """
        if directory is not None:
            _check_collection(collection)
            workspace = self._workspaces.remember(Path(directory), name, collection=collection, version=version)
            return self._sync(workspace, force=force, on_progress=on_progress)
        sources = self._sources()
        if not sources:
            raise WorkspaceError("nothing has been indexed yet", hint="klaw index DIR")
        report = IndexReport(skipped=self._bad_lines(self.conversations.sync()))
        for source in sources:
            try:
                report += self._sync(source, force=force, on_progress=on_progress)
            except WorkspaceError as error:  # a drive that is not there now must not keep the others from being indexed
                report += IndexReport(skipped=(Skipped(source.origin, str(error), keep=True),))
        return report

    def reindex(self, *, on_progress: ProgressCallback = lambda _: None) -> IndexReport:
        """Build the whole index anew from the files, beside the one in use, and put it in its place when complete.

        This is how an index moves to another model. Searches go on meanwhile; an interrupted run changes
        nothing, and the next one goes on where it stopped. Raise WorkspaceError if a directory is missing,
        StoreLockedError if another process is writing, EmbeddingError, StoreError.
        """
        sources = self._sources()
        report = IndexReport()
        with self._parts.store.rebuild() as fresh:
            report += IndexReport(skipped=self._bad_lines(evolve(self.conversations.mirror, store=fresh).sync()))
            for name in COLLECTIONS:
                collection = Collection(fresh, self._parts.embedder, self._parts.indexes(), name)
                own = [source for source in sources if _collection_of(source) == name]
                if own or name == _COLLECTION:
                    collection.adopt_space()
                collection.keep_origins({source.origin for source in own})
                indexer = self._indexer_over(collection)
                for source in own:
                    report += indexer.sync(source, on_progress=on_progress)
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
        """Return the passages that answer a question in plain words, best first.

        ``mode`` is ``hybrid``, ``fts`` or ``vector``. Scores compare within one answer only. Raise QueryError
        for an empty query; a retriever that fails is named in the answer's ``notices`` instead.
        """
        _check_collection(collection)
        return self._searcher.search(
            query, limit=limit, mode=mode, filters=filters, collection=collection, min_score=min_score
        )

    def get(self, path: str, first_line: int = 1, lines: int | None = None) -> Passage:
        """Return lines of a note or of a saved memory: the file as it is now, or the stored text.

        ``path`` is a result's path (``notes/a.md``), the path of a file in a workspace, or a chunk's id.
        Raise NotFoundError.
        """
        return self._reader.get(path, first_line, lines)

    def save(
        self, text: str, *, source: str = "manual", chat_id: str | None = None, created_at: datetime | None = None
    ) -> Passage:
        """Remember a text; it can be found at once.

        Once it is in the journal it is safe, and nothing raises: if it cannot be indexed or embedded now, the
        answer's ``notice`` says why, and the next :meth:`index` does it. Raise QueryError if the text is empty
        or too long, StoreError if it cannot be kept.
        """
        if not text.strip():
            raise QueryError("there is nothing to save: the text is empty")
        if has_surrogates(text):
            raise QueryError("the text cannot be saved: it is not valid Unicode (a lone surrogate)")
        if len(text) > _MAX_SAVED_CHARACTERS:
            raise QueryError(
                f"the text has {len(text):,} characters, at most {_MAX_SAVED_CHARACTERS:,} can be saved at once",
                hint="put it in a file and `klaw index` its directory",
            )
        moment = (created_at or datetime.now(UTC)).astimezone(UTC).replace(microsecond=0)
        digest = text_hash("\0".join((source, chat_id or "", text)))[:12]
        path = f"{SAVED}/{moment.date().isoformat()}/{digest}"
        saved = Saved(path, text, source, moment, chat_id)
        self._journal.append(saved)
        return Passage(path, text, 1, count_lines(text), notice=self._index_saved(as_document(saved)))

    def forget(self, target: str) -> Forgotten:
        """Remove a saved memory (by path or chunk id), a note (by path) or a workspace (``notes/``) from the index.

        A note's file is not touched, but it is excluded from its workspace from now on. Raise NotFoundError.
        """
        workspaces = self._workspaces.all()
        name = target.rstrip("/")
        if name in workspaces or (target.endswith("/") and name in self._strays()):
            return self._forget_origin(name)
        collection_name, path = self._reader.find(target)
        collection = self._collection_named(collection_name)
        origin, _, relative = path.partition("/")
        if origin == CONVERSATIONS:
            raise NotFoundError(
                f"{path} is a day of a conversation, whose file would bring it back",
                hint=f"remove {self.config.data_dir / path}, then `klaw index`",
            )
        if origin not in {SAVED, *workspaces, *self._strays()}:
            raise NotFoundError(
                f"{path} comes from a source in the configuration, which would bring it back",
                hint=f'add "{relative}" to exclude in its [[memory.sources]] table, then `klaw index`',
            )
        # First the index, where another process may hold the lock: a refusal has then changed nothing.
        removed = collection.remove([path], forget=True)
        if origin == SAVED:
            self._journal.forget(path)
        elif origin in workspaces:
            self._workspaces.exclude(origin, relative)
        return Forgotten((path,), removed)

    def status(self) -> Status:
        """Return what is indexed, with what, and what does not work."""
        with self._parts.store.read() as snapshot:
            record = snapshot.space(_COLLECTION)
            counts = {name: value for each in COLLECTIONS for name, value in snapshot.counts(each).items()}
            pending = {
                name: sum(snapshot.keys(each).size - index.keys(snapshot.resource, each).size for each in COLLECTIONS)
                for name, index in self._parts.indexes()
            }
        problems = [f"{leg.name} is off: {leg.problem}" for leg in self._parts.legs if leg.problem]
        try:
            _ = self._parts.embedder
        except (EmbeddingError, PluginError) as error:
            problems.append(f"embedder {self.config.embedding.type}: {error}")
        problems += [f"plugin {item.name}: {item.problem}" for item in self._parts.registry.plugins if item.problem]
        problems += [f"{name}/ has no source any more: `klaw forget {name}/`" for name in sorted(self._strays())]
        problems += [f"{name} lacks {count:,} chunks: run `klaw index`" for name, count in pending.items() if count > 0]
        return Status(
            location=self._parts.store.location,
            embedder=self.config.embedding.type,
            space=None if record is None else record.space,
            retrievers=tuple(leg.name for leg in self._parts.legs if not leg.problem),
            fusion=self.config.fusion.type,
            origins=counts,
            workspaces={name: str(workspace.root) for name, workspace in self._workspaces.all().items()},
            statistics=self._parts.store.statistics(),
            problems=tuple(problems),
        )

    def doctor(self, *, fix: bool = False) -> Diagnosis:
        """Examine everything: store, indexes, vector spaces, files, plugins; with ``fix`` mend what is safe to mend.

        Reads every document and every page of the store, and asks the model for one vector. What is wrong is in
        the answer, and does not raise.
        """
        from klaw_core.maintenance.doctor import Doctor

        def sources_of(collection: str) -> Sequence[Source]:
            return [source for source in self._sources() if _collection_of(source) == collection]

        by_collection = {name: partial(sources_of, name) for name in COLLECTIONS}
        return Doctor(self._parts, by_collection, self.conversations.mirror).run(fix=fix)

    @cached_property
    def conversations(self) -> Conversations:
        """What was said: append to it, read it, and search single messages."""
        settings, data_dir = self.config.conversations, self.config.data_dir
        patterns = (*(BUILTIN_PATTERNS if settings.redact_secrets else ()), *settings.redact)
        mirror = Mirror(
            self._parts.store,
            Journal(data_dir / CONVERSATIONS),
            SummaryFiles(data_dir / "summaries"),
            Redactor(patterns),
        )
        return Conversations(mirror, lambda paths: self._collection.remove(paths, forget=True))

    def _bad_lines(self, report: SyncReport) -> tuple[Skipped, ...]:
        """Return the lines of the journal that hold no message, as what an index run left out."""
        root = self.conversations.journal.root
        return tuple(
            Skipped(f"{CONVERSATIONS}/{line.file.relative_to(root).as_posix()}@{line.offset}", line.reason, keep=True)
            for line in report.bad
        )

    def _collection_named(self, name: str) -> Collection:
        return Collection(self._parts.store, self._parts.embedder, self._parts.indexes(), name)

    def export(self, target: Path | BinaryIO) -> ExportReport:
        """Write everything a person owns as JSON lines: workspaces, core memory, saved memories, conversations.

        To a file (atomically, 0600) or a stream. Notes are files of their own and stay where they are.
        Raise StoreError.
        """
        from klaw_core.maintenance.export import export

        return export(self.config.data_dir, target)

    def import_(self, source: Path) -> ImportReport:
        """Add what an export holds; what is here stays, and importing it again changes nothing.

        What was saved is indexed at once, everything else by the next :meth:`index`. Raise RecordError with nothing
        changed if the file is not a whole export, NotFoundError if it is not there, StoreError.
        """
        from klaw_core.maintenance.importing import import_

        report = import_(self.config.data_dir, source)
        if report.added.get("saved"):
            try:
                self._indexer.sync(SavedSource(self._journal))
            except KlawError as error:  # everything is in the files, which are the truth
                return evolve(report, notice=f"nothing new is indexed yet: {error.message}")
        return report

    def _indexer_of(self, source: Source) -> Indexer:
        return self._indexer_over(self._collection_named(_collection_of(source)))

    def _indexer_over(self, collection: Collection) -> Indexer:
        return Indexer(collection, self._parts.chunker, self._parts.recipe, self._parts.formats)

    @property
    def _collection(self) -> Collection:
        return self._collection_named(_COLLECTION)

    @property
    def _indexer(self) -> Indexer:
        return self._indexer_over(self._collection)

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self._parts.store, self._known_workspaces, COLLECTIONS)

    def _known_workspaces(self) -> dict[str, Workspace]:
        """Return the remembered workspaces and those of the configuration, by name."""
        configured = {source.origin: source for source in self._parts.sources if isinstance(source, Workspace)}
        return {**configured, **self._workspaces.all()}

    @cached_property
    def _searcher(self) -> Searcher:
        from klaw_core.searching import Searcher

        parts = self._parts
        return Searcher(parts.store, lambda: parts.embedder, parts.legs, parts.fusion, lambda: parts.reranker)

    def _sync(self, source: Source, *, force: bool, on_progress: ProgressCallback) -> IndexReport:
        indexer = self._indexer_of(source)
        report = indexer.sync(source, force=force, on_progress=on_progress)
        if source in self._parts.sources:
            return report
        return report + IndexReport(removed=drop_forgotten(indexer.collection, source, self._workspaces))

    def _index_saved(self, document: Document) -> str:
        """Make a saved memory findable; return what keeps it, for now, from being found by meaning, or at all."""
        try:
            try:
                failure = self._indexer.add(document)
            except (EmbeddingError, PluginError) as error:  # not even its tokens can be counted
                failure = error
                words = tuple(entry for entry in self._parts.indexes() if not entry[1].needs_vectors)
                collection = Collection(self._parts.store, NoEmbedder(), words, _COLLECTION)
                Indexer(collection, self._parts.chunker, formats=self._parts.formats).add(document)
        except StoreError as error:
            return f"it is kept, and will be found after the next `klaw index`: {error}"
        return f"it is kept and found by words, but not embedded yet: {failure}" if failure else ""

    def _strays(self) -> set[str]:
        """Return the origins that are indexed though no source of theirs is known any more."""
        with self._parts.store.read() as snapshot:
            indexed = {origin for name in COLLECTIONS for origin in snapshot.counts(name)}
        return indexed - {*RESERVED, *self._workspaces.all(), *(source.origin for source in self._parts.sources)}

    def _forget_origin(self, origin: str) -> Forgotten:
        removed, gone = 0, []
        for name in COLLECTIONS:
            paths = self._paths_of(origin, name)
            removed += self._collection_named(name).remove(paths, forget=True)
            gone += paths
        self._workspaces.forget(origin)
        return Forgotten(tuple(gone), removed)

    def _sources(self) -> Sequence[Source]:
        """Return every source. Raise WorkspaceError if two have one origin: each would remove the other's documents."""
        sources: list[Source] = [*self._parts.sources, *self._workspaces.all().values()]
        origins = Counter(source.origin for source in sources)
        for origin, count in origins.items():
            if count > 1 or origin in RESERVED:
                raise WorkspaceError(
                    f"{'two sources are' if count > 1 else 'a source is'} called {origin!r}",
                    hint=f"give the one in [[memory.sources]] another name, or `klaw forget {origin}/`",
                )
        if self._journal.path.exists():
            sources.append(SavedSource(self._journal))
        mirror = self.conversations.mirror
        if mirror.journal.root.exists():
            roles = self.config.conversations.include_roles
            sources.append(ConversationSource(mirror.journal, roles, mirror.redactor))
        return sources

    def _paths_of(self, origin: str, collection: str) -> list[str]:
        with self._parts.store.read() as snapshot:
            return sorted(snapshot.manifest(collection, origin))


def _collection_of(source: Source) -> str:
    """Return the collection a source's documents belong to; only a workspace can choose."""
    return source.collection if isinstance(source, Workspace) else _COLLECTION


def _check_collection(name: str) -> None:
    if name not in COLLECTIONS:
        raise QueryError(f"there is no collection {name!r}", hint=f"known: {', '.join(COLLECTIONS)}")

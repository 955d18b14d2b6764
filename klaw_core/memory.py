"""``Memory``: what users of Klaw hold. It is assembled from a configuration, then delegates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from klaw_core.assembly import Parts
from klaw_core.collection import Collection
from klaw_core.config import Config, load_config
from klaw_core.errors import NotFoundError, QueryError, WorkspaceError
from klaw_core.indexing import Indexer, ProgressCallback
from klaw_core.lines import count_lines, line_starts, take_lines
from klaw_core.plugins import Registry, discover
from klaw_core.saved import Saved, SavedJournal
from klaw_core.saved_source import SAVED, SavedSource, as_document
from klaw_core.values import (
    Entry,
    Filters,
    Forgotten,
    IndexReport,
    Passage,
    SearchResults,
    Skipped,
    Status,
    StoredChunk,
    text_hash,
)
from klaw_core.workspaces import RESERVED, Workspaces

if TYPE_CHECKING:
    from klaw_core.builtin.workspace import Workspace
    from klaw_core.interfaces import Source
    from klaw_core.searching import Mode, Searcher

_COLLECTION = "memory"
_MAX_SAVED_CHARACTERS = 1_000_000
_SHORTEST_ID = 6


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
        config = config or load_config()
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

    def index(
        self,
        directory: str | Path | None = None,
        *,
        name: str | None = None,
        force: bool = False,
        on_progress: ProgressCallback = lambda _: None,
    ) -> IndexReport:
        """Bring the index up to date with a directory of notes, or (None) with everything indexed before.

        The directory is remembered under ``name`` (default: its own). ``force`` cuts every document anew.
        Raise WorkspaceError, EmbeddingError, VectorSpaceError, StoreError.
        """
        if directory is not None:
            return self._indexer.sync(
                self._workspaces.remember(Path(directory), name), force=force, on_progress=on_progress
            )
        sources = self._sources()
        if not sources:
            raise WorkspaceError("nothing has been indexed yet", hint="klaw index DIR")
        report = IndexReport()
        for source in sources:
            try:
                report += self._indexer.sync(source, force=force, on_progress=on_progress)
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
            collection = Collection(fresh, self._parts.embedder, self._parts.indexes(), _COLLECTION)
            collection.adopt_space()
            collection.keep_origins({source.origin for source in sources})
            indexer = Indexer(collection, self._parts.chunker, self._parts.recipe)
            for source in sources:
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
        return self._searcher.search(
            query, limit=limit, mode=mode, filters=filters, collection=collection, min_score=min_score
        )

    def get(self, path: str, first_line: int = 1, lines: int | None = None) -> Passage:
        """Return lines of a note or of a saved memory: the file as it is now, or the stored text.

        ``path`` is a result's path (``notes/a.md``), the path of a file in a workspace, or a chunk's id.
        Raise NotFoundError.
        """
        if first_line < 1 or (lines is not None and lines < 1):
            raise NotFoundError(f"line numbers count from 1, got {first_line}:{lines}")
        name, text, file = self._text_of(path)
        total = count_lines(text)
        if first_line > total:
            raise NotFoundError(f"{name} has {total} lines, there is no line {first_line}")
        content = take_lines(text, first_line, lines or total)
        last = min(total, first_line + (lines or total) - 1)
        return Passage(name, content, first_line, last, file)

    def save(
        self, text: str, *, source: str = "manual", chat_id: str | None = None, created_at: datetime | None = None
    ) -> Passage:
        """Remember a text; it can be found at once. Raise QueryError if it is empty or too long."""
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
        self._indexer.add(as_document(saved))
        return Passage(path, text, 1, count_lines(text))

    def forget(self, target: str) -> Forgotten:
        """Remove a saved memory (by path or chunk id), a note (by path) or a workspace (``notes/``) from the index.

        A note's file is not touched, but it is excluded from its workspace from now on. Raise NotFoundError.
        """
        workspaces = self._workspaces.all()
        if (name := target.rstrip("/")) in workspaces:
            paths = self._paths_of(name)
            removed = self._collection.remove(paths, forget=True)
            self._workspaces.forget(name)
            return Forgotten(tuple(paths), removed)
        path = self._known_path(target)
        origin, _, relative = path.partition("/")
        if origin in workspaces:
            self._workspaces.exclude(origin, relative)
        elif origin != SAVED:
            raise NotFoundError(
                f"{path} comes from a source in the configuration, which would bring it back",
                hint=f'add "{relative}" to exclude in its [[memory.sources]] table, then `klaw index`',
            )
        else:
            self._journal.forget(path)
        return Forgotten((path,), self._collection.remove([path], forget=True))

    def status(self) -> Status:
        """Return what is indexed, with what, and what does not work."""
        with self._parts.store.read() as snapshot:
            record = snapshot.space(_COLLECTION)
            counts = snapshot.counts(_COLLECTION)
            keys = snapshot.keys(_COLLECTION).size
            pending = {
                name: keys - index.keys(snapshot.resource, _COLLECTION).size for name, index in self._parts.indexes()
            }
        problems = [f"{leg.name} is off: {leg.problem}" for leg in self._parts.legs if leg.problem]
        problems += [f"plugin {item.name}: {item.problem}" for item in self._parts.registry.plugins if item.problem]
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

    @cached_property
    def _collection(self) -> Collection:
        return Collection(self._parts.store, self._parts.embedder, self._parts.indexes(), _COLLECTION)

    @cached_property
    def _indexer(self) -> Indexer:
        return Indexer(self._collection, self._parts.chunker, self._parts.recipe)

    @cached_property
    def _searcher(self) -> Searcher:
        from klaw_core.searching import Searcher

        parts = self._parts
        return Searcher(parts.store, lambda: parts.embedder, parts.legs, parts.fusion, lambda: parts.reranker)

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
        return [*sources, SavedSource(self._journal)] if self._journal.path.exists() else sources

    def _paths_of(self, origin: str) -> list[str]:
        with self._parts.store.read() as snapshot:
            return sorted(snapshot.manifest(_COLLECTION, origin))

    def _text_of(self, target: str) -> tuple[str, str, Path | None]:
        """Return a document's path, its text, and the file it stands in (None for what only the store holds)."""
        found = self._file_of(target)
        if found is not None:
            workspace, path = found
            document = workspace.read(Entry(path))
            if isinstance(document, Skipped):
                raise NotFoundError(f"{path} {document.reason}")
            return path, document.text, workspace.root / path.partition("/")[2]
        path = self._known_path(target)
        if path != target and (found := self._file_of(path)) is not None:
            return self._text_of(path)
        with self._parts.store.read() as snapshot:
            return path, _joined(snapshot.outline(_COLLECTION, path)), None

    def _file_of(self, target: str) -> tuple[Workspace, str] | None:
        """Return the workspace and the document path of a file that exists, named either way."""
        workspaces = self._workspaces.all()
        origin, _, relative = target.partition("/")
        if origin in workspaces and workspaces[origin].holds(relative):
            return workspaces[origin], target
        for workspace in workspaces.values():
            found = workspace.locate(target)
            if found is not None:
                return workspace, f"{workspace.origin}/{found}"
        return None

    def _known_path(self, target: str) -> str:
        """Return the path of the indexed document that ``target`` names by path or by (the beginning of) a chunk id."""
        if not target or has_surrogates(target):
            raise NotFoundError(f"{target!r} is not the path or id of anything")
        with self._parts.store.read() as snapshot:
            if snapshot.outline(_COLLECTION, target):
                return target
            looks_like_id = len(target) >= _SHORTEST_ID and set(target) <= set("0123456789abcdef")
            paths = {stored.path for stored in snapshot.find(_COLLECTION, target)} if looks_like_id else set()
        if len(paths) == 1:
            return paths.pop()
        if paths:
            raise NotFoundError(f"{target!r} begins the ids of chunks in {len(paths)} documents; give more of it")
        raise NotFoundError(f"nothing is indexed under {target!r}", hint="`klaw search` shows paths and ids")


def has_surrogates(text: str) -> bool:
    """Return whether the text holds a lone surrogate, which no file and no database can."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _joined(chunks: Sequence[StoredChunk]) -> str:
    """Put a document's chunks together again, each at its own offset and line; what lay between was white space."""
    text = ""
    for stored in chunks:
        chunk = stored.chunk
        gap = chunk.start - len(text)
        if gap > 0:
            breaks = min(gap, chunk.start_line - len(line_starts(text)))
            text += "\n" * breaks + " " * (gap - breaks)
        text += chunk.text[len(text) - chunk.start :]
    return text

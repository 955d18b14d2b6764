"""``Memory``, the facade for programs: assembled from a configuration, it delegates every call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from attrs import evolve

import klaw_redaction  # noqa: F401  # errors need it, also where no further file can be opened
from klaw_core.errors import QueryError, WorkspaceError, quoted
from klaw_core.extensions.open_memory import OpenMemory
from klaw_core.holds import operations
from klaw_core.values.collections import MEMORY
from klaw_core.values.config import Selection
from klaw_core.values.search import Duplicates, Filters, Mode, SearchEvent, SearchRequest, SearchResults

# Methods import what only they need, so that a search in a fresh process does not load it.
if TYPE_CHECKING:
    from klaw_core import NewDocument
    from klaw_core.indexing.run_counts import ProgressCallback
    from klaw_core.values.documents import DocumentRecord, ListedDocument
    from klaw_core.values.events import Event
    from klaw_core.values.runs import Excerpt, ForgetReport, IndexReport, SourceStatus, Status
    from klaw_core.values.tools import Json, Tool
    from klaw_core.values.vectors import Vector


def _as_ids(ids: Iterable[str]) -> list[str]:
    """Return the ids as a list. Raise QueryError for a single string, whose characters would be read as ids."""
    if isinstance(ids, str):
        raise QueryError(f"expected a list of ids, got the string {quoted(ids)}", hint="pass a list of ids")
    return list(ids)


def _refuse(place: str, **options: object) -> None:
    """Raise QueryError if one of these options is given, which apply only to another call."""
    if given := [name for name, value in options.items() if value is not None]:
        raise QueryError(f"index: {' and '.join(given)} apply only to {place}", hint=f"leave out {', '.join(given)}")


@operations
class Memory(OpenMemory):
    """Notes, conversations and saved texts, searchable by words and by meaning.

        with Memory.open() as memory:
            memory.index("~/notes")
            for result in memory.search("what did we decide about auth"):
                print(result.path, result.start_line, result.content)

    Safe to use from several threads. Every method raises only subclasses of KlawError.
    """

    @property
    def core(self) -> Any:
        """Core memory: the few facts about user and agent that are part of every prompt; see ``klaw_memories``."""
        return self._part("core_memory").core

    @property
    def conversations(self) -> Any:
        """The conversations: append messages, read them, and search single messages; see ``klaw_conversations``."""
        return self._part("conversations").archive

    def index(
        self,
        directory: str | Path | None = None,
        *,
        name: str | None = None,
        collection: str | None = None,
        version: str | None = None,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        origin: str | None = None,
        paths: Iterable[str | Path] | None = None,
        trust: str | None = None,
        force: bool = False,
        verify: bool = False,
        embed: bool = True,
        on_progress: ProgressCallback = lambda _: None,
    ) -> IndexReport:
        """Update the index from a directory of notes, or (None) from everything that was indexed before.

        The directory is remembered as a workspace ``name`` (default: its own name) of a collection (default:
        ``memory``). ``version`` is the version of the documented software. ``include`` are patterns of file names to
        read (default: ``*.md``, ``*.markdown``, ``*.txt`` and those of converters), ``exclude`` patterns of paths below
        the directory; both are remembered. Instead of a directory, ``origin`` selects one source, or ``paths`` selects
        single files of known sources without a scan; these six options are then refused. ``trust`` is the class of the
        directory's files, remembered too. A file of unchanged size, inode and times is not read; ``verify`` reads every
        file and compares its bytes, as ``paths`` always does. ``force`` chunks every document again. New text can be
        found by words at once; then it is embedded, unless ``embed`` is False. If the embedder fails, the report says
        how many chunks lack a vector, and why; :meth:`embed` and the next run continue. If one of several sources
        fails, the report lists it as ``skipped``. Raise QueryError for options that do not apply, WorkspaceError,
        NotFoundError, PluginError, StoreError.
        """
        runs = self._runs
        if [directory, origin, paths].count(None) < 2:  # noqa: PLR2004  # one of three may be given
            raise QueryError("index takes one of: a directory, an origin, paths")
        if directory is None:
            given = {"name": name, "collection": collection, "version": version, "include": include, "trust": trust}
            _refuse("a directory", **given, exclude=exclude)
        if paths is not None:
            _refuse("a directory or an origin, because named files are always read", verify=verify or None)
            paths = [paths] if isinstance(paths, str | Path) else paths
            return runs.over_files(paths, force=force, embed=embed, on_progress=on_progress)
        if directory is not None:
            changes = {"version": version, "include": include, "exclude": exclude or (), "trust": trust}
            collection = MEMORY if collection is None else collection
            origin = self._part("workspaces").remember(runs.sources, directory, name, collection, **changes)
        if origin is not None:
            runs = self._runs  # which lists a directory that was just remembered, too
            sources = runs.sources.with_origin(origin)
            return runs.over(sources, force=force, verify=verify, embed=embed, on_progress=on_progress, alone=True)
        sources = runs.sources.all()
        if not sources:
            raise WorkspaceError("nothing has been indexed yet", hint="klaw index DIR")
        return runs.over(sources, force=force, verify=verify, embed=embed, on_progress=on_progress)

    def embed(
        self,
        *,
        limit: int | None = None,
        texts_per_call: int | None = None,
        on_progress: ProgressCallback = lambda _: None,
    ) -> IndexReport:
        """Embed the chunks that have no vector, those of the newest documents first, at most ``limit`` of them.

        Idempotent: after an interruption, the next call continues where this one stopped. If the embedder fails, the
        report says how many chunks still lack a vector, and why. Raise StoreError.
        """
        from klaw_core.embedding.run import EmbeddingRun

        with self._assembly.store.read() as snapshot:
            collections = snapshot.collections()
        return self._runs.embed(EmbeddingRun(texts_per_call), collections, on_progress, limit)

    def reindex(
        self, embedding: Selection | str | None = None, *, on_progress: ProgressCallback = lambda _: None
    ) -> IndexReport:
        """Rebuild the whole index from the files, next to the present one, and switch to it when it is complete.

        This moves an index to another model: the configured one, or ``embedding`` (``"ollama"``,
        ``"onnx:bge-small-en-v1.5"``), which this memory then uses; the configuration file is not changed.
        Until the new index is complete, searches use the old one. An interrupted run changes
        nothing, and the next one embeds nothing twice. Raise WorkspaceError if a directory is missing,
        StoreLockedError if another process is writing, ConfigError, PluginError, EmbeddingError, StoreError.

        A damaged database is set aside first, as the ``notices`` of the report say, and the new index is then built
        like that of :meth:`index`: what cannot be read or embedded now is in the report, and does not raise.
        """
        from klaw_core.maintenance.reindex import move

        return move(self._assembly, self._runs, embedding, on_progress)

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        mode: Mode = "hybrid",
        filters: Filters = Filters(),  # noqa: B008  # frozen
        collection: str | Sequence[str] | None = None,
        min_score: float | None = None,
        min_relevance: float | None = None,
        per_document: int | None = 3,
        vector: Vector | None = None,
        duplicates: Duplicates = "collapse",
    ) -> SearchResults:
        """Return the chunks that answer a question in plain words, best first; without words, the newest that match.

        ``mode`` is ``hybrid``, ``fts`` or ``vector``. ``collection`` names one or several collections; None means all
        but those that are separate, such as ``docs`` and ``facts``. Each result has its collection. ``vector`` replaces
        the vector of the question: float32 of shape (d,), unit length, in the space of the index. With
        ``duplicates="keep"``, chunks with the same text as a better result are results too. Scores are comparable only
        within one answer, relevances also between questions: results below ``min_relevance`` are left out. More than
        ``per_document`` chunks of a note are results only if no other notes match nearly as well; None sets no limit.
        Raise QueryError for an empty query or an unknown collection; if a retriever fails, ``notices`` say so.
        """
        return self.search_for(
            SearchRequest(
                query, limit, mode, filters, collection, min_score, min_relevance, per_document, vector, duplicates
            )
        )

    def search_for(self, request: SearchRequest) -> SearchResults:
        """Search as :meth:`search` does, with its arguments as one value."""
        outdated: tuple[str, ...] = ()
        if request.collections is not None:
            self._check_collections(request.collections)
        if self.config.sync.on_search:
            outdated = self._runs.refresh(request.collections or self.collections(searched=True))
        request.check()
        spaces = self._searcher.spaces(request, self._separate)
        names = tuple(spaces)
        results = self._searcher.search(request, spaces)
        if results.hints and not results:
            results = self._explain_empty(results, names)
        results = evolve(results, notices=(*outdated, *results.notices)) if outdated else results
        self.extensions.emit(event := SearchEvent(request.text, names, results))
        return evolve(event.results, notices=(*results.notices, *event.notices))

    def nearest(self, question: str, texts: Sequence[str]) -> int | None:
        """Return the place of the text that is nearest in meaning to a question that was searched for before.

        Only local models are used, and only the last questions are known; otherwise the result is None.
        """
        return self._searcher.nearest(question, texts)

    def get(self, path: str, first_line: int = 1, lines: int | None = None, *, redact: bool = False) -> Excerpt:
        """Return lines of a note or of a saved memory: the file as it is now, or the stored text.

        If the file is gone or left out, the text is that of the last index run, and the ``notice`` says so.

        ``path`` is a result's path (``notes/a.md``), the path of a file in a workspace, or a chunk's id. With a heading
        after ``#`` it is a section: ``notes/a.md#Plans``, ``papers/b.pdf#page=3``. ``redact``: the text is for a
        model, so secrets are redacted as in the index. Raise NotFoundError.
        """
        return self._reader(self._sources).get(path, first_line, lines, redact=redact)

    def save(
        self,
        text: str,
        *,
        source: str = "manual",
        chat_id: str | None = None,
        created_at: datetime | None = None,
        tags: Sequence[str] = (),
        supersedes: str | None = None,
    ) -> Excerpt:
        """Save a text of the owner; it can be found at once, in place of the memory that it ``supersedes``, if any.

        Once the text is in the journal, nothing raises: if it cannot be indexed or embedded now, the
        ``notice`` of the answer says why, and the next :meth:`index` does it. Raise RecordError for what cannot be
        saved, or a time without a zone; NotFoundError for an unknown ``supersedes``; StoreError.
        """
        details = {"tags": tags, "supersedes": supersedes}
        excerpt: Excerpt = self._part("saved").save(text, source, chat_id, created_at, **details)
        return excerpt

    def add(self, documents: Iterable[NewDocument], *, collection: str = MEMORY) -> IndexReport:
        """Store documents under the caller's ids and index them; a known id replaces the earlier document.

        They are stored in a journal, so they survive :meth:`reindex`, and are found in ``collection`` under the path
        ``documents/ID``. Once they are in the journal, nothing raises: if they cannot be indexed or
        embedded now, the ``notices`` of the report say why, and the next :meth:`index` does it. Raise RecordError,
        QueryError for a wrong collection name or a collection of an extension, StoreError if they cannot be written.
        """
        collection = self._assembly.registry.check_writable(collection)
        report: IndexReport = self._part("documents").put(documents, collection)
        return report

    def delete(self, ids: Iterable[str], *, collection: str = MEMORY, missing_ok: bool = False) -> int:
        """Delete documents stored by :meth:`add`; return their number.

        Raise NotFoundError, and delete nothing, if an id is unknown, unless ``missing_ok``; StoreError.
        """
        count: int = self._part("documents").delete(_as_ids(ids), collection, missing_ok=missing_ok)
        return count

    def get_by_ids(self, ids: Iterable[str], *, collection: str = MEMORY) -> tuple[NewDocument, ...]:
        """Return the documents with these ids that :meth:`add` stored, in the order of the ids."""
        found: tuple[NewDocument, ...] = self._part("documents").get(_as_ids(ids), collection)
        return found

    def documents(
        self, *, collection: str = MEMORY, prefix: str = "", after: str = "", limit: int = 100
    ) -> tuple[DocumentRecord, ...]:
        """Return indexed documents in order of path, a page at a time.

        ``prefix`` is the start of their paths; ``after`` is the path of the last document of the previous page.
        """
        self._check_collections((collection,))
        with self._assembly.store.read() as snapshot:
            return tuple(snapshot.documents(collection, prefix, after, limit))

    def recent(
        self,
        limit: int | None = 10,
        *,
        since: datetime | None = None,
        origin: str | None = None,
        collection: str | None = None,
    ) -> tuple[ListedDocument, ...]:
        """Return the newest documents, the newest first: notes, saved texts, conversations by the day.

        The date of a note is taken from its name, or else its front matter, or else its file. ``origin`` selects one
        source (``saved``, a workspace), ``collection`` one collection; None means all. Raise QueryError, StoreError.
        """
        from klaw_core.sources.listing import recent_documents

        if collection is not None:
            self._check_collections((collection,))
        collections = None if collection is None else (collection,)
        return recent_documents(self._assembly.store, limit, since=since, origin=origin, collections=collections)

    def collections(self, *, searched: bool = False) -> tuple[str, ...]:
        """Return the names of all collections, or only of those that a search covers if it names none."""
        separate = self._separate if searched else ()
        return tuple(name for name in self._sources.collections() if name not in separate)

    @property
    def workspaces(self) -> Any:
        """The directories of notes: list, rename, remove and restrict them; see ``klaw_notes``."""
        return self._part("workspaces").manager(lambda: self._runs, self._assembly.collection, self.forget)

    def restore(self, path: str) -> IndexReport:
        """Restore a note that :meth:`forget` excluded, and index it.

        ``path`` is its path in results, or its file. Raise NotFoundError if it was not forgotten, or is not a note.
        """
        report: IndexReport = self.workspaces.restore(path)
        return report

    def sources(self) -> tuple[SourceStatus, ...]:
        """Return every source of documents: configured, remembered, and those of extensions. Reads no document."""
        from klaw_core.interfaces.source import Forgettable
        from klaw_core.values.runs import SourceStatus

        return tuple(
            SourceStatus(source.origin, source.collection, source.root, source.can(Forgettable), source.configured)
            for source in self._sources.all()
        )

    def watch_paths(self) -> Mapping[str, Sequence[Path]]:
        """Return the files and directories to watch for changes, by origin."""
        return self._sources.watch_paths()

    def forget(self, target: str) -> ForgetReport:
        """Remove a saved memory (by path or chunk id), a note (by path) or a workspace (``notes/``) from the index.

        The file of a note stays, but is excluded. Raise NotFoundError, QueryError for a path in several collections.
        """
        from klaw_core.sources.forgetting import Forgetter
        from klaw_core.values.events import ForgetEvent

        runs = self._runs
        with self._assembly.store.erasing_once():
            report = Forgetter(self._assembly.collection, self._reader(runs.sources), runs.sources).forget(target)
            runs.skipped.forget(target, report.paths)
            if error := self.extensions.emit(ForgetEvent(report.paths)):
                raise error
        return report

    def context(
        self,
        message: str,
        *,
        chat: str | None = None,
        budget: int = 1000,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        seen: Iterable[str] = (),
        part: Literal["stable", "volatile"] | None = None,
        filters: Filters = Filters(),  # noqa: B008  # frozen
        min_relevance: float | None = None,
        trust: str | None = None,
    ) -> Any:
        """Return a ``klaw_tools.Context`` for a model's prompt: core memory, items of extensions, and the best chunks.

        It has at most ``budget`` tokens (estimated; most models count fewer), the stable part first. Chunks that would
        take more than their share of it are cut to the part that fits the message best. With a smaller budget, the
        stable part is a prefix of the one with a larger budget, and the volatile part has the first of its items if the
        stable parts are equal. Equal memories give equal contexts. Nothing raises: failed searches are in ``notices``.
        ``as_of`` and ``known_at`` ask for facts that were true, and known, at a moment; ``seen`` are the sources of
        items that the model already has, which are left out. ``part`` selects one part. ``filters`` select chunks, as
        for :meth:`search`, and what extensions offer, but not core memory. ``min_relevance`` selects chunks.
        ``trust`` is the lowest class of texts to take: ``agent`` unless configured otherwise, so nothing foreign.
        """
        return self._part("tools").context(
            list(self.extensions.all().items()),
            partial(self.search, min_relevance=min_relevance),
            self.config.conversations.redactor,
            part,
            message=message,
            chat=chat,
            budget=budget,
            as_of=as_of,
            known_at=known_at,
            seen=frozenset(seen),
            filters=filters,
            trust=trust,
        )

    def tools(self, *, allow: Collection[str] = ()) -> list[Json]:
        """Return the tools that a language model can be offered, as ``name``, ``description``, ``input_schema``.

        ``allow`` names the opt-in tools to offer (``memory_forget``).
        """
        found: list[Json] = self._part("tools").described(self, allow)
        return found

    def toolbox(self, *, allow: Collection[str] = ()) -> Mapping[str, Tool]:
        """Return the same tools by name, as values, which also say whether a tool only reads or removes something."""
        found: Mapping[str, Tool] = self._part("tools").toolbox(self, allow)
        return found

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str, *, allow: Collection[str] = ()) -> Json:
        """Run a tool with a model's arguments (an object, or its JSON) and return its answer as JSON.

        No input of a model raises. An opt-in tool needs ``allow`` here too.
        """
        answer: Json = self._part("tools").call(self, name, arguments, allow)
        return answer

    def on_change(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``callback`` for every event of this memory in this process; return a function that ends that.

        The callback runs in the thread that caused the event. Its exceptions are logged.
        """
        return self.extensions.on_change(callback)

    def status(self) -> Status:
        """Return what is indexed, the model in use, and any problems."""
        from klaw_core.maintenance.status import take_status

        return take_status(self._assembly, self._sources, self.extensions)

    def doctor(self, *, fix: bool = False) -> Any:
        """Check everything: store, indexes, vector spaces, files, plugins; with ``fix`` fix what is safe to fix.

        Reads every document and page, and asks the model for one vector. Return a ``klaw_doctor.diagnosis.Diagnosis``.
        """
        return self._part("doctor").diagnose(self._assembly, self._sources, self.extensions, fix=fix)

    def export(self, target: str | Path | BinaryIO) -> Any:
        """Write workspaces, core memory, saved memories, conversations, summaries and all other journals as JSON Lines.

        To a file (atomically, 0600) or a stream. Notes are already files and are not exported. Return a
        ``klaw_journals.ExportReport``. Raise StoreError.
        """
        place = Path(target) if isinstance(target, str) else target
        return self._part("doctor").export(self.extensions.all(), place)

    def import_(
        self,
        source: str | Path,
        *,
        importer: str | None = None,
        workspaces: bool = False,
        dry_run: bool = False,
        trust: str | None = None,
    ) -> Any:
        """Import an export. Existing records stay; importing it again changes nothing.

        ``importer`` reads the export of another program (``"chatgpt"``); ``source`` may then be a directory.
        The workspaces of an export are added only with ``workspaces``, because the export may come from another person;
        otherwise ``kept`` in the report says what they would change. ``dry_run`` only counts the records to be added.
        ``trust`` is the class of the records: by default as in an export of Klaw, and ``foreign`` with an ``importer``.
        Saved memories are indexed at once, everything else by the next :meth:`index`. Return a
        ``klaw_journals.ImportReport``. Raise RecordError, with nothing changed, if the file is not a complete export;
        NotFoundError if it does not exist; PluginError, StoreError.
        """
        return self._part("doctor").import_(
            self.extensions.all(), Path(source), importer, workspaces=workspaces, dry_run=dry_run, trust=trust
        )

"""The extension ``links``: the graph of the indexed documents, and neighbours of found notes for contexts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from attrs import define, field

from klaw_core import AttachedExtension, Host, KlawError, NotFoundError, ThreadLock, line_starts, quoted
from klaw_core.values.metadata import TRUST
from klaw_notes.links.graph import DocumentLinks, LinkedDocument, LinkGraph
from klaw_notes.links.reading import anchors_of, links_of_metadata, read_markdown
from klaw_notes.options import LinksOptions
from klaw_notes.workspace_options import configured_workspaces
from klaw_tools import ArrangingExtension, ContextItem, ContextQuestion

if TYPE_CHECKING:
    from pathlib import Path

    from klaw_core import Chunk, Memory, Metadata, Snapshot, StoredChunk
    from klaw_journals.records import ExportReport

_NEW_LINE = "\n"
_LIST = 1_000  # documents per query
_PRIORITY = 25  # after the chunks, which have 20
_FOUND = 3  # best chunks whose neighbours are offered
_PLACE = re.compile(r":\d+-\d+\Z")
# Sources whose texts are not written to link to each other.
_APART = frozenset({"conversations", "facts"})


@define(eq=False)
class LinksExtension(AttachedExtension, ArrangingExtension):
    """Knows what links to what. The graph is made of the index, and only changed documents are read again."""

    options: LinksOptions = field(factory=LinksOptions)
    _host: Host | None = field(default=None, init=False)
    _read: dict[tuple[str, str, str], LinkedDocument] = field(factory=dict, init=False, repr=False)
    _lock: ThreadLock = field(factory=lambda: ThreadLock("the links of a memory"), init=False, repr=False)
    _graph: LinkGraph | None = field(default=None, init=False, repr=False)
    _collection_of: dict[str, str] = field(factory=dict, init=False, repr=False)

    name = "links"

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host = host

    def graph(self) -> LinkGraph:
        """Return the links of all documents as they are indexed now. Raise StoreError."""
        assert self._host is not None
        with self._lock.hold(), self._host.read() as snapshot:
            present: dict[tuple[str, str, str], LinkedDocument] = {}
            collections: dict[str, str] = {}
            for collection in snapshot.collections():
                for path, digest in _listed(snapshot, collection):
                    key = (collection, path, digest)
                    present[key] = self._read.get(key) or _document(path, snapshot.outline(collection, path))
                    collections[path] = collection
            if self._graph is None or present.keys() != self._read.keys():
                self._read, self._collection_of = present, collections
                self._graph = LinkGraph({path: document for (_, path, _), document in present.items()}, self._roots)
            return self._graph

    def of(self, target: str) -> DocumentLinks:
        """Return the links of a document, given by its path or by its name. Raise NotFoundError, StoreError."""
        graph = self.graph()
        if target in graph.documents:
            return graph.of(target)
        found = graph.named(target)
        if len(found) == 1:
            return graph.of(found[0])
        hint = f"one of {', '.join(found)}" if found else "`klaw list` shows the paths"
        who = "several documents have" if found else "no document has"
        raise NotFoundError(f"{who} the name {quoted(target)}", hint=hint)

    def bundle(self, memory: Memory, directory: Path) -> ExportReport:
        """Write what is indexed as a bundle in Open Knowledge Format, to a new or empty directory. Raise StoreError."""
        from klaw_notes.okf import write_bundle

        return write_bundle(memory, self.graph(), self._metadata, directory)

    def _roots(self) -> Mapping[str, Path]:
        """Return the directories of the workspaces that are here, by name."""
        assert self._host is not None
        found: dict[str, Path] = {}
        with suppress(KlawError):  # the plugin is off, or its list cannot be read
            known = self._host.extension("workspaces").registry.all()
            found = {name: workspace.root for name, workspace in known.items()}
        found |= {options.origin: options.root for options in configured_workspaces(self._host.config)}
        return {name: root for name, root in found.items() if root.is_dir()}

    def _metadata(self, collection: str, path: str) -> Metadata:
        assert self._host is not None
        with self._host.read() as snapshot:
            chunks = snapshot.outline(collection, path)
        return chunks[0].metadata if chunks else {}

    def arrange(self, question: ContextQuestion, items: Sequence[ContextItem], /) -> Iterable[ContextItem]:
        """Yield the items, and the neighbours of the best chunks."""
        yield from items
        if not self.options.neighbours or question.filters or self._host is None:
            return
        shown = {_PLACE.sub("", item.source): item for item in items if item.heading == "Chunks"}
        linked = self._neighbours(list(shown)[:_FOUND], shown.keys())
        if not linked:
            return
        with self._host.read() as snapshot:
            for path, because in linked.items():
                if chunks := snapshot.outline(self._collection_of[path], path):
                    yield _item(chunks[0], because)

    def _neighbours(self, found: Sequence[str], known: Iterable[str]) -> Mapping[str, str]:
        """Return the nearest neighbours of found documents, and which of these each is linked with."""
        graph = self.graph() if found else None
        linked: dict[str, str] = {}
        for path in found:
            for other in graph.neighbours(path) if graph else ():
                if other not in known:
                    linked.setdefault(other, path)
        return dict(list(linked.items())[: self.options.neighbours])


def _listed(snapshot: Snapshot[Any], collection: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of a collection's documents, and what changes with their texts."""
    after = ""
    while page := snapshot.documents(collection, "", after, _LIST):
        yield from ((record.path, record.content_hash) for record in page if record.origin not in _APART)
        after = page[-1].path


def _document(path: str, chunks: Sequence[StoredChunk]) -> LinkedDocument:
    """Return the links of a document. Its text is read as a whole: code may begin in one chunk and end in another."""
    if not chunks:
        return LinkedDocument(path)
    metadata = chunks[0].metadata
    in_text, titles = read_markdown(_joined(stored.chunk for stored in chunks))
    links = [*links_of_metadata(metadata), *in_text]
    # The headings of other markup are only known to its chunker.
    known = dict.fromkeys((title,) for stored in chunks for title in stored.chunk.heading)
    headings = anchors_of(titles) | anchors_of(known)
    aliases = metadata.get("aliases", ())
    given = (metadata.get("title"), *(aliases if isinstance(aliases, tuple) else (aliases,)))
    names = tuple(name for name in given if isinstance(name, str) and name)
    return LinkedDocument(path, tuple(dict.fromkeys(links)), names, headings)


def _joined(chunks: Iterable[Chunk]) -> str:
    """Return the text of a document's chunks, each at its offset and line. What no chunk has was white space."""
    parts: list[str] = []
    length, line = 0, 1
    for chunk in chunks:
        gap = max(0, chunk.start - length)
        breaks = min(gap, max(0, chunk.start_line - line))
        # Spaces come before the line ends: behind them they would indent the chunk's first line, which makes code.
        added = f"{' ' * (gap - breaks)}{_NEW_LINE * breaks}{chunk.text[max(0, length - chunk.start) :]}"
        parts.append(added)
        length += len(added)
        line += len(line_starts(added)) - 1
    return "".join(parts)


def _item(stored: StoredChunk, because: str) -> ContextItem:
    place = f"{stored.path}:{stored.chunk.start_line}-{stored.chunk.end_line}"
    return ContextItem(
        stored.chunk.text.strip(),
        priority=_PRIORITY,
        heading="Linked notes",
        source=place,
        created_at=stored.created_at,
        label=f"{place}, linked with {because}",
        share=0.1,
        trust=str(stored.metadata.get(TRUST, "owner")),
    )

"""The extension ``links``: the graph of the indexed documents, and neighbours of found notes for contexts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field

from klaw_core import AttachedExtension, Host, NotFoundError, ThreadLock, quoted
from klaw_core.values.metadata import TRUST
from klaw_notes.links.graph import DocumentLinks, LinkedDocument, LinkGraph
from klaw_notes.links.reading import headings_of, links_of_metadata, links_of_text
from klaw_notes.options import LinksOptions
from klaw_tools import ArrangingExtension, ContextItem, ContextQuestion

if TYPE_CHECKING:
    from klaw_core import Snapshot, StoredChunk

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
                self._graph = LinkGraph({path: document for (_, path, _), document in present.items()})
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
    """Return the links of a document; text that chunks share is read once."""
    if not chunks:
        return LinkedDocument(path)
    metadata = chunks[0].metadata
    links = [*links_of_metadata(metadata)]
    headings: set[str] = set()
    last = 0
    for stored in chunks:
        found = stored.chunk
        headings.update(headings_of(found.text))
        headings.update(headings_of("\n".join(f"# {heading}" for heading in found.heading)))
        links += [link for link in links_of_text(found.text, found.start_line) if link.line > last]
        last = max(last, found.end_line)
    aliases = metadata.get("aliases", ())
    given = (metadata.get("title"), *(aliases if isinstance(aliases, tuple) else (aliases,)))
    names = tuple(name for name in given if isinstance(name, str) and name)
    return LinkedDocument(path, tuple(dict.fromkeys(links)), names, frozenset(headings))


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

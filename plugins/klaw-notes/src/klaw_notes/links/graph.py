"""The links between the indexed documents: which document a link means, what links to a document, what is broken."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from attrs import field, frozen

from klaw_notes.links.reading import Link, anchor

# What notes embed, and Klaw doesn't index: a link to such a file is no broken one.
_MEDIA = (
    *(".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".bmp", ".avif", ".ico", ".mp3", ".wav", ".m4a", ".ogg"),
    *(".mp4", ".mov", ".webm", ".zip", ".gz", ".css", ".js", ".pdf", ".docx", ".xlsx", ".pptx", ".csv", ".json"),
)
_NOTES = (".md", ".markdown", ".mdx", ".qmd", ".rmd", ".txt", ".canvas", ".org", ".rst", ".adoc")


@frozen
class LinkedDocument:
    """What the graph knows of a document: its links, the names that links may call it by, and its headings.

    ``headings`` are anchors, see :func:`klaw_notes.links.reading.anchors_of`.
    """

    path: str
    links: tuple[Link, ...] = ()
    names: tuple[str, ...] = ()
    headings: frozenset[str] = frozenset()


@frozen
class Edge:
    """A link of ``path``, in ``line``, to the document ``target``, and its ``heading`` if it names one."""

    path: str
    line: int
    target: str
    heading: str = ""
    kind: str = "link"


@frozen
class BrokenLink:
    """A link of ``path``, in ``line``, as it is written, and why it leads nowhere."""

    path: str
    line: int
    target: str
    reason: str
    kind: str = "link"


@frozen
class DocumentLinks:
    """The links of a document ``to`` others, those of others to it (``backlinks``), and its ``broken`` ones."""

    path: str
    to: tuple[Edge, ...] = ()
    backlinks: tuple[Edge, ...] = ()
    broken: tuple[BrokenLink, ...] = ()


@frozen(eq=False)
class LinkGraph:
    """The links of all documents. A link only means a document of the same source: the first part of their paths."""

    documents: Mapping[str, LinkedDocument] = field(repr=False)

    def of(self, path: str) -> DocumentLinks:
        """Return the links of a document; none if it is unknown."""
        document = self.documents.get(path)
        to, broken = self._edges(document) if document else ((), ())
        return DocumentLinks(path, tuple(to), tuple(self._backlinks.get(path, ())), tuple(broken))

    def broken(self) -> Iterator[BrokenLink]:
        """Yield all broken links, by document."""
        for _, document in sorted(self.documents.items()):
            yield from self._edges(document)[1]

    def neighbours(self, path: str) -> Sequence[str]:
        """Return the documents that a document links to, in order, then those that link to it, each once."""
        found = self.of(path)
        linked = [*(edge.target for edge in found.to), *(edge.path for edge in found.backlinks)]
        return [each for each in dict.fromkeys(linked) if each != path]

    def named(self, name: str) -> Sequence[str]:
        """Return the documents that a name can mean, of all sources: a part of the path, an alias, a title."""
        origins = {path.partition("/")[0] for path in self.documents}
        found = (self.target_of(Link(name), f"{origin}/") for origin in sorted(origins))
        return [path for path in found if path]

    def target_of(self, link: Link, source: str) -> str:
        """Return the path of the document that a link in ``source`` means; empty if there is none.

        A path is tried from the document's directory, then, unless it begins with ``.``, from the root of its source.
        What is no path is also a name: the end of a path, an alias or a title. Of several documents with it the nearest
        is meant: of the same directory, then the least deep.
        """
        origin = source.partition("/")[0]
        directory = posixpath.dirname(source)
        is_relative = link.target.startswith(("./", "../"))
        for base in (directory,) if is_relative else (directory, origin):
            path = posixpath.normpath(posixpath.join(base, link.target.lstrip("/") if base == origin else link.target))
            if path.startswith(f"{origin}/"):
                for suffix in ("", *_NOTES):
                    if f"{path}{suffix}".casefold() in self._by_path:
                        return self._by_path[f"{path}{suffix}".casefold()]
                for index in ("index.md", "README.md", "_index.md") if link.is_path else ():
                    if f"{path}/{index}".casefold() in self._by_path:
                        return self._by_path[f"{path}/{index}".casefold()]
        parts = [part for part in link.target.split("/") if part not in {".", "..", ""}]
        if not parts or link.is_path:
            return ""
        found = [path for path in self._candidates(origin, parts) if path]
        return min(found, key=lambda path: (posixpath.dirname(path) != directory, path.count("/"), path), default="")

    @cached_property
    def _backlinks(self) -> Mapping[str, Sequence[Edge]]:
        found: dict[str, list[Edge]] = defaultdict(list)
        for _, document in sorted(self.documents.items()):
            for edge in self._edges(document)[0]:
                if edge.target != document.path:
                    found[edge.target].append(edge)
        return found

    def _edges(self, document: LinkedDocument) -> tuple[Sequence[Edge], Sequence[BrokenLink]]:
        edges, broken = [], []
        for link in document.links:
            target = self.target_of(link, document.path)
            if target:
                known = self.documents[target].headings
                if not link.heading or not known or anchor(link.heading) in known:
                    edges.append(Edge(document.path, link.line, target, link.heading, link.kind))
                    continue
                reason = f"{target} has no heading {link.heading!r}"
            elif link.target.lower().endswith(_MEDIA):
                continue
            else:
                reason = "no such document"
            written = f"{link.target}#{link.heading}" if link.heading else link.target
            broken.append(BrokenLink(document.path, link.line, written, reason, link.kind))
        return edges, broken

    def _candidates(self, origin: str, parts: Sequence[str]) -> Iterator[str]:
        name = _stem(parts[-1]).casefold()
        end = "/".join([*parts[:-1], name]).casefold()
        for path in self._by_name.get((origin, name), ()):
            stem = _stem(path).casefold()
            if len(parts) == 1 or stem.endswith(f"/{end}"):
                yield path

    @cached_property
    def _by_path(self) -> Mapping[str, str]:
        return {path.casefold(): path for path in sorted(self.documents, reverse=True)}

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """The documents by source and name: that of the file, or, if no file has it, a title or an alias."""
        files: dict[tuple[str, str], list[str]] = defaultdict(list)
        for path in self.documents:
            files[path.partition("/")[0], _stem(posixpath.basename(path)).casefold()].append(path)
        others: dict[tuple[str, str], list[str]] = defaultdict(list)
        for path, document in self.documents.items():
            for name in document.names:
                others[path.partition("/")[0], name.casefold()].append(path)
        return {**others, **files}


def _stem(name: str) -> str:
    stem, suffix = posixpath.splitext(name)
    return stem if suffix.lower() in _NOTES else name

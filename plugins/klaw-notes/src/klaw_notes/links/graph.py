"""The links between the indexed documents: which document a link means, what links to a document, what is broken."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeAlias
from unicodedata import normalize

from attrs import field, frozen

from klaw_notes.links.reading import Link, anchor

# What notes embed, and Klaw doesn't index: a link to such a file is no broken one.
_MEDIA = (
    *(".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".bmp", ".avif", ".ico", ".mp3", ".wav", ".m4a", ".ogg"),
    *(".mp4", ".mov", ".webm", ".zip", ".gz", ".css", ".js", ".pdf", ".docx", ".xlsx", ".pptx", ".csv", ".json"),
)
_INDEXES = ("index.md", "README.md", "_index.md")  # of a directory
_NOTES = (".md", ".markdown", ".mdx", ".qmd", ".rmd", ".txt", ".canvas", ".org", ".rst", ".adoc")

_Form: TypeAlias = Callable[[str], str]  # of a path or a name, for a comparison


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
    """A link of ``path``, in ``line`` (None in front matter), to ``target``, and its ``heading`` if it names one."""

    path: str
    line: int | None
    target: str
    heading: str = ""
    kind: str = "link"


@frozen
class BrokenLink:
    """A link of ``path``, in ``line``, as it is written, and why it leads nowhere."""

    path: str
    line: int | None
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
    """The links of all documents. A link only means a document of the same source: the first part of their paths.

    ``roots`` returns the directories of the sources that have one here, by name: a link to a file there is not broken.
    """

    documents: Mapping[str, LinkedDocument] = field(repr=False)
    roots: Callable[[], Mapping[str, Path]] = field(default=dict, repr=False)

    def of(self, path: str) -> DocumentLinks:
        """Return the links of a document; none if it is unknown."""
        document = self.documents.get(path)
        broken = self._broken(document, self.roots()) if document else ()
        to = self._edges(document) if document else ()
        return DocumentLinks(path, tuple(to), tuple(self._backlinks.get(path, ())), tuple(broken))

    def broken(self) -> Iterator[BrokenLink]:
        """Yield all broken links, by document."""
        roots = self.roots()
        for _, document in sorted(self.documents.items()):
            yield from self._broken(document, roots)

    def neighbours(self, path: str) -> Sequence[str]:
        """Return the documents that a document links to, in order, then those that link to it, each once."""
        to = self._edges(self.documents[path]) if path in self.documents else ()
        linked = [*(edge.target for edge in to), *(edge.path for edge in self._backlinks.get(path, ()))]
        return [each for each in dict.fromkeys(linked) if each != path]

    def named(self, name: str) -> Sequence[str]:
        """Return the documents that a name can mean, of all sources: a path, a part of it, an alias, a title."""
        for form, by_path in self._by_path:
            if form(name) in by_path:
                return [by_path[form(name)]]
        origins = {path.partition("/")[0] for path in self.documents}
        found = (self.target_of(Link(name), f"{origin}/") for origin in sorted(origins))
        return [path for path in found if path]

    def target_of(self, link: Link, source: str) -> str:
        """Return the path of the document that a link in ``source`` means; empty if there is none.

        A path is tried from the document's directory, then, unless it begins with ``.``, from the root of its source.
        What is no path is also a name: the end of a path, an alias or a title. Of several documents with it the nearest
        is meant: of the same directory, then the least deep. What is written as the link is precedes what differs in
        its Unicode form, and this what differs in case.
        """
        paths = list(_paths_of(link, source))
        for number, (form, by_path) in enumerate(self._by_path):
            for path in paths:
                if (found := by_path.get(form(path))) is not None:
                    return found
            if not link.is_path and (found := self._nearest(link, source, number)):
                return found
        return ""

    @cached_property
    def _backlinks(self) -> Mapping[str, Sequence[Edge]]:
        found: dict[str, list[Edge]] = defaultdict(list)
        for _, document in sorted(self.documents.items()):
            for edge in self._edges(document):
                if edge.target != document.path:
                    found[edge.target].append(edge)
        return found

    def heading_of(self, link: Link, target: str) -> str | None:
        """Return the heading of a document that a link to it means; None if it has no such heading.

        Of ``[[Note#A#B]]`` it is B, unless there is one that is called "A#B".
        """
        known = self.documents[target].headings
        parts = [] if link.is_path else link.heading.split("#")
        names = [link.heading, *("#".join(parts[number:]) for number in range(1, len(parts)))]
        missing = None if link.heading and known else names[-1].strip()
        return next((name.strip() for name in names if anchor(name) in known), missing)

    def _edges(self, document: LinkedDocument) -> Iterator[Edge]:
        for link in document.links:
            target = self.target_of(link, document.path)
            if target and (heading := self.heading_of(link, target)) is not None:
                yield Edge(document.path, link.line, target, heading, link.kind)

    def _broken(self, document: LinkedDocument, roots: Mapping[str, Path]) -> Iterator[BrokenLink]:
        for link in document.links:
            target = self.target_of(link, document.path)
            if self.heading_of(link, target) is not None if target else _is_elsewhere(link, document.path, roots):
                continue
            reason = f"{target} has no heading {link.heading!r}" if target else "no such document"
            written = f"{link.target}#{link.heading}" if link.heading else link.target
            yield BrokenLink(document.path, link.line, written, reason, link.kind)

    def _nearest(self, link: Link, source: str, number: int) -> str:
        """Return the nearest document with a name, written in the form of this number; empty if there is none."""
        form, origin, directory = _FORMS[number], source.partition("/")[0], posixpath.dirname(source)
        parts = [part for part in link.target.split("/") if part not in {".", "..", ""}]
        if not parts:
            return ""
        name = _stem(parts[-1])
        end = form("/".join([*parts[:-1], name]))
        found = [
            path
            for own, path in self._by_name.get((origin, _folded(name)), ())
            if form(own) == form(name) and (len(parts) == 1 or form(_stem(path)).endswith(f"/{end}"))
        ]
        return min(found, key=lambda path: (posixpath.dirname(path) != directory, path.count("/"), path), default="")

    @cached_property
    def _by_path(self) -> Sequence[tuple[_Form, Mapping[str, str]]]:
        """The documents by their paths, in each form of writing them."""
        paths = sorted(self.documents, reverse=True)
        return [(form, {form(path): path for path in paths}) for form in _FORMS]

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], Sequence[tuple[str, str]]]:
        """The documents, each with its name, by source and name: of the file, or if no file has it, title or alias."""
        files: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for path in self.documents:
            name = _stem(posixpath.basename(path))
            files[path.partition("/")[0], _folded(name)].append((name, path))
        others: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for path, document in self.documents.items():
            for name in document.names:
                others[path.partition("/")[0], _folded(name)].append((name, path))
        return {**others, **files}


def _as_written(text: str) -> str:
    return text


def _composed(text: str) -> str:
    """Return a text with one form for ``é``, which macOS writes as two characters in the names of files."""
    return normalize("NFC", text)


def _folded(text: str) -> str:
    return _composed(_composed(text).casefold())


# From the closest: what is equal in a form is equal in those after it.
_FORMS: tuple[_Form, ...] = (_as_written, _composed, _folded)


def _paths_of(link: Link, source: str) -> Iterator[str]:
    """Yield the paths that a link in a document can mean, the first of which there is one."""
    origin = source.partition("/")[0]
    for path in _places_of(link, posixpath.dirname(source), origin):
        if path.startswith(f"{origin}/"):
            yield from (f"{path}{suffix}" for suffix in ("", *_NOTES))
            if link.is_path:
                yield from (f"{path}/{index}" for index in _INDEXES)


def _places_of(link: Link, directory: str, top: str) -> Iterator[str]:
    """Yield where a link leads to: from its document's directory, and, unless it begins with a dot, from the top."""
    if not link.target.startswith("/"):
        yield posixpath.normpath(posixpath.join(directory, link.target))
    if not link.target.startswith(("./", "../")):
        yield posixpath.normpath(posixpath.join(top, link.target.lstrip("/")))


def _is_elsewhere(link: Link, source: str, roots: Mapping[str, Path]) -> bool:
    """Return whether a link to no document is not broken: Klaw does not index its target, or cannot look for it."""
    target = link.target.lower()
    if target.endswith(_MEDIA):
        return True
    origin, _, relative = source.partition("/")
    if origin not in roots:
        return link.is_path and not target.endswith(_NOTES)
    places = _places_of(link, posixpath.dirname(relative), "")
    return any(_is_there(roots[origin] / place, link) for place in places)


def _is_there(place: Path, link: Link) -> bool:
    try:
        return place.exists() if link.is_path else place.is_file()
    except (OSError, ValueError):  # the name is too long, or contains a NUL
        return False


def _stem(name: str) -> str:
    stem, suffix = posixpath.splitext(name)
    return stem if suffix.lower() in _NOTES else name

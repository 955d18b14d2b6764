"""Read the document of a result: from its file, or from the store if there is no file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any

from attrs import evolve, frozen

from klaw_core.errors import NotFoundError, QueryError, StoreCorruptError, WorkspaceError, quoted
from klaw_core.indexing.chunking import FormatChunker
from klaw_core.indexing.redacting import DocumentRedactor
from klaw_core.interfaces.source import Divisible, Folder, Located
from klaw_core.interfaces.store import Store
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.sources.catalogue import Sources
from klaw_core.values.documents import Document, Entry
from klaw_core.values.findings import FIX
from klaw_core.values.lines import count_lines, line_starts, take_lines
from klaw_core.values.metadata import TRUST, has_surrogates
from klaw_core.values.runs import Excerpt, SkippedEntry
from klaw_core.values.text import DEFAULT_FORMAT, Heading, StoredChunk

_MIN_ID_DIGITS = 6
_MAX_LISTED_HEADINGS = 5  # in an error message
_WORDS = re.compile(r"[^\W_]+")


@frozen(eq=False)
class Reader:
    """Finds documents by path or chunk id, in every collection and source."""

    store: Store[Any]
    sources: Sources
    redactor: DocumentRedactor
    get_chunker: Callable[[str], FormatChunker]

    def get(self, target: str, first_line: int = 1, lines: int | None = None, *, redact: bool = False) -> Excerpt:
        """Return lines of a document. Raise NotFoundError, StoreCorruptError.

        ``target`` is a document's path, a file's path, or a chunk's id. It may end with ``#`` and the heading of a
        section: ``notes/a.md#Plans``, ``papers/b.pdf#page=3``, ``notes/a.md#Boats > Plans``, ``notes/a.md#plans-1``.
        ``redact``: the text is for a model, so secrets are redacted as in the index.
        """
        if first_line < 1:
            raise NotFoundError(f"line numbers count from 1, got {first_line}")
        if lines is not None and lines < 1:
            raise NotFoundError(f"the number of lines must be at least 1, got {lines}")
        try:
            return self._lines(target, first_line, lines, redact=redact)
        except NotFoundError:
            if (section := self._section(target)) is None:
                raise
        path, first, last = section
        if not (first_line == 1 or first <= first_line <= last):
            raise NotFoundError(f"{target} is lines {first} to {last} of {path}; asked for line {first_line}")
        first = max(first, first_line)
        return self._lines(path, first, min(lines or last, last - first + 1), redact=redact)

    def _section(self, target: str) -> tuple[str, int, int] | None:
        """Return the document, first line and last line of a section, or None if the target does not name a section.

        Raise NotFoundError if the document has no such heading.
        """
        for mark in (index for index, character in enumerate(target) if character == "#"):  # a name may contain one
            document, heading = target[:mark], target[mark + 1 :]
            if not document or not _words(heading):
                continue
            try:
                _, path, _ = self.locate((self._file_of(document) or (None, document))[1])
            except NotFoundError:
                continue
            return path, *self._lines_of_section(path, heading)
        return None

    def _lines_of_section(self, path: str, heading: str) -> tuple[int, int]:
        """Return the first and the last line of a section, by the parser of the document's format."""
        text = self._text_of(path)[1]
        headings = list(_addressed(self.get_chunker(self._format_of(path)).headings(text)))
        wanted = _words(heading)
        fits = [(heading not in each.names, n) for n, each in enumerate(headings) if wanted in map(_words, each.names)]
        for _, number in sorted(fits)[:1]:  # one with these very characters before others with these words
            rest = (other.line for other in headings[number + 1 :] if other.level <= headings[number].level)
            return headings[number].line, next(rest, count_lines(text) + 1) - 1
        listed = "; ".join(each.names[0] for each in headings[:_MAX_LISTED_HEADINGS])
        hint = f"some of its headings: {listed}" if listed else "it has no headings"
        raise NotFoundError(f"{path} has no section {quoted(heading)}", hint=hint)

    def _format_of(self, path: str) -> str:
        """Return the format of a document that has a file; of others, that of notes."""
        found = self._file_of(path)
        document = None if found is None else found[0].read(Entry(path))
        return document.format if isinstance(document, Document) else DEFAULT_FORMAT

    def _lines(self, target: str, first_line: int, lines: int | None, *, redact: bool) -> Excerpt:
        path, text, file, notice = self._text_of(target)
        is_note = any(source.can(Folder) for source in self._by_name(path))
        if redact or not (file is None or is_note):  # other programs' files are no record of the owner's
            text = self.redactor.for_model(text, is_note=is_note)
        total = count_lines(text)
        if first_line > total:
            raise NotFoundError(f"{path} has only {total} lines, asked for line {first_line}")
        last = min(total, first_line + (lines or total) - 1)
        with self.store.read() as snapshot:
            chunks = (chunk for name in snapshot.collections() for chunk in snapshot.outline(name, path))
            trust = next((str(chunk.metadata.get(TRUST, "owner")) for chunk in chunks), "owner")
        return Excerpt(path, take_lines(text, first_line, lines or total), first_line, last, file, notice, trust)

    def locate(self, target: str, *, unique: bool = False) -> tuple[str, str, str]:
        """Return the collection, path and origin of a document, given its path or the start of a chunk's id.

        If several collections have the path, the first is returned; with ``unique`` QueryError is raised instead.
        Raise NotFoundError if there is no such document.
        """
        if not target or has_surrogates(target):
            raise NotFoundError(f"{target!r} is not a path or an id")
        looks_like_id = len(target) >= _MIN_ID_DIGITS and set(target) <= set("0123456789abcdef")
        found: set[tuple[str, str, str]] = set()
        named: list[tuple[str, str, str]] = []
        with self.store.read() as snapshot:
            for collection in snapshot.collections():
                if outline := snapshot.outline(collection, target):
                    named.append((collection, target, outline[0].origin))
                elif looks_like_id:
                    chunks = snapshot.find(collection, target)
                    found |= {(collection, stored.path, stored.origin) for stored in chunks}
        if unique and len(named) > 1:
            collections = ", ".join(collection for collection, _, _ in named)
            hint = "choose one with Memory.delete(ids, collection=...)"
            raise QueryError(f"{target!r} is in several collections: {collections}", hint=hint)
        if named:
            return named[0]
        if len(found) == 1:
            return found.pop()
        if found:
            raise NotFoundError(
                f"the id {target!r} is ambiguous: chunks of {len(found)} documents match; give more characters"
            )
        raise self._not_found(target)

    def _not_found(self, target: str) -> NotFoundError:
        """Return the error for an unknown target, with the reason if it is known."""
        if any(source.origin == target for source in self.sources.known):
            name = quote(target)
            whole = f"search it with `klaw search --path {name}/`; remove it with `klaw forget {name}/`"
            return NotFoundError(f"{target} is a whole workspace", hint=whole)
        if reason := next(filter(None, (source.why_left_out(target) for source in self._by_name(target))), ""):
            return NotFoundError(f"{target} is not indexed: the file {reason}")
        return NotFoundError(
            f"no indexed document has the path or id {target!r}", hint="`klaw search` shows paths and ids"
        )

    def waiting(self, target: str) -> IsolatedSource | None:
        """Return the source of a document that is not indexed yet, or None if no source has it."""
        for source in self._by_name(target):
            with suppress(WorkspaceError):  # such as of one on a missing drive
                if any(isinstance(item, Entry) and item.path == target for item in source.scan()):
                    return source
        return None

    def _text_of(self, target: str) -> tuple[str, str, Path | None, str]:
        """Return a document's path, text, file (None if it has no file), and why the text may be outdated, if so."""
        found = self._file_of(target)
        if found is None:
            # First the sources: they know their parts, and the index may be older.
            parts = (source.use(Divisible, Divisible.part, target) for source in self.sources.known)
            if (text := next((part for part in parts if part is not None), None)) is not None:
                return target, text, None, ""
            try:
                collection, path, _ = self.locate(target)
            except NotFoundError:
                if (source := self.waiting(target)) is None:
                    raise
                return target, _read(source, target), None, ""
            if path != target:
                return self._text_of(path)
            with self.store.read() as snapshot:
                if not snapshot.damaged(collection, path):
                    return path, joined(snapshot.outline(collection, path)), None, self._why_outdated(path)
            if (source := self.waiting(path)) is None:
                raise StoreCorruptError(f"{path} is damaged in {self.store.location}", hint=FIX)
            return path, _read(source, path), None, ""
        source, path, file = found
        return path, _read(source, path), file, ""

    def _why_outdated(self, path: str) -> str:
        """Return that the text in the index may differ from the document, which cannot be read; empty if it is it."""
        sources = list(self._by_name(path))
        if not sources:
            why = "it no longer has a source here"
        elif any(source.can(Located) for source in sources):
            reasons = (source.why_left_out(path) for source in sources)
            why = f"its file {next(filter(None, reasons), 'cannot be found')}"
        else:
            return ""
        return f"this is the text of {path} when it was last indexed: {why}"

    def _file_of(self, target: str) -> tuple[IsolatedSource, str, Path] | None:
        """Return the source, path and file of a document, given its path or its file; None if it has no file."""
        for source in self._by_name(target):
            if (file := source.file_of(target)) is not None:
                return source, target, file
        for source in self.sources.known:
            path = source.use(Located, Located.locate, target)
            if path is not None and (file := source.file_of(path)) is not None:
                return source, path, file
        return None

    def _by_name(self, path: str) -> Iterator[IsolatedSource]:
        origin = path.partition("/")[0]
        return (source for source in self.sources.known if source.origin == origin)


def _addressed(headings: Sequence[Heading]) -> Iterator[Heading]:
    """Yield headings with more names: ``Boats > Plans``, as in results, and ``Plans-1`` for the second ``Plans``."""
    used: dict[str, int] = {}
    above: list[Heading] = []
    for each in (each for each in headings if each.names):
        first = name = _words(each.names[0])
        while name in used:
            used[first] += 1
            name = f"{first} {used[first]}"
        used[name] = 0
        above = [*(other for other in above if other.level < each.level), each]
        longer = [" > ".join(other.names[0] for other in above[start:]) for start in range(len(above) - 1)]
        numbered = [f"{each.names[0]}-{used[first]}"] if name != first else []
        yield evolve(each, names=(*numbered, *each.names, *longer))


def _words(heading: str) -> str:
    """Reduce a heading to its words for comparison, so that ``page=3`` and ``page-3`` match ``Page 3``."""
    return " ".join(_WORDS.findall(heading.casefold())) or heading.strip()


def _read(source: IsolatedSource, path: str) -> str:
    """Return a document's current text. Raise NotFoundError."""
    text = source.use(Located, Located.file_text, path)
    if text is None:
        document = source.read(Entry(path))
        text = document if isinstance(document, SkippedEntry) else document.text
    if isinstance(text, SkippedEntry):
        raise NotFoundError(f"{path} {text.reason}")
    return text


def joined(chunks: Sequence[StoredChunk]) -> str:
    """Join a document's chunks at their offsets and lines; fill the gaps, which were white space."""
    text = ""
    for stored in chunks:
        chunk = stored.chunk
        gap = chunk.start - len(text)
        if gap > 0:
            breaks = min(gap, chunk.start_line - len(line_starts(text)))
            text += "\n" * breaks + " " * (gap - breaks)
        text += chunk.text[len(text) - chunk.start :]
    return text

"""Documents as resources: their URIs, a page of them, and their text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from attrs import frozen

from klaw_core import DocumentRecord, Memory, NotFoundError, quoted

SCHEME = "klaw"
TEMPLATE = "klaw:///{+path}"
PAGE = 100
_LOOKED_AT = 1_000


@frozen
class Page:
    """Some documents, ordered by collection and path. ``cursor`` returns the next page; it is None on the last."""

    documents: tuple[DocumentRecord, ...]
    cursor: str | None


def uri_of(path: str) -> str:
    """Return the URI of a document."""
    return f"{SCHEME}:///{quote(path)}"


def path_of(uri: str) -> str:
    """Return the path in a URI. Raise NotFoundError if it is not one of Klaw's URIs."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise NotFoundError(
            f"{quoted(uri, 200)} is not a URI", hint=f"use a form like {uri_of('notes/a.md')}"
        ) from error
    path = unquote(parts.path.removeprefix("/"))
    has_lines = not uri.isprintable()  # urlsplit drops line breaks, and what is left hides a secret
    if parts.scheme != SCHEME or parts.netloc or not path or has_lines:
        raise NotFoundError(
            f"{quoted(uri, 200)} is not the URI of a document", hint=f"use a form like {uri_of('notes/a.md')}"
        )
    return path


def mime_type(path: str) -> str:
    """Return the MIME type of a document's text."""
    return "text/markdown" if path.endswith((".md", ".markdown")) else "text/plain"


def page(memory: Memory, collections: Sequence[str], cursor: str | None = None, size: int = PAGE) -> Page:
    """Return a page of documents. Raise NotFoundError for a cursor that did not come from a page."""
    names = tuple(collections) or memory.collections(searched=True)
    current, after = names[0], ""
    if cursor is not None:
        current, separator, after = cursor.partition("/")
        if not separator or current not in names:
            raise NotFoundError(f"invalid cursor {quoted(cursor, 100)}", hint="start without a cursor")
    found = memory.documents(collection=current, after=after, limit=size)
    if len(found) == size:
        return Page(found, f"{current}/{found[-1].path}")
    rest = names[names.index(current) + 1 :]
    return Page(found, f"{rest[0]}/" if rest else None)


def completed_paths(memory: Memory, collections: Sequence[str], typed: str, size: int = PAGE) -> tuple[list[str], bool]:
    """Return the paths that begin with what was typed, at most ``size``, and whether there are more."""
    names = tuple(collections) or memory.collections(searched=True)
    found = [item.path for name in names for item in memory.documents(collection=name, prefix=typed, limit=size + 1)]
    return found[:size], len(found) > size


def completed_topics(
    memory: Memory, collections: Sequence[str], typed: str, size: int = PAGE
) -> tuple[list[str], bool]:
    """Return the names of documents that have what was typed, at most ``size``, and whether there are more.

    Of each collection the first 1,000 documents are looked at.
    """
    names = tuple(collections) or memory.collections(searched=True)
    found = dict.fromkeys(topic for topic in _topics(memory, names) if typed.casefold() in topic.casefold())
    return list(found)[:size], len(found) > size


def _topics(memory: Memory, collections: Sequence[str]) -> Iterator[str]:
    for name in collections:
        for item in memory.documents(collection=name, limit=_LOOKED_AT):
            yield PurePosixPath(item.path).stem.replace("-", " ").replace("_", " ")

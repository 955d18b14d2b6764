"""The properties of a document as words: what a person wrote into its front matter, so that a question finds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from klaw_core import Metadata
from klaw_words.days import DATE_KEYS

#: The properties that are found in another way: names are in the title, days are asked for as days.
_ELSEWHERE = frozenset(("title", "alias", "aliases", "updated", "modified", "updated_at", "modified_at", *DATE_KEYS))
# Characters. What is longer is prose, and a property of a document is in the row of each of its chunks.
_MAX_VALUE, _MAX_TOTAL = 200, 1_000


def described(metadata: Metadata, /) -> str:
    """Return the keys and values of metadata in words, tags without their key; at most 1,000 characters."""
    return " ".join(_parts(metadata))[:_MAX_TOTAL]


def _parts(metadata: Mapping[str, object]) -> Iterator[str]:
    for key, value in metadata.items():
        if key.casefold() in _ELSEWHERE or isinstance(value, bool):
            continue
        items = value if isinstance(value, tuple) else (value,)
        written = [text for text in map(str, items) if text and len(text) <= _MAX_VALUE]
        if written and key.casefold() not in {"tags", "tag"}:
            yield key
        yield from written

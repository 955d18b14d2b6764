"""Filters as labels: numbers that an engine compares without knowing what they mean.

A label is a hash of something that is true of a chunk as long as it has its key: a directory above its document, or a
value of metadata. Filters that are no such thing (dates, chats, an order) are not expressed. So the labels select all
chunks that pass the filters, and others; the store decides about the latter.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from klaw_core import Condition, Filters, StoredChunk

#: The label of a chunk whose labels are not known, because an earlier version stored its vector. It is in every set.
UNKNOWN = 0
# Keys that only Klaw writes, and may write while a chunk keeps its key.
_RESERVED = "klaw."


def labels_of(stored: StoredChunk) -> list[int]:
    """Return the labels of a chunk, each once."""
    found = {_label("path", above) for above in _directories(stored.path)}
    for key, value in stored.metadata.items():
        if not key.startswith(_RESERVED):
            found.update(_label(key, *_comparable(item)) for item in Condition.compared(value))
    return sorted(found)


def wanted_labels(filters: Filters) -> list[frozenset[int]]:
    """Return sets of labels: a chunk that passes the filters, or has no known labels, has at least one of each set."""
    found = []
    if filters.path and (above := list(_directories(filters.path))):
        found.append(frozenset({UNKNOWN, _label("path", above[-1])}))
    for condition in filters.metadata:
        if condition.operator in {"=", "in"} and not condition.key.startswith(_RESERVED):
            written = condition.value if isinstance(condition.value, tuple) else (condition.value,)
            values = {*condition.values, *written}  # earlier versions kept text with its case
            found.append(frozenset({UNKNOWN, *(_label(condition.key, *_comparable(value)) for value in values)}))
    return found


def _directories(path: str) -> Iterator[str]:
    """Yield the directories above a path, outermost first: ``notes/``, ``notes/2024/``."""
    end = path.find("/")
    while end >= 0:
        yield path[: end + 1]
        end = path.find("/", end + 1)


def _comparable(value: str | float) -> tuple[str, str]:
    """Return a value so that equal ones are the same: Python's hash of equal numbers is the same in every process."""
    return ("text", value) if isinstance(value, str) else ("number", str(hash(value)))


def _label(*parts: str) -> int:
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)

"""Values as PostgreSQL can hold them: texts without NUL, moments as numbers."""

from __future__ import annotations

from datetime import MINYEAR, UTC, datetime, timedelta
from hashlib import blake2b

# PostgreSQL's text cannot contain NUL. This escape keeps the order and the prefixes of texts.
_MARK = "\x01"
_ESCAPED = {"\0": "\x01\x01", _MARK: "\x01\x02"}
_TABLE = str.maketrans(_ESCAPED)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)

#: Characters of a path that are in an index; PostgreSQL's take no more than 2,704 bytes.
INDEXED_CHARACTERS = 500
_LAST_CHARACTER = "\U0010ffff"
_SURROGATES = (0xD800, 0xE000)


def to_text(text: str) -> str:
    """Return a text so that PostgreSQL can hold it; most are as they were."""
    return text.translate(_TABLE) if "\0" in text or _MARK in text else text


def from_text(text: str) -> str:
    """Return the text that :func:`to_text` was given."""
    if _MARK not in text:
        return text
    parts = text.split(_MARK)
    restored = [parts[0]]
    rest = iter(parts[1:])
    # A NUL has two marks, with an empty part between them.
    restored += ["\0" + next(rest, "") if not part else _MARK + part[1:] for part in rest]
    return "".join(restored)


def to_milliseconds(moment: datetime) -> int:
    """Return a moment as milliseconds since 1970; one outside of the range of UTC becomes its first or last moment."""
    try:
        universal = moment.astimezone(UTC)
    except OverflowError:
        universal = _FIRST if moment.year == MINYEAR else _LAST
    return (universal - _EPOCH) // _MILLISECOND


def from_milliseconds(number: int) -> datetime:
    """Return the moment of :func:`to_milliseconds`, without microseconds."""
    return _EPOCH + timedelta(milliseconds=number)


def digest(text: str) -> int:
    """Return a hash of any text as a bigint; texts with equal hashes must be compared."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)


def split_path(path: str) -> tuple[str, str]:
    """Return a path, or the beginning of one, as the two columns that hold it; both in order are in order of paths."""
    escaped = to_text(path)
    return escaped[:INDEXED_CHARACTERS], escaped[INDEXED_CHARACTERS:]


def join_path(head: str, tail: str) -> str:
    """Return the path of two columns."""
    return from_text(head + tail)


def prefix_end(prefix: str) -> str | None:
    """Return the first text after all that begin with ``prefix``; None if there is none."""
    kept = prefix.rstrip(_LAST_CHARACTER)
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(_SURROGATES[1] if following == _SURROGATES[0] else following)

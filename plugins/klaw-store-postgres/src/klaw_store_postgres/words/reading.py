"""Read segments. The data of a term is cached in memory, because segments do not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen

from klaw_store_postgres.words import segments
from klaw_store_postgres.words.blocks import Block, Places, holders
from klaw_words.scoring import View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from klaw_core import Keys
    from klaw_store_postgres.session import Session

# The absence of a term in a segment is cached only if at most this many terms are looked up at once.
_MAX_CACHED_ABSENT_TERMS = 64
_IN = "tenant = %s AND generation = %s AND collection = %s"
# For each segment and term: the last block whose first term is not after the term. Only it can contain the term.
_LOOK_UP = f"""
SELECT block.* FROM (
    SELECT DISTINCT wanted.segment, (
        SELECT first FROM word_blocks WHERE {_IN} AND segment = wanted.segment AND first <= wanted.term
        ORDER BY first DESC LIMIT 1) AS first
    FROM (SELECT segment, term FROM unnest(%s::bigint[]) AS segment, unnest(%s::bytea[]) AS term) AS wanted
) AS place, LATERAL (
    SELECT segment, first, holders, CASE WHEN holders IS NULL THEN body END FROM word_blocks
    WHERE {_IN} AND segment = place.segment AND first = place.first LIMIT 1
) AS block
"""
# For each segment: the blocks that can contain terms in a range; its end is exclusive.
_LOOK_BETWEEN = f"""
SELECT block.* FROM unnest(%s::bigint[]) AS wanted, LATERAL (
    SELECT segment, first, holders, CASE WHEN holders IS NULL THEN body END FROM word_blocks
    WHERE {_IN} AND segment = wanted AND first < %s AND first >= COALESCE((
        SELECT first FROM word_blocks WHERE {_IN} AND segment = wanted AND first <= %s
        ORDER BY first DESC LIMIT 1), '')
) AS block
"""
_BODIES = f"""
SELECT block.* FROM unnest(%s::bigint[], %s::bytea[]) AS wanted (segment, term), LATERAL (
    SELECT segment, first, body FROM word_blocks
    WHERE {_IN} AND segment = wanted.segment AND first = wanted.term LIMIT 1
) AS block
"""


@frozen(eq=False)
class Entry:
    """A term in a segment: the number of rows that contain it, and its places (None: not read yet)."""

    holders: int
    places: Places | None = None

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return 300 if self.places is None else self.places.nbytes


_ABSENT = Entry(0)


@frozen(eq=False)
class SegmentView(View):
    """The rows of all segments of a collection.

    ``state`` is what the view is of: the id and the removed rows of each segment. ``parts`` are the keys and lengths of
    each segment, by id. ``stamp`` is what cached data depends on.
    """

    state: tuple[tuple[int, bytes], ...]
    parts: Mapping[int, tuple[Keys, NDArray[Any]]]
    stamp: object = field(factory=object, init=False)

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return 40 * len(self.keys)


@define(eq=False)
class SegmentReader:
    """Reads the segments of one collection in one session."""

    session: Session
    collection: str
    _entries: dict[bytes, dict[int, Entry]] = field(factory=dict, init=False)

    @cached_property
    def heads(self) -> Sequence[segments.SegmentHead]:
        """The segments, oldest first."""
        return segments.heads(self.session, self.collection)

    @cached_property
    def starts(self) -> Mapping[int, int]:
        """The number of the first row of each segment, by segment."""
        numbers = np.cumsum([0, *(head.rows for head in self.heads)]).tolist()
        return {head.id: start for head, start in zip(self.heads, numbers, strict=False)}

    @cached_property
    def view(self) -> SegmentView:
        """The rows of all segments."""
        name = (self.session.scope, self.collection)
        held: SegmentView | None = self.session.kept.get(name)
        state = tuple((head.id, head.dead.tobytes()) for head in self.heads)
        if held is None or held.state != state:
            parts = self._read_rows({} if held is None else held.parts)
            tokens = sum(head.tokens - head.dead_tokens for head in self.heads)
            held = SegmentView.of([(*parts[head.id], head.dead) for head in self.heads], tokens, state, parts)
            self.session.kept.put(name, held)
        return held

    def entries(self, terms: Iterable[bytes]) -> Mapping[bytes, Mapping[int, Entry]]:
        """Return the entries of terms, by term and segment. Segments without the term are left out."""
        wanted = dict.fromkeys(terms)
        new = [term for term in wanted if term not in self._entries]
        if new:
            self._look_up(new)
        return {term: self._entries[term] for term in wanted}

    def beginning_with(self, prefix: bytes) -> Sequence[bytes]:
        """Return the terms that begin with ``prefix``, sorted."""
        last = prefix.rstrip(b"\xff")
        end = last[:-1] + bytes([last[-1] + 1]) if last else b"\xff" * len(prefix)
        place = (*self.session.scope, self.collection)
        numbers = [head.id for head in self.heads]
        found: dict[bytes, dict[int, Entry]] = {}
        for number, first, count, blob in self.session.rows(_LOOK_BETWEEN, (numbers, *place, end, *place, prefix)):
            block = None if blob is None else Block.read(blob)
            for term in (bytes(first),) if block is None else block.terms:
                if term.startswith(prefix):
                    found.setdefault(term, {})[number] = _entry(term, bytes(first), count, block)
        self._entries.update(found)
        return sorted(found)

    def read(self, terms: Iterable[bytes]) -> None:
        """Read the places of these terms in all segments with one statement."""
        lacking = [
            (term, number)
            for term, held in self.entries(terms).items()
            for number, entry in held.items()
            if entry.places is None
        ]
        if not lacking:
            return
        values = ([number for _, number in lacking], [term for term, _ in lacking])
        for number, first, blob in self.session.rows(_BODIES, (*values, *self.session.scope, self.collection)):
            term = bytes(first)
            entry = Entry(self._entries[term][number].holders, Block.read(blob).find(term))
            self._entries[term][number] = self.session.kept.put((number, term), entry)

    def _look_up(self, terms: Sequence[bytes]) -> None:
        numbers = [head.id for head in self.heads]
        self._entries.update({term: {} for term in terms})
        lacking: dict[bytes, None] = {}
        asked: dict[int, list[tuple[bytes, int | None, Block | None]]] = {}
        for term, number in product(terms, numbers):
            entry: Entry | None = self.session.kept.get((number, term))
            if entry is None:
                lacking[term] = None
                asked[number] = []
            elif entry.holders:
                self._entries[term][number] = entry
        if not lacking:
            return
        place = (*self.session.scope, self.collection)
        for number, first, count, blob in self.session.rows(_LOOK_UP, (*place, list(asked), list(lacking), *place)):
            asked[number].append((bytes(first), count, None if blob is None else Block.read(blob)))
        for number, blocks in asked.items():
            blocks.sort(key=itemgetter(0), reverse=True)
            for term in lacking:
                first, count, block = next((some for some in blocks if some[0] <= term), (b"", None, None))
                self._note(number, term, _entry(term, first, count, block), len(lacking))

    def _note(self, number: int, term: bytes, entry: Entry, asked: int) -> None:
        if entry.holders:
            self._entries[term][number] = entry
        # A writer has no snapshot: a segment may have been removed between two statements. Variants of misspelled words
        # are too many to cache.
        if entry.holders or (self.session.shared_lock is None and asked <= _MAX_CACHED_ABSENT_TERMS):
            self.session.kept.put((number, term), entry)

    def _read_rows(self, known: Mapping[int, tuple[Keys, NDArray[Any]]]) -> Mapping[int, tuple[Keys, NDArray[Any]]]:
        """Return the keys and lengths of each segment, by id; those in ``known`` are not read again."""
        parts = {head.id: known[head.id] for head in self.heads if head.id in known}
        lacking = [head.id for head in self.heads if head.id not in known]
        sql = f"SELECT id, keys, lengths FROM word_segments WHERE {_IN} AND id = ANY(%s)"
        for number, keys, lengths in self.session.rows(sql, (*self.session.scope, self.collection, lacking)):
            parts[number] = np.frombuffer(keys, "<i8"), np.frombuffer(lengths, "<u4")
        return parts


def _entry(term: bytes, first: bytes, count: int | None, block: Block | None) -> Entry:
    """Return the entry of a term: from a decoded block, or from the row count of a term with its own block."""
    if block is None:
        return Entry(count or 0) if first == term else _ABSENT
    places = block.find(term)
    return _ABSENT if places is None else Entry(holders(places.rows()), places)

"""The cache of term counts and term scores between questions, which often have the same words."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from attrs import define, field, frozen

from klaw_fts5.packed.state import PackedState
from klaw_words.query import Term

# The maximum number of entries, a few megabytes each. A full cache is cleared.
_MAX_COUNTS, _MAX_KEYS, _MAX_CORRECTIONS = 20_000, 500_000, 2_000
#: The terms of a collection with more terms than this are not cached.
MAX_CACHED_TERMS = 100_000


def term_text(term: bytes) -> str:
    """Return a term as text; a truncated term may end within a character."""
    return term.decode("utf-8", "replace")


@frozen(eq=False, repr=False)
class TermHits:
    """The keys of all chunks that contain a term, ascending, and the term's score in each; both of length n."""

    keys: array[int]
    scores: array[float]


@define(eq=False, repr=False)
class WordKnowledge:
    """The cached counts and scores of terms in one state of a collection.

    ``terms`` are all terms of the collection, or None if they were not read; ``looked_up`` counts the words that were
    looked up without them.
    """

    terms: frozenset[str] | None = field(default=None, init=False)
    has_many_terms: bool = field(default=False, init=False)
    looked_up: int = field(default=0, init=False)
    _meant: dict[str, str] = field(factory=dict, init=False)
    _counts: dict[Term, tuple[int, int]] = field(factory=dict, init=False)
    _hits: dict[Term, TermHits] = field(factory=dict, init=False)
    _kept_keys: int = field(default=0, init=False)

    def counted(self, term: Term) -> tuple[int, int]:
        """Return the counted number of chunks that contain a term, and the limit of that count (0 if not counted)."""
        return self._counts.get(term, (0, 0))

    def keep_count(self, term: Term, found: int, bound: int) -> None:
        """Cache a count and its limit."""
        if len(self._counts) >= _MAX_COUNTS:
            self._counts = {}
        self._counts[term] = found, bound

    @property
    def meant(self) -> dict[str, str]:
        """The suggestion for each word, or ``""``; emptied before a question if there are too many."""
        if len(self._meant) >= _MAX_CORRECTIONS:
            self._meant = {}
        return self._meant

    def keep_terms(self, terms: Sequence[bytes]) -> None:
        """Cache all terms, unless there are too many."""
        if len(terms) > MAX_CACHED_TERMS:
            self.has_many_terms = True
        else:
            self.terms = frozenset(map(term_text, terms))

    def hits(self, term: Term) -> TermHits | None:
        """Return the chunks that contain a term, or None if they are not cached."""
        return self._hits.get(term)

    def keep_hits(self, term: Term, hits: TermHits) -> None:
        """Cache all chunks that contain a term."""
        if self._kept_keys + len(hits.keys) > _MAX_KEYS:
            self._hits, self._kept_keys = {}, 0
        self._hits[term] = hits
        self._kept_keys += len(hits.keys)


@define(eq=False, repr=False)
class KnowledgeCache:
    """The cache of each collection in its last state.

    Every change gives a state a new random stamp. Cached data is valid for every snapshot and file with the same stamp.
    """

    _kept: dict[str, tuple[bytes, WordKnowledge]] = field(factory=dict, init=False)

    def of(self, collection: str, state: PackedState | None) -> WordKnowledge:
        """Return the cache for a state; without a state, an empty one that is not kept."""
        if state is None:
            return WordKnowledge()
        stamp, knowledge = self._kept.get(collection, (b"", None))
        if knowledge is None or stamp != state.stamp:
            knowledge = WordKnowledge()
            self._kept[collection] = state.stamp, knowledge
        return knowledge

"""What is kept in memory between questions of which chunks hold a term: the words of questions come again."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from attrs import define, field, frozen

from klaw_core.words.query import Term
from klaw_fts5.packed.state import PackedState

# Some megabytes each: more is forgotten all at once, and counted again.
_MOST_COUNTS, _MOST_KEYS, _MOST_MEANT = 20_000, 500_000, 2_000
#: Of a collection with more terms than this they are not kept.
MOST_TERMS = 100_000


def term_text(term: bytes) -> str:
    """Return a term as text: a long one may end within a character."""
    return term.decode("utf-8", "replace")


@frozen(eq=False)
class TermHits:
    """Every chunk that holds a term, by key, ascending, and what the term adds to its score. Both of length n."""

    keys: array[int]
    scores: array[float]


@define(eq=False)
class WordKnowledge:
    """How many chunks hold each term that was asked about, and which ones, in one state of a collection.

    ``terms`` are all of its terms, None while they are not known; ``looked_up`` is how many words were looked for among
    them until then.
    """

    terms: frozenset[str] | None = field(default=None, init=False)
    has_many_terms: bool = field(default=False, init=False)
    looked_up: int = field(default=0, init=False)
    _meant: dict[str, str] = field(factory=dict, init=False)
    _counts: dict[Term, tuple[int, int]] = field(factory=dict, init=False)
    _hits: dict[Term, TermHits] = field(factory=dict, init=False)
    _kept_keys: int = field(default=0, init=False)

    def counted(self, term: Term) -> tuple[int, int]:
        """Return how many chunks were found to hold a term, and up to how many they were counted: 0 if never."""
        return self._counts.get(term, (0, 0))

    def keep_count(self, term: Term, found: int, bound: int) -> None:
        """Keep what was counted."""
        if len(self._counts) >= _MOST_COUNTS:
            self._counts = {}
        self._counts[term] = found, bound

    def keep_terms(self, terms: Sequence[bytes]) -> None:
        """Keep all terms, unless they are too many."""
        if len(terms) > MOST_TERMS:
            self.has_many_terms = True
        else:
            self.terms = frozenset(map(term_text, terms))

    def meant(self, word: str) -> str | None:
        """Return the word that was meant by one that no chunk holds, empty if none is near, None if not known."""
        return self._meant.get(word)

    def keep_meant(self, word: str, meant: str) -> None:
        """Keep which word was meant."""
        if len(self._meant) >= _MOST_MEANT:
            self._meant = {}
        self._meant[word] = meant

    def hits(self, term: Term) -> TermHits | None:
        """Return the chunks that hold a term, None if they are not known."""
        return self._hits.get(term)

    def keep_hits(self, term: Term, hits: TermHits) -> None:
        """Keep all chunks that hold a term."""
        if self._kept_keys + len(hits.keys) > _MOST_KEYS:
            self._hits, self._kept_keys = {}, 0
        self._hits[term] = hits
        self._kept_keys += len(hits.keys)


@define(eq=False)
class KnowledgeCache:
    """The knowledge of each collection in its last state.

    A state's stamp is random and renewed by every change: what is kept under it holds in any snapshot and in any file.
    """

    _kept: dict[str, tuple[bytes, WordKnowledge]] = field(factory=dict, init=False)

    def of(self, collection: str, state: PackedState | None) -> WordKnowledge:
        """Return what is known in a state; nothing, which is not kept, without a state."""
        if state is None:
            return WordKnowledge()
        stamp, knowledge = self._kept.get(collection, (b"", None))
        if knowledge is None or stamp != state.stamp:
            knowledge = WordKnowledge()
            self._kept[collection] = state.stamp, knowledge
        return knowledge

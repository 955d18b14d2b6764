"""The terms of a collection's table, for suggestions.

Stems are looked up in order. Each look-up returns the next term of the index, so all stems before that term are
skipped. If many words are looked up in one state of the index, all of its terms are read, unless there are too many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from attrs import frozen

from klaw_fts5.exact import ExactSearch
from klaw_fts5.knowledge import MAX_CACHED_TERMS
from klaw_words.query import Term

# Chunks. Looking up one word takes as long as reading the terms of this many chunks.
_ROWS_A_WORD = 800


@frozen(eq=False)
class Vocabulary:
    """The words of one collection: ``has`` may use a cache; ``rows`` is 0 if nothing is cached for the collection."""

    searcher: ExactSearch
    has: Callable[[Term], bool]
    rows: int = 0

    def count(self, term: Term, limit: int, /) -> int:
        """Return how many chunks contain a term, counted up to ``limit``."""
        return self.searcher.count(term, limit)

    def best(self, terms: Sequence[Term], depth: int, /) -> Mapping[int, float]:
        """Return the scores of the best chunks with any of the terms."""
        return self.searcher.best(terms, depth, None)

    def known_among(self, stems: AbstractSet[str], /) -> AbstractSet[str]:
        """Return the stems that are terms of the index.

        Each word is looked up until this has taken as long as reading all terms; then all terms are read once.
        """
        known, sql, connection = self.searcher.known, self.searcher.sql, self.searcher.connection
        if known.terms is None:
            connection.execute(sql.vocabulary)
            try:
                known.looked_up += 1
                if known.has_many_terms or known.looked_up * _ROWS_A_WORD < self.rows or not self.rows:
                    return self._present(stems)
                known.keep_terms([term for (term,) in connection.execute(sql.terms, (MAX_CACHED_TERMS + 1,))])
                if known.terms is None:
                    return self._present(stems)
            finally:
                connection.execute(sql.drop_vocabulary)
        return known.terms.intersection(stems)

    def _present(self, stems: Iterable[str]) -> set[str]:
        """Return the stems that are terms of the index, with one look-up per stem."""
        present: set[str] = set()
        following = b""
        for stem in sorted(filter(None, stems)):  # the same order as that of UTF-8 bytes
            if stem.encode() < following:
                continue
            row = self.searcher.connection.execute(self.searcher.sql.next_term, (stem,)).fetchone()
            if row is None:
                break
            following = row[0]
            if following == stem.encode():
                present.add(stem)
        return present

"""Search with FTS5 itself: exact for every query, in time linear in the number of rows that contain a word."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from itertools import compress, repeat
from math import inf
from operator import add, itemgetter
from typing import Any

import apsw
from attrs import field, frozen

from klaw_core import Keys
from klaw_fts5.knowledge import TermHits, WordKnowledge
from klaw_fts5.sql import Statements
from klaw_words.plan import asks
from klaw_words.query import Term, render
from klaw_words.searching import Preference, Weights, everyday_from
from klaw_words.tokenizer import FUNCTION_TERMS

# Rows. If there are hundreds of terms, all that are in more rows count as equally frequent.
_RARE = 1_000
# Rows. In a collection of at most this size, all rows of a term are read once and cached.
_FEW_ROWS = 5_000
# Characters. Shorter words are too common to cache their rows.
_TELLING = 4


@frozen(eq=False, repr=False)
class ExactSearch:
    """Searches with FTS5. ``rows`` is the number of its rows, ``known`` the cache of earlier results."""

    connection: apsw.Connection
    sql: Statements
    weights: Weights
    rows: int
    known: WordKnowledge = field(factory=WordKnowledge)

    def expect(self, terms: Sequence[Term]) -> None:
        """Do nothing, because FTS5 is queried term by term."""

    def holders(self, terms: Sequence[Term], /) -> list[int]:
        """Return how many chunks contain each term, counted only as far as needed to tell rare from frequent terms."""
        return [self.count(term, _RARE) for term in terms]

    def has(self, term: Term, /) -> bool:
        """Return whether any chunk contains a term."""
        return self.count(term, 1) > 0

    def is_everyday(self, term: Term, /) -> bool:
        """Return whether half of the chunks contain a term, without counting further."""
        enough = everyday_from(self.rows)
        return enough <= self.rows and self.count(term, enough) >= enough

    def best(
        self, terms: Sequence[Term], depth: int, within: Keys | None, preferred: Preference | None = None
    ) -> dict[int, float]:
        """Return the scores of the best chunks for any of the terms: the negated ``bm25()``."""
        phrases = preferred.phrases if preferred is not None and preferred.weight else ()
        if self._is_small:
            scores = _top(self._sum(terms, None if within is None else set(within.tolist())), depth)
            more = self._sum(phrases, scores.keys()) if scores else {}
        else:
            scores = self._best(terms, depth, None if within is None else within.astype("int64", order="C", copy=False))
            more = self._best(phrases, len(scores), array("q", scores)) if scores and phrases else {}
        for key, score in more.items():
            scores[key] += preferred.weight * score if preferred is not None else 0.0
        return scores

    def held_by(self, terms: Sequence[Term], keys: Sequence[int], /) -> Iterator[tuple[int, Collection[int]]]:
        """Yield for each term how many chunks contain it, and which of ``keys`` do."""
        if self._is_small:
            wanted = set(keys)
            for holders in map(self._hits, terms):
                yield len(holders.keys), wanted.intersection(holders.keys)
            return
        allowed = array("q", keys)
        for term in terms:
            values = (render((term,)), apsw.carray(allowed))
            yield self.count(term, self.rows), [key for (key,) in self.connection.execute(self.sql.held_by, values)]

    @property
    def _is_small(self) -> bool:
        """Whether all rows of a term are read and cached."""
        return 0 < self.rows <= _FEW_ROWS

    def _sum(self, terms: Sequence[Term], allowed: Collection[int] | None) -> dict[int, float]:
        """Return the scores of all chunks with any of the terms, added in the order of terms, as ``bm25()`` does."""
        distinct = {(term.words, term.prefix): term for term in terms}.values()  # in the order of the FTS5 query
        scores: dict[int, float] = {}
        for term in distinct:
            hits = self._hits(term)
            keys: Sequence[int] = hits.keys
            values: Sequence[float] = hits.scores
            if allowed is not None:
                chosen = [key in allowed for key in keys]
                keys, values = list(compress(keys, chosen)), list(compress(values, chosen))
            scores.update(zip(keys, map(add, map(scores.get, keys, repeat(0.0)), values), strict=True))
        return scores

    def _hits(self, term: Term) -> TermHits:
        """Return every chunk with a term, and its contribution to the score."""
        hits = self.known.hits(term)
        if hits is None:
            weights = self.weights
            values = (weights.text, weights.heading, weights.context, render((term,)))
            rows: list[Any] = self.connection.execute(self.sql.hits, values).fetchall()
            hits = TermHits(array("q", [key for key, _ in rows]), array("d", [score for _, score in rows]))
            self.known.keep_hits(term, hits)
        return hits

    def _may_be_searched(self, term: Term) -> bool:
        """Return whether a term will probably be searched for, as most words except function words are."""
        if self.known.hits(term) is not None:
            return True
        word = term.words[0]
        return len(term.words) > 1 or (len(word) >= _TELLING and word.encode() not in FUNCTION_TERMS and not asks(term))

    def _best(self, terms: Sequence[Term], depth: int, allowed: Keys | array[int] | None) -> dict[int, float]:
        weights = self.weights
        values = [weights.text, weights.heading, weights.context, render(terms), depth]
        if allowed is None:
            rows = self.connection.execute(self.sql.search, values)
        else:
            rows = self.connection.execute(self.sql.search_within, [*values, apsw.carray(allowed)])
        return {key: -score for key, score in rows}

    def count(self, term: Term, limit: int) -> int:
        """Return how many chunks contain a term, counted up to ``limit``."""
        if self._is_small and self._may_be_searched(term):
            return min(len(self._hits(term).keys), limit)
        found, bound = self.known.counted(term)
        if found == bound < limit:  # the earlier count ended at a lower limit
            bound = max(limit, self.rows) if self.rows <= _FEW_ROWS else limit
            found = int(self.connection.execute(self.sql.matches, (render((term,)), bound)).get)
            self.known.keep_count(term, found, bound)
        return min(found, limit)


def _top(scores: dict[int, float], depth: int) -> dict[int, float]:
    """Return the best scores, best first, ties ordered by key."""
    least = sorted(scores.values(), reverse=True)[depth - 1] if len(scores) > depth else -inf
    ordered = sorted([item for item in scores.items() if item[1] >= least])
    ordered.sort(key=itemgetter(1), reverse=True)
    return dict(ordered[:depth])

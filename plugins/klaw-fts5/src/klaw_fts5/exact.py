"""Answers by FTS5 itself: exact, whatever is asked, in time that grows with every row that holds a word."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Protocol

import apsw
from attrs import field, frozen

from klaw_core import Keys
from klaw_core.words.query import Term, render
from klaw_fts5.coverage import Holders
from klaw_fts5.knowledge import WordKnowledge
from klaw_fts5.plan import Counts
from klaw_fts5.sql import Statements
from klaw_fts5.tokenizer import Tokenizer, makes_pairs

# Of hundreds of terms, those that are in more rows than this are equally frequent.
_RARE = 1_000
# Of so many rows a term's are counted once and for all; of more, no further than is asked.
_COUNTED = 5_000
# Among fewer rows half of them is soon reached, and says nothing about a word.
_FEW = 20


@frozen(repr=False)
class Weights:
    """How much a word counts in a heading, in the text and in the context of a chunk: BM25's column weights.

    Compared by value: scores are kept in memory under the weights that they were computed with.
    """

    heading: float
    text: float
    context: float


@frozen(eq=False, repr=False)
class Preference:
    """Phrases for which the best chunks are searched again, and how much BM25's score of them counts."""

    phrases: tuple[Term, ...]
    weight: float


class Searcher(Counts, Holders, Protocol):
    """One way to answer: counts terms for the plan, then scores chunks."""

    def expect(self, terms: Sequence[Term]) -> None:
        """Be told which terms are going to be asked about."""

    def best(
        self, terms: Sequence[Term], depth: int, within: Keys | None, preferred: Preference | None = None
    ) -> dict[int, float]:
        """Return the scores of the best ``depth`` chunks that hold any of the terms, equal ones by key.

        Those that hold a preferred phrase have more.
        """


def everyday_from(rows: int) -> int:
    """Return how many of so many rows hold a word that is everyday: half, or more than there are of few."""
    half = (rows + 1) // 2
    return half if rows >= _FEW else rows + 1


@frozen(eq=False, repr=False)
class ExactSearch:
    """Asks FTS5. ``rows`` is how many it has, ``known`` what was asked before."""

    connection: apsw.Connection
    sql: Statements
    weights: Weights
    rows: int
    known: WordKnowledge = field(factory=WordKnowledge)

    @cached_property
    def _tokenize(self) -> Tokenizer:
        return Tokenizer(self.connection)

    def expect(self, terms: Sequence[Term]) -> None:
        """Do nothing: FTS5 is asked term by term."""

    def holders(self, terms: Sequence[Term], /) -> list[int]:
        """Return how many chunks hold each term, counted no further than tells rare ones from frequent ones."""
        return [self.count(term, _RARE) for term in terms]

    def has(self, term: Term, /) -> bool:
        """Return whether any chunk holds a term."""
        return self.count(term, 1) > 0

    def is_everyday(self, term: Term, /) -> bool:
        """Return whether half of the chunks hold a term. They are counted no further."""
        enough = everyday_from(self.rows)
        return enough <= self.rows and self.count(term, enough) >= enough

    def makes_pairs(self, word: str, /) -> bool:
        """Return whether the tokenizer makes one term of a word that makes pairs with its neighbours."""
        terms = self._tokenize(word.encode())
        return len(terms) == 1 and makes_pairs(terms[0])

    def best(
        self, terms: Sequence[Term], depth: int, within: Keys | None, preferred: Preference | None = None
    ) -> dict[int, float]:
        """Return the scores of the best chunks for any of the terms: ``bm25()`` with its sign turned."""
        scores = self._best(terms, depth, None if within is None else within.astype("int64", order="C", copy=False))
        if scores and preferred is not None and preferred.phrases and preferred.weight:
            for key, score in self._best(preferred.phrases, len(scores), array("q", scores)).items():
                scores[key] += preferred.weight * score
        return scores

    def held_by(self, term: Term, keys: Sequence[int], /) -> tuple[int, Collection[int]]:
        """Return how many chunks hold a term, and which of these do."""
        if self.rows > _COUNTED:
            values = (render((term,)), apsw.carray(array("q", keys)))
            return self.count(term, self.rows), [key for (key,) in self.connection.execute(self.sql.held_by, values)]
        holders = self.known.keys(term)
        if holders is None:
            rows = self.connection.execute(self.sql.all_holders, (render((term,)),))
            holders = array("q", [key for (key,) in rows])
            self.known.keep_keys(term, holders)
        return len(holders), set(keys).intersection(holders)

    def _best(self, terms: Sequence[Term], depth: int, allowed: Keys | array[int] | None) -> dict[int, float]:
        weights = self.weights
        values = [weights.text, weights.heading, weights.context, render(terms), depth]
        if allowed is None:
            rows = self.connection.execute(self.sql.search, values)
        else:
            rows = self.connection.execute(self.sql.search_within, [*values, apsw.carray(allowed)])
        return {key: -score for key, score in rows}

    def count(self, term: Term, limit: int) -> int:
        """Return how many chunks hold a term, counted up to ``limit``."""
        found, bound = self.known.counted(term)
        if found == bound < limit:  # there may be more
            bound = max(limit, self.rows) if self.rows <= _COUNTED else limit
            found = int(self.connection.execute(self.sql.matches, (render((term,)), bound)).get)
            self.known.keep_count(term, found, bound)
        return min(found, limit)

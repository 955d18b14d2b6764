"""Search postings: Okapi BM25 as FTS5 computes it, with its columns, phrases and prefixes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from attrs import define, field

from klaw_store_postgres.filtering import SqlSelection
from klaw_store_postgres.words.blocks import COLUMN_BITS
from klaw_store_postgres.words.matching import Matcher
from klaw_store_postgres.words.reading import SegmentReader
from klaw_store_postgres.words.scoring import Scored, Scorer
from klaw_store_postgres.words.tokens import Pattern, pattern_of, shortened
from klaw_words.query import Term, render
from klaw_words.searching import Preference, Weights, everyday_from
from klaw_words.tokenizer import makes_pairs, tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from klaw_store_postgres.session import Session


#: The chunks that a search is limited to: their keys, or a filter that many chunks pass.
Within: TypeAlias = "NDArray[np.int64] | SqlSelection"

# If many chunks pass a filter, the first chunks of the ranking without the filter are checked: this many times the
# wanted number. If too few of them pass, all keys that pass are listed.
_DEEPER = (4, 64)


@define(eq=False)
class PostingsSearch:
    """Searches one collection in one session: it counts the terms of a question for its plan, then scores chunks."""

    session: Session
    collection: str
    weights: Weights
    _reader: SegmentReader = field(init=False)
    _matcher: Matcher = field(init=False)
    _patterns: dict[Term, Pattern] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._reader = SegmentReader(self.session, self.collection)
        weights = np.zeros(1 << COLUMN_BITS)
        weights[:3] = self.weights.text, self.weights.heading, self.weights.context
        self._matcher = Matcher(self._reader, weights)

    @cached_property
    def rows(self) -> int:
        """The number of chunks."""
        return sum(head.rows - len(head.dead) for head in self._reader.heads)

    def expect(self, terms: Sequence[Term]) -> None:
        """Look up terms with one statement, before single ones are asked for."""
        self._matcher.expect(map(self._pattern, terms))

    def known_among(self, stems: AbstractSet[str], /) -> AbstractSet[str]:
        """Return the stems that are terms of the index, with one statement."""
        terms = {stem.encode(): stem for stem in stems if stem}
        return {terms[term] for term, held in self._reader.entries(terms).items() if held}

    def holders(self, terms: Sequence[Term], /) -> Sequence[int]:
        """Return an upper bound of the number of chunks that contain each term."""
        self.expect(terms)
        return [self._matcher.about(self._pattern(term)) for term in terms]

    def count(self, term: Term, most: int) -> int:
        """Return an upper bound of the number of chunks that contain a term, at most ``most``."""
        return min(self.holders([term])[0], most)

    def has(self, term: Term, /) -> bool:
        """Return whether any chunk contains a term."""
        return self._matcher.count(self._pattern(term)) > 0

    def is_everyday(self, term: Term, /) -> bool:
        """Return whether a term is in so many chunks that it does not distinguish them."""
        enough = everyday_from(self.rows)
        return enough <= self.rows and self._matcher.about(self._pattern(term)) >= enough and (
            self._matcher.count(self._pattern(term)) >= enough
        )  # fmt: skip

    def makes_pairs(self, word: str, /) -> bool:
        """Return whether pairs with this word are counted."""
        terms = tokenizer()(word.encode())
        return len(terms) == 1 and makes_pairs(shortened(terms[0]))

    def held_by(self, terms: Sequence[Term], keys: Sequence[int], /) -> Iterator[tuple[int, Collection[int]]]:
        """Yield for each term the number of chunks that contain it, and those of ``keys`` that do."""
        wanted, rows = self._rows_of_keys(keys)
        patterns = [self._pattern(term) for term in terms]
        self._matcher.read(patterns)
        for pattern in patterns:
            yield self._matcher.count(pattern), wanted[self._matcher.frequencies_at(pattern, rows) >= 0].tolist()

    def best(
        self, terms: Sequence[Term], depth: int, within: Within | None = None, preferred: Preference | None = None
    ) -> dict[int, float]:
        """Return the scores of the best ``depth`` chunks that contain any of the terms; ties are ordered by key."""
        scores = self._best(terms, depth, within)
        if scores and preferred is not None and preferred.phrases and preferred.weight:
            among = np.array(sorted(scores), np.int64)
            for key, score in self._best(preferred.phrases, len(scores), among).items():
                scores[key] += preferred.weight * score
        return scores

    def best_and_ties(self, terms: Sequence[Term], depth: int, within: NDArray[np.int64] | None) -> dict[int, float]:
        """Return what :meth:`best` returns, and all chunks with the same score as the last one."""
        return self._by_score(self._found(terms, depth, within))

    def _best(self, terms: Sequence[Term], depth: int, within: Within | None = None) -> dict[int, float]:
        if not isinstance(within, SqlSelection):
            return dict(islice(self._by_score(self._found(terms, depth, within)).items(), depth))
        for asked in (depth * factor for factor in _DEEPER):
            scores = self._by_score(self._found(terms, asked))
            passing = set(within.among(list(scores)))
            if len(passing) >= depth or len(scores) < asked:
                return dict(islice(((key, score) for key, score in scores.items() if key in passing), depth))
        return self._best(terms, depth, within.keys())

    def _found(self, terms: Sequence[Term], depth: int, within: NDArray[np.int64] | None = None) -> Scored:
        """Return the best rows that contain any of the terms: ``depth`` of them, and all with the last one's score."""
        distinct = {render([term]): term for term in terms}
        patterns = [self._pattern(term) for term in distinct.values()]
        self._matcher.read(patterns)
        if depth < 1 or not any(map(self._matcher.count, patterns)):
            return Scored(np.empty(0, np.int64), np.empty(0))
        scorer = Scorer(self._matcher, self.rows, self._mean_length)
        if within is None:
            return scorer.best(patterns, depth)
        return scorer.among(patterns, self._rows_of_keys(within)[1], depth)

    def _by_score(self, found: Scored) -> dict[int, float]:
        """Return scores by key, the best first; ties are ordered by key."""
        if not len(found.rows):
            return {}
        keys = self._reader.rows.keys[found.rows]
        order = np.lexsort((keys, -found.scores))
        return dict(zip(keys[order].tolist(), found.scores[order].tolist(), strict=True))

    def _pattern(self, term: Term) -> Pattern:
        found = self._patterns.get(term)
        if found is None:
            found = self._patterns[term] = pattern_of(term)
        return found

    def _rows_of_keys(self, keys: Sequence[int] | NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the keys that exist, and their ascending rows. The keys of each segment ascend."""
        wanted = np.array(keys, np.int64)
        rows = np.full(len(wanted), -1, np.int64)
        for head in self._reader.heads:
            start = self._reader.starts[head.id]
            held = self._reader.rows.keys[start : start + head.rows]
            at = np.minimum(np.searchsorted(held, wanted), head.rows - 1)
            found = (held[at] == wanted) & ~np.isin(at, head.dead)
            rows[found] = start + at[found]
        order = np.argsort(rows, kind="stable")[np.count_nonzero(rows < 0) :]
        return wanted[order], rows[order]

    @cached_property
    def _mean_length(self) -> float:
        tokens = sum(head.tokens - head.dead_tokens for head in self._reader.heads)
        return max(tokens / max(self.rows, 1), 1e-9)

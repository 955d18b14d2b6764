"""Search postings: Okapi BM25 as FTS5 computes it, with its columns, phrases and prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from attrs import Factory, field, frozen

from klaw_store_postgres.filtering import SqlSelection
from klaw_store_postgres.words.blocks import COLUMN_BITS
from klaw_store_postgres.words.matching import find
from klaw_store_postgres.words.reading import SegmentReader, SegmentView
from klaw_store_postgres.words.tokens import Pattern, pattern_of
from klaw_words.query import Term
from klaw_words.scoring import K1, ScoredSearch, TermScores, idf
from klaw_words.searching import Preference, Weights

if TYPE_CHECKING:
    from klaw_core import Keys
    from klaw_store_postgres.session import Session

#: The chunks that a search is limited to: their keys, or a filter that many chunks pass.
Within: TypeAlias = "Keys | SqlSelection"

# If many chunks pass a filter, the first chunks of the ranking without the filter are checked: this many times the
# wanted number. If too few of them pass, all keys that pass are listed.
_DEEPER = (4, 64)


@frozen(eq=False)
class PostingsSearch(ScoredSearch):
    """Searches one collection in one session."""

    session: Session
    collection: str
    weights: Weights
    _reader: SegmentReader = field(
        init=False, default=Factory(lambda self: SegmentReader(self.session, self.collection), takes_self=True)
    )
    _patterns: dict[Term, Pattern] = field(factory=dict, init=False)
    _scored: dict[Pattern, TermScores] = field(factory=dict, init=False)

    @property
    def view(self) -> SegmentView:
        """Return the rows."""
        return self._reader.view

    @property
    def rows(self) -> int:
        """Return the number of chunks, without reading their rows."""
        return sum(head.rows - len(head.dead) for head in self._reader.heads)

    def expect(self, terms: Sequence[Term], /) -> None:
        """Look up the words of these terms in all segments with one statement."""
        self._reader.entries(word for term in terms for word in self._words(term))

    def read(self, terms: Sequence[Term], /) -> None:
        """Read the places of the words of these terms with one statement."""
        wanted = (term for term in terms if self._kept(self._pattern(term)) is None)
        self._reader.read({word for term in wanted for word in self._words(term)})

    def holders(self, terms: Sequence[Term], /) -> list[int]:
        """Return an upper bound of the number of chunks that contain each term."""
        self.expect(terms)
        return super().holders(terms)

    def about(self, term: Term, /) -> int:
        """Return an upper bound of the number of chunks that contain a term: for a phrase, those with its rarest word.

        The number of a prefix is exact.
        """
        pattern = self._pattern(term)
        if pattern.prefix or not pattern.terms:
            return len(self.scored(term).rows)
        held = self._reader.entries(pattern.terms)
        return min(sum(entry.holders for entry in held[word].values()) for word in pattern.terms)

    def count(self, term: Term, limit: int, /) -> int:
        """Return an upper bound of the number of chunks that contain a term, at most ``limit``."""
        return min(self.about(term), limit)

    def holds(self, term: Term, enough: int, /) -> bool:
        """Return whether at least ``enough`` chunks contain a term."""
        pattern = self._pattern(term)
        is_exact = len(pattern.terms) == 1 and not any(len(head.dead) for head in self._reader.heads)
        return self.about(term) >= enough and (is_exact or len(self.scored(term).rows) >= enough)

    def scored(self, term: Term, /) -> TermScores:
        """Return the rows of a term and their scores, computed as FTS5 does."""
        pattern = self._pattern(term)
        found = self._kept(pattern)
        if found is None:
            weights = np.zeros(1 << COLUMN_BITS)
            weights[:3] = self.weights.text, self.weights.heading, self.weights.context
            rows, often = find(self._reader, pattern).frequencies(weights)
            values = often * (idf(self.rows, len(rows)) * (K1 + 1))
            values /= often + self.view.norms[rows]
            found = TermScores(rows, values)
            if self.session.shared_lock is None:  # a writer has no snapshot: a merge may have removed blocks
                self.session.kept.put(self._name(pattern), found)
            self._scored[pattern] = found
        return found

    def known_among(self, stems: AbstractSet[str], /) -> AbstractSet[str]:
        """Return the stems that are terms of the index, with one statement."""
        terms = {stem.encode(): stem for stem in stems if stem}
        return {terms[term] for term, held in self._reader.entries(terms).items() if held}

    def best(
        self, terms: Sequence[Term], depth: int, within: Within | None = None, preferred: Preference | None = None
    ) -> dict[int, float]:
        """Return the scores of the best ``depth`` chunks that contain any of the terms; ties are ordered by key."""
        if not isinstance(within, SqlSelection):
            return super().best(terms, depth, within, preferred)
        return super().best(terms, depth, self._passing(terms, depth, within), preferred)

    def _passing(self, terms: Sequence[Term], depth: int, within: SqlSelection) -> Keys:
        """Return keys that pass a filter, ascending; among them are the best ``depth`` ones."""
        for asked in (depth * factor for factor in _DEEPER):
            keys = self.top(terms, asked, None).keys
            passing = np.array(sorted(within.among(keys.tolist())), np.int64)
            if len(passing) >= depth or len(keys) < asked:
                return passing
        return within.keys()

    def _kept(self, pattern: Pattern) -> TermScores | None:
        """Return the scores of a pattern, if they are cached."""
        found = self._scored.get(pattern)
        if found is None:
            found = self.session.kept.get(self._name(pattern))
            if found is not None:
                self._scored[pattern] = found
        return found

    def _name(self, pattern: Pattern) -> tuple[object, ...]:
        """Return what cached scores depend on."""
        return (self.view.stamp, self.weights, pattern)

    def _pattern(self, term: Term) -> Pattern:
        found = self._patterns.get(term)
        if found is None:
            found = self._patterns[term] = pattern_of(term)
        return found

    def _words(self, term: Term) -> Sequence[bytes]:
        """Return the terms of a pattern that are complete words: all, except the last one of a prefix pattern."""
        pattern = self._pattern(term)
        return pattern.terms[:-1] if pattern.prefix else pattern.terms

"""Which of the best chunks hold words side by side, and what that adds to their scores.

Words stand side by side in a chunk no more often than the rarer of them stands there at all, and that is known from its
score. So only the sequences of chunks that may come among those wanted are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import cast

import apsw
import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_core import Keys
from klaw_fts5.packed.cache import Scored
from klaw_fts5.packed.errors import DamagedError
from klaw_fts5.packed.postings import COLUMNS
from klaw_fts5.packed.sequences import read_sequences
from klaw_fts5.packed.view import K1, View, idf
from klaw_fts5.sql import PackedStatements

Values = NDArray[np.float64]

# So many of a word's rows are looked at to guess how many of them another word shares.
_SAMPLE = 512
# A row that is not among the best, and holds all words of a phrase, holds the phrase half as often as one that is.
_ELSEWHERE = 0.5
# Of the rows that would hold all words of a phrase if those were strewn at random, so many hold it at the least.
_BY_CHANCE = 0.1
# The rows that may come among so many wanted tell how many hold a phrase, whatever the limit: so a smaller limit cuts
# the end off.
_TELLING = 20
# What rounding may have taken from a bound.
_ROUNDED = 1 + 1e-9


@frozen
class Phrase:
    """Words to be found side by side, by their numbers, and how much BM25's score of that counts."""

    words: tuple[int, ...]
    weight: float


@frozen(eq=False)
class Best:
    """The best rows of a view, ascending, with their keys and scores; shape (n,) each."""

    rows: NDArray[np.intp]
    keys: NDArray[np.int64]
    scores: Values

    def as_dict(self) -> dict[int, float]:
        """Return the scores by key."""
        return dict(zip(self.keys.tolist(), self.scores.tolist(), strict=True))

    def least_of(self, limit: int) -> float:
        """Return the least of the best ``limit`` scores, nothing if there are not as many."""
        place = len(self.scores) - limit
        return float(np.partition(self.scores, place)[place]) if place > 0 else 0.0


@frozen(eq=False)
class Neighbours:
    """Looks for words side by side. ``words`` says where each word stands, but for those that stand almost everywhere.

    ``weights`` are those of the columns.
    """

    connection: apsw.Connection
    sql: PackedStatements
    view: View
    weights: Values
    words: Mapping[int, Scored | None]

    def prefer(self, best: Best, phrases: Sequence[Phrase], limit: int) -> None:
        """Add to the scores of the best rows what the phrases that they hold are worth.

        It is BM25 but for the phrase's document frequency, which is estimated: counting it would cost more than
        everything else. To rows that cannot come among the best ``limit`` nothing is added. Raise DamagedError.
        """
        rows = best.rows.astype(np.int32)  # as those of words: searching other integers would convert all of them
        often = {word: self._saturation(held, rows) for word, held in self.words.items()}
        most = np.array([np.minimum.reduce([often[word] for word in phrase.words]) for phrase in phrases])
        bounds = best.scores + self._worth(phrases, map(self._fewest, phrases)) @ most
        chosen = np.flatnonzero((bounds > best.scores) & (bounds >= best.least_of(max(limit, _TELLING))))
        if len(chosen):
            most = most[:, chosen]
            possible = np.flatnonzero(most.any(axis=1)).tolist()
            read = Best(best.rows[chosen], best.keys[chosen], bounds[chosen])
            telling = read.scores >= best.least_of(_TELLING)
            best.scores[chosen] += self._added(read, [phrases[at] for at in possible], most[possible], telling)

    def _saturation(self, held: Scored | None, rows: NDArray[np.int32]) -> Values:
        """Return what a word adds to each of these rows, by its inverse document frequency: nothing where it is not."""
        if held is None:
            return np.full(len(rows), K1 + 1)
        places = held.rows.searchsorted(rows)
        values = held.values.take(places, mode="clip")
        values *= _ROUNDED / idf(self.view.rows, len(held.rows))
        values *= held.rows.take(places, mode="clip") == rows
        return values

    def _worth(self, phrases: Sequence[Phrase], holders: Iterable[float]) -> Values:
        """Return what a phrase counts at most, given how many rows hold each."""
        return np.array(
            [phrase.weight * idf(self.view.rows, some) for phrase, some in zip(phrases, holders, strict=True)]
        )

    def _fewest(self, phrase: Phrase) -> float:
        """Return how many rows hold a phrase at the least: one, or a tenth of what chance would bring together."""
        shares = (len(held.rows) / self.view.rows for word in phrase.words if (held := self.words[word]))
        return max(_BY_CHANCE * self.view.rows * prod(shares), 1.0)

    def _added(self, read: Best, phrases: Sequence[Phrase], most: Values, telling: NDArray[np.bool_]) -> Values:
        """Return what the phrases add to these rows, given how much of them each can hold at most.

        How many rows hold a phrase is estimated from those that are ``telling``.
        """
        rows = read.rows
        sequences = read_sequences(self._read(read.keys))
        places, which = sequences.find([phrase.words for phrase in phrases])
        row, column = np.divmod(places, COLUMNS)
        cells = which * len(rows) + row
        often = np.bincount(cells, self.weights[column], most.size).reshape(most.shape)
        saturated = np.minimum(often * (K1 + 1) / (often + self.view.norms[rows]), most)
        seen = [np.count_nonzero(values[:, telling], axis=1).tolist() for values in (saturated, most)]
        holders = [self._holders(phrase, *both) for phrase, both in zip(phrases, zip(*seen, strict=True), strict=True)]
        added: Values = self._worth(phrases, holders) @ saturated
        return added

    def _holders(self, phrase: Phrase, holding: int, may_hold: int) -> float:
        """Return about how many rows hold a phrase, given how many of those that tell do, and how many might."""
        least = self._fewest(phrase)
        if not holding:
            return least
        others = max(self._holders_of_all(phrase) - may_hold, 0.0)
        return max(holding + others * _ELSEWHERE * holding / may_hold, least)

    def _holders_of_all(self, phrase: Phrase) -> float:
        """Return about how many rows hold all words of a phrase, side by side or not."""
        known = sorted((held.rows for word in set(phrase.words) if (held := self.words[word])), key=len)
        if not known:
            return self.view.rows
        step = len(known[0]) // _SAMPLE + 1
        shared = known[0][::step]
        for rows in known[1:]:
            shared = shared[rows.take(rows.searchsorted(shared), mode="clip") == shared]
        return step * max(len(shared), 0.5)

    def _read(self, keys: Keys) -> list[bytes]:
        """Return the sequences of these rows. Raise DamagedError if some have none."""
        rows = self.connection.execute(self.sql.sequences, (apsw.carray(keys),)).fetchall()
        found = dict(cast("list[tuple[int, bytes]]", rows))
        try:
            return [found[key] for key in keys.tolist()]
        except KeyError as error:
            raise DamagedError("some rows have no sequence") from error

"""What any postings have in common: rows of parts, scores that add up, the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
import pytest
from attrs import field, frozen
from hypothesis import given
from hypothesis import strategies as st

from klaw_words.query import Term
from klaw_words.scoring import Part, ScoredSearch, TermScores, TopRows, View, idf, merge_rows
from klaw_words.searching import Preference, Weights, search

_parts = st.lists(
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 9), st.booleans()), min_size=1, max_size=12), max_size=4
)


def made_of(parts: Sequence[Sequence[tuple[int, int, bool]]]) -> list[Part]:
    """Return parts of rows: key, length, and whether the row is dead."""
    kept = [sorted({row[0]: row for row in part}.values()) for part in parts]
    return [
        (*map(np.array, list(zip(*part, strict=True))[:2]), np.flatnonzero([dead for *_, dead in part]))
        for part in kept
    ]


def view_of(parts: Sequence[Sequence[tuple[int, int, bool]]]) -> View:
    made = made_of(parts)
    return View.of(made, sum(int(np.delete(lengths, dead).sum()) for _, lengths, dead in made))


@given(parts=_parts, asked=st.sets(st.integers(0, 400)))
def test_rows_are_found_by_key(parts: list[list[tuple[int, int, bool]]], asked: set[int]) -> None:
    view, keys = view_of(parts), np.array(sorted(asked), np.int64)
    rows, chosen = view.find(keys)
    assert view.keys[rows].tolist() == keys[chosen].tolist()
    assert sorted(rows.tolist()) == np.flatnonzero(np.isin(view.keys, keys)).tolist()


def test_dead_rows_are_not_counted_in_the_mean_length() -> None:
    view = view_of([[(1, 2, False), (2, 90, True)], [(7, 4, False)]])
    assert (view.rows, view.starts) == (2, (0, 2, 3))
    assert view.alive is not None
    assert view.alive.tolist() == [True, False, True]
    assert view.norms[[0, 2]].tolist() == pytest.approx([1.2 * (0.25 + 0.75 * 2 / 3), 1.2 * (0.25 + 0.75 * 4 / 3)])
    assert view_of([[(1, 2, False)]]).alive is None


@given(parts=_parts.filter(bool))
def test_merged_rows_are_the_live_ones_in_order_of_key(parts: list[list[tuple[int, int, bool]]]) -> None:
    made = made_of(parts)
    keys, lengths, moved = merge_rows(made)
    assert keys.tolist() == sorted(key for some, _, dead in made for key in np.delete(some, dead).tolist())
    for (some, sizes, dead), rows in zip(made, moved, strict=True):
        assert np.flatnonzero(rows < 0).tolist() == dead.tolist()
        assert keys[rows[rows >= 0]].tolist() == np.delete(some, dead).tolist()
        assert lengths[rows[rows >= 0]].tolist() == np.delete(sizes, dead).tolist()


def test_a_term_in_most_rows_weighs_next_to_nothing() -> None:
    assert idf(10, 1) == pytest.approx(log(9.5 / 1.5))
    assert idf(10, 6) == idf(10, 10) == 1e-6


@given(scores=st.lists(st.integers(0, 5), max_size=40), depth=st.integers(1, 12))
def test_the_best_rows_are_those_of_a_sorted_list(scores: list[int], depth: int) -> None:
    keys = np.arange(len(scores))[::-1].copy()
    rows = TopRows(np.arange(len(scores)), keys, np.array(scores, float))
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], keys[row]))
    assert rows.best(depth).rows.tolist() == sorted(order[:depth])
    with_ties = [row for row in order if len(order) <= depth or scores[row] >= scores[order[depth - 1]]]
    assert rows.best(depth, ties=True).rows.tolist() == sorted(with_ties)


@frozen(eq=False)
class Listed(ScoredSearch):
    """Postings that are lists: for each word or phrase its rows and its weighted frequency there."""

    view: View
    held: dict[str, dict[int, float]]
    weights: Weights = field(factory=Weights)
    asked: list[Term] = field(init=False, factory=list)

    def expect(self, terms: Sequence[Term], /) -> None:
        self.asked.extend(terms)

    def read(self, terms: Sequence[Term], /) -> None:
        self.asked.extend(terms)

    def about(self, term: Term, /) -> int:
        return len(self.scored(term).rows)

    def holds(self, term: Term, enough: int, /) -> bool:
        return self.about(term) >= enough

    def scored(self, term: Term, /) -> TermScores:
        held = self.held.get(" ".join(term.words), {})
        return TermScores(np.array(sorted(held), np.int32), np.array([held[row] for row in sorted(held)]))


def listed(**held: dict[int, float]) -> Listed:
    return Listed(
        view_of([[(key, 1, False) for key in range(10, 40)], [(key, 1, False) for key in range(10)]]),
        {words.replace("_", " "): rows for words, rows in held.items()},
    )


def test_scores_of_terms_add_up_and_phrases_only_order() -> None:
    asked = listed(green={0: 1.0, 3: 2.0, 4: 2.0}, lantern={3: 1.0, 4: 1.0, 31: 1.5}, green_lantern={4: 8.0, 5: 8.0})
    words = (Term(("green",)), Term(("lantern",)))
    assert asked.best(words, 9) == {10: 1.0, 13: 3.0, 14: 3.0, 1: 1.5}
    assert asked.best(words, 2) == {13: 3.0, 14: 3.0}
    assert asked.best((words[0], words[0]), 9) == {10: 1.0, 13: 2.0, 14: 2.0}
    assert asked.best(words, 9, np.array([1, 2, 13])) == {1: 1.5, 13: 3.0}
    preferred = Preference((Term(("green", "lantern")),), 0.25)
    assert asked.best(words, 9, None, preferred) == {10: 1.0, 13: 3.0, 14: 5.0, 1: 1.5}
    assert asked.best((Term(("absent",)),), 9) == {}


def test_a_match_without_weight_is_found() -> None:
    asked = listed(green={0: 0.0, 3: 0.0, 31: 0.0})
    assert asked.best((Term(("green",)),), 9) == {}, "no weight is 0"
    weightless = Listed(asked.view, asked.held, Weights(0.0))
    assert weightless.best((Term(("green",)),), 9) == {10: 0.0, 13: 0.0, 1: 0.0}
    assert weightless.best((Term(("green",)),), 9, np.array([1, 2, 13])) == {1: 0.0, 13: 0.0}


def test_holders_are_those_of_the_answer_and_of_any_other_keys() -> None:
    asked = listed(green={0: 1.0, 3: 2.0, 31: 2.0}, lantern={3: 1.0})
    words = (Term(("green",)), Term(("lantern",)))
    asked.best(words, 9)
    assert [(count, list(keys)) for count, keys in asked.held_by(words, [1, 13])] == [(3, [1, 13]), (1, [13])]
    assert [(count, list(keys)) for count, keys in asked.held_by(words, [5, 10, 99])] == [(3, [10]), (1, [])]


def test_a_search_looks_up_all_terms_before_it_asks_for_one() -> None:
    asked = listed(green={0: 1.0}, lantern={3: 1.0})
    hits = search(asked, "the green lantern", 5, None, pair_weight=0.25)
    assert [hit.key for hit in hits] == [10, 13]
    assert asked.asked[:3] == [Term(("the",)), Term(("green",)), Term(("lantern",))]
    assert hits[0].relevance == hits[1].relevance

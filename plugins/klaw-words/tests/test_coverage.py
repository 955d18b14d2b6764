"""How much of a question a chunk contains, whatever index answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from klaw_words.coverage import cover
from klaw_words.plan import Plan
from klaw_words.query import Term, compile_query

RARE, OTHER = Term(("violin",)), Term(("tuned",))


@frozen
class Held:
    """The chunks that contain each word or phrase."""

    rows: int
    held: Mapping[str, Collection[int]]

    def held_by(self, terms: Sequence[Term], keys: Sequence[int], /) -> Iterator[tuple[int, Collection[int]]]:
        for term in terms:
            found = self.held.get(" ".join(term.words), ())
            yield len(found), [key for key in keys if key in found]


def plan(*words: Term, pairs: Sequence[Term] = (), **certainties: float) -> Plan:
    return Plan((words,), tuple(pairs), {word: certainties.get(word.words[0], 1.0) for word in words})


def test_all_words_are_more_than_one_and_a_missing_word_counts() -> None:
    held = Held(100, {"violin": (1, 2), "tuned": (1, 3)})
    covered = cover(plan(RARE, OTHER), held, {1: 12.0, 2: 6.0, 3: 6.0})
    assert covered[1] > covered[2] == pytest.approx(covered[3])
    absent = cover(plan(RARE, OTHER, tuned=0.0), held, {1: 6.0, 2: 6.0})
    assert absent[1] == absent[2] < 0.5, "the missing word has the largest weight"


def test_a_guessed_word_counts_half() -> None:
    held = Held(100, {"violin": (1,)})
    sure = cover(plan(RARE), held, {1: 0.0})[1]
    guessed = cover(plan(RARE, violin=0.5), held, {1: 0.0})[1]
    assert sure == pytest.approx(0.5)
    assert 0.15 < guessed < 0.25


def test_words_side_by_side_are_more() -> None:
    held = Held(100, {"violin": (1, 2), "tuned": (1, 2), "violin tuned": (2,)})
    covered = cover(plan(RARE, OTHER, pairs=[Term(("violin", "tuned"))]), held, {1: 0.0, 2: 0.0})
    assert covered[2] - covered[1] == pytest.approx(0.3)


def test_characters_across_a_border_of_words_are_found_with_both_neighbours() -> None:
    grams = compile_query("数据仓库")
    assert [term.words for term in grams] == [("数", "据"), ("据", "仓"), ("仓", "库")]
    held = Held(100, {"数 据": (1, 2), "仓 库": (1,)})
    covered = cover(plan(*grams), held, {1: 0.0, 2: 0.0})
    assert covered[1] == pytest.approx(0.5)
    assert covered[2] < 0.25


def test_nothing_covers_a_question_without_informative_words() -> None:
    assert cover(plan(), Held(9, {}), {1: 2.0}) == {}
    assert cover(plan(RARE), Held(9, {}), {}) == {}


@given(
    held=st.dictionaries(st.sampled_from(["violin", "tuned", "violin tuned"]), st.sets(st.integers(1, 9))),
    scores=st.dictionaries(st.integers(1, 9), st.floats(0, 50), min_size=1),
    certainty=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_coverage_is_a_share(
    held: Mapping[str, Collection[int]], scores: Mapping[int, float], certainty: float
) -> None:
    covered = cover(plan(RARE, OTHER, pairs=[Term(("violin", "tuned"))], tuned=certainty), Held(9, held), scores)
    assert covered.keys() == scores.keys()
    assert [key for key, share in covered.items() if not 0 <= share <= 1] == []

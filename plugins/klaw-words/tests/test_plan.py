"""Which words of a question are asked for: telling ones first, and pairs of neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from klaw_words.plan import make_plan, narrow
from klaw_words.query import Term, compile_query, render


class Known:
    """Every term is there; those that begin with an everyday word are everyday. Remembers what it was asked."""

    def __init__(self, everyday: tuple[str, ...] = ()) -> None:
        self.everyday = everyday
        self.asked: list[tuple[str, Term]] = []

    def holders(self, terms: Sequence[Term], /) -> list[int]:
        return [1] * len(terms)

    def has(self, term: Term, /) -> bool:
        self.asked.append(("has", term))
        return True

    def is_everyday(self, term: Term, /) -> bool:
        self.asked.append(("is everyday", term))
        return term.words[0] in self.everyday


def planned(text: str, *everyday: str) -> tuple[list[str], str]:
    """Return the steps and the pairs for a text, where half of the chunks hold the words of ``everyday``."""
    plan = make_plan(compile_query(text), Known(everyday))
    return [render(step) for step in plan.steps], render(plan.pairs)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", []),
        ("lantern", ['"lantern"']),
        ("the lantern", ['"lantern"', '"the" OR "lantern"']),
        ("price of lantern", ['"price" OR "lantern"', '"price" OR "of" OR "lantern"']),
        ('price "of" lantern', ['"price" OR "of" OR "lantern"']),
        ("what is the lantern", ['"lantern"', '"what" OR "is" OR "the" OR "lantern"']),
        ("what's a lantern", ['"a" OR "lantern"', '"what s" OR "what" OR "a" OR "lantern"']),
        ("who is the", ['"who" OR "is"', '"who" OR "is" OR "the"']),
        ("what is", ['"what" OR "is"']),
        ('"who" sings', ['"who" OR "sings"']),
        ("do*", ['"do"*']),
        ("什么", ['"什 么"']),
    ],
)
def test_informative_words_are_searched_first(text: str, steps: list[str]) -> None:
    assert planned(text, "the")[0] == steps


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("green lantern light", '"green lantern" OR "lantern light"'),
        ("sea ship lantern light", '"ship lantern" OR "lantern light"'),
        ("the lantern of old ships", '"old ships"'),
        ("what lantern did we buy", ""),
        ("snake_case names", '"case names"'),
        ('"green lantern" light', ""),
        ("lant* light", ""),
        ("数据库", ""),
        ("one", ""),
    ],
)
def test_a_pair_has_an_informative_word_and_no_function_word(text: str, pairs: str) -> None:
    assert planned(text, "sea", "ship")[1] == pairs


def test_each_term_is_counted_once_and_question_words_are_not() -> None:
    known = Known()
    make_plan(compile_query("what green lantern and the green ship"), known)
    assert len(known.asked) == len(set(known.asked)) == 9
    assert ("is everyday", Term(("what",))) not in known.asked


def test_selected_words_keep_the_order_of_the_question() -> None:
    terms = compile_query(" ".join(f"word{number}" for number in range(100)))
    kept = narrow(terms, Known())
    assert kept == terms[:64], "of equally rare ones the first"

"""Which word was probably meant, whatever index answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import pytest
from attrs import field, frozen

from klaw_words.query import Term
from klaw_words.suggesting import Suggester
from klaw_words.tokenizer import tokenizer
from klaw_words.treatment import index_text


def stem(word: str) -> str:
    (found,) = tokenizer().terms(index_text(word).strip().encode())
    return found


@frozen(eq=False)
class Counted:
    """Words and the number of chunks of each; the key of a word's chunk is its place."""

    words: Mapping[str, int]
    asked: list[int] = field(init=False, factory=list)

    @property
    def stems(self) -> dict[str, int]:
        return {stem(word): count for word, count in self.words.items()}

    def has(self, term: Term, /) -> bool:
        return stem(term.words[0]) in self.stems

    def count(self, term: Term, limit: int, /) -> int:
        return min(self.stems.get(stem(term.words[0]), 0), limit)

    def best(self, terms: Sequence[Term], depth: int, /) -> Mapping[int, float]:
        wanted = {stem(term.words[0]) for term in terms}
        found = [key for key, word in enumerate(self.words) if stem(word) in wanted]
        return dict.fromkeys(found[:depth], 1.0)

    def known_among(self, stems: AbstractSet[str], /) -> AbstractSet[str]:
        self.asked.append(len(stems))
        return stems & self.stems.keys()


def suggested(text: str, **words: int) -> str | None:
    return Suggester(Counted(words), lambda keys: [list(words)[key] for key in keys]).suggest(text)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("lieftime", "lifetime"),
        ("the lieftime, now", "the lifetime, now"),
        ("lifetme", "lifetime"),
        ("lifettime", "lifetime"),
        ("lifetume", "lifetime"),
        ("lifetime", None),
        ("lifteimes of clocks", "lifetimes of clocks"),
        ("lfte", None),
        ("lieftime of qwertyuiop", None),
        ("ltime", None),
    ],
)
def test_one_slip_in_a_long_word_is_corrected(text: str, suggestion: str | None) -> None:
    words = {"lifetime": 3, "lifetimes": 3, "clocks": 1}
    assert suggested(text, **words) == suggestion


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("configure a printer", "printed"),
        ("configure the router", "route"),
        ("who signed the lease", "least"),
        ("who wrote this line", "write"),
        ("where did i park", "here"),
        ("how to bake bread", "read"),
        ("put it aside", "side"),
        ("there was a boat", "three"),
        ('"hedghog" box', "hedgehog"),
    ],
)
def test_a_right_word_is_no_misspelling_of_a_similar_one(question, word):
    lacking = {"printer", "router", "lease", "wrote", "where", "bread", "aside", "there", "hedghog"}
    held = {each: 9 for each in question.replace('"', "").split() if each not in lacking}
    assert suggested(question, **held, **{word: 99}) is None


def test_the_word_in_most_chunks_is_meant() -> None:
    assert suggested("coast roasf", coast=9, roast=4, roads=2) == "coast roast"
    assert suggested("boarf", board=4, boars=9) == "boars"


@pytest.mark.parametrize(("right", "suggestion"), [(19, "elision elison"), (20, "elision elision")])
def test_a_known_but_rare_word_is_corrected_beside_an_unknown_one(right: int, suggestion: str) -> None:
    assert suggested("eilsion elison", elision=right, elison=2) == suggestion
    assert suggested("elison", elision=right, elison=2) is None


def test_a_correction_is_kept_until_the_index_changes() -> None:
    words, meant = Counted({"lifetime": 1}), dict[str, str]()
    for _ in range(2):
        suggester = Suggester(words, lambda _keys: ["lifetime"], meant)
        assert suggester.suggest("lieftime") == "lifetime"
        assert suggester.suggest("qwertyuiop") is None
    assert len(words.asked) == 2
    assert meant == {"lieftime": "lifetime", "qwertyuiop": ""}


@pytest.mark.parametrize(
    ("text", "words"), [("world", "would"), ("shoult", "should"), ("thier", "their"), ("world record", "would")]
)
def test_no_function_word_is_meant(text: str, words: str) -> None:
    assert suggested(text, **{words: 50, "record": 5}) is None

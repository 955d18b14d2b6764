"""Which of a question's words to ask the index for: those that tell something, and which pairs of them to prefer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Protocol

from attrs import field, frozen

from klaw_core.words.query import MAX_TERMS, Term, read_terms

# What makes an English sentence a question, and who asks whom. Among short messages, which seldom ask, and among
# documents, which speak of nobody, these words are rare and would count as much as what was asked about. `us` and
# `mine` are not here: they are a country and a pit as well. Russian and Chinese lists were tried and changed nothing.
_ASKING = frozenset(
    (
        "what",
        "which",
        "who",
        "whom",
        "whose",
        "when",
        "where",
        "why",
        "how",
        "do",
        "does",
        "did",
        "is",
        "are",
        "was",
        "were",
        "i",
        "me",
        "my",
        "we",
        "our",
        "ours",
        "you",
        "your",
        "yours",
    )
)

# The same in Russian and Chinese, as terms; left out only where it is judged how much of a question a chunk holds.
_RUSSIAN = """
что кто как какои какая какое какие какого каких каким какому какими какова каковы когда где почему зачем скольк чеи чья
чье чьи котор кого кому чего чему чем куда откуда ли
"""
_CHINESE = "什么 多少 哪些 哪个 哪里 哪一 哪种 哪位 何时 如何 怎么 怎样 为何 为什 是谁 几个 何种 何人"
_ASKING_ELSEWHERE = frozenset((*_RUSSIAN.split(), *_CHINESE.split()))


# How sure it is that a longer or shorter word is meant, where no chunk holds a word as it was asked: `bike` may be the
# beginning of `bikeshedding`, and `archit` that of `architecture`.
_GUESSED = 0.5


class Counts(Protocol):
    """What a plan asks about the chunks."""

    def holders(self, terms: Sequence[Term], /) -> Sequence[int]:
        """Return about how many chunks hold each of many terms: enough to tell which are rare."""

    def has(self, term: Term, /) -> bool:
        """Return whether any chunk holds a term."""

    def is_everyday(self, term: Term, /) -> bool:
        """Return whether so many chunks hold a term that it tells nothing."""

    def makes_pairs(self, word: str, /) -> bool:
        """Return whether it tells something that a word stands next to another."""


@frozen
class Plan:
    """What to ask the index for.

    ``steps`` are sets of terms, the most telling first: the first that finds anything is the answer. ``pairs`` are
    phrases of two neighbouring words: a chunk that holds them as they were asked ranks higher. ``informative`` says of
    each term that tells what is asked about, in order, how sure it is that a chunk which holds it holds what was meant:
    1 as it was asked, less as it was guessed, 0 if no chunk holds it.
    """

    steps: tuple[tuple[Term, ...], ...] = ()
    pairs: tuple[Term, ...] = ()
    informative: Mapping[Term, float] = field(factory=dict)


def narrow(terms: Sequence[Term], counts: Counts, /) -> tuple[Term, ...]:
    """Return at most ``MAX_TERMS`` of the terms, in order: the rarest of those that are found, then what is not."""
    if len(terms) <= MAX_TERMS:
        return tuple(terms)
    held = counts.holders(terms)
    places = sorted(range(len(terms)), key=lambda place: (not held[place], held[place]))
    return tuple(terms[place] for place in sorted(places[:MAX_TERMS]))


def make_plan(terms: Sequence[Term], counts: Counts, /) -> Plan:
    """Return how to search for compiled terms.

    FTS5 gives a term that stands in half of the rows an IDF of a millionth, and takes most of its time to do so.
    A chunk that shares only such words, or only the words that ask, is no find while others share more.
    """
    everyday = cache(counts.is_everyday)
    readings = read_terms(terms, cache(counts.has))
    chosen = tuple(dict.fromkeys(reading for reading in readings.values() if reading is not None))
    content = tuple(term for term in chosen if not asks(term)) or chosen
    telling = tuple(term for term in content if not everyday(term)) or content
    steps = tuple(step for step in dict.fromkeys((telling, content, chosen)) if step)
    tell = set(telling)
    informative = {
        reading or term: 0.0 if reading is None else 1.0 if reading == term else _GUESSED
        for term, reading in readings.items()
        if (reading is None or reading in tell) and not _asks_anywhere(term)
    }
    return Plan(steps, _pairs(chosen, telling, counts), informative)


def _pairs(chosen: Sequence[Term], telling: Sequence[Term], counts: Counts) -> tuple[Term, ...]:
    """Return the phrases of two words of which at least one is telling, and none a function word.

    Compounds are searched for as such already.
    """
    tell, known = set(telling), set(chosen)
    pairing = {term for term in chosen if _is_word(term) and counts.makes_pairs(term.words[0])}
    phrases = (
        Term(first.words + second.words)
        for first, second in pairwise(chosen)
        if first in pairing and second in pairing and (first in tell or second in tell)
    )
    return tuple(dict.fromkeys(phrase for phrase in phrases if phrase not in known))


def _is_word(term: Term) -> bool:
    return len(term.words) == 1 and not (term.prefix or term.literal or asks(term))


def _asks_anywhere(term: Term) -> bool:
    """Return whether a term only asks, in any of the languages whose question words are known."""
    return asks(term) or "".join(term.words) in _ASKING_ELSEWHERE


def asks(term: Term) -> bool:
    """Return whether a term only asks: ``what``, or ``what's``; never what was quoted or left open."""
    return not (term.prefix or term.literal) and term.words[0] in _ASKING and all(len(w) == 1 for w in term.words[1:])

"""Plan a search: choose the informative words of a question, and the pairs of words to prefer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from attrs import field, frozen

from klaw_words.query import MAX_TERMS, Term, read_terms
from klaw_words.tokenizer import is_pairing

# English question words and personal pronouns. They are rare in short messages and in documents, and would otherwise
# count as much as informative words. `us` and `mine` are not listed, because they have other meanings (US, a pit).
# Russian and Chinese lists were tried and changed nothing.
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

# The same words in Russian and Chinese, as terms. They are ignored only in the coverage of a question by a chunk.
_RUSSIAN = """
что кто как какои какая какое какие какого каких каким какому какими какова каковы когда где почему зачем скольк чеи чья
чье чьи котор кого кому чего чему чем куда откуда ли
"""
_CHINESE = "什么 多少 哪些 哪个 哪里 哪一 哪种 哪位 何时 如何 怎么 怎样 为何 为什 是谁 几个 何种 何人"
_ASKING_ELSEWHERE = frozenset((*_RUSSIAN.split(), *_CHINESE.split()))

# English words that join others. In tables and in other languages they are as rare as names, and would count as much.
# Words with another meaning are not listed: `it` (IT), `a` (a grade, a vitamin), `as`, `be`.
_JOINING = frozenset(("the", "of", "and", "that", "this", "these", "those"))


# The certainty of another reading, if no chunk contains a word as it was asked: `bike` may be a prefix of
# `bikeshedding`, and `archit` of `architecture`.
_GUESSED = 0.5


class Counts(Protocol):
    """The counts that a plan needs."""

    def holders(self, terms: Sequence[Term], /) -> Sequence[int]:
        """Return approximately how many chunks contain each term, enough to tell which are rare."""

    def has(self, term: Term, /) -> bool:
        """Return whether any chunk contains a term."""

    def is_everyday(self, term: Term, /) -> bool:
        """Return whether so many chunks contain a term that it is not informative."""


@frozen(eq=False)
class Plan:
    """The plan of a search.

    ``steps`` are sets of terms, the most informative first; the first set that finds anything gives the result.
    ``pairs`` are phrases of two adjacent words; a chunk with such a phrase ranks higher. ``informative`` maps each
    informative term, in order, to the certainty that it means what was asked: 1 for the word itself, less for a guess,
    0 if no chunk contains it.
    """

    steps: tuple[tuple[Term, ...], ...] = ()
    pairs: tuple[Term, ...] = ()
    informative: Mapping[Term, float] = field(factory=dict)


def narrow(terms: Sequence[Term], counts: Counts, /) -> tuple[Term, ...]:
    """Return at most ``MAX_TERMS`` terms, in order: the rarest ones that occur, then those that do not occur."""
    if len(terms) <= MAX_TERMS:
        return tuple(terms)
    held = counts.holders(terms)
    places = sorted(range(len(terms)), key=lambda place: (not held[place], held[place]))
    return tuple(terms[place] for place in sorted(places[:MAX_TERMS]))


def make_plan(terms: Sequence[Term], counts: Counts, /) -> Plan:
    """Return the plan for compiled terms.

    FTS5 gives a term in half of the rows an IDF of a millionth, and spends most of its time on it. A chunk with only
    such words, or only question words, is not a result while other chunks share more.
    """
    readings = read_terms(terms, counts.has)
    chosen = tuple(dict.fromkeys(reading for reading in readings.values() if reading is not None))
    content = tuple(term for term in chosen if not (asks(term) or joins(term))) or chosen
    telling = tuple(term for term in content if not counts.is_everyday(term)) or content
    steps = tuple(step for step in dict.fromkeys((telling, content, chosen)) if step)
    tell = set(telling)
    informative = {
        reading or term: 0.0 if reading is None else 1.0 if reading == term else _GUESSED
        for term, reading in readings.items()
        if (reading is None or reading in tell) and not (_is_question_word(term) or joins(term))
    }
    return Plan(steps, _pairs(chosen, telling), informative)


def _pairs(chosen: Sequence[Term], telling: Sequence[Term]) -> tuple[Term, ...]:
    """Return the phrases of two words, at least one of them informative, and none a function word.

    Compounds are phrases already.
    """
    tell, known = set(telling), set(chosen)
    pairing = {term for term in chosen if _is_word(term) and is_pairing(term.words[0])}
    phrases = (
        Term(first.words + second.words)
        for first, second in pairwise(chosen)
        if first in pairing and second in pairing and (first in tell or second in tell)
    )
    return tuple(dict.fromkeys(phrase for phrase in phrases if phrase not in known))


def _is_word(term: Term) -> bool:
    return len(term.words) == 1 and not (term.prefix or term.literal or asks(term))


def joins(term: Term) -> bool:
    """Return whether a term is a word such as ``of``, neither quoted nor a prefix."""
    return not (term.prefix or term.literal) and len(term.words) == 1 and term.words[0] in _JOINING


def _is_question_word(term: Term) -> bool:
    """Return whether a term is a question word in any of the known languages."""
    return asks(term) or "".join(term.words) in _ASKING_ELSEWHERE


def asks(term: Term) -> bool:
    """Return whether a term is a question word such as ``what`` or ``what's``, and neither quoted nor a prefix."""
    return not (term.prefix or term.literal) and term.words[0] in _ASKING and all(len(w) == 1 for w in term.words[1:])

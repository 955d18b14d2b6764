"""What hits are worth: to the fusion, and to a person who asks whether anything fits.

A retriever says of each hit how much it believes in it (``Hit.relevance``), on a scale that all retrievers share. Two
things only the search as a whole can add: how well the model knows the question's script, and which hits words could
not have found.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from math import exp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_core.interfaces.components import Embedder
    from klaw_core.values.search import Hit, Ranking

# Tokens a letter: a model that knows a script has words for it, one that does not spells it out. English with a model
# for English has .25 to .4, Russian 1; with multilingual models Russian has .3, and Chinese .8.
_KNOWN, _UNKNOWN = 0.6, 0.9

# What a question asks about, and what a chunk must share with it to be found by words: letters, not numbers.
_WORD = re.compile(r"[^\W\d_]+")
_LETTER = re.compile(r"[A-Za-z]")
# So many words make a question in which any text of its language shares one: `the`, `of`, `is`.
_SENTENCE = 5
_READ = 400

# A logistic curve that tells questions whose document is in the index from those whose document is not: of the
# relevance that words give, of the vectors', of the fifth best that words give (what all chunks share is the topic, not
# the answer), and of how much the model knows. See docs/decisions/0031-relevance.md.
_WORDS, _VECTORS, _TOPIC, _LEAST, _KNOWING = 12.0, 15.0, -5.0, -4.0, -2.0
_FIFTH = 5
# By vectors alone.
_ALONE, _ALONE_LEAST = 63.0, -8.5
# What the best chunk by words must reach for words to be the judge at all. A paraphrase finds less: `authentication for
# employees` gives .04 in notes about signing in, `how to tune a violin` .05 where nothing fits.
_TELLING = 0.2
# A hit that words could not have found is judged by vectors alone: with the weight of both.
_UNREACHED = 2.8


def familiarity(question: str, embedder: Embedder) -> float:
    """Return how well a model knows the script of a question, from 0 to 1, by how many tokens a letter takes.

    A server's embedder only estimates tokens: of its models it is assumed that they know everything.
    """
    from klaw_core.embedding.abilities import is_remote  # a search for words alone needs none

    letters = sum(map(str.isalnum, question))
    if not letters or is_remote(embedder):
        return 1.0
    (tokens,) = embedder.count_tokens([question])
    return min(max((_UNKNOWN - tokens / letters) / (_UNKNOWN - _KNOWN), 0.0), 1.0)


def is_unreachable(question: str, text: str) -> bool:
    """Return whether words cannot lead from a question to a text: another script, or a sentence that shares no word."""
    script = _script(question)
    if script and _script(text) != script:
        return True
    asked = _words(question)
    if len(asked) < _SENTENCE:
        return False
    folded = text.casefold()
    # Most share a word that stands between two spaces. To cut a text into words takes ten times as long.
    shortest_first = _spaced_words(question)
    for word in shortest_first:
        if word in folded:
            return False
    return not any(_stands_in(word.strip(), folded) for word in shortest_first)


def _stands_in(word: str, text: str) -> bool:
    """Return whether a word stands in a text, between what are no letters, as :data:`_WORD` has them."""
    place = text.find(word)
    while place >= 0:
        around = text[max(place - 1, 0) : place], text[place + len(word) : place + len(word) + 1]
        if not any(_WORD.match(character) for character in around):
            return True
        place = text.find(word, place + 1)
    return False


@lru_cache(maxsize=16)
def _words(question: str) -> frozenset[str]:
    return frozenset(_WORD.findall(question.casefold()))


@lru_cache(maxsize=16)
def _spaced_words(question: str) -> Sequence[str]:
    """Return the words of a question between spaces, the shortest, which are the most frequent, first."""
    return [f" {word} " for word in sorted(_words(question), key=len)]


def _script(text: str) -> str:
    """Return the script that most of the first letters of a text are in."""
    first = text[:_READ]
    if first.isascii():
        return "LATIN" if _LETTER.search(first) else ""
    return _script_of_most(first)


@lru_cache(maxsize=1024)
def _script_of_most(text: str) -> str:
    scripts: Counter[str] = Counter()
    for letter, count in Counter(text).items():  # in the order in which they first stand there
        if letter.isalpha():
            scripts[_script_of(letter)] += count
    return scripts.most_common(1)[0][0] if scripts else ""


@cache
def _script_of(letter: str) -> str:
    return unicodedata.name(letter, "?").partition(" ")[0]


def judge(words: Sequence[Ranking], vectors: Sequence[Ranking], known: float) -> Callable[[int], float | None]:
    """Return what tells the relevance of a hit by its key: 0 to 1, comparable between questions, None if unknown."""
    said, alike = _relevances(words), _relevances(vectors)

    def by_vectors(key: int) -> float | None:
        hit = alike.get(key)
        return _logistic(_ALONE * hit.relevance + _ALONE_LEAST) if hit is not None and hit.relevance else None

    if not words:
        return by_vectors
    ranked = sorted([hit.relevance or 0.0 for hit in said.values()], reverse=True)
    topic = ranked[_FIFTH - 1] if len(ranked) >= _FIFTH else 0.0
    base = _TOPIC * topic + _LEAST + (_KNOWING * known if alike else 0.0)
    # Where no chunk holds the question's words, words tell nothing about any of them.
    telling = min(ranked[0] / _TELLING, 1.0) if ranked else 0.0

    def by_both(key: int) -> float | None:
        if key not in said and key not in alike:
            return None
        both = _logistic(base + _WORDS * _worth(said.get(key)) + _VECTORS * _worth(alike.get(key)))
        if telling == 1.0:
            return both
        return telling * both + (1.0 - telling) * (by_vectors(key) or 0.0) * known

    return cache(by_both)


def _relevances(rankings: Sequence[Ranking]) -> Mapping[int, Hit]:
    return {hit.key: hit for ranking in rankings for hit in ranking.hits if hit.relevance is not None}


def _worth(hit: Hit | None) -> float:
    if hit is None or hit.relevance is None:
        return 0.0
    return hit.relevance * (_UNREACHED if hit.unreached else 1.0)


def _logistic(value: float) -> float:
    return 1.0 / (1.0 + exp(-value))

"""The relevance of results: an estimate, from 0 to 1, of the probability that a chunk answers the question.

Each retriever returns a relevance with each hit (``Hit.relevance``), on a scale that all retrievers share. This module
combines them with two things that no single retriever knows: how well the model knows the question's script, and which
hits a search for words could not have found.
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

# Tokens per letter. The vocabulary of a model has words for scripts that it knows; others it splits into characters.
# English text with an English model has 0.25 to 0.4, Russian 1. With multilingual models, Russian has 0.3, Chinese 0.8.
_KNOWN, _UNKNOWN = 0.6, 0.9

# The words that a question and a chunk can share consist of letters, without digits.
_WORD = re.compile(r"[^\W\d_]+")
_LETTER = re.compile(r"[A-Za-z]")
_NO_LETTERS = bytes(byte for byte in range(128) if not chr(byte).isalpha())
# A question with this number of words shares one, such as `the`, with nearly any text in its language.
_SENTENCE_WORDS = 5
# The number of first characters that determine the script of a text.
_SCRIPT_CHARACTERS = 400

# The coefficients of a logistic function that separates questions whose document is in the index from other questions.
# Its inputs are the relevance from words, the relevance from vectors, the fifth best relevance from words (words that
# five chunks contain are the topic, not the answer), a constant, and the familiarity. See
# docs/decisions/0031-relevance.md.
_WORDS, _VECTORS, _TOPIC, _CONSTANT, _FAMILIARITY = 12.0, 15.0, -5.0, -4.0, -2.0
_TOPIC_RANK = 5
# The coefficients if only vectors are known.
_ONLY_VECTORS, _ONLY_VECTORS_CONSTANT = 63.0, -8.5
# If the best relevance from words is lower, the result depends less on words and more on vectors alone. Paraphrases
# find few words: `authentication for employees` has 0.04 in notes about signing in; `how to tune a violin` has 0.05 if
# no note answers it.
_RELIABLE = 0.2
# The factor for the relevance from vectors of a hit that words could not have found; it replaces that from words.
_UNREACHED = 2.8


def familiarity(question: str, embedder: Embedder) -> float:
    """Return how well a model knows the script of a question, from 0 to 1, from the number of tokens per letter.

    It is 1 for the embedder of a server, which can only estimate the number of tokens.
    """
    from klaw_core.embedding.abilities import is_remote  # not needed if only words are searched

    letters = sum(map(str.isalnum, question))
    if not letters or is_remote(embedder):
        return 1.0
    (tokens,) = embedder.count_tokens([question])
    return min(max((_UNKNOWN - tokens / letters) / (_UNKNOWN - _KNOWN), 0.0), 1.0)


def is_unreachable(question: str, text: str) -> bool:
    """Return whether a search for the question's words cannot find a text.

    That is so if the text is in another script, or if the question is a sentence that shares no word with the text.
    """
    script, words = _script_and_words(question)
    if script and _script(text) != script:
        return True
    if len(words) < _SENTENCE_WORDS:
        return False
    # Most texts share a word in lower case between two spaces. Finding it is ten times as fast as splitting the text
    # into words, and folding a text that is not ASCII takes longer than finding a word.
    for word in words:
        if word in text:
            return False
    folded = text.casefold()
    # The longest first, because other words seldom contain them.
    return not any(_contains_word(folded, word.strip()) for word in reversed(words))


def _contains_word(text: str, word: str) -> bool:
    """Return whether :data:`_WORD` would find a word in a text."""
    start = text.find(word)
    while start >= 0:
        neighbours = text[max(start - 1, 0) : start], text[start + len(word) : start + len(word) + 1]
        if not any(_WORD.match(character) for character in neighbours):
            return True
        start = text.find(word, start + 1)
    return False


@lru_cache(maxsize=16)
def _script_and_words(question: str) -> tuple[str, Sequence[str]]:
    """Return the script of a question, and its words, each between two spaces; shortest first, as they are frequent."""
    words = set(_WORD.findall(question.casefold()))
    return _script(question), [f" {word} " for word in sorted(words, key=len)]


def _script(text: str) -> str:
    """Return the script of most letters at the start of a text, or an empty string."""
    start = text[:_SCRIPT_CHARACTERS]
    if start.isascii():
        return "LATIN" if _LETTER.search(start) else ""
    if 2 * len(start.encode("ascii", "ignore").translate(None, _NO_LETTERS)) > len(start):
        return "LATIN"  # more than half of all characters; counting the others is slow
    return _most_common_script(start)


@lru_cache(maxsize=1024)
def _most_common_script(text: str) -> str:
    scripts: Counter[str] = Counter()
    for letter, count in Counter(text).items():  # in order of first occurrence: the first of equal scripts wins
        if letter.isalpha():
            scripts[_letter_script(letter)] += count
    return scripts.most_common(1)[0][0] if scripts else ""


@cache
def _letter_script(letter: str) -> str:
    return unicodedata.name(letter, "?").partition(" ")[0]


def combine_relevance(
    words: Sequence[Ranking], vectors: Sequence[Ranking], familiar: float
) -> Callable[[int], float | None]:
    """Return a function from the key of a hit to its relevance: 0 to 1, comparable between questions, None if unknown.

    ``words`` and ``vectors`` are the rankings of the retrievers without and with vectors; ``familiar`` is the
    :func:`familiarity`.
    """
    word_hits, vector_hits = _hits_with_relevance(words), _hits_with_relevance(vectors)

    def by_vectors(key: int) -> float | None:
        value = hit.relevance if (hit := vector_hits.get(key)) else None
        return _logistic(_ONLY_VECTORS * value + _ONLY_VECTORS_CONSTANT) if value else None

    if not words:
        return by_vectors
    ranked = sorted([hit.relevance or 0.0 for hit in word_hits.values()], reverse=True)
    topic = ranked[_TOPIC_RANK - 1] if len(ranked) >= _TOPIC_RANK else 0.0
    base = _TOPIC * topic + _CONSTANT + (_FAMILIARITY * familiar if vector_hits else 0.0)
    # If no chunk contains many of the question's words, the relevance from words says nothing about any chunk.
    reliability = min(ranked[0] / _RELIABLE, 1.0) if ranked else 0.0

    def by_both(key: int) -> float | None:
        if key not in word_hits and key not in vector_hits:
            return None
        both = _logistic(base + _WORDS * _weighted(word_hits.get(key)) + _VECTORS * _weighted(vector_hits.get(key)))
        return reliability * both + (1.0 - reliability) * (by_vectors(key) or 0.0) * familiar

    return cache(by_both)


def _hits_with_relevance(rankings: Sequence[Ranking]) -> Mapping[int, Hit]:
    hits = [hit for ranking in rankings for hit in ranking.hits if hit.relevance is not None]
    return {hit.key: hit for hit in sorted(hits, key=_weighted)}  # of several retrievers', the greatest


def _weighted(hit: Hit | None) -> float:
    if hit is None or hit.relevance is None:
        return 0.0
    return hit.relevance * (_UNREACHED if hit.unreached else 1.0)


def _logistic(value: float) -> float:
    return 1.0 / (1.0 + exp(-value))

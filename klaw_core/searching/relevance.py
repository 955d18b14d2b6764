"""The relevance of results: an estimate, from 0 to 1, of the probability that a chunk answers the question.

It combines the ``Hit.relevance`` of the retrievers with what no single one knows: how well the model knows the script
of the question, and which hits a search for words could not have found (docs/decisions/0031 and 0106).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from math import exp, log, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_core.interfaces.components import Embedder
    from klaw_core.values.search import Hit, Ranking

# Tokens per letter: few in scripts that the vocabulary of a model has words of (English 0.25 to 0.4), 1 in others.
_KNOWN, _UNKNOWN = 0.6, 0.9

# The words that a question and a chunk can share consist of letters, without digits.
_WORD = re.compile(r"[^\W\d_]+")
_LETTER = re.compile(r"[A-Za-z]")
_NO_LETTERS = bytes(byte for byte in range(128) if not chr(byte).isalpha())
# A question with this number of words shares one, such as `the`, with nearly any text in its language.
_SENTENCE_WORDS = 5
# The number of first characters that determine the script of a text.
_SCRIPT_CHARACTERS = 400

# The coefficients of a logistic function: of the relevance from words, that from vectors, the fifth best from words
# (the topic, not the answer), the constant, and the familiarity.
_WORDS, _VECTORS, _TOPIC, _CONSTANT, _FAMILIARITY = 12.0, 15.0, -5.0, -4.0, -2.0
_TOPIC_RANK, _TINY = 5, 1e-9
# The coefficients if only vectors are known.
_ONLY_VECTORS, _ONLY_VECTORS_CONSTANT = 63.0, -8.5
# If the best relevance from words is lower, as for paraphrases, the result depends more on vectors alone.
_RELIABLE = 0.2
# The factor for the relevance from vectors of a hit that words could not have found; it replaces that from words.
_UNREACHED = 2.8
# With vectors, the result becomes a probability. If the topic is in many chunks, by words (from, range) and by vectors
# (from, range), it moves by a share towards one that says little.
_CROWDED, _CROWDED_VECTORS, _CROWDED_SHARE, _CROWDED_VALUE = (0.15, 0.2), (0.05, 0.025), 0.57, -1.9
# In large collections also added: a constant, the relevance from words, and the best one from words of another hit.
_OFTEN_WRONG, _OWN_WORDS, _RIVAL_WORDS = -1.2, -0.5, 2.0
# If the best and the fifth best chunk have few of the question's words (together: to, range), words cannot judge, as
# for paraphrases. Then most of the odds (share) give way to the number of standard deviations by which the chunk is
# nearer than the mean of the nearest (number, least deviation), the fifth nearest, and a constant.
_MUTE, _NEAREST, _GIVE_WAY, _STANDS_OUT, _NEAR_TOPIC, _ORDINARY = (0.22, 0.1), (50, 0.006), 0.7, 2.35, -18.0, -6.7
# In up to 18 chunks, less up to 28, few can be wrong: the odds rise, with what vectors say of the chunk (from, range).
_SMALL, _LARGE, _FEW, _NEAR = 18, 28, 2.6, (0.02, 0.05)


def familiarity(question: str, embedder: Embedder) -> float:
    """Return how well a model knows the script of a question, from 0 to 1; 1 for a server, which estimates tokens."""
    from klaw_core.embedding.abilities import is_remote  # not needed if only words are searched

    letters = sum(map(str.isalnum, question))
    if not letters or is_remote(embedder):
        return 1.0
    (tokens,) = embedder.count_tokens([question])
    return 1.0 - _share(tokens / letters, _KNOWN, _UNKNOWN - _KNOWN)


def is_unreachable(question: str, text: str) -> bool:
    """Return whether words cannot find a text: its script differs, or a whole sentence shares no word with it."""
    script, words = _script_and_words(question)
    if script and _script(text) != script:
        return True
    # Most texts share a word in lower case between two spaces, which is found faster than other forms.
    if len(words) < _SENTENCE_WORDS or any(word in text for word in words):
        return False
    folded = text.casefold()
    # The longest first, because other words seldom contain them.
    found = (word for word in map(str.strip, reversed(words)) if word in folded)
    return not any(re.search(rf"(?<![^\W\d_]){re.escape(word)}(?![^\W\d_])", folded) for word in found)


@lru_cache(maxsize=16)
def _script_and_words(question: str) -> tuple[str, Sequence[str]]:
    """Return the script of a question, and its words between two spaces; the shortest, which are frequent, first."""
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
    words: Sequence[Ranking], vectors: Sequence[Ranking], familiar: float, *, whole: bool = True
) -> Callable[[int], float | None]:
    """Return a function from the key of a hit to its relevance: 0 to 1, comparable between questions, None if unknown.

    ``words`` and ``vectors`` are the rankings of the retrievers without and with vectors; ``familiar`` is the
    :func:`familiarity`. ``whole``: no filter has left out chunks, so a short ranking means a small collection.
    """
    word_hits, vector_hits = _hits_with_relevance(words), _hits_with_relevance(vectors)

    nearness = {key: hit.relevance or 0.0 for key, hit in vector_hits.items()}

    def by_vectors(key: int) -> float | None:
        value = nearness.get(key)
        return _logistic(_ONLY_VECTORS * value + _ONLY_VECTORS_CONSTANT) if value else None

    if not words:
        return by_vectors
    ranked, nearest = _descending(word_hits), _descending(vector_hits)
    topic, near = (each[_TOPIC_RANK - 1] for each in (ranked, nearest))
    base = _TOPIC * topic + _CONSTANT + (_FAMILIARITY * familiar if vector_hits else 0.0)
    reliability = min(ranked[0] / _RELIABLE, 1.0)
    crowded = _CROWDED_SHARE * min(_share(topic, *_CROWDED), _share(near, *_CROWDED_VECTORS))
    few = _share(_LARGE - len(vector_hits), 0, _LARGE - _SMALL) if vector_hits else 0.0
    small = few if whole else 0.0
    judged = (1.0 - small) * (near > 0.0)
    mute = (1.0 - few) * (near > 0.0) * _share(familiar, 0.5, 0.5) * _share(_MUTE[0] - ranked[0] - topic, 0.0, _MUTE[1])
    nearest = nearest[: min(len(vector_hits), _NEAREST[0])] or [0.0]
    mean = sum(nearest) / len(nearest)
    deviation = sqrt(sum((value - mean) ** 2 for value in nearest) / len(nearest)) + _NEAREST[1]

    def by_both(key: int) -> float | None:
        if key not in word_hits and key not in vector_hits:
            return None
        own, meant = _weighted(word_hits.get(key)), _weighted(vector_hits.get(key))
        both = _logistic(base + _WORDS * own + _VECTORS * meant)
        found = reliability * both + (1.0 - reliability) * (by_vectors(key) or 0.0) * familiar
        odds = log(max(found, _TINY) / max(1.0 - found, _TINY)) + _FEW * small * _share(meant + 1.0 - familiar, *_NEAR)
        odds += judged * (_OFTEN_WRONG + _OWN_WORDS * own + _RIVAL_WORDS * ranked[own == ranked[0]])
        odds = (1.0 - crowded) * odds + crowded * _CROWDED_VALUE
        above = (nearness.get(key, 0.0) - mean) / deviation
        return _logistic(odds + mute * (_STANDS_OUT * above + _NEAR_TOPIC * near + _ORDINARY - _GIVE_WAY * odds))

    return cache(by_both)


def _descending(hits: Mapping[int, Hit]) -> Sequence[float]:
    """Return the relevances of hits, the best first, and zeros after them."""
    return sorted([hit.relevance or 0.0 for hit in hits.values()], reverse=True) + [0.0] * _TOPIC_RANK


def _share(value: float, first: float, span: float) -> float:
    return min(max((value - first) / span, 0.0), 1.0)


def _hits_with_relevance(rankings: Sequence[Ranking]) -> Mapping[int, Hit]:
    hits = [hit for ranking in rankings for hit in ranking.hits if hit.relevance is not None]
    return {hit.key: hit for hit in sorted(hits, key=_weighted)}  # of several retrievers', the greatest


def _weighted(hit: Hit | None) -> float:
    return 0.0 if hit is None else (hit.relevance or 0.0) * (_UNREACHED if hit.unreached else 1.0)


def _logistic(value: float) -> float:
    return 1.0 / (1.0 + exp(-value))

"""A classifier of acknowledgements: logistic regression on words and parts of words, in English, Russian and Chinese.

``benchmarks/train_gate.py`` makes the weights from the messages in ``benchmarks/gate``. The file has a line of JSON
(the threshold of each language) and, compressed, one byte per hash of a feature: the weight plus 128. Weights are
integers, so that a message has the same score everywhere. See ``docs/decisions/0068-a-classifier-for-the-gate.md``.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

from attrs import frozen

WEIGHTS = Path(__file__).with_name("acknowledgements.bin")
#: The factor of the sum over parts of words, which is divided by the square root of their number.
PARTS_FACTOR = 3.0
#: A weight in the file is a multiple of this.
STEP = 1 / 32
#: Parts of words have at most this many characters, and Chinese ones this many.
_PART, _CHINESE_PART = (2, 5), (1, 4)
_FIRST, _LAST = "^", "$"

_HAN = "一-鿿"
_TOKEN = re.compile(rf"[{_HAN}]+|[^\W_{_HAN}]+(?:['’][^\W\d_]+)?|[^\w\s]")
_CHINESE = re.compile(rf"[{_HAN}]")
_RUSSIAN = re.compile("[а-яё]", re.IGNORECASE)
_REPEATED = re.compile(r"(.)\1{2,}")
_DIGIT = re.compile(r"\d")
_FOREIGN = re.compile(rf"[^\W\d_a-zA-ZÀ-ɏа-яА-ЯёЁ{_HAN}]")
_SAME = str.maketrans("ё’，！。～", "е',!.~")


@frozen(eq=False)
class Classifier:
    """The weights of features, by hash, and the lowest score of an acknowledgement, by language."""

    weights: bytes
    thresholds: Mapping[str, float]

    def margin(self, message: str) -> float:
        """Return by how much the score of a message exceeds the threshold of its language.

        A positive margin means an acknowledgement. For another script it is negative infinity.
        """
        if (language := language_of(message)) is None:
            return -math.inf
        return self.score(message) - self.thresholds[language]

    def score(self, message: str) -> float:
        """Return the score of a message: the sum of the weights of its features."""
        words, parts = features_of(message)
        size = len(self.weights)
        of_words = sum(self._weight(word, size) for word in words)
        of_parts = sum(self._weight(part, size) for part in parts) / math.sqrt(len(parts) or 1)
        return STEP * (of_words + PARTS_FACTOR * of_parts)

    def _weight(self, feature: str, size: int) -> int:
        return self.weights[hash_of(feature, size)] - 128


@cache
def classifier() -> Classifier:
    """Read the weights; once in a process."""
    head, _, packed = WEIGHTS.read_bytes().partition(b"\n")
    return Classifier(zlib.decompress(packed), json.loads(head))


def language_of(message: str) -> str | None:
    """Return ``zh``, ``ru`` or ``en`` by the script of a message; None if it has letters of another script."""
    if _FOREIGN.search(message):
        return None
    if _CHINESE.search(message):
        return "zh"
    return "ru" if _RUSSIAN.search(message) else "en"


def hash_of(feature: str, size: int) -> int:
    """Return the place of a feature's weight."""
    return zlib.crc32(feature.encode("utf-8", "surrogatepass")) % size


def features_of(message: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the features of a message: words, pairs and triples of words and punctuation; and parts of words."""
    tokens = [_FIRST, *_tokens(message), _LAST]
    words = {f"1{token}" for token in tokens}
    words.update(f"2{one} {two}" for one, two in pairwise(tokens))
    words.update(f"3{one} {two} {three}" for one, two, three in zip(tokens, tokens[1:], tokens[2:], strict=False))
    plain = [token for token in tokens if token in {_FIRST, _LAST} or token[0].isalnum()]
    words.update(f"4{one} {two}" for one, two in pairwise(plain))
    parts: set[str] = set()
    for token in plain[1:-1]:
        if _CHINESE.match(token):
            words.update(f"5{part}" for part in _parts(token, *_CHINESE_PART))
        else:
            parts.update(_parts(token, *_PART))
    return frozenset(words), frozenset(parts)


def _tokens(message: str) -> list[str]:
    text = _REPEATED.sub(r"\1\1", message.casefold().translate(_SAME))
    return _TOKEN.findall(_DIGIT.sub("0", text))


def _parts(word: str, shortest: int, longest: int) -> Iterator[str]:
    """Yield the parts of a word; ``<`` and ``>`` are its ends."""
    marked = f"<{word}>"
    for size in range(shortest, longest + 1):
        for first in range(len(marked) - size + 1):
            yield marked[first : first + size]

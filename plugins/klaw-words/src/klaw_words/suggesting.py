"""Did you mean: suggest a word of the index for each word of a question that no chunk contains.

This module is loaded only if a search has found nothing good. Every text at edit distance one (a letter added, removed
or replaced, or two adjacent letters swapped) is reduced to its stem, and the stems are looked up. The work depends on
the length of the word and not on the size of the index.

A word that the index lacks may be right. So a correction never changes the first letter, one ending into another
("printer", "printed"), removes one ("router", "route"), or changes the last letter or a vowel of a short word ("lease",
"least"; "wrote", "write"), and no function word ("world", "would"), neither from nor to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from operator import itemgetter
from typing import Protocol

from attrs import field, frozen

from klaw_words.query import Term
from klaw_words.tokenizer import FUNCTION_TERMS, tokenizer
from klaw_words.treatment import fold, index_text, keep

#: A function that returns the texts of chunks, given their keys.
ReadTexts = Callable[[Sequence[int]], Sequence[str]]

_WORD = re.compile(r"[^\W\d_]+")
# Characters of words to correct. A typo in a shorter word often makes another word, and longer texts are not words.
_MIN_WORD_CHARACTERS, _MAX_WORD_CHARACTERS = 5, 24
# The maximum number of unknown words of a question, and of stems and chunks per suggestion.
_MAX_WORDS, _MAX_STEMS, _MAX_CHUNKS = 8, 6, 3
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
# Characters. In a shorter word another vowel makes another word, or another form of it.
_MIN_VOWEL_CHARACTERS = 6
_MIN_LAST_CHARACTERS = 6  # the same, of an ending
_ENDINGS = frozenset("degnrsy")
_VOWELS = frozenset("aeiouyаеёиоуыэюя")
_FUNCTION_WORDS = """
about above across after again along among around because before below between could doing during every further having
might never other ought shall should since still their theirs them themselves there these thing things think those
though through under until using where whether which while whose within without would yours
"""
# A word in at most this many chunks may be a typo there, if a similar word is in so many times as many.
_MAX_RARE, _TIMES_AS_FREQUENT = 2, 10
# Chunks. The limit of the counts that rank several candidates.
_ENOUGH = 1_000


class Spellings(Protocol):
    """The words of one collection."""

    def has(self, term: Term, /) -> bool:
        """Return whether any chunk contains a term; the words of the question were just looked up."""

    def count(self, term: Term, limit: int, /) -> int:
        """Return how many chunks contain a term, counted up to ``limit``."""

    def best(self, terms: Sequence[Term], depth: int, /) -> Mapping[int, float]:
        """Return the scores of the best ``depth`` chunks with any of the terms, by key, the best first."""

    def known_among(self, stems: AbstractSet[str], /) -> AbstractSet[str]:
        """Return the stems that are terms of the index."""


@frozen(eq=False)
class Suggester:
    """Suggests corrections from the words of one collection. ``read`` returns the texts of chunks.

    ``meant`` caches the correction of each word, or ``""``, while the index is unchanged.
    """

    words: Spellings
    read: ReadTexts
    meant: MutableMapping[str, str] = field(factory=dict)

    def suggest(self, text: str) -> str | None:
        """Return the question with its unknown words corrected; None if there are none, or if one cannot be corrected.

        An unknown word without a similar word shows that the question is in another language or about something else.
        Corrections of its other words would be accidental. A known word is corrected as well if it is rare and a
        similar word is frequent, because chunks have typos, too.
        """
        if '"' in text:  # what stands in quotes is meant as it is
            return None
        words = list(_WORD.finditer(text))
        unknown = [match for match in words if self._is_unknown(match[0])]
        if not unknown or len(unknown) > _MAX_WORDS:
            return None
        pieces: list[str] = []
        done = 0
        for match in words:
            is_unknown = match in unknown
            meant = self.correct_word(fold(match[0])) if is_unknown else self._meant_by_known(fold(match[0]))
            if meant is not None:
                pieces += [text[done : match.start()], meant]
                done = match.end()
            elif is_unknown:
                return None
        return "".join([*pieces, text[done:]])

    def _is_unknown(self, word: str) -> bool:
        """Return whether a word may have a typo: no chunk contains it, and the tokenizer makes one term of it."""
        if not _MIN_WORD_CHARACTERS <= len(word) <= _MAX_WORD_CHARACTERS or word.lower() in _function_words():
            return False
        if self.words.has(_term(word)):
            return False
        return any(self._stems([word]))

    def _meant_by_known(self, word: str) -> str | None:
        """Return a word that is similar to a word of the index and far more frequent, or None."""
        if not _MIN_WORD_CHARACTERS <= len(word) <= _MAX_WORD_CHARACTERS:
            return None
        held = self.words.count(_term(word), _ENOUGH)
        meant = self.correct_word(word) if held <= _MAX_RARE else None
        is_frequent = meant is not None and self.words.count(_term(meant), _ENOUGH) >= _TIMES_AS_FREQUENT * held
        return meant if is_frequent else None

    def correct_word(self, word: str) -> str | None:
        """Return the word at edit distance one that is in most chunks, or None."""
        if word in _function_words():
            return None
        if word not in self.meant:
            self.meant[word] = self._nearest_word(word) or ""
        return self.meant[word] or None

    def _nearest_word(self, word: str) -> str | None:
        slips = [slip for slip in dict.fromkeys(_edits(word)) if _may_be_meant(word, slip)]
        slips = [slip for slip in slips if slip not in _function_words()]  # it would say nothing
        stems = self._stems(slips)
        present = self.words.known_among(set(stems))
        by_stem: dict[str, list[str]] = {}
        for slip, stem in zip(slips, stems, strict=True):
            if stem in present:
                by_stem.setdefault(stem, []).append(slip)
        held = [(self.words.count(_term(same[0]), _ENOUGH), same) for same in by_stem.values()]
        for count, same in sorted(held, key=itemgetter(0), reverse=True)[:_MAX_STEMS]:
            if count and (written := self._written(same)) is not None:
                return written
        return None

    def _written(self, slips: Sequence[str]) -> str | None:
        """Return the one of these spellings of a stem that is written in a chunk; not all of them are words."""
        keys = list(self.words.best((_term(slips[0]),), _MAX_CHUNKS))
        texts = self.read(keys)
        plain = [text.lower() for text in texts if text.isascii()]
        others = {fold(word) for text in texts if not text.isascii() for word in _WORD.findall(text)}
        return next((slip for slip in slips if slip in others or any(_stands_in(slip, text) for text in plain)), None)

    def _stems(self, words: Sequence[str]) -> list[str]:
        """Return the term of each word (letters only), or ``""`` if the tokenizer does not make one term of it."""
        joined = " ".join(words)
        if joined.isascii():  # each word is one term, and of the word treatment it needs only what is rare
            stems = tokenizer().terms(joined.encode())
            return [
                keep(word) if stem.encode() in FUNCTION_TERMS else stem for word, stem in zip(words, stems, strict=True)
            ]
        terms = tokenizer().each([index_text(word).strip().encode() for word in words])
        return [found[0].decode("utf-8", "replace") if len(found) == 1 else "" for found in terms]


@cache
def _function_words() -> frozenset[str]:
    return frozenset(_FUNCTION_WORDS.split())


def _term(word: str) -> Term:
    return Term((index_text(word).strip(),), literal=True)


def _stands_in(word: str, text: str) -> bool:
    """Return whether an ASCII text contains a word, not as a part of a longer word."""
    # The substring test excludes most texts quickly.
    return word in text and re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", text) is not None


def _may_be_meant(word: str, slip: str) -> bool:
    """Return whether a text at edit distance one may be what was meant, and is not just another word."""
    if slip[:1] != word[:1]:
        return False
    # A letter that ends many words is rarely a mistake there: without it, or with another, it is another form or word.
    # A letter that was typed twice is a mistake.
    is_short = len(word) < _MIN_LAST_CHARACTERS
    is_cut = slip == word[:-1] and word[-1] != slip[-1]
    if word[-1] in _ENDINGS and (is_cut or (slip[:-1] == word[:-1] and (is_short or slip[-1] in _ENDINGS))):
        return False
    changed = [(one, other) for one, other in zip(word, slip, strict=False) if one != other]
    is_vowel = len(slip) == len(word) and len(changed) == 1 and _VOWELS.issuperset(changed[0])
    return not is_vowel or len(word) >= _MIN_VOWEL_CHARACTERS


def _edits(word: str) -> Iterator[str]:
    """Yield all texts at edit distance one from a word, those with swapped letters first."""
    letters = next((script for script in (_LATIN, _CYRILLIC) if any(letter in script for letter in word)), "")
    splits = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    yield from (head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1)
    yield from (head + letter + tail for head, tail in splits for letter in letters)
    yield from (head + tail[1:] for head, tail in splits if tail)
    yield from (head + letter + tail[1:] for head, tail in splits if tail for letter in letters)

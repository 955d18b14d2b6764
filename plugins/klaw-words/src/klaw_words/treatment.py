"""Normalise text for the full-text index. Indexed texts and questions get the same treatment.

SQLite's own tokenizer (``porter unicode61``) reads the result, so that any SQLite can use the file; a tokenizer
written in Python would only work from Python. This module adds what that tokenizer lacks:

- compatibility forms and case, after Unicode's NFKC_Casefold (UAX #44): ``ＡＢＣ`` and ``abc``, ``ﬁ`` and ``fi``;
- optional marks are removed: Russian stress and ``ё``, Hebrew and Arabic vowel points;
- letters that people write for one another are one letter (:mod:`klaw_words.letters`): ``ł``, ``l``; ``ή``, ``η``;
- word characters: the tokenizer knows Unicode 6.1, and treats ``₽`` and newer emoji as letters;
- scripts without spaces: each character becomes a word; queries join them again as phrases;
- Russian inflection: Snowball's stems;
- words that the tokenizer's stemmer takes for function words are none: ``Ines``, ``herring`` (:func:`keep`).

Changing any of this changes the words of every index, and needs a migration that empties the tables.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache

from klaw_core import ThreadLock
from klaw_words.letters import plain_letter

#: Chinese characters, Japanese kana, Bopomofo and Korean syllables: each is at least one syllable. Korean has
#: spaces, but attaches particles to the noun, as Japanese does.
SYLLABLES = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3"
    "\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U0003fffd"
)
#: Thai, Lao, Myanmar and Khmer letters and vowel signs: a syllable has several.
LETTERS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u109f\u1780-\u17d3"
    "\ua9e0-\ua9fe\uaa60-\uaa7f"
)

# Lone surrogates, which UTF-8 cannot encode; default ignorable code points (soft hyphens, joiners, variation
# selectors); accents that NFKC did not combine; Hebrew points, Arabic vowel signs and the tatweel.
_DROPPED = (
    "[\ud800-\udfff"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\u0300-\u036f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4"
    "\u06e7\u06e8\u06ea-\u06ed]"
)
_UNSPACED = f"[{SYLLABLES}{LETTERS}]"
_CYRILLIC = "[\u0400-\u052f]+"
# Letters and digits next to a character outside ASCII, because NFKC combines an "e" with the accent after it. The
# look-behind keeps the time linear on long runs of ASCII.
_RUN = r"(?<![0-9A-Za-z])[0-9A-Za-z]*+[^\x00-\x7f][0-9A-Za-z\x80-\U0010ffff]*"

#: The end of what :func:`keep` replaces: a letter for the tokenizer, and no ending for its stemmer.
KEPT = "\u02bc"
_FUNCTION_WORDS = """
the of and in a is that as by it its be being are this was an which have having has can will do doing if we you i all
but would so some when other others there their theirs they what who whom whose how where why she he his hers him her my
your yours our ours me more than then them been were had did does could should may also most such these those
"""
# Letters and digits, and everything beyond ASCII. What is left out is named, which compiles much faster.
_WORDS = re.compile(r"[^\x00-/:-@\[-`{-\x7f]+")
# For bytes of UTF-8: what separates words, as in ``_WORDS``, becomes a space, and capitals small letters.
_SEPARATED = bytes(code if code > 0x7F or chr(code).isalnum() else 0x20 for code in range(256)).lower()  # noqa: PLR2004  # ASCII
# Small words in UTF-8 that :func:`keep` leaves as they are: of a text, only others are looked at.
_unchanged: set[bytes] = set()
_MAX_UNCHANGED = 65_536

# The longest run that is cached: words repeat, sentences do not.
_CACHED_LENGTH = 32
_stemming = ThreadLock("the stemmer")


class CharacterTable(dict[int, str]):
    """A table for ``str.translate`` that computes each character's entry when it first occurs."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, code: int) -> str:
        return self.setdefault(code, self._rule(chr(code)))


def index_text(text: str, /) -> str:
    """Return ``text`` as SQLite's tokenizer should read it; ASCII is unchanged but for what :func:`keep` replaces."""
    if not text.isascii():
        # No run crosses a space. Splitting at spaces first is faster than searching the whole text for runs.
        text = " ".join([word if word.isascii() else _treat(word) for word in text.split(" ")])
    # Most texts have no such word, and this is the fastest way to know. Now only ASCII characters separate words.
    new = set(text.encode("utf-8", "surrogatepass").translate(_SEPARATED).split())
    new -= _unchanged
    if not new:
        return text
    changed = {word for word in new if _may_change(word)}
    changed = {word for word in changed if keep(decoded := word.decode("utf-8", "surrogatepass")) != decoded}
    if len(_unchanged) > _MAX_UNCHANGED:
        _unchanged.clear()
    _unchanged.update(new - changed)
    return _WORDS.sub(_kept, text) if changed else text


@lru_cache(maxsize=8_192)
def keep(word: str, /) -> str:
    """Return a word as it is, or its stem with a mark, if the stem is a function word's, and the word is none.

    Otherwise ``Ines`` would be found as ``in`` and ``Andes`` as ``and``, which nearly every text contains.
    """
    if len(word) > _CACHED_LENGTH or (folded := word.lower()) in _function_words():
        return word
    from klaw_words.tokenizer import FUNCTION_TERMS, tokenizer

    terms = tokenizer()(folded.encode())
    return f"{terms[0].decode()}{KEPT}" if len(terms) == 1 and terms[0] in FUNCTION_TERMS else word


def _may_change(word: bytes) -> bool:
    """Return whether the stem of a small word may be a function word's, without stemming it.

    Of the first three letters that the stemmer leaves of a word in ASCII, it changes none except ``y`` to ``i``.
    """
    start = word[:3].replace(b"y", b"i")
    return not _beginnings().isdisjoint((start[:1], start[:2], start)) or not word.isascii()


@cache
def _beginnings() -> frozenset[bytes]:
    """Return the first letters of the stems of function words, at most three."""
    from klaw_words.tokenizer import FUNCTION_TERMS

    return frozenset(term[:3].replace(b"y", b"i") for term in FUNCTION_TERMS)


@cache
def _function_words() -> frozenset[str]:
    """Return the English function words whose stems are ``FUNCTION_TERMS``, as they are written."""
    return frozenset(_FUNCTION_WORDS.split())


def fold(text: str, /) -> str:
    """Return ``text`` without differences that a search ignores: case, compatibility forms, optional marks."""
    return text.lower() if text.isascii() else _nfkc_casefold(text).translate(_FOLDING)


def is_word_character(character: str, /) -> bool:
    """Return whether a character is part of a word: a letter, a number, or a mark that is an Indic vowel.

    Private-use characters are not, because in notes they are icons of a terminal font.
    """
    category = unicodedata.category(character)
    return category[0] in "LN" or category in {"Mn", "Mc"}


def is_unspaced(text: str, /) -> bool:
    """Return whether ``text`` is one character of a script without spaces."""
    return len(text) == 1 and _pattern(_UNSPACED).match(text) is not None


def stem(folded: str, /) -> str:
    """Return a word of a folded text as the index has it: a Cyrillic one is stemmed, others as by :func:`keep`.

    Words of other Cyrillic languages get the Russian rules too; questions and texts lose the same endings.
    """
    return keep(_stem_cyrillic(folded))


def _stem_cyrillic(text: str) -> str:
    return text if text.isascii() else _pattern(_CYRILLIC).sub(_stem_of, text)


def _stem_of(word: re.Match[str]) -> str:
    with _stemming.hold():  # Snowball's stemmer is not thread-safe: it stores the current word
        return _russian()(word[0]) or word[0]


def _kept(match: re.Match[str]) -> str:
    return keep(match[0])


def _treat(word: str) -> str:
    return _treat_word(word) if len(word) <= _CACHED_LENGTH else _treat_runs(word)


def _treat_runs(word: str) -> str:
    return _pattern(_RUN).sub(_treated, word)


def _treated(match: re.Match[str]) -> str:
    run = match[0]
    return _stem_word(run) if len(run) <= _CACHED_LENGTH else _stem_run(run)


def _stem_run(run: str) -> str:
    return _stem_cyrillic(_nfkc_casefold(run).translate(_INDEXING))


# Keys are the parts between spaces and, because a comma may follow a word, the runs inside them.
_treat_word = lru_cache(maxsize=65_536)(_treat_runs)
_stem_word = lru_cache(maxsize=65_536)(_stem_run)


def _nfkc_casefold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _folded(character: str) -> str:
    if _pattern(_DROPPED).match(character):
        return ""
    return "е" if character == "ё" else plain_letter(character)


def _indexed(character: str) -> str:
    folded = _folded(character)
    if not folded:
        return ""
    if not is_word_character(folded[0]):
        return " "
    return f" {folded} " if _pattern(_UNSPACED).match(folded) else folded


# Compiled at first use: large character classes take milliseconds, and a question in English needs none of them.
_pattern = cache(re.compile)
_FOLDING, _INDEXING = CharacterTable(_folded), CharacterTable(_indexed)


@cache
def _russian() -> Callable[[str], str]:
    # Imported at the first Cyrillic word, because the package loads every language. Its `stemmer()` would prefer
    # PyStemmer, of whatever version is installed, and an index must not depend on that.
    from snowballstemmer.russian_stemmer import RussianStemmer  # type: ignore[import-untyped]  # has no types

    stemmer: Callable[[str], str] = RussianStemmer().stemWord
    return stemmer

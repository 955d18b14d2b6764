"""How text becomes words: the same treatment for what is indexed and for what is asked.

SQLite's own tokenizer (``porter unicode61``) reads the result, so that any SQLite can use the file; a
tokenizer written in Python could be used from Python alone. What that tokenizer lacks is done here:

- compatibility forms and case, after Unicode's NFKC_Casefold (UAX #44): ``ＡＢＣ`` and ``abc``, ``ﬁ`` and ``fi``;
- marks that a reader may leave out: Russian stress and ``ё``, Hebrew and Arabic vowel points;
- what a word is made of: the tokenizer knows Unicode 6.1, and takes ``₽`` and the newer emoji for letters;
- scripts written without spaces: one character, one word; queries put them together again as phrases;
- Russian inflection: Snowball's stems.

Changing any of this changes the words of every index: it takes a migration that empties the tables.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from threading import Lock

#: Chinese characters, Japanese kana, Bopomofo and Korean syllables: one is a syllable or more. Korean has
#: spaces, but its particles are written onto the noun, as Japanese ones are.
SYLLABLES = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3"
    "\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U0003fffd"
)
#: Thai, Lao, Myanmar and Khmer letters and vowel signs: it takes several for one syllable.
LETTERS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u109f\u1780-\u17d3"
    "\ua9e0-\ua9fe\uaa60-\uaa7f"
)

# Lone surrogates, which UTF-8 cannot say; default ignorable code points (soft hyphens, joiners, variation
# selectors); accents that NFKC left on their own; Hebrew points, Arabic vowel signs and the tatweel.
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
# Letters and digits that touch anything outside ASCII: NFKC joins an "e" and the accent after it. The
# look-behind keeps long runs of ASCII linear.
_RUN = r"(?<![0-9A-Za-z])[0-9A-Za-z]*+[^\x00-\x7f][0-9A-Za-z\x80-\U0010ffff]*"

# Words repeat and sentences do not: longer runs would only fill the cache.
_CACHED_LENGTH = 32
_stemming = Lock()


def _renew_lock() -> None:
    """In a child of a fork: a thread of the parent may have held it."""
    global _stemming  # noqa: PLW0603  # of this process
    _stemming = Lock()


os.register_at_fork(after_in_child=_renew_lock)


class CharacterTable(dict[int, str]):
    """A table for ``str.translate`` that works each character out once, when it first occurs."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, code: int) -> str:
        return self.setdefault(code, self._rule(chr(code)))


def index_text(text: str, /) -> str:
    """Return ``text`` as SQLite's tokenizer should read it; ASCII is left as it is, case included."""
    if text.isascii():
        return text
    # No run goes across a space. To look for runs in all of the text takes longer than to set the other words aside.
    return " ".join([word if word.isascii() else _treat(word) for word in text.split(" ")])


def fold(text: str, /) -> str:
    """Return ``text`` without the differences that a search should not see: case, forms, optional marks."""
    return text.lower() if text.isascii() else _nfkc_casefold(text).translate(_FOLDING)


def is_word_character(character: str, /) -> bool:
    """Return whether words are made of this: letters, numbers, and the marks that are Indic vowels.

    Private-use characters are not: in notes they are the icons of a terminal's font.
    """
    category = unicodedata.category(character)
    return category[0] in "LN" or category in {"Mn", "Mc"}


def is_unspaced(text: str, /) -> bool:
    """Return whether this is one character of a script without spaces."""
    return len(text) == 1 and _pattern(_UNSPACED).match(text) is not None


def stem(folded: str, /) -> str:
    """Return folded text with every Cyrillic word in it cut to its stem.

    Other Cyrillic languages go through the Russian rules as well: queries and text lose the same endings.
    """
    return folded if folded.isascii() else _pattern(_CYRILLIC).sub(_stem_of, folded)


def _stem_of(word: re.Match[str]) -> str:
    with _stemming:  # Snowball's stemmer keeps the word it works on
        return _russian()(word[0]) or word[0]


def _treat(word: str) -> str:
    return _treat_word(word) if len(word) <= _CACHED_LENGTH else _treat_runs(word)


def _treat_runs(word: str) -> str:
    return _pattern(_RUN).sub(_treated, word)


def _treated(match: re.Match[str]) -> str:
    run = match[0]
    return _stem_word(run) if len(run) <= _CACHED_LENGTH else _stem_run(run)


def _stem_run(run: str) -> str:
    return stem(_nfkc_casefold(run).translate(_INDEXING))


# By what stands between spaces, and, as a comma may follow it, by the run in it.
_treat_word = lru_cache(maxsize=65_536)(_treat_runs)
_stem_word = lru_cache(maxsize=65_536)(_stem_run)


def _nfkc_casefold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _folded(character: str) -> str:
    if _pattern(_DROPPED).match(character):
        return ""
    return "е" if character == "ё" else character


def _indexed(character: str) -> str:
    folded = _folded(character)
    if not folded:
        return ""
    if not is_word_character(folded):
        return " "
    return f" {folded} " if _pattern(_UNSPACED).match(folded) else folded


# Compiled at first use: classes of many characters take milliseconds, and a question in English none of them.
_pattern = cache(re.compile)
_FOLDING, _INDEXING = CharacterTable(_folded), CharacterTable(_indexed)


@cache
def _russian() -> Callable[[str], str]:
    # Imported at the first Cyrillic word: the package loads every language. Its `stemmer()` would prefer
    # whatever version of PyStemmer is installed, and an index must not depend on that.
    from snowballstemmer.russian_stemmer import RussianStemmer  # type: ignore[import-untyped]  # has no types

    stemmer: Callable[[str], str] = RussianStemmer().stemWord
    return stemmer

"""Turn a question into an FTS5 query: compile, select, render.

The text is never passed through, so no input reaches FTS5's query language. Terms are joined by OR: a question in
natural language finds chunks with any of its words, and BM25 ranks those with rare words first. The work is bounded:
10,000 characters are read, which become at most 1,024 terms of at most 32 words each, at most 16 of them prefixes.
The 64 most informative terms are searched for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice

from attrs import evolve, frozen

from klaw_words.treatment import KEPT, LETTERS, SYLLABLES, CharacterTable, fold, is_word_character, stem

MAX_CHARACTERS = 10_000
MAX_COMPILED = 1_024
MAX_TERMS = 64
MAX_WORDS = 32
MAX_PREFIXES = 8

_MIN_PREFIX = 2  # "a*" is every word in a: seconds of work for no information
_MIN_PARTIAL = 3
_MIN_TRIMMED = 4
_MAX_TRIM = 5
_SYLLABLE_GRAM = 2  # most Chinese words have two characters; Lucene's CJKAnalyzer makes the same bigrams
_LETTER_GRAM = 4  # about a syllable of Thai

_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»", '"'))
_PIECE = re.compile(r'"(?P<quoted>[^"]*)"|[^ "]+')
_PUNCTUATION = "."
_ASCII_WORD = re.compile(r'(?P<word>[^ .*"]+)(?P<star>\*?)')


@frozen(cache_hash=True)
class Term:
    """A search term: one word or several consecutive ones; with ``prefix`` the last one may continue.

    ``literal`` terms are found exactly or not at all: quoted phrases, and characters of scripts without spaces.
    """

    words: tuple[str, ...]
    prefix: bool = False
    literal: bool = False

    def readings(self, *, widen: bool) -> Iterator[Term]:
        """Yield the readings of this term, strictest first; ``widen`` allows prefixes.

        A word that occurs nowhere is read as a prefix (``archit``). If no word has that prefix, the stemmer may have
        removed an ending that was typed partially (``importa`` for ``importance``, stem ``import``); then the longest
        prefix that is itself a word is used.
        """
        yield self
        last = self.words[-1]
        if self.literal or self.prefix or not widen or len(last) < _MIN_PARTIAL or last.endswith(KEPT):
            return
        yield Term(self.words, prefix=True)
        if len(self.words) == 1 and self.words[0].isalpha():
            word = self.words[0]
            for end in range(len(word) - 1, max(_MIN_TRIMMED, len(word) - _MAX_TRIM) - 1, -1):
                yield Term((word[:end],))


def compile_query(text: str, /) -> tuple[Term, ...]:
    """Return the distinct terms of any text, in order, at most ``MAX_COMPILED``; none if it holds no word.

    Words become terms, ``"quoted"`` parts phrases, ``word*`` prefixes. Words joined by punctuation
    (``snake_case``, ``foo-bar``, ``a.b.c``, ``cat's``) become a phrase, and terms of their own where they
    have two letters or more. Scripts without spaces become overlapping phrases of a few characters.
    """
    plain = _plain(fold(text[:MAX_CHARACTERS])[:MAX_CHARACTERS].translate(_QUOTES))
    terms: dict[Term, None] = {}
    prefixes = 0
    for term in _terms(plain):
        prefixes += term.prefix
        terms.setdefault(evolve(term, prefix=False) if prefixes > MAX_PREFIXES else term)
        if len(terms) == MAX_COMPILED:
            break
    return tuple(terms)


def select(terms: Iterable[Term], matches: Callable[[Term], bool], /) -> tuple[Term, ...]:
    """Return the terms to search for, each in its strictest reading for which ``matches`` is true; drop the others."""
    return tuple(dict.fromkeys(reading for reading in read_terms(terms, matches).values() if reading is not None))


def read_terms(terms: Iterable[Term], matches: Callable[[Term], bool], /) -> dict[Term, Term | None]:
    """Map each term to its strictest reading for which ``matches`` is true, or to None.

    At most ``MAX_PREFIXES`` terms are widened. Literal and prefix terms have only one reading.
    """
    chosen: dict[Term, Term | None] = {}
    widened = 0
    for term in terms:
        if term.literal or term.prefix:
            chosen[term] = term
            continue
        readings = term.readings(widen=widened < MAX_PREFIXES)
        reading = next(filter(matches, readings), None)
        widened += reading != term
        chosen[term] = reading
    return chosen


def render(terms: Iterable[Term], /) -> str:
    """Return the terms as an FTS5 expression: distinct quoted strings joined by OR."""
    strings = (f'"{" ".join(term.words)}"{"*" if term.prefix else ""}' for term in terms)
    return " OR ".join(dict.fromkeys(strings))


def match_expression(text: str, matches: Callable[[Term], bool], /) -> str:
    """Return the FTS5 expression for a text; empty if no term matches. ``matches`` says whether a term occurs.

    See :func:`select` for words that do not occur.
    """
    return render(select(compile_query(text), matches)[:MAX_TERMS])


def _plain(text: str) -> str:
    """Reduce ``text`` to words, quotation marks, stars, spaces and full stops."""
    return text.translate(_PLAIN)


def _plain_character(character: str) -> str:
    if character in '"*' or is_word_character(character):
        return character
    return " " if character.isspace() else _PUNCTUATION


_PLAIN = CharacterTable(_plain_character)


def _terms(text: str) -> Iterator[Term]:
    for piece in _PIECE.finditer(text):
        quoted = piece["quoted"]
        yield from _joined(piece[0]) if quoted is None else _phrase(quoted)


def _phrase(quoted: str) -> Iterator[Term]:
    words = tuple(islice(_words(quoted), MAX_WORDS))
    if words:
        yield Term(words, literal=True)


def _words(text: str) -> Iterator[str]:
    """Yield the words of ``text`` in the order of the tokenizer."""
    for match in _matches(text):
        if match["word"] is None:
            yield from match[0]
        else:
            yield stem(match["word"])


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Find words, and runs of scripts without spaces, in the result of ``_plain``."""
    return (_ASCII_WORD if text.isascii() else _any_word()).finditer(text)


@cache
def _any_word() -> re.Pattern[str]:
    return re.compile(  # compiled at first use, because it takes milliseconds
        rf'(?P<syllables>[{SYLLABLES}]+)|(?P<letters>[{LETTERS}]+)|(?P<word>[^ .*"{SYLLABLES}{LETTERS}]+)(?P<star>\*?)'
    )


def _joined(piece: str) -> Iterator[Term]:
    """Yield the terms of a piece without spaces: runs of one script, or words joined by punctuation."""
    compound: list[Term] = []
    for match in _matches(piece):
        if match["word"] is None:
            yield from _compound(compound)
            compound = []
            yield from _grams(match[0], _SYLLABLE_GRAM if match["syllables"] else _LETTER_GRAM)
        else:
            word = stem(match["word"])
            compound.append(Term((word,), prefix=bool(match["star"]) and len(word) >= _MIN_PREFIX))
    yield from _compound(compound)


def _compound(parts: list[Term]) -> Iterator[Term]:
    if len(parts) > 1:
        row = parts[:MAX_WORDS]
        yield Term(tuple(part.words[0] for part in row), prefix=row[-1].prefix)
        yield from (part for part in parts if len(part.words[0]) > 1)
    else:
        yield from parts


def _grams(run: str, size: int) -> Iterator[Term]:
    for start in range(max(1, len(run) - size + 1)):
        yield Term(tuple(run[start : start + size]), literal=True)

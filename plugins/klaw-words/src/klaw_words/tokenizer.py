"""SQLite's tokenizer, and the terms that form pairs with their neighbours."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import cast

import apsw

from klaw_words.treatment import is_unspaced

#: SQLite's tokenizer and its arguments. Marks are parts of words; otherwise Hindi words would be split at vowels.
TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2", "categories", "L* N* Mn Mc")
# Bytes. FTS5 truncates longer terms, even within a character
# (FTS5_MAX_TOKEN_SIZE: https://sqlite.org/src/file/ext/fts5/fts5Int.h).
_MAX_TERM_BYTES = 32_768
_MAX_CHARACTER_BYTES = 4  # in UTF-8

# English function words, stemmed by the tokenizer (`thi` for `this`), without prepositions that distinguish questions.
# A pair with such a word says hardly more than the other word alone: without these pairs nDCG@10 changes by less than
# .001 (docs/measurements/retrieval-quality.md). Stems of informative words are not listed, such as `us`, the stem of
# `use`. A change requires a migration that empties the tables.
_FUNCTION_TERMS = """
the of and in a is that as by it be ar thi wa an which have ha can will do if we you i all but would so some when other
there their thei what who whom whose how where why he she hi him her my your our me more than then them been were had
did doe could should mai also most such these those
"""
FUNCTION_TERMS = frozenset(_FUNCTION_TERMS.encode().split())

_local = threading.local()


class Tokenizer:
    """SQLite's tokenizer with the settings of the tables: normalised text in, terms out. For one thread."""

    def __init__(self) -> None:
        self._connection = apsw.Connection(":memory:")  # tokenizers belong to a connection
        self._tokenize = self._connection.fts5_tokenizer(TOKENIZER[0], list(TOKENIZER[1:]))

    def __call__(self, text: bytes) -> list[bytes]:
        """Return the terms of a UTF-8 text, as FTS5 stores them."""
        (terms,) = self.each([text])
        return terms

    def terms(self, text: bytes) -> list[str]:
        """Return the terms of a UTF-8 text as strings, truncated like FTS5 does."""
        found = self._tokenize(text, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
        return cast("list[str]", found)

    def each(self, texts: Sequence[bytes]) -> list[list[bytes]]:
        """Return the terms of each text, with one call for all texts."""
        ends = list(accumulate(len(text) + 1 for text in texts))
        terms: list[list[bytes]] = [[] for _ in texts]
        place = 0
        found = self._tokenize(b" ".join(texts), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False)
        for start, _, term in cast("list[tuple[int, int, str]]", found):
            while start >= ends[place]:
                place += 1
            terms[place].append(term.encode()[:_MAX_TERM_BYTES])
        return terms


def tokenizer() -> Tokenizer:
    """Return the tokenizer of this thread."""
    found: Tokenizer | None = getattr(_local, "tokenizer", None)
    if found is None:
        found = _local.tokenizer = Tokenizer()
    return found


def makes_pairs(term: bytes, /) -> bool:
    """Return whether a term forms pairs with its neighbours: it is neither a function word nor a single character."""
    if term in FUNCTION_TERMS:
        return False
    return term.isascii() or len(term) > _MAX_CHARACTER_BYTES or not is_unspaced(term.decode("utf-8", "replace"))


@lru_cache(maxsize=4096)
def is_pairing(word: str, /) -> bool:
    """Return whether a word of a question is one term that forms pairs with its neighbours."""
    terms = tokenizer()(word.encode())
    return len(terms) == 1 and makes_pairs(terms[0])

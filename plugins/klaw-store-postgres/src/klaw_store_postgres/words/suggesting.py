"""Suggest corrected words, as ``fts5`` does, from the terms in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any

from attrs import frozen

from klaw_fts5.suggesting import ReadTexts, Suggester
from klaw_fts5.tokenizer import Tokenizer
from klaw_fts5.words.query import Term
from klaw_store_postgres.words.search import PostingsSearch
from klaw_store_postgres.words.tokens import tokenizer


@frozen(eq=False)
class PostgresSuggester(Suggester):
    """Looks up all spellings of a word with one statement."""

    connection: Any
    searcher: Any
    read: ReadTexts
    has: Callable[[Term], bool]
    rows: int = 0

    @classmethod
    def of(cls, searcher: PostingsSearch, read: ReadTexts) -> PostgresSuggester:
        """Return the suggester of a collection."""
        return cls(None, searcher, read, searcher.has)

    @cached_property
    def tokenize(self) -> Tokenizer:
        """The tokenizer of the index."""
        return tokenizer()

    def correct_word(self, word: str) -> str | None:
        """Return the word at edit distance one that is in most chunks, or None; nothing is cached."""
        return self.nearest_word(word)

    def terms_among(self, stems: AbstractSet[str]) -> AbstractSet[str]:
        """Return the stems that are terms of the index, with one statement."""
        terms = {stem.encode(): stem for stem in stems if stem}
        return {terms[term] for term in self.searcher.known_among(terms)}

"""Split texts and questions into the terms of FTS5, with SQLite's tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from attrs import frozen

from klaw_words.tokenizer import tokenizer

if TYPE_CHECKING:
    from klaw_words.query import Term

# PostgreSQL indexes at most 2,704 bytes. A longer term is replaced by its beginning and a hash.
_MAX_TERM_BYTES = 1_000


@frozen(cache_hash=True)
class Pattern:
    """A term of a question in the index: consecutive terms. With ``prefix``, the last one is a prefix."""

    terms: tuple[bytes, ...]
    prefix: bool = False


def terms_of(texts: Sequence[str]) -> list[list[bytes]]:
    """Return the terms of each normalized text, in order."""
    raw = [text.encode("utf-8", "replace") for text in texts]
    return [[shortened(term) for term in terms] for terms in tokenizer().each(raw)]


def pattern_of(term: Term) -> Pattern:
    """Return the pattern of a term of a question."""
    return Pattern(tuple(terms_of([" ".join(term.words)])[0]), term.prefix)


def shortened(term: bytes) -> bytes:
    """Return the form of a term in the index."""
    if len(term) <= _MAX_TERM_BYTES:
        return term
    return term[:_MAX_TERM_BYTES] + b"\0" + blake2b(term, digest_size=16).digest()

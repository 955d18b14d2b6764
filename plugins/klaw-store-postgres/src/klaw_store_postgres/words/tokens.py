"""Terms of texts and of questions: those of FTS5, by SQLite's own tokenizer."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import apsw
from attrs import frozen

from klaw_fts5.tokenizer import Tokenizer

if TYPE_CHECKING:
    from klaw_core.words.query import Term

# PostgreSQL indexes 2,704 bytes at most; of what is longer a hash stands behind the beginning.
_LONGEST = 1_000

_local = threading.local()


@frozen(cache_hash=True)
class Pattern:
    """What a term of a question is to the index: terms in a row, the last one open-ended if ``prefix``."""

    terms: tuple[bytes, ...]
    prefix: bool = False


def tokenizer() -> Tokenizer:
    """Return the tokenizer of this thread."""
    found: Tokenizer | None = getattr(_local, "tokenizer", None)
    if found is None:
        _local.connection = apsw.Connection(":memory:")
        found = _local.tokenizer = Tokenizer(_local.connection)
    return found


def terms_of(texts: Sequence[str]) -> list[list[bytes]]:
    """Return the terms of each treated text, in order."""
    raw = [text.encode("utf-8", "replace") for text in texts]
    return [[shortened(term) for term in terms] for terms in tokenizer().each(raw)]


def pattern_of(term: Term) -> Pattern:
    """Return what is looked for."""
    return Pattern(tuple(terms_of([" ".join(term.words)])[0]), term.prefix)


def shortened(term: bytes) -> bytes:
    """Return a term as the index holds it."""
    if len(term) <= _LONGEST:
        return term
    return term[:_LONGEST] + b"\0" + blake2b(term, digest_size=16).digest()

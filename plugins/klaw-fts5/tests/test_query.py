"""The compiler's expressions, of any text, are accepted by FTS5."""

from __future__ import annotations

import random
from typing import Any

import apsw

from klaw_core import Query
from klaw_fts5.index import Fts5Index
from klaw_testing.index import stored

#: Blocks of 64 characters: the planes that hold any, tags, and both ends of private use.
_BLOCKS = [*range(0, 0x32400, 64), *range(0xE0000, 0xE0200, 64), 0xF0000, 0x10FFC0]

_FRAGMENTS = [
    *'"\'*()^:-+{}[]<>=~!@#$%&|\\/,.;?`“« ', "AND", "OR", "NOT", "NEAR(", "text:", "{heading text}:", '""', "--", "/*",
    "\0", "\ud800", "\udfff", "\u0301", "\u200d", "\U000e0001", "\uffff", "C++", "cat's", "a-b", "word", "harbour",
    "数据", "память", "ｆ", "ﬁ", "İ", "ß", "한국", "ก็", "🚀", ";drop table memory_fts", "rank", "bm25",
]  # fmt: skip


def test_five_thousand_random_texts_are_answered(connection: apsw.Connection) -> None:
    index = Fts5Index()
    index.add(connection, "memory", [stored(n, f"harbour word{n} 数据库 память {n}") for n in range(1, 60)], None)
    source = random.Random(20)
    answered = 0
    for _ in range(5000):
        pieces = [
            source.choice(_FRAGMENTS) if source.random() < 0.7 else chr(source.randrange(0x110000))
            for _ in range(source.randrange(1, 25))
        ]
        text = source.choice(["", " "]).join(pieces)
        found = index.search(connection, Query(text), 5)
        assert len(found) <= 5
        answered += bool(found)
    assert answered > 1000


def test_every_character_is_answered(connection: apsw.Connection, cases: Any) -> None:
    index = Fts5Index()
    index.add(connection, "memory", [stored(1, "harbour")], None)
    for start in _BLOCKS[:: cases.every(8)]:
        cases.add(64)
        characters = " ".join(map(chr, range(start, start + 64)))
        assert index.search(connection, Query(characters), 1) == (), f"U+{start:04X}"
        (hit,) = index.search(connection, Query(f"harbour {characters}"), 1)
        assert hit.key == 1

"""Packed postings answer as FTS5 does, whatever was added and removed, and never when they are damaged."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Literal

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaw_core import ChunkSelection, Hit, KeyDigest, Keys, Query, StoredChunk
from klaw_fts5.index import Fts5Index
from klaw_fts5.packed.postings import Codes, Piece, Postings, collect
from klaw_fts5.packed.state import read_state
from klaw_fts5.sql import statements
from klaw_testing.index import selection, stored
from klaw_testing.laws import scaled

EXACT, PACKED = Fts5Index(search_by="exact", pair_weight=0), Fts5Index(search_by="packed", pair_weight=0)
QUESTIONS = (
    "w1", "w3 w20", "what is w2 of w7 and w90", "w1 w2 w3 w4 w5 w6 w7 w8", "w150 w199", "w1-w4 w30", '"w2 w3"',
    "w1* w4", "数据 w9", "数", "w0", "w55 w55s", "absent", "absentee w12", "head3 w4", "ctx2",
)  # fmt: skip


def text_of(source: random.Random, words: int) -> str:
    """Return words of which the first are frequent and the last rare, as in any language."""
    ranks = (min(int(source.paretovariate(0.7)), 200) for _ in range(words))
    return " ".join("数据库" if source.random() < 0.02 else f"w{rank}" for rank in ranks)


def chunk_of(key: int, seed: int = 0) -> StoredChunk:
    source = random.Random(key * 1000 + seed)
    heading = (f"head{key % 7}",) if key % 3 == 0 else ()
    return stored(key, text_of(source, source.randrange(1, 60)), heading, f"ctx{key % 5} w{key % 9}" if key % 4 else "")


@pytest.fixture
def filled(connection: apsw.Connection) -> apsw.Connection:
    """Return an index of 700 chunks, enough for terms with blobs of their own, in blocks of several sizes."""
    chunks = [chunk_of(key) for key in range(1, 701)]
    PACKED.add(connection, "memory", chunks[:600], None)
    for start in range(600, 700, 7):
        PACKED.add(connection, "memory", chunks[start : start + 7], None)
    return connection


def assert_same(
    connection: apsw.Connection,
    packed: Fts5Index = PACKED,
    exact: Fts5Index = EXACT,
    within: ChunkSelection | None = None,
) -> None:
    for question, limit in zip(QUESTIONS, cycle((3, 1000, 1000)), strict=False):
        query = Query(question, within=within)
        expected, found = exact.search(connection, query, limit), packed.search(connection, query, limit)
        assert [hit.key for hit in found] == [hit.key for hit in expected], question
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], rel=1e-12)


def is_packed(connection: apsw.Connection) -> bool:
    """Return whether the packed form would answer."""
    return answers_packed(PACKED, connection)


def answers_packed(index: Fts5Index, connection: apsw.Connection) -> bool:
    return index._packed(connection, statements("memory"), index._state(connection, "memory")) is not None


def test_packed_answers_equal_those_of_fts5(filled: apsw.Connection) -> None:
    assert is_packed(filled)
    assert filled.execute("SELECT COUNT(*) FROM memory_words_postings WHERE term IS NOT NULL").get > 0
    assert_same(filled)
    assert_same(filled, within=selection(range(0, 700, 9)))
    assert_same(filled, within=selection(range(-5, 5000)))
    assert_same(filled, within=selection([5, 10**12]))


def test_blocks_written_in_pieces_are_merged(filled: apsw.Connection) -> None:
    count = "SELECT COUNT(*) FROM memory_words_blocks"
    PACKED.remove(filled, "memory", [5, 650])
    assert filled.execute(count).get > 1
    assert PACKED.is_scattered(filled, "memory")
    stamp = read_state(filled, "memory")
    PACKED.compact(filled, "memory")
    assert filled.execute(count).get == 1
    assert filled.execute("SELECT COUNT(*) FROM memory_words_dead").get == 0
    assert read_state(filled, "memory") != stamp, "what was kept of the state before is not asked any more"
    assert is_packed(filled)
    assert_same(filled)
    assert not EXACT.is_scattered(filled, "memory")


def test_merged_blocks_reuse_the_pages_of_the_pieces(filled: apsw.Connection) -> None:
    before = filled.execute("PRAGMA page_count").get
    PACKED.compact(filled, "memory")
    assert filled.execute("SELECT COUNT(*) FROM memory_words_blocks").get == 1
    assert filled.execute("PRAGMA page_count").get <= before + 1


def test_writing_does_not_import_masked_arrays() -> None:
    source = """
import sys
import apsw
from klaw_fts5.packed.index import PackedIndex
from klaw_fts5.index import Fts5Index

connection = apsw.Connection("")
index = Fts5Index(search_by="packed")
for migration in index.migrations():
    migration.apply(connection)
rows = [(key, (f"lantern tide{key}", "", "")) for key in range(1, 40)]
packed = PackedIndex()
for first in range(0, 39, 9):
    packed.add(connection, "memory", rows[first : first + 9])
packed.remove(connection, "memory", [3, 4, 3])
packed.compact(connection, "memory")
print("numpy.ma" in sys.modules, packed.keys(connection, "memory").tolist() == [1, 2, *range(5, 40)])
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"


def test_an_index_run_leaves_few_blocks(connection: apsw.Connection) -> None:
    for first in range(0, 300 * 17, 300):
        PACKED.add(connection, "memory", [chunk_of(key) for key in range(first + 1, first + 301)], None)
    sizes = [rows for (rows,) in connection.execute("SELECT rows FROM memory_words_blocks ORDER BY rows")]
    assert sizes == [300, 2400, 2400]


def test_blocks_are_not_merged_if_fts5_answers(filled: apsw.Connection) -> None:
    assert not EXACT.is_scattered(filled, "memory")
    assert not Fts5Index().is_scattered(filled, "memory"), "FTS5 answers where chunks are few"


@settings(deadline=None, max_examples=scaled(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(1, 90)),
            st.tuples(st.just("remove"), st.sets(st.integers(1, 400), max_size=60)),
            st.tuples(st.just("again"), st.sets(st.integers(1, 400), max_size=9)),
            st.tuples(st.just("erase"), st.none()),
            st.tuples(st.just("compact"), st.none()),
        ),
        max_size=14,
    )
)
def test_law_of_equal_answers(connection: apsw.Connection, steps: list[tuple[str, object]]) -> None:
    PACKED.reset(connection, "memory", None)
    held: set[int] = set()
    following = 1
    for number, (step, argument) in enumerate(steps):
        if step == "add":
            assert isinstance(argument, int)
            PACKED.add(connection, "memory", [chunk_of(key) for key in range(following, following + argument)], None)
            held |= set(range(following, following + argument))
            following += argument
        elif step == "erase":
            PACKED.erase(connection, "memory")
        elif step == "compact":
            PACKED.compact(connection, "memory")
            assert not PACKED.is_scattered(connection, "memory")
        else:
            assert isinstance(argument, set)
            keys = {key for key in argument if key < following}
            PACKED.remove(connection, "memory", sorted(keys))
            if step == "again":
                PACKED.add(connection, "memory", [chunk_of(key, number) for key in keys - held], None)
                PACKED.add(connection, "memory", [chunk_of(key, number) for key in keys & held], None)
                held |= keys
            else:
                held -= keys
    assert PACKED.keys(connection, "memory").tolist() == sorted(held)
    assert PACKED.check(connection, "memory", None) == []
    assert_same(connection)


def test_blocks_are_few_and_contain_nothing_erased(connection: apsw.Connection) -> None:
    for key in range(1, 301):
        PACKED.add(connection, "memory", [chunk_of(key)], None)
    count = "SELECT COUNT(*) FROM memory_words_blocks"
    assert connection.execute(count).get <= 3 * 5
    PACKED.remove(connection, "memory", [5, 6, 7])
    assert connection.execute("SELECT COUNT(*) FROM memory_words_dead").get
    PACKED.erase(connection, "memory")
    assert not connection.execute("SELECT COUNT(*) FROM memory_words_dead").get
    assert connection.execute("SELECT SUM(rows) FROM memory_words_blocks").get == 297
    PACKED.remove(connection, "memory", range(1, 301))
    assert connection.execute(count).get == 0
    for table in ("postings", "dead"):
        assert connection.execute(f"SELECT COUNT(*) FROM memory_words_{table}").get == 0


def test_only_existing_blocks_are_cached(connection: apsw.Connection) -> None:
    index = Fts5Index(search_by="packed")
    for key in range(1, 301):
        index.add(connection, "memory", [chunk_of(key)], None)
        if key % 5 == 0:
            index.remove(connection, "memory", [key - 3])
        assert index.key_digest(connection, "memory") is not None
        assert index.search(connection, Query("w1"), 3)
    cache = index._packed_index.cache
    assert len(cache._rows._held) == connection.execute("SELECT COUNT(*) FROM memory_words_blocks").get
    assert len(cache._views) == 1


@pytest.mark.parametrize(
    "weights", [(3.0, 1.0, 0.5), (1.0, 1.0, 1.0), (0.3, 0.7, 7.1), (0.0, 1.0, 1.0), (1.0, 1.0, 0.0)]
)
def test_changed_weights_apply_at_once(filled: apsw.Connection, weights: tuple[float, float, float]) -> None:
    options = dict(zip(("heading_weight", "text_weight", "context_weight"), weights, strict=True))
    assert_same(
        filled,
        Fts5Index(search_by="packed", pair_weight=0, **options),
        Fts5Index(search_by="exact", pair_weight=0, **options),
    )


@pytest.mark.parametrize("rows", [10, 11])
def test_fts5_answers_for_small_collections(connection: apsw.Connection, rows: int) -> None:
    index = Fts5Index(exact_up_to=10, pair_weight=0)
    index.add(connection, "memory", [chunk_of(key) for key in range(1, rows + 1)], None)
    assert is_packed(connection) == (rows > 10)
    assert (index._packed(connection, statements("memory"), index._state(connection, "memory")) is not None) == (
        rows > 10
    )
    assert_same(connection, index)


def test_fts5_answers_until_unpacked_chunks_are_added_again(connection: apsw.Connection) -> None:
    EXACT.add(connection, "memory", [chunk_of(key) for key in range(1, 11)], None)
    PACKED.add(connection, "memory", [chunk_of(11)], None)
    assert not is_packed(connection)
    assert_same(connection)
    assert PACKED.keys(connection, "memory").tolist() == list(range(1, 12))
    assert PACKED.outdated(connection, "memory").tolist() == list(range(1, 11))
    PACKED.remove(connection, "memory", range(1, 11))
    PACKED.add(connection, "memory", [chunk_of(key) for key in range(1, 11)], None)
    assert is_packed(connection)
    assert PACKED.keys(connection, "memory").tolist() == list(range(1, 12))
    assert_same(connection)


def backfill(connection: apsw.Connection, index: Fts5Index, wanted: range | Keys) -> int:
    """Add what the index lacks, as an index run does; return how many chunks that were."""
    held = np.setdiff1d(index.keys(connection, "memory"), index.outdated(connection, "memory"))
    missing = np.setdiff1d(wanted, held).tolist()
    for start in range(0, len(missing), 8):
        keys = missing[start : start + 8]
        index.remove(connection, "memory", keys)
        index.add(connection, "memory", [chunk_of(key) for key in keys], None)
    return len(missing)


@pytest.mark.parametrize("search_by", ["auto", "packed"])
def test_the_next_index_run_packs_unpacked_chunks_once(
    connection: apsw.Connection, search_by: Literal["auto", "packed"]
) -> None:
    EXACT.add(connection, "memory", [chunk_of(key) for key in range(1, 31)], None)
    assert backfill(connection, EXACT, range(1, 31)) == 0
    index = Fts5Index(search_by=search_by, exact_up_to=10, pair_weight=0)
    assert [backfill(connection, index, range(1, 31)) for _ in range(2)] == [30, 0]
    assert is_packed(connection)
    assert index.check(connection, "memory", None) == []
    assert_same(connection)


@pytest.mark.parametrize("bulk", [2, 1_000])
def test_single_additions_are_packed_when_the_collection_is_large(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch, bulk: int
) -> None:
    monkeypatch.setattr("klaw_fts5.index._BULK", bulk)
    index = Fts5Index(exact_up_to=10, pair_weight=0)
    chance = random.Random(bulk)
    there: set[int] = set()
    waited = answered = 0
    for step in range(30):
        new = sorted(set(chance.sample(range(1, 25), chance.randint(1, 3))) - there)
        gone = sorted(chance.sample(sorted(there), min(chance.randint(0, 3), len(there))))
        if step % 10 > 6:
            there -= set(gone)
            index.remove(connection, "memory", [*gone, 99])
            index.erase(connection, "memory")
        else:
            there |= set(new)
            index.add(connection, "memory", [chunk_of(key) for key in new], None)
        outdated = index.outdated(connection, "memory").tolist()
        assert index.keys(connection, "memory").tolist() == sorted(there)
        assert index.check(connection, "memory", None) == []
        assert index.key_digest(connection, "memory") == (None if outdated else KeyDigest.of(np.array(sorted(there))))
        assert not outdated or len(there) > 10
        assert_same(connection, index)
        waited += bool(outdated)
        if step % 10 == 6:
            backfill(connection, index, np.array(sorted(there)))
            answered += is_packed(connection)
            assert_same(connection, index)
    assert waited
    assert answered


@pytest.mark.parametrize("exact_up_to", [0, 10_000])
def test_a_filled_index_lacks_nothing(connection: apsw.Connection, exact_up_to: int) -> None:
    index = Fts5Index(exact_up_to=exact_up_to)
    assert [backfill(connection, index, range(1, 1)), backfill(connection, index, range(1, 21))] == [0, 20]
    index.remove(connection, "memory", range(1, 21))
    assert [backfill(connection, index, range(1, 21)) for _ in range(2)] == [20, 0]


def test_a_word_longer_than_the_limit_of_fts5_is_found(connection: apsw.Connection) -> None:
    texts = ("a" * 40_000 + " tail", "normal words here", "aä" * 20_000)
    PACKED.add(connection, "memory", [stored(key, text) for key, text in enumerate(texts, start=1)], None)
    assert PACKED.check(connection, "memory", None) == []


def test_removing_an_unpacked_chunk_keeps_the_packed_form(connection: apsw.Connection) -> None:
    EXACT.add(connection, "memory", [chunk_of(key) for key in range(1, 11)], None)
    PACKED.add(connection, "memory", [chunk_of(key) for key in range(11, 31)], None)
    PACKED.remove(connection, "memory", [*range(1, 11), 15, 99])
    assert is_packed(connection)
    assert_same(connection)


def test_switching_packing_off_removes_the_packed_form(filled: apsw.Connection) -> None:
    Fts5Index(search_by="exact").add(filled, "memory", [chunk_of(1000)], None)
    assert not is_packed(filled)
    assert filled.execute("SELECT COUNT(*) FROM memory_words_postings").get == 0
    assert_same(filled)


DAMAGES: dict[str, str] = {
    "a list is cut": "UPDATE memory_words_postings SET data = substr(data, 1, length(data) / 2)",
    "a byte is another": "UPDATE memory_words_postings SET data = CAST(x'00' || substr(data, 2) AS BLOB)",
    "a blob is text": "UPDATE memory_words_postings SET data = CAST(data AS TEXT)",
    "postings are gone": "DELETE FROM memory_words_postings WHERE id % 3 = 0",
    "all postings are gone": "DELETE FROM memory_words_postings",
    "a block is gone": "DELETE FROM memory_words_blocks WHERE id = (SELECT MIN(id) FROM memory_words_blocks)",
    "lengths are gone": "UPDATE memory_words_blocks SET lengths = x''",
    "blocks are of another size": "UPDATE memory_words_blocks SET rows = 100000",
    "dead rows are not there": "INSERT INTO memory_words_dead SELECT id, 0, x'ffff' FROM memory_words_blocks",
    "a row is dead twice": "INSERT INTO memory_words_dead SELECT id, 0, x'00000000' FROM memory_words_blocks",
    "half a row is dead": "INSERT INTO memory_words_dead SELECT id, 0, x'00' FROM memory_words_blocks",
    "a dead row had no words": "INSERT INTO memory_words_dead SELECT id, 0, x'0000' FROM memory_words_blocks",
    "dead rows are text": "INSERT INTO memory_words_dead SELECT id, 0, 'abc' FROM memory_words_blocks",
    "dead rows are no text": "INSERT INTO memory_words_dead SELECT id, 0, CAST(x'ff' AS TEXT) FROM memory_words_blocks",
    "dead rows are a number": "INSERT INTO memory_words_dead SELECT id, 0, 5 FROM memory_words_blocks",
    "dead words are text": "INSERT INTO memory_words_dead SELECT id, 'a', x'0000' FROM memory_words_blocks",
    "no words": "UPDATE memory_words_blocks SET tokens = 0",
    "words are text": "UPDATE memory_words_blocks SET tokens = 'abc'",
    "rows are text": "UPDATE memory_words_blocks SET rows = 'abc'",
    "keys begin with text": "UPDATE memory_words_blocks SET first = 'abc'",
    "keys begin later": "UPDATE memory_words_blocks SET first = first + 1",
    "keys end later": "UPDATE memory_words_blocks SET last = last + 50",
    "a term stands in more chunks": "UPDATE memory_words_postings SET count = count + 1 WHERE term IS NOT NULL",
    "a term stands in text": "UPDATE memory_words_postings SET count = 'abc' WHERE term IS NOT NULL",
    "the state is gone": "DELETE FROM packed_words",
    "the state is text": "UPDATE packed_words SET rows = 'abc'",
    "the stamp is no text": "UPDATE packed_words SET stamp = CAST(x'ff' AS TEXT)",
}


@pytest.mark.one_of(4)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_packed_form_is_reported_and_fts5_answers(filled: apsw.Connection, damage: str) -> None:
    filled.execute(damage)
    packed = Fts5Index(search_by="packed", pair_weight=0)
    assert_same(filled, packed)
    for question in QUESTIONS:
        Fts5Index(search_by="packed").search(filled, Query(question), 9)
    assert any("klaw reindex" in problem for problem in packed.check(filled, "memory", None))
    chunks = [chunk_of(key) for key in range(1, 701)]
    packed.remove(filled, "memory", range(1, 701))
    packed.reset(filled, "memory", None)
    packed.add(filled, "memory", chunks, None)
    assert packed.check(filled, "memory", None) == []
    assert is_packed(filled)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("knows", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_no_call_fails_because_of_a_damaged_packed_form(filled: apsw.Connection, damage: str, *, knows: bool) -> None:
    packed = Fts5Index(search_by="packed", pair_weight=0)
    if knows:
        assert_same(filled, packed)
    filled.execute(damage)
    packed.outdated(filled, "memory")
    packed.key_digest(filled, "memory")
    packed.add(filled, "memory", [chunk_of(key) for key in range(801, 804)], None)
    packed.remove(filled, "memory", [3, 650, 801])
    packed.erase(filled, "memory")
    assert_same(filled, packed)


def test_a_packed_form_without_its_state_is_built_again(filled: apsw.Connection) -> None:
    filled.execute(DAMAGES["the state is gone"])
    backfill(filled, PACKED, range(1, 701))
    assert is_packed(filled)
    assert PACKED.check(filled, "memory", None) == []
    assert_same(filled)


def test_erasing_removes_a_packed_form_without_its_state(filled: apsw.Connection) -> None:
    filled.execute(DAMAGES["the state is gone"])
    PACKED.erase(filled, "memory")
    assert filled.execute("SELECT COUNT(*) FROM memory_words_postings").get == 0


def test_the_next_change_builds_a_damaged_packed_form_again(filled: apsw.Connection) -> None:
    filled.execute(DAMAGES["lengths are gone"])
    packed = Fts5Index(search_by="packed", pair_weight=0)
    packed.remove(filled, "memory", [1])
    assert packed.outdated(filled, "memory").tolist() == list(range(2, 701))
    packed.remove(filled, "memory", range(2, 701))
    packed.add(filled, "memory", [chunk_of(key) for key in range(2, 701)], None)
    assert is_packed(filled)
    assert_same(filled, packed)


@pytest.fixture
def open_again(tmp_path: Path) -> Iterator[Callable[[], apsw.Connection]]:
    """Return what opens a file with 200 chunks once more."""
    connections: list[apsw.Connection] = []

    def open_again() -> apsw.Connection:
        connection = apsw.Connection(str(tmp_path / "klaw.db"))
        connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF")
        connections.append(connection)
        return connection

    connection = open_again()
    for migration in PACKED.migrations():
        migration.apply(connection)
    PACKED.add(connection, "memory", [chunk_of(key) for key in range(1, 201)], None)
    yield open_again
    for connection in connections:
        connection.close()


def test_changes_of_another_writer_are_seen(open_again: Callable[[], apsw.Connection]) -> None:
    reader, writer, mine = open_again(), open_again(), Fts5Index(search_by="packed", pair_weight=0)
    assert_same(reader, mine)
    reader.execute("BEGIN")
    before = mine.search(reader, Query("w1 w9"), 300)
    other = Fts5Index(search_by="packed")
    other.remove(writer, "memory", [before[0].key])
    other.add(writer, "memory", [chunk_of(key) for key in range(300, 420)], None)
    assert mine.search(writer, Query("w1 w9"), 300) != before
    assert mine.search(reader, Query("w1 w9"), 300) == before, "a snapshot stays as it was"
    reader.execute("COMMIT")
    assert_same(reader, mine)


def test_one_index_object_works_with_two_files(filled: apsw.Connection) -> None:
    other = apsw.Connection(":memory:")
    for migration in PACKED.migrations():
        migration.apply(other)
    PACKED.add(other, "memory", [chunk_of(key, seed=1) for key in range(1, 300)], None)
    assert_same(filled)
    assert_same(other)
    other.close()


def test_several_threads_can_search_one_index(open_again: Callable[[], apsw.Connection]) -> None:
    index = Fts5Index(search_by="packed", pair_weight=0)

    def ask(connection: apsw.Connection) -> list[tuple[Hit, ...]]:
        return [tuple(index.search(connection, Query(question), 20)) for question in QUESTIONS]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, [open_again() for _ in range(4)]))
    assert answers[1:] == answers[:-1]
    expected = [EXACT.search(open_again(), Query(question), 20) for question in QUESTIONS]
    assert [[hit.key for hit in found] for found in answers[0]] == [[hit.key for hit in found] for found in expected]


def test_rolled_back_changes_leave_nothing(filled: apsw.Connection) -> None:
    before = PACKED.search(filled, Query("w1 w3"), 50)
    filled.execute("BEGIN")
    PACKED.remove(filled, "memory", range(1, 300))
    PACKED.add(filled, "memory", [chunk_of(key) for key in range(800, 900)], None)
    assert PACKED.search(filled, Query("w1 w3"), 50) != before
    filled.execute("ROLLBACK")
    assert PACKED.search(filled, Query("w1 w3"), 50) == before
    assert PACKED.check(filled, "memory", None) == []


@settings(deadline=None)
@given(
    blocks=st.lists(
        st.dictionaries(st.integers(0, 9), st.sets(st.integers(0, 30), min_size=1), min_size=1), min_size=1, max_size=5
    ),
    dead=st.sets(st.integers(0, 200)),
)
def test_law_merging_ordered_pieces_equals_sorting_them(blocks: list[dict[int, set[int]]], dead: set[int]) -> None:
    pieces = []
    for number, terms in enumerate(blocks):
        ordered = sorted(terms)
        rows = [row for term in ordered for row in sorted(terms[term])]
        postings = Postings(
            np.array(ordered), np.array([len(terms[term]) for term in ordered]), np.array(rows, np.uint16), _codes(rows)
        )
        moved = postings.positions + np.uint16(31 * number)
        kept = ~np.isin(moved, sorted(dead)) if number % 2 else None
        pieces.append(Piece(postings, moved, _codes(rows) + np.uint8(number % 3), kept))
    expected, found = collect(pieces, in_order=False), collect(pieces, in_order=True)
    for name in ("terms", "counts", "positions", "codes"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
        assert getattr(found, name).dtype == getattr(expected, name).dtype, name


def _codes(rows: list[int]) -> Codes:
    return np.array([1 + row % 200 for row in rows], np.uint8)

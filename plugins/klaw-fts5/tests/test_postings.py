"""What is packed comes out as it went in, and words are counted as FTS5 counts them."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from itertools import product

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from klaw_fts5.errors import DamagedError
from klaw_fts5.packed.counting import TermCounter
from klaw_fts5.packed.numbers import term_number
from klaw_fts5.packed.pairs import pair_number
from klaw_fts5.packed.postings import (
    Postings,
    number_mixes,
    pack_buckets,
    pack_own,
    pick,
    unmix,
    unpack_all_own,
    unpack_buckets,
    unpack_own,
)
from klaw_fts5.packed.spelling import Spellings, _find
from klaw_testing.index import queries
from klaw_testing.laws import scaled
from klaw_words.tokenizer import FUNCTION_TERMS, makes_pairs, tokenizer
from klaw_words.treatment import index_text

_positions = st.sets(st.integers(0, 65_535), min_size=1, max_size=300).map(sorted)


@given(positions=_positions)
def test_a_frequent_term_is_read_back(positions: list[int]) -> None:
    codes = np.arange(len(positions), dtype=np.uint8) % 255 + 1
    (data,) = pack_own(Postings(np.array([7]), np.array([len(codes)]), np.array(positions, dtype=np.uint16), codes))
    found, found_codes = unpack_own(data, 65_536)
    assert found[found_codes > 0].tolist() == positions
    assert found_codes[found_codes > 0].tolist() == codes.tolist()
    assert (np.diff(found) > 0).all(), "a score is added once to each row"
    with pytest.raises(DamagedError):
        unpack_own(data, positions[-1])
    with pytest.raises(DamagedError):
        unpack_own(data[1:], 65_536)


@given(terms=st.lists(_positions, min_size=1, max_size=5))
def test_several_frequent_terms_are_unpacked_at_once(terms: list[list[int]]) -> None:
    counts = [len(positions) for positions in terms]
    codes = np.arange(sum(counts), dtype=np.uint8) % 255 + 1
    positions = np.array([position for term in terms for position in term], dtype=np.uint16)
    blobs = list(pack_own(Postings(np.arange(len(terms)), np.array(counts), positions, codes)))
    rows = [65_536] * len(terms)
    found = unpack_all_own(counts, blobs, rows)
    assert [np.frombuffer(listed, "<u2").tolist() for listed, _ in found] == terms
    assert b"".join(coded for _, coded in found) == codes.tobytes()
    last = len(terms) - 1
    for wrong in (
        (counts, blobs, [*rows[:last], terms[last][-1]]),
        ([*counts[:last], counts[last] + 1], blobs, rows),
        (counts, [*blobs[:last], blobs[last][1:]], rows),
        (counts, [*blobs[:last], b""], rows),
        (counts, [*blobs[:last], blobs[last][:-1] + b"\0"], rows),
    ):
        with pytest.raises(DamagedError):
            unpack_all_own(*wrong)


@given(terms=st.dictionaries(st.integers(0, 2**63 - 1), _positions, min_size=1, max_size=8))
def test_a_bucket_of_rare_terms_is_read_back(terms: dict[int, list[int]]) -> None:
    ordered = sorted(terms)
    positions = np.array([position for term in ordered for position in terms[term]], dtype=np.uint16)
    counts = np.array([len(terms[term]) for term in ordered])
    codes = np.arange(len(positions)).astype(np.uint8)
    postings = Postings(np.array(ordered), counts, positions, codes)
    (data,) = pack_buckets(postings, [0, len(ordered)])
    whole = unpack_buckets(list(pack_buckets(postings, [0, 0, len(ordered) // 2, len(ordered)])), 65_536)
    assert whole.terms.tolist() == ordered
    assert whole.positions.tolist() == positions.tolist()
    start = 0
    for term in ordered:
        listed, coded = pick(data, term.to_bytes(8, "little"), 65_536)
        assert np.frombuffer(listed, "<u2").tolist() == terms[term]
        assert coded == codes[start : start + len(terms[term])].tobytes()
        with pytest.raises(DamagedError):
            pick(data, term.to_bytes(8, "little"), terms[term][-1])
        start += len(terms[term])
    absent = next(number for number in range(len(terms) + 1) if number not in terms)
    assert pick(data, absent.to_bytes(8, "little"), 65_536) == (b"", b"")
    with pytest.raises(DamagedError):
        pick(data[:-3], ordered[-1].to_bytes(8, "little"), 65_536)
    for cut in (data[:-1], data[:3]):
        with pytest.raises(DamagedError):
            unpack_buckets([cut], 65_536)


@given(tables=st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=120), max_size=5))
def test_mixes_are_numbered_within_a_byte(tables: list[list[int]]) -> None:
    arrays = [np.array(table, dtype=np.uint32) for table in tables]
    mixes, codes = number_mixes(arrays)
    assert mixes[0] == 0
    assert len(mixes) <= 256
    distinct = {mix for table in tables for mix in table} | {0}
    for table, coded in zip(arrays, codes, strict=True):
        if len(distinct) <= 256:
            assert mixes[coded].tolist() == table.tolist()
        else:
            assert (unmix(mixes[coded]) == np.minimum(unmix(table), [[15], [3], [3]])).all()


@settings(deadline=None, max_examples=scaled(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(rows=[("a" * 40_000, "a" * 32_768, "aä" * 20_000), ("a" * 32_769, "", "a" * 40_000)])
@given(rows=st.lists(st.tuples(queries, queries, queries), min_size=1, max_size=5))
def test_words_and_pairs_are_counted_as_fts5_counts_them(
    connection: apsw.Connection, rows: list[tuple[str, str, str]]
) -> None:
    treated = [tuple(map(index_text, row)) for row in rows]
    counted = TermCounter().count(treated)
    connection.execute("INSERT INTO memory_fts(memory_fts) VALUES ('delete-all')")
    connection.executemany(
        "INSERT INTO memory_fts(rowid, text, heading, context) VALUES (?, ?, ?, ?)",
        ((number, *row) for number, row in enumerate(treated)),
    )
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.instances USING fts5vocab(main, memory_fts, instance)")
    expected: Counter[tuple[int, int, str]] = Counter()
    lengths: Counter[int] = Counter()
    before = None
    for term, *place in connection.execute(
        "SELECT CAST(term AS BLOB), doc, col FROM instances ORDER BY doc, col, offset"
    ):
        row, column = place
        number = term_number(term)
        expected[number, row, column] += 1
        lengths[row] += 1
        if before is not None and before[1] == place and before[2] and makes_pairs(term):
            expected[pair_number(before[0], number), row, column] += 1
        before = number, place, makes_pairs(term)
    found: dict[tuple[int, int, str], int] = {}
    postings = counted.postings
    terms = np.repeat(postings.terms, postings.counts).tolist()
    counts = unmix(counted.mixes[postings.codes]).T.tolist()
    for term, row, often in zip(terms, postings.positions.tolist(), counts, strict=True):
        found |= {(term, row, column): n for column, n in zip(("text", "heading", "context"), often, strict=True) if n}
    assert found == dict(expected)
    assert counted.lengths.tolist() == [lengths[row] for row in range(len(rows))]


@given(words=st.lists(st.text("abAB01é", min_size=1, max_size=40), min_size=1, max_size=60))
def test_law_of_hashes(words: list[str]) -> None:
    """A word has the same hash wherever it stands and in either case of ASCII, and no other word has it."""
    data = " ".join(words).encode()
    starts, ends, hashes = _find(data)
    assert [data[start:end].decode() for start, end in zip(starts, ends, strict=True)] == words
    folded = [word.lower() for word in words]
    assert len(set(folded)) == len(set(hashes.tolist())) == len(set(zip(folded, hashes.tolist(), strict=True)))


def test_similar_long_words_have_different_hashes() -> None:
    letters = "abcdefghij01234"
    words = ["aaaaaaa".join(("", *ends)) for ends in product(letters, repeat=3)]
    _, _, hashes = _find(" ".join(words).encode())
    assert len(set(hashes.tolist())) == len(words)


def test_codes_of_terms_are_stable_across_indexes() -> None:
    """Whoever changes one of these needs a migration."""
    assert term_number(b"lantern") == 4328967502798212356
    assert pair_number(term_number(b"green"), term_number(b"lantern")) == 7364581659401781248
    assert sha256(b" ".join(sorted(FUNCTION_TERMS))).hexdigest()[:16] == "9ab58e43395cd2f1"


def test_spellings_beyond_the_first_slots_are_still_known() -> None:
    spellings = Spellings()
    words = [f"{'longerthaneightbytes' if number % 2 else ''}q{number}z" for number in range(9000)]
    for start in range(0, len(words), 1000):
        spellings.read([" ".join(words[start : start + 1000])])
    places, sizes = spellings.read([" ".join(words[::-1])])
    assert sizes.tolist() == [9000]
    assert [spellings.numbers[place] for place in places.tolist()] == [
        term_number(tokenizer()(word.encode())[0]) for word in words[::-1]
    ]
    assert len(spellings) == 9000, "none was learnt again"


def test_the_number_of_cached_spellings_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klaw_fts5.packed.counting._MAX_SPELLINGS", 3)
    counter = TermCounter()
    rows = [("", "green lantern ship harbour", "")]
    first = counter.count(rows).postings
    assert len(counter._spellings) == 4
    counter.count([("", "gull", "")])
    assert len(counter._spellings) == 1
    assert counter.count(rows).postings.terms.tolist() == first.terms.tolist()


def test_a_failed_batch_leaves_no_word_without_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = TermCounter()

    def fail(term: bytes) -> int:
        raise MemoryError(term)

    with monkeypatch.context() as patched:
        patched.setattr("klaw_fts5.packed.spelling.term_number", fail)
        with pytest.raises(MemoryError):
            counter.count([("a", "", "")])
    counted = counter.count([("b a", "", "")])
    assert sorted(counted.postings.terms.tolist()) == sorted(map(term_number, (b"a", b"b")))

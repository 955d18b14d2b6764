"""What a search fetches and fuses is what the plainest way of doing it would: to the last contribution."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from klaw_core import Chunk, Contribution, Hit, KeySelection, Query, Ranking, StoredChunk
from klaw_core.builtin.fusion import ReciprocalRankFusion
from klaw_core.searching.contracts import _allowed
from klaw_core.searching.flow import Searcher
from klaw_core.searching.scope import Scope, Target

MOMENT = datetime(2026, 2, 24, tzinfo=UTC)


@st.composite
def stored(draw, key):
    start = draw(st.integers(0, 30))
    end = start + draw(st.integers(0, 20))
    text = draw(st.sampled_from(["one", "two", "three", f"its own {key}"]))
    chunk = Chunk(f"id{key}", text, start, end, 1, 1)
    return StoredChunk(key, chunk, draw(st.sampled_from(["a.md", "b.md", "c.md"])), "note", MOMENT)


class Rows:
    """A snapshot that has these chunks, and counts those that were fetched."""

    def __init__(self, rows):
        self.rows = {row.key: row for row in rows}
        self.fetched = 0

    def chunks(self, _collection, keys):
        self.fetched += len(keys)
        return [self.rows[key] for key in keys if key in self.rows]


def plainly(rows, hits):
    """Fetch everything, then leave out what a better one shows already."""
    kept = []
    for hit in hits:
        if hit.key not in rows.rows:
            continue
        found = rows.rows[hit.key]
        chunk = found.chunk
        shown = any(
            chunk.text == other.chunk.text
            or (
                other.path == found.path
                and 2 * (min(chunk.end, other.chunk.end) - max(chunk.start, other.chunk.start))
                > chunk.end - chunk.start
            )
            for other, _ in kept
        )
        if not shown:
            kept.append((found, hit))
    return kept


@st.composite
def found(draw):
    keys = draw(st.lists(st.integers(1, 99), unique=True, max_size=40))
    rows = [draw(stored(key)) for key in keys if draw(st.integers(0, 9))]  # some are gone since
    return Rows(rows), [Hit(key, -float(place)) for place, key in enumerate(keys)]


def scope(rows):
    return Scope(rows, (Target(Query("x"), ()),))


@given(found(), st.one_of(st.none(), st.integers(1, 45)))
def test_fetching_a_part_at_a_time_finds_the_same(found, wanted):
    rows, hits = found

    assert scope(rows).hydrate(hits, wanted) == plainly(rows, hits)[:wanted]
    assert rows.fetched <= len(hits)


@given(st.integers(1, 10))
def test_no_more_is_fetched_than_is_shown_where_nothing_is_left_out(wanted):
    rows = Rows([StoredChunk(k, Chunk(f"id{k}", f"{k}", 0, 9, 1, 1), f"{k}.md", "note", MOMENT) for k in range(200)])

    assert len(scope(rows).hydrate([Hit(key, -float(key)) for key in range(200)], wanted)) == wanted
    assert rows.fetched == wanted


@given(found(), st.integers(1, 30))
def test_fusing_no_more_than_are_likely_to_do_finds_the_same(found, wanted):
    rows, hits = found
    fusion = ReciprocalRankFusion()
    searcher = Searcher(store=None, get_embedder=None, retrievers=[], fusion=fusion)
    rankings = [Ranking("a", tuple(hits)), Ranking("b", tuple(Hit(hit.key, hit.score) for hit in hits[::3]))]
    most = 2 * max(len(hits), 1)

    first = searcher._first(scope(rows), rankings, most, wanted)
    assert first == plainly(rows, fusion.fuse(rankings, most))[:wanted]


SCORES = st.floats(-10, 10).map(lambda score: round(score, 2))


@st.composite
def rankings(draw):
    found = []
    for leg in draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=4)):
        keys = draw(st.lists(st.integers(1, 30), unique=True, max_size=20))
        scores = sorted(draw(st.lists(SCORES, min_size=len(keys), max_size=len(keys))), reverse=True)
        found.append(Ranking(leg, tuple(map(Hit, keys, scores)), draw(st.floats(0.1, 2))))
    return found


@given(rankings(), st.integers(1, 60))
def test_fusion_is_its_formula(rankings, limit):
    fusion = ReciprocalRankFusion(pool=10)
    parts: dict[int, list[Contribution]] = {}
    for ranking in rankings:
        for rank, (hit, standing) in enumerate(zip(ranking.hits, fusion._standings(ranking.hits), strict=True), 1):
            weight = ranking.weight * (fusion.min_confidence + (1 - fusion.min_confidence) * standing)
            part = Contribution(ranking.retriever, rank, hit.score, weight, weight / (fusion.k + rank))
            parts.setdefault(hit.key, []).append(part)
    expected = []
    for key, found in parts.items():
        ordered = tuple(sorted(found, key=lambda part: part.component))
        expected.append(Hit(key, sum(part.value for part in ordered), ordered))

    assert list(fusion.fuse(rankings, limit)) == sorted(expected, key=lambda hit: (-hit.score, hit.key))[:limit]


@given(st.sets(st.integers(1, 50)), st.sets(st.integers(1, 50)))
def test_hits_are_allowed_if_all_are_among_what_the_filters_keep(keys, kept):
    import numpy as np

    assert _allowed(keys, KeySelection(np.array(sorted(kept), dtype=np.int64))) == (keys <= kept)
    assert _allowed(keys, None)

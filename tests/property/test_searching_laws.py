"""The optimised search returns the same results as a simple implementation, including contributions."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from klaw_core import Chunk, Contribution, Hit, KeySelection, Query, Ranking, StoredChunk
from klaw_core.builtin.fusion import ReciprocalRankFusion
from klaw_core.searching.collecting import ResultCollector
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


def hydrated(rows, hits, wanted, per_document=None):
    collector = ResultCollector(wanted, per_document)
    scope(rows).hydrate(hits, collector)
    collector.fill()
    return collector.taken


@given(found(), st.one_of(st.none(), st.integers(1, 45)))
def test_hydrating_in_batches_gives_the_same_results(found, wanted):
    rows, hits = found

    assert hydrated(rows, hits, wanted) == plainly(rows, hits)[:wanted]
    assert rows.fetched <= len(hits)


@given(st.integers(1, 10))
def test_only_shown_chunks_are_read_if_none_is_left_out(wanted):
    rows = Rows([StoredChunk(k, Chunk(f"id{k}", f"{k}", 0, 9, 1, 1), f"{k}.md", "note", MOMENT) for k in range(200)])

    assert len(hydrated(rows, [Hit(key, -float(key)) for key in range(200)], wanted)) == wanted
    assert rows.fetched == wanted


@given(found(), st.integers(1, 30))
def test_fusing_only_the_first_hits_gives_the_same_results(found, wanted):
    rows, hits = found
    fusion = ReciprocalRankFusion()
    searcher = Searcher(store=None, get_embedder=None, retrievers=[], fusion=fusion)
    rankings = [Ranking("a", tuple(hits)), Ranking("b", tuple(Hit(hit.key, hit.score) for hit in hits[::3]))]
    most = 2 * max(len(hits), 1)

    first = searcher._fused(scope(rows), rankings, most, ResultCollector(wanted, None)).taken
    assert first == plainly(rows, fusion.fuse(rankings, most))[:wanted]


def chunks_of(*paths, chat_id=None):
    chunks = [
        StoredChunk(
            key, Chunk(f"id{key}", f"text {key}", 10 * key, 10 * key + 9, key, key), path, path, MOMENT, chat_id=chat_id
        )
        for key, path in enumerate(paths, start=1)
        for chunk in [Chunk(f"id{key}", f"text {key}", 10 * key, 10 * key + 9, key, key)]
    ]
    return Rows(chunks)


def test_the_limit_per_document_prefers_nearly_as_good_others():
    rows = chunks_of("a", "a", "a", "b", "a", "c")
    hits = [Hit(key, 1.0 - key / 50) for key in range(1, 7)]
    assert [hit.key for _, hit in hydrated(rows, hits, 4, per_document=2)] == [1, 2, 4, 6]
    assert [hit.key for _, hit in hydrated(rows, hits, 6, per_document=2)] == [1, 2, 3, 4, 5, 6], "the places are free"
    collector = ResultCollector(4, 2)
    scope(rows).hydrate(hits, collector)
    assert {key: [chunk.key for chunk in others] for key, others in collector.left_out.items()} == {1: [3, 5]}


def test_the_limit_per_document_yields_to_clearly_better_chunks():
    rows = chunks_of("a", "a", "a", "b")
    hits = [Hit(1, 1.0), Hit(2, 0.9), Hit(3, 0.8), Hit(4, 0.1)]
    assert [hit.key for _, hit in hydrated(rows, hits, 3, per_document=1)] == [1, 2, 3]


def test_the_limit_per_document_does_not_apply_to_messages():
    rows = chunks_of("a", "a", "a", "b", chat_id="chat")
    hits = [Hit(key, 1.0 - key / 50) for key in range(1, 5)]
    assert [hit.key for _, hit in hydrated(rows, hits, 3, per_document=1)] == [1, 2, 3]


SCORES = st.floats(-10, 10).map(lambda score: round(score, 2))


@st.composite
def rankings(draw):
    found = []
    for retriever in draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=4)):
        keys = draw(st.lists(st.integers(1, 30), unique=True, max_size=20))
        scores = sorted(draw(st.lists(SCORES, min_size=len(keys), max_size=len(keys))), reverse=True)
        found.append(Ranking(retriever, tuple(map(Hit, keys, scores)), draw(st.floats(0.1, 2))))
    return found


@given(rankings(), st.integers(1, 60))
def test_rrf_agrees_with_its_formula(rankings, limit):
    fusion = ReciprocalRankFusion(pool=10)
    parts: dict[int, list[Contribution]] = {}
    for ranking in rankings:
        for rank, (hit, standing) in enumerate(
            zip(ranking.hits, fusion._relative_heights(ranking.hits, has_relevance=False), strict=True), 1
        ):
            weight = ranking.weight * (fusion.min_confidence + (1 - fusion.min_confidence) * standing)
            part = Contribution(ranking.retriever, rank, hit.score, weight, weight / (fusion.k + rank))
            parts.setdefault(hit.key, []).append(part)
    expected = []
    for key, found in parts.items():
        ordered = tuple(sorted(found, key=lambda part: part.component))
        expected.append(Hit(key, sum(part.value for part in ordered), ordered))

    assert list(fusion.fuse(rankings, limit)) == sorted(expected, key=lambda hit: (-hit.score, hit.key))[:limit]


@given(st.sets(st.integers(1, 50)), st.sets(st.integers(1, 50)))
def test_hits_are_allowed_if_all_keys_pass_the_filters(keys, kept):
    import numpy as np

    assert _allowed(keys, KeySelection(np.array(sorted(kept), dtype=np.int64))) == (keys <= kept)
    assert _allowed(keys, None)

    class Telling(KeySelection):
        def keys(self):
            raise AssertionError("all keys were listed")

        def among(self, some):
            return [key for key in some if key in kept]

    assert _allowed(keys, Telling(np.array([], dtype=np.int64))) == (keys <= kept)

"""What the stages do with more than a search shows, and with nothing."""

from klaw_core import Contribution, Hit, Query, RerankScore, StoredChunk
from klaw_core.searching.reranking import rerank
from klaw_core.searching.stages import Stage
from klaw_testing.memory_store import MemoryStore
from klaw_testing.values import cut_lines, make_document


class Recorder:
    """Scores the last of what it is given, and notes how many there were."""

    needs_vectors = False

    def __init__(self):
        self.asked = []

    def rerank(self, _query, candidates, limit, /):
        self.asked.append((len(candidates), limit))
        return [RerankScore(candidates[-1].key, 1.0)]


def found(count):
    document = make_document("notes/a.md", "a text")
    (chunk,) = cut_lines(document)
    hits = (Hit(key, 1 / key, (Contribution("fts5", key, 1 / key, 1.0, 1 / key),)) for key in range(1, count + 1))
    return [(StoredChunk(hit.key, chunk, document.path, document.source, document.created_at), hit) for hit in hits]


def run(stages, count, limit):
    after, notices = rerank(stages, MemoryStore(), Query("x"), found(count), limit)
    assert not notices
    return [stored.key for stored, _ in after]


def test_a_stage_gets_only_the_best_candidates_and_the_rest_follows():
    recorder = Recorder()
    stages = (Stage("one", lambda: recorder), Stage("two", lambda: recorder))
    keys = run(stages, 250, 10)
    assert recorder.asked == [(100, 100), (100, 10)]
    assert keys == [99, 100, *range(1, 99), *range(101, 251)]


def test_a_larger_limit_gives_a_stage_more_candidates():
    recorder = Recorder()
    run((Stage("one", lambda: recorder),), 250, 200)
    assert recorder.asked == [(200, 200)]


def test_a_stage_is_not_built_for_an_empty_result():
    def explode():
        raise AssertionError("a stage was built")

    assert run((Stage("one", explode),), 0, 10) == []


def test_without_stages_the_results_are_unchanged():
    given = found(3)
    after, notices = rerank((), MemoryStore(), Query("x"), given, 10)
    assert after is given
    assert notices == ()

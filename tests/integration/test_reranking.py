"""The stages after fusion, through a memory: configured, in order, explained, and failing open."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from attrs import evolve, frozen

from klaw_core import API, Component, ConfigError, Memory, NoOptions, RerankScore, RetrievalError
from klaw_core.cli.effective import effective, toml
from klaw_core.cli.result_forms import result_to_json
from klaw_core.cli.results import _reasons


@frozen
class Stub:
    """A reranker that answers what a test wants, and notes what it was given."""

    answer: object
    asked: list
    needs_vectors: bool = False

    def rerank(self, query, candidates, limit, /):
        self.asked.append((query, candidates, limit))
        return self.answer(candidates, limit)


@pytest.fixture
def with_stages(home):
    """Open a memory whose stages answer as these functions do; return it and what each was asked."""
    opened = []

    def open_with(*answers, needs_vectors=False, **memory):
        asked = []
        for number, answer in enumerate(answers):
            stub = Stub(answer, asked, needs_vectors)
            home.extra.append(("reranker", Component(f"stub{number}", NoOptions, lambda _o, _p, stub=stub: stub, API)))
        stages = [{"type": f"stub{number}"} for number in range(len(answers))]
        opened.append(home.open(reranking=stages, **memory))
        return opened[-1], asked

    yield open_with
    for memory in opened:
        memory.close()


@pytest.fixture
def notes(home):
    for number in range(6):
        home.write(f"{number}.md", f"# Log {number}\n\nthe harbour log, entry{number} {'tide ' * number}", hours=number)
    return home.notes


def reverse(candidates, limit):
    return [RerankScore(item.key, float(place)) for place, item in enumerate(candidates)][::-1][:limit]


def paths(results):
    return [result.path for result in results]


def test_a_stage_orders_results_and_explains_its_scores(with_stages, notes):
    memory, asked = with_stages(reverse)
    memory.index(notes)
    results = memory.search("harbour tide")
    ((query, candidates, limit),) = asked
    assert (query.text, query.collection, limit) == ("harbour tide", "memory", 10)
    assert paths(results) == [candidate.stored.path for candidate in candidates][::-1]
    for rank, result in enumerate(results, start=1):
        assert (result.explain[-1].component, result.explain[-1].rank) == ("stub0", rank)
        assert result.explain[-1].raw == result.score
        assert math.isclose(sum(part.value for part in result.explain), result.score, abs_tol=1e-9)


def test_stages_are_applied_in_order_and_only_the_last_gets_the_limit(with_stages, notes):
    memory, asked = with_stages(reverse, reverse)
    memory.index(notes)
    results = memory.search("harbour tide", 2)
    (_, first, wanted_first), (_, second, wanted_last) = asked
    assert (wanted_first, wanted_last) == (100, 2)
    assert [item.key for item in second] == [item.key for item in first][::-1]
    assert paths(results) == [item.stored.path for item in first[:2]]
    assert [part.component for part in results[0].explain][-2:] == ["stub0", "stub1"]
    assert second[0].fused.contributions == second[0].hit.contributions[:-1]


def test_results_without_a_score_follow_in_their_order(with_stages, notes):
    memory, asked = with_stages(lambda candidates, _: [RerankScore(candidates[3].key, -7.0)])
    memory.index(notes)
    results = memory.search("harbour tide")
    given = [candidate.stored.path for candidate in asked[0][1]]
    assert paths(results) == [given[3], *given[:3], *given[4:]]
    assert all(first.score >= second.score for first, second in pairwise(results))
    fused = {item.stored.path: item.hit.score for item in asked[0][1]}
    shifts = [result.explain[-1] for result in results[1:]]
    assert {part.weight for part in shifts} == {0.0}
    assert len({part.value for part in shifts}) == 1, "all are lowered by the same amount"
    for result in results[1:]:
        assert math.isclose(result.score, fused[result.path] + shifts[0].value)


def test_results_below_the_candidates_are_not_changed(with_stages, notes):
    memory, asked = with_stages(lambda candidates, _: [RerankScore(candidates[3].key, 7.0)])
    memory.index(notes)
    results = memory.search("harbour tide")
    fused = {item.stored.path: item.hit.score for item in asked[0][1]}
    assert [result.score for result in results[1:]] == [fused[result.path] for result in results[1:]]


def test_a_stage_may_score_nothing(with_stages, notes):
    memory, asked = with_stages(lambda _c, _l: None)
    memory.index(notes)
    results = memory.search("harbour tide")
    assert paths(results) == [candidate.stored.path for candidate in asked[0][1]]
    assert results.notices == ()
    own = {(part.weight, part.value) for result in results for part in result.explain if part.component == "stub0"}
    assert own == {(0.0, 0.0)}


def explode(_candidates, _limit):
    raise ZeroDivisionError("a bug")


BAD = {
    "raises": explode,
    "nothing": lambda _c, _l: [],
    "NaN": lambda c, _l: [RerankScore(c[0].key, math.nan)],
    "infinity": lambda c, _l: [RerankScore(c[0].key, math.inf)],
    "a raw NaN": lambda c, _l: [RerankScore(c[0].key, 1.0, math.nan)],
    "too large to explain": lambda c, _l: [RerankScore(c[0].key, 1e300)],
    "an unknown key": lambda _c, _l: [RerankScore(10**9, 1.0)],
    "a key twice": lambda c, _l: [RerankScore(c[0].key, 1.0), RerankScore(c[0].key, 0.5)],
    "unsorted": lambda c, _l: [RerankScore(c[0].key, 0.5), RerankScore(c[1].key, 1.0)],
    "too many": lambda c, _l: [RerankScore(key, 1.0) for key in [item.key for item in c] * 9],
    "no scores": lambda _c, _l: ["first", "second"],
    "text for a score": lambda c, _l: [RerankScore(c[0].key, "1.0")],
    "a number": lambda _c, _l: 3,
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_a_failing_stage_keeps_the_order_and_is_named(with_stages, home, notes, answer):
    with home.open() as plain:
        plain.index(notes)
        before = plain.search("harbour tide")
    memory, _ = with_stages(answer, reverse)
    results = memory.search("harbour tide")
    (notice,) = results.notices
    assert notice.startswith("not reranked by stub0: ")
    assert paths(results) == paths(before)[::-1], "the stage after it still works"
    assert all(part.component != "stub0" for result in results for part in result.explain)


def test_a_stage_that_cannot_be_built_is_named_and_tried_again(home, notes):
    built = []

    def build(_options, _place):
        built.append(1)
        if len(built) == 1:
            raise RetrievalError("no such server", hint="start it")
        return Stub(reverse, [])

    home.extra.append(("reranker", Component("late", NoOptions, build, API)))
    with home.open(reranking=[{"type": "late"}]) as memory:
        memory.index(notes)
        assert built == [], "nothing is built before a search"
        first, second, third = (memory.search("harbour tide") for _ in range(3))
        assert first.notices == ("not reranked by late: no such server (start it)",)
        assert second.notices == third.notices == ()
        assert paths(second) == paths(first)[::-1]
        assert len(built) == 2


def test_scores_of_numpy_become_python_numbers(with_stages, notes):
    memory, _ = with_stages(lambda c, _l: [RerankScore(item.key, np.float32(0.5), np.float32(2)) for item in c])
    memory.index(notes)
    results = memory.search("harbour tide")
    assert [type(result.score) for result in results] == [float] * 6
    shown = [result_to_json(result) for result in results]
    assert json.loads(json.dumps(shown)) == shown


def test_a_stage_that_needs_vectors_gets_those_of_the_chunks(with_stages, notes):
    memory, asked = with_stages(reverse, needs_vectors=True)
    memory.index(notes)
    for mode in ("hybrid", "fts"):
        asked.clear()
        memory.search("harbour tide", mode=mode)
        ((query, candidates, _),) = asked
        passages = [candidate.stored.chunk.embedding_text for candidate in candidates]
        expected = memory._assembly.embedder.embed_documents(passages)
        assert np.allclose([candidate.vector for candidate in candidates], expected, atol=1e-3)
        assert (query.vector is None) == (mode == "fts")


def test_a_stage_gets_no_vectors_if_there_are_none(with_stages, notes):
    memory, asked = with_stages(reverse, needs_vectors=True, embedding={"type": "none"})
    memory.index(notes)
    assert paths(memory.search("harbour tide"))
    assert {candidate.vector for candidate in asked[0][1]} == {None}


def test_without_stages_results_are_unchanged(home, notes):
    with home.open() as memory:
        memory.index(notes)
        results = memory.search("harbour tide")
        assert {part.component for result in results for part in result.explain} <= set(home.retrievers)


@pytest.mark.parametrize(
    "stage", [{"type": "recency", "floor": 1.0}, {"type": "importance", "factors": {}}, {"type": "mmr", "relevance": 1}]
)
def test_the_neutral_setting_of_a_stage_changes_nothing(home, notes, stage):
    with home.open() as memory:
        memory.index(notes)
        plain = memory.search("harbour tide")
    with home.open(reranking=[stage]) as memory:
        staged = memory.search("harbour tide")
    assert [(item.path, item.score) for item in staged] == [(item.path, item.score) for item in plain]
    assert staged.notices == ()


def test_recency_prefers_the_newer_of_two_equal_results(home):
    home.write("old.md", "# Port\n\nthe harbour opens at six", hours=0)
    home.write("new.md", "# Port\n\nthe harbour opens at nine", hours=24 * 60)
    question = "when opens the harbour at"
    recency = {"type": "recency", "half_life_days": 30, "floor": 0.2}
    for stages, first in (
        ([recency], "notes/new.md"),
        ([{**recency, "evergreen": ["notes/old.md"]}], "notes/old.md"),
        ([{"type": "importance", "factors": {"notes/old": 3}}], "notes/old.md"),
        ([{"type": "importance", "factors": {"new.md": 3}}], "notes/new.md"),
    ):
        with home.open(reranking=stages) as memory:
            memory.index(home.notes)
            assert memory.search(question)[0].path == first, stages


def test_mmr_prefers_a_different_subject_to_a_near_copy(home):
    home.write("a.md", "harbour tide table for the north quay in spring")
    home.write("b.md", "harbour tide table for the north quay in autumn")
    home.write("c.md", "harbour masters sleep")
    with home.open() as memory:
        memory.index(home.notes)
        assert set(paths(memory.search("harbour tide table quay"))[:2]) == {"notes/a.md", "notes/b.md"}
    with home.open(reranking=[{"type": "mmr", "relevance": 0.2}]) as memory:
        results = memory.search("harbour tide table quay")
        assert paths(results)[1] == "notes/c.md"
        assert results[2].explain[-1].component == "mmr"
        assert results[2].explain[-1].raw > 0.8


def test_a_table_of_factors_is_shown_as_written_or_as_its_default(home):
    shown = {}
    for stage in ({"type": "importance", "factors": {"MEMORY.md": 2.0}}, {"type": "importance"}):
        settings = effective(home.config(reranking=[stage]), home.registry())
        shown[len(stage)] = [(item.place, toml(item.value)) for item in settings if "factors" in item.place]
    assert shown[2] == [('memory.reranking[0].factors."MEMORY.md"', "2.0")]
    assert shown[1] == [("memory.reranking[0].factors", '{"MEMORY.md" = 1.2, "memory.md" = 1.2, manual = 1.2}')]


def test_a_lowered_score_is_shown_with_its_sign(with_stages, notes):
    memory, _ = with_stages(lambda candidates, _: [RerankScore(candidates[0].key, -7.0)])
    memory.index(notes)
    rows = _reasons(memory.search("harbour tide")[0])
    assert str(rows[-2][-1].text).startswith("-7.0")


@pytest.mark.parametrize("offset", [0.0, -20.0, 300.0], ids=["from 0 to 1", "negative", "large"])
def test_one_note_does_not_fill_the_results_of_a_stage_either(with_stages, home, notes, offset):
    parts = "\n\n".join(f"## Part {n}\n\nthe harbour log of part {n}, " + f"slow tide {n} " * 80 for n in range(6))
    home.write("long.md", f"# Long\n\n{parts}")

    def prefer_the_long_note(candidates, limit):
        scores = {item.key: offset + 0.93 + 0.02 * item.stored.path.endswith("long.md") for item in candidates}
        return [RerankScore(key, scores[key]) for key in sorted(scores, key=lambda key: -scores[key])][:limit]

    memory, asked = with_stages(prefer_the_long_note)
    memory.index(notes)
    for per_document in (1, 2, 3, None):
        results = memory.search("the harbour log", 5, per_document=per_document)
        of_long = sum(result.path == "notes/long.md" for result in results)
        assert of_long == min(per_document or 5, 5), per_document
        assert len(results) == 5
    assert {limit for _, _, limit in asked} == {5, 100}, "all are asked for only if the limit matters"


class TestPaths:
    @pytest.fixture
    def opened(self, home, notes):
        """Open a memory with a stage for some paths; return it and what the stage was asked."""
        opened = []

        def open_with(paths, answer=reverse):
            asked = []
            stub = Stub(answer, asked)
            home.extra.append(("reranker", Component("some", NoOptions, lambda _options, _context: stub, API)))
            opened.append(home.open(reranking=[{"type": "some", "paths": paths}]))
            opened[-1].index(notes)
            return opened[-1], asked

        yield open_with
        for memory in opened:
            memory.close()

    def test_a_stage_gets_only_its_paths_and_moves_them_among_their_places(self, home, opened):
        with home.open(reranking=[]) as memory:
            memory.index(home.notes)
            before = memory.search("harbour tide")
        memory, asked = opened(["notes/1", "notes/3", "notes/4"])
        after = memory.search("harbour tide")
        own = [result.path for result in before if result.path[6] in "134"]
        ((_, candidates, _),) = asked
        assert [candidate.stored.path for candidate in candidates] == own
        moved = iter(reversed(own))
        assert paths(after) == [next(moved) if path in own else path for path in paths(before)]
        assert [result.score for result in after] == pytest.approx([result.score for result in before])
        for result in after:
            assert sum(part.value for part in result.explain) == pytest.approx(result.score)
            assert ("some" in [part.component for part in result.explain]) == (result.path in own)

    def test_a_stage_whose_paths_are_not_among_the_results_is_not_asked(self, opened):
        memory, asked = opened(["elsewhere/"])
        assert memory.search("harbour tide")
        assert asked == []

    def test_a_failing_stage_changes_nothing_and_is_named(self, opened):
        memory, _ = opened(["notes/1", "notes/3"], lambda _candidates, _limit: 1 / 0)
        (notice,) = memory.search("harbour tide").notices
        assert "not reranked by some" in notice

    @pytest.mark.parametrize("paths", ["notes/", [1], [""], {"a": 1}])
    def test_paths_are_a_list_of_beginnings(self, home, paths):
        with pytest.raises(ConfigError, match=r"memory\.reranking\[0\]\.paths: expected a list of path prefixes"):
            home.open(reranking=[{"type": "mmr", "paths": paths}])


def test_a_stage_sees_what_an_earlier_one_has_lifted_whatever_the_limit(home, notes):
    first = Stub(reverse, [])
    second = Stub(lambda found, limit: [RerankScore(item.key, 1.0) for item in found[:limit]], [])
    for name, stub in (("first", first), ("second", second)):
        home.extra.append(("reranker", Component(name, NoOptions, lambda _o, _c, stub=stub: stub, API)))
    with home.open(reranking=[]) as memory:
        memory.index(notes)
        last = memory.search("harbour tide")[-1].path
    with home.open(reranking=[{"type": "first"}, {"type": "second", "paths": [last]}]) as memory:
        for limit in (1, 2, 6):
            assert memory.search("harbour tide", limit)[0].explain[-1].component == "second"


def test_a_stage_may_change_how_relevant_a_result_is(with_stages, notes):
    memory, asked = with_stages(lambda found, _limit: [RerankScore(found[0].key, 1.0, relevance=0.77)])
    memory.index(notes)
    first, *_ = memory.search("harbour tide")
    assert first.relevance == 0.77
    ((_, candidates, _),) = asked
    assert {candidate.hit.relevance for candidate in candidates} != {None}  # it is told the relevance so far


@pytest.mark.parametrize("relevance", [-0.1, 1.1, math.nan])
def test_a_relevance_that_is_none_is_refused(with_stages, notes, relevance):
    memory, _ = with_stages(lambda found, _limit: [RerankScore(found[0].key, 1.0, relevance=relevance)])
    memory.index(notes)
    (notice,) = memory.search("harbour tide").notices
    assert "not reranked by stub0" in notice


def test_the_default_stage_is_left_out_where_its_plugin_is_missing(home, notes):
    installed = home.registry()
    offers = {key: found for key, found in installed.offers.items() if key != ("reranker", "chat")}
    with Memory.open(home.config(), registry=evolve(installed, offers=offers)) as memory:
        memory.index(notes)
        assert not memory.search("harbour tide").notices
        assert not [problem for problem in memory.status().problems if "chat" in problem]

"""The search flow: every retriever filtered inside, every failure named, every score explained."""

import math
from datetime import UTC, datetime, timedelta, timezone
from itertools import product

import numpy as np
import pytest

from klaw_core import (
    API,
    Component,
    EmbeddingError,
    Filters,
    Hit,
    KlawError,
    NewDocument,
    NoOptions,
    PluginContractError,
    QueryError,
    RetrievalError,
    Retriever,
)
from klaw_core.values.search import NO_GOOD_MATCH

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
MODES = ("hybrid", "fts", "vector")
ODD = (
    "C++", "foo-bar", "cat's", '"', "'", "*", "AND", "NEAR(", "a OR b", "^x", "col:x", "{x}", "\0", "\ud800",
    "память", "内存", "🧵", "%", "--", "';DROP TABLE", "\u202e", "a\nb", "e\u0301" * 500, "x" * 9_000,
)  # fmt: skip


def paths(results):
    return [result.path for result in results]


@pytest.fixture
def filled(home, memory):
    """Five hundred notes about one thing, each of a day of its own."""
    for number in range(500):
        home.write(f"{number % 10}/{number:03}.md", f"# Log {number}\n\nthe harbour log, entry number{number}")
    memory.index(home.notes)
    return memory


@pytest.fixture
def small(home, memory):
    """Three notes on three subjects."""
    home.write("auth.md", "# Auth\n\nwe use short tokens")
    home.write("deploy.md", "# Deploy\n\nblue and green")
    home.write("lunch.md", "# Lunch\n\ntokens for the canteen")
    memory.index(home.notes)
    return memory


class TestModes:
    def test_each_mode_uses_its_retrievers(self, home, small):
        vectors, words = home.retrievers
        for mode, expected in (("hybrid", {vectors, words}), ("fts", {words}), ("vector", {vectors})):
            results = small.search("short tokens", mode=mode)
            assert results[0].path == "notes/auth.md"
            assert {part.component for result in results for part in result.explain} == expected
            assert results.notices == ()

    def test_a_search_by_words_does_not_embed(self, home, small):
        small.search("short tokens", mode="fts")
        assert home.recorder.questions == []
        small.search("short tokens")
        assert home.recorder.questions == ["short tokens"]

    def test_a_mode_without_a_retriever_is_rejected(self, home):
        vectors, words = home.retrievers
        for only, mode in ((vectors, "fts"), (words, "vector")):
            with home.open(retrieval=[{"type": only}]) as memory, pytest.raises(QueryError, match=f"mode {mode}: no"):
                memory.search("x", mode=mode)

    def test_an_unknown_mode_is_rejected(self, small):
        with pytest.raises(QueryError, match="unknown mode 'vectors'"):
            small.search("x", mode="vectors")

    def test_missing_vectors_are_a_notice(self, home):
        home.write("a.md", "the kiln")
        with home.open() as memory:
            assert memory.search("kiln").notices == ("nothing is indexed yet: klaw index DIR",)
            memory.index(home.notes, embed=False)
            for mode, found in (("hybrid", ["notes/a.md"]), ("vector", [])):
                results = memory.search("kiln", mode=mode)
                assert [result.path for result in results] == found
                assert results.notices == ("searched without vectors: nothing is embedded yet: run `klaw embed`",)
            assert memory.search("kiln", mode="fts").notices == ()

    def test_an_empty_collection_is_named_with_those_that_have_content(self, small):
        (notice,) = small.search("tokens", collection="docs").notices
        assert notice == "the collection 'docs' is empty; the collection 'memory' has content: klaw search -c NAME"
        small.add([NewDocument("a", "the kiln")], collection="work")
        (notice,) = small.search("tokens", collection=["docs"]).notices
        assert "the collections 'memory', 'work' have content" in notice
        assert small.search("nothing like it", collection=["docs", "work"], mode="fts").notices == ()

    def test_a_search_of_everything_names_a_separate_collection_with_content(self, home):
        with home.open() as memory:
            memory.add([NewDocument("a", "the kiln")], collection="docs")
            (notice,) = memory.search("kiln").notices
        assert notice == "the collection 'memory' is empty; the collection 'docs' has content: klaw search -c NAME"

    def test_an_empty_chat_name_is_rejected(self, small):
        assert not small.search("tokens", filters=Filters(chat_id="")).results
        assert not small.search("tokens", filters=Filters(source="")).results
        assert small.search("tokens", filters=Filters(path="")).results

    def test_a_filter_without_matches_is_named(self, small):
        assert small.search("tokens", filters=Filters(path="notes/", chat_id="7")).notices == (
            "no messages from chat '7' (a chat name has the form CHANNEL_ID, e.g. telegram_123456)",
        )
        (notice,) = small.search("tokens", filters=Filters(path="auth.md")).notices
        assert notice.startswith("no path starts with 'auth.md' (paths start with the workspace name")
        (notice,) = small.search("tokens", filters=Filters(source="notes/auth.md")).notices
        assert notice.startswith("no results with source 'notes/auth.md' (")

    def test_a_hit_of_both_retrievers_ranks_before_a_hit_of_one(self, small):
        results = small.search("we use short tokens")
        assert len(results[0].explain) == 2
        assert results[0].path == "notes/auth.md"


class TestLimits:
    def test_the_limit_is_reached_and_not_passed(self, filled):
        for mode, limit in product(MODES, (1, 3, 25)):
            assert len(filled.search("harbour log", limit, mode=mode)) == limit

    @pytest.mark.parametrize("limit", [0, -1])
    def test_a_limit_below_one_is_rejected(self, small, limit):
        with pytest.raises(QueryError, match="at least 1"):
            small.search("tokens", limit)

    @pytest.mark.parametrize("limit", [10_000, 2**31, 2**63, 10**30])
    def test_a_limit_above_the_number_of_chunks_returns_all(self, small, limit):
        assert len(small.search("tokens", limit, mode="fts")) == 2
        assert 2 <= len(small.search("tokens", limit)) <= 3

    def test_min_relevance_removes_only_lower_relevances(self, make_home):
        home = make_home("sqlite")
        memory = home.open()
        for number in range(8):
            home.write(
                f"{number}.md", " ".join([("harbour", "master", "pier", "kiln")[number % 4], "and", f"word{number}"])
            )
        home.write("all.md", "The harbour master stands on the pier beside the kiln.")
        memory.index(home.notes)
        everything = memory.search("harbour master pier kiln", 20)
        relevances = [result.relevance for result in everything]
        assert len(set(relevances)) > 1
        for least in sorted({0.0, *relevances, 1.0}):
            found = memory.search("harbour master pier kiln", 20, min_relevance=least)
            assert list(found) == [result for result in everything if result.relevance >= least]
        memory.close()

    @pytest.mark.parametrize(
        ("name", "least"),
        [("min_score", math.nan), *(("min_relevance", least) for least in (math.nan, -0.01, 1.01, 2, -1, math.inf))],
    )
    def test_a_minimum_that_nothing_can_be_compared_with_is_rejected(self, small, name, least):
        with pytest.raises(QueryError, match=name):
            small.search("tokens", **{name: least})

    def test_a_minimum_of_no_relevance_is_a_notice_of_a_context(self, small):
        context = small.context("tokens", min_relevance=2)
        assert "min_relevance must be from 0 to 1" in context.notices[0]

    def test_min_score_removes_only_lower_scores(self, small):
        scores = [result.score for result in small.search("tokens")]
        assert scores == sorted(scores, reverse=True)
        assert len(small.search("tokens", min_score=scores[0])) == scores.count(scores[0])
        assert len(small.search("tokens", min_score=0.0)) == len(scores)
        assert len(small.search("tokens", min_score=math.inf)) == 0


class TestFilters:
    @pytest.mark.parametrize(
        ("filters", "message"),
        [
            (Filters(since=NOON, until=NOON - timedelta(days=1)), "since is not before until"),
            (Filters(since=NOON, until=NOON), "since is not before until"),
            (Filters(since=NOON.replace(tzinfo=None)), "since has no time zone"),
            (Filters(since=NOON, until=NOON.replace(tzinfo=None)), "until has no time zone"),
        ],
    )
    def test_an_interval_that_contains_no_time_is_rejected(self, small, filters, message):
        with pytest.raises(QueryError, match=message):
            small.search("tokens", filters=filters)

    def test_an_interval_is_compared_across_time_zones(self, small):
        ahead = NOON.astimezone(timezone(timedelta(hours=9)))
        assert small.search("tokens", filters=Filters(since=ahead, until=NOON + timedelta(minutes=1))) is not None
        with pytest.raises(QueryError, match="since is not before until"):
            small.search("tokens", filters=Filters(since=ahead, until=NOON - timedelta(minutes=1)))

    def test_the_tool_answers_an_interval_that_contains_no_time_with_the_error(self, small):
        arguments = {"query": "tokens", "since": "2026-01-02", "until": "2026-01-01"}
        assert "since is not before until" in small.call_tool("memory_search", arguments)["error"]

    def test_a_filter_finds_one_chunk_of_five_hundred(self, filled):
        for mode, number in product(MODES, (0, 250, 499)):
            path = f"notes/{number % 10}/{number:03}.md"
            for filters in (Filters(path=path), Filters(source=path.removeprefix("notes/"))):
                assert paths(filled.search("harbour", 3, mode=mode, filters=filters)) == [path]

    @pytest.mark.parametrize("mode", MODES)
    def test_date_filters_are_exact(self, home, memory, mode):
        for day in range(1, 21):
            home.write(f"2026-03-{day:02}.md", f"the harbour, day{day}")
        memory.index(home.notes)
        since, until = datetime(2026, 3, 4, tzinfo=UTC), datetime(2026, 3, 7, tzinfo=UTC)
        results = memory.search("harbour", 50, mode=mode, filters=Filters(since=since, until=until))
        assert sorted(paths(results)) == [f"notes/2026-03-{day:02}.md" for day in (4, 5, 6)]
        assert {result.created_at for result in results} == {since + timedelta(days=day) for day in range(3)}

    @pytest.mark.parametrize("mode", MODES)
    def test_a_filter_without_matches_finds_nothing(self, small, mode):
        results = small.search("tokens", mode=mode, filters=Filters(chat_id="nobody"))
        assert list(results) == []

    def test_a_chat_filter_finds_only_its_chat(self, small):
        small.save("tokens of the chat", chat_id="telegram_1")
        assert [result.chat_id for result in small.search("tokens", filters=Filters(chat_id="telegram_1"))] == [
            "telegram_1"
        ]


class TestQueries:
    @pytest.mark.parametrize("text", ["", " ", "\n\t ", "\u2003"])
    def test_an_empty_query_is_rejected(self, small, text):
        with pytest.raises(QueryError, match="empty"):
            small.search(text)

    def test_a_query_over_the_limit_is_rejected(self, small):
        with pytest.raises(QueryError, match="10,001"):
            small.search("x" * 10_001)
        assert small.search(("tokens " * 2000)[:10_000])

    def test_any_text_is_a_valid_query(self, small):
        scores = []
        for mode, text in product(MODES, ODD):
            results = small.search(text, mode=mode)
            assert set(results.notices) <= {NO_GOOD_MATCH}, text
            scores += [result.score for result in results]
        assert scores
        assert all(map(math.isfinite, scores))

    def test_an_incomplete_index_is_named_if_nothing_is_found(self, small):
        with small._assembly.store.write() as transaction:
            for _, index in small._assembly.indexes():
                if not index.needs_vectors:
                    index.reset(transaction.resource, "memory", None)
        found = small.search("tokens", mode="fts")
        assert not found
        assert [notice.partition(" ")[2] for notice in found.notices] == ["lacks 3 chunks: klaw index"]
        small.index()
        again = small.search("tokens", mode="fts")
        assert (len(again), again.notices) == (2, ())
        assert small.search("xylophone", mode="fts").notices == ()

    def test_a_search_in_an_empty_memory_is_empty(self, home, memory):
        for mode in MODES:
            results = memory.search("anything", mode=mode)
            assert list(results) == []
        assert home.recorder.questions == [], "no reason to load a model"


class TestExplanation:
    @pytest.mark.parametrize("fusion", [{"type": "rrf"}, {"type": "rrf", "k": 1}, {"type": "weighted"}])
    def test_the_contributions_add_up(self, home, small, fusion):
        for number in range(30):
            home.write(f"{number}.md", f"the harbour log, entry number{number}")
        small.index()
        with home.open(fusion=fusion) as memory:
            for mode in MODES:
                results = memory.search("harbour entry number7 tokens", 20, mode=mode)
                assert len(results) >= 3
                for result in results:
                    assert math.isclose(math.fsum(part.value for part in result.explain), result.score, abs_tol=1e-12)
                    assert result.explain
                    assert all(part.rank >= 1 for part in result.explain)

    def test_a_retriever_with_weight_zero_does_not_affect_the_order(self, home, small):
        vectors, words = home.retrievers
        with home.open(retrieval=[{"type": vectors, "weight": 0}, {"type": words, "weight": 1}]) as memory:
            alone = paths(small.search("canteen tokens", mode="fts"))
            assert paths(memory.search("canteen tokens"))[: len(alone)] == alone


class TestCollapse:
    @pytest.mark.promise("T22")
    def test_equal_texts_are_shown_once(self, home, memory):
        for name in "abcde":
            home.write(f"{name}.md", "the very same words")
        home.write("z.md", "other words")
        memory.index(home.notes)
        results = memory.search("words", 10)
        assert sorted(result.content for result in results) == ["other words", "the very same words"]

    def test_duplicates_do_not_displace_other_results(self, home, memory):
        for number in range(120):  # more than are asked for at first
            home.write(f"copy{number:02}.md", "harbour harbour harbour")
        for number in range(8):
            home.write(f"other{number}.md", f"the harbour, seen on day{number} from the long pier")
        memory.index(home.notes)
        assert len(memory.search("harbour", 5)) == 5

    def test_overlapping_chunks_of_one_note_are_shown_once(self, home, memory):
        texts = {}
        for count in range(5, 13):  # of some notes, the last chunk is little more than its overlap
            spoken = " ".join(f"Sentence {count}x{number} speaks of the harbour." for number in range(count))
            texts[f"notes/{count}.md"] = f"{spoken} The harbour ends."
            home.write(f"{count}.md", texts[f"notes/{count}.md"])
        with home.open(chunking={"type": "markdown", "max_tokens": 40, "overlap_tokens": 20}) as dense:
            dense.index(home.notes)
            results = dense.search("harbour", 100)
            assert len(dense.search("harbour", 100, duplicates="keep")) > len(results) > len(texts)
        for result in results:
            text = texts[result.path]
            start = text.index(result.content)
            for other in results:
                if other is result or other.path != result.path:
                    continue
                begin = text.index(other.content)
                overlap = min(start + len(result.content), begin + len(other.content)) - max(start, begin)
                assert 2 * overlap <= max(len(result.content), len(other.content))
        memory.close()


class TestFailures:
    @pytest.mark.parametrize("lie", ["nan", "infinity", "zero", "length", "dimension", "dtype", "list", "none"])
    def test_an_embedder_with_invalid_vectors_is_named_and_words_answer(self, home, liars, lie):
        """It is in the honest one's vector space, so only its vectors give it away."""
        home.write("a.md", "the harbour")
        with home.open() as memory:
            memory.index(home.notes)
            honest = memory._assembly.embedder.serving
        liar = liars["embedder"].options(lie=lie)

        class Liar:
            space, max_tokens = honest.space, 1_000_000
            count_tokens = staticmethod(honest.count_tokens)

            def embed_query(self, text):
                if lie in {"list", "none"}:
                    return liar.embed_query(text)
                vector = honest.embed_query(text)
                lies = {
                    "dimension": vector[:-1],
                    "dtype": vector.astype(np.float64),
                    "zero": 0 * vector,
                    "length": 2 * vector,
                }
                vector[0] = {"nan": np.nan, "infinity": np.inf}.get(lie, vector[0])
                return lies.get(lie, vector)

        home.extra.append(("embedder", Component("posing", NoOptions, lambda _options, _place: Liar(), API)))
        with home.open(embedding={"type": "posing"}) as memory:
            results = memory.search("harbour")
            assert paths(results) == ["notes/a.md"]
            (notice,) = results.notices
            assert "the embedder of counting returned" in notice
            with pytest.raises(PluginContractError, match="the embedder of counting"):
                memory.search("harbour", mode="vector")

    @pytest.mark.parametrize("lie", ["unsorted", "repeated", "too many", "nan"])
    @pytest.mark.usefixtures("small")
    def test_a_retriever_with_invalid_hits_is_named_and_the_others_answer(self, home, liars, lie):
        home.extra.append(("retriever", liars["retriever"]))
        _, words = home.retrievers
        with home.open(retrieval=[{"type": words}, {"type": "liar", "lie": lie}]) as memory:
            results = memory.search("short tokens")
            assert results[0].path == "notes/auth.md"
            assert {part.component for result in results for part in result.explain} == {words}
            (notice,) = results.notices
            assert "liar" in notice
        only = [{"type": "liar", "lie": lie}]
        with home.open(retrieval=only) as memory, pytest.raises(RetrievalError, match="liar"):
            memory.search("short tokens")

    def retriever(self, home, search, *, needs_vectors=False):
        """Add a retriever ``mine`` whose search is the function."""

        class Mine(Retriever):
            joins = object

            def search(self, _resource, query, _limit):
                return search(query)

        Mine.needs_vectors = needs_vectors
        home.extra.append(("retriever", Component("mine", NoOptions, lambda _options, _place: Mine(), API)))

    @pytest.mark.usefixtures("small")
    def test_a_retriever_that_fails_is_named_and_the_others_answer(self, home):
        def fail(_query):
            raise RetrievalError("the shelf collapsed", hint="put it up again")

        self.retriever(home, fail)
        _, words = home.retrievers
        with home.open(retrieval=[{"type": words}, {"type": "mine"}]) as memory:
            results = memory.search("short tokens")
            assert results[0].path == "notes/auth.md"
            assert results.notices == ("searched without mine: the shelf collapsed (put it up again)",)
        only = [{"type": "mine"}]
        with home.open(retrieval=only) as memory, pytest.raises(RetrievalError, match="mine: the shelf collapsed"):
            memory.search("short tokens")

    @pytest.mark.usefixtures("small")
    def test_any_exception_of_a_retriever_is_caught(self, home):
        def fail(_query):
            raise KeyError("a bug of the plugin")

        self.retriever(home, fail)
        _, words = home.retrievers
        with home.open(retrieval=[{"type": words}, {"type": "mine"}]) as memory:
            results = memory.search("short tokens")
            assert results[0].path == "notes/auth.md"
            assert "mine" in results.notices[0]

    def test_a_retriever_that_ignores_the_filter_does_not_leak_results(self, home, small):
        with small._assembly.store.read() as snapshot:
            every = snapshot.keys("memory").tolist()
        self.retriever(home, lambda _query: [Hit(key, 1.0) for key in every])
        _, words = home.retrievers
        with home.open(retrieval=[{"type": words}, {"type": "mine"}]) as memory:
            assert paths(memory.search("tokens", filters=Filters(path="notes/lunch"))) == ["notes/lunch.md"]

    def test_keys_of_deleted_chunks_are_left_out(self, home, small):
        with small._assembly.store.read() as snapshot:
            key = snapshot.keys("memory").tolist()[0]
        self.retriever(home, lambda _query: [Hit(10**9, 9.0), Hit(key, 1.0)])
        with home.open(retrieval=[{"type": "mine"}]) as memory:
            assert len(memory.search("anything")) == 1

    def test_words_answer_if_the_embedder_fails_at_a_query(self, home, small):
        class Failing:
            space, max_tokens = small._assembly.embedder.space, 10

            def count_tokens(self, texts):
                return [1 for _ in texts]

            def embed_query(self, _text):
                raise EmbeddingError("the server is away", hint="start it")

        home.extra.append(("embedder", Component("away", NoOptions, lambda _options, _place: Failing(), API)))
        with home.open(embedding={"type": "away"}) as memory:
            results = memory.search("short tokens")
            assert results[0].path == "notes/auth.md"
            assert results.notices == ("searched without vectors: the server is away (start it)",)
            with pytest.raises(EmbeddingError, match="the server is away"):
                memory.search("short tokens", mode="vector")

    @pytest.mark.usefixtures("small")
    def test_without_an_embedder_words_answer(self, home):
        with home.open(embedding={"type": "none"}) as memory:
            results = memory.search("short tokens")
            assert results[0].path == "notes/auth.md"
            assert results.notices == ()
            with pytest.raises(QueryError, match="no configured retriever uses vectors"):
                memory.search("short tokens", mode="vector")
            assert memory.status().retrievers == (home.retrievers[1],)

    def test_an_unknown_collection_is_refused(self, small):
        with pytest.raises(KlawError, match="nothing"):
            small.search("tokens", collection="nothing")


class TestNearest:
    TEXTS = ("blue and green", "we use short tokens", "the canteen")

    def test_the_nearest_text_to_a_question_is_returned(self, small):
        small.search("short tokens")
        assert small.nearest("short tokens", TestNearest.TEXTS) == 1
        assert small.nearest("short tokens", []) is None

    def test_without_vectors_no_text_is_nearest(self, home, small):
        assert small.nearest("short tokens", TestNearest.TEXTS) is None
        small.search("short tokens")
        home.recorder.fail_at = 1
        assert small.nearest("blue", TestNearest.TEXTS) is None

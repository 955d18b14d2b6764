"""The contract of an embedder; the subclass defines the fixture ``embedder``.

    class TestHashing(EmbedderContract):
        @pytest.fixture(scope="class")
        def embedder(self):
            return HashingEmbedder()

The thresholds of the laws are class attributes. A subclass may override them, with a comment that gives the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import Embedder, EmbeddingError, Matrix, Vector
from klaw_testing.laws import law

_WORDS = ["ash", "birch", "cedar", "elder", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow", "yew"]
_TEXTS = (
    "The ferry leaves at seven.",
    "Kettle",
    "SQLite allows a single writer at a time, and any number of readers at the same time.",
    " ".join(_WORDS * 8),
    "Заметка о встрече в четверг",
    "def add(a, b):\n    return a + b\n",
)
_UNUSUAL = {
    "empty": "",
    "white space": " \t\r\n\u3000",
    "NUL alone": "\0",
    "NUL inside": "one\0two",
    "control characters": "\x01\x1b[31m\x7f\x85",
    "emoji": "👩‍👩‍👧‍👦🇺🇳🏽",
    "lone surrogate": "left \ud83d right",
    "surrogates the wrong way round": "\ude00\ud83d",
    "combining marks": "e" + "\u0301" * 500,
    "right to left": "\u202eשלום\u202c",
    "noncharacters": "\ufffe\uffff\ufffd",
    "special tokens": "[CLS] [SEP] [PAD] [MASK] <s></s> <|endoftext|>",
    "one word of 200 kB": "x" * 200_000,
    "200 kB of spaces": " " * 200_000,
}
_unusual = pytest.mark.parametrize(
    "text", [pytest.param(text, id=name.replace(" ", "-")) for name, text in _UNUSUAL.items()]
)
_line = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=60)


class EmbedderContract:
    """The laws of an embedder."""

    #: The largest allowed difference of a vector's element between two batches with the same text.
    tolerance: ClassVar[float] = 1e-5
    #: The least change of some element of a vector if the text changes; must be larger than ``tolerance``.
    least_change: ClassVar[float] = 1e-4
    #: The least cosine between the query and the document vector of one text; lower for a model with prefixes.
    query_document_cosine: ClassVar[float] = 0.99
    #: The maximum length of long test texts in tokens, for an embedder with a very large window.
    most_tokens: ClassVar[int] = 20_000

    @pytest.fixture
    def embedder(self) -> Any:
        """Return the embedder under test."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    def test_vectors_are_float32_of_unit_length(self, embedder: Embedder) -> None:
        assert_sound(embedder.embed_documents(_TEXTS), (len(_TEXTS), embedder.space.dimension))
        assert_sound(embedder.embed_query(_TEXTS[0]), (embedder.space.dimension,))

    def test_no_texts_give_no_vectors(self, embedder: Embedder) -> None:
        assert_sound(embedder.embed_documents([]), (0, embedder.space.dimension))

    def test_a_batch_equals_one_by_one(self, embedder: Embedder) -> None:
        alone = np.concatenate([embedder.embed_documents([text]) for text in _TEXTS])
        np.testing.assert_allclose(embedder.embed_documents(_TEXTS), alone, rtol=0, atol=self.tolerance)

    def test_a_long_text_does_not_change_other_vectors(self, embedder: Embedder) -> None:
        long = " ".join(_text_of(embedder, self._window(embedder)))
        beside = embedder.embed_documents([_TEXTS[1], long, _TEXTS[0]])
        alone = embedder.embed_documents([_TEXTS[1]])[0]
        np.testing.assert_allclose(beside[0], alone, rtol=0, atol=self.tolerance)

    def test_rows_are_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        forward = embedder.embed_documents(_TEXTS)
        backward = embedder.embed_documents(_TEXTS[::-1])
        np.testing.assert_allclose(backward[::-1], forward, rtol=0, atol=self.tolerance)

    def test_it_is_deterministic(self, embedder: Embedder) -> None:
        np.testing.assert_array_equal(embedder.embed_documents(_TEXTS), embedder.embed_documents(_TEXTS))
        np.testing.assert_array_equal(embedder.embed_query(_TEXTS[0]), embedder.embed_query(_TEXTS[0]))

    def test_equal_texts_have_equal_vectors(self, embedder: Embedder) -> None:
        first, _, again = embedder.embed_documents([_TEXTS[0], _TEXTS[1], _TEXTS[0]])
        np.testing.assert_allclose(first, again, rtol=0, atol=self.tolerance)

    def test_different_texts_have_different_vectors(self, embedder: Embedder) -> None:
        vectors = embedder.embed_documents(_TEXTS)
        assert len(vectors) == len(_TEXTS)
        for number, vector in enumerate(vectors):
            others = np.delete(vectors, number, axis=0)
            assert np.abs(others - vector).max(axis=1).min() > self.least_change

    def test_a_query_is_close_to_its_document(self, embedder: Embedder) -> None:
        for text, vector in zip(_TEXTS, embedder.embed_documents(_TEXTS), strict=True):
            assert float(embedder.embed_query(text) @ vector) >= self.query_document_cosine

    @pytest.mark.parametrize("changed", range(5))
    def test_every_part_of_a_long_text_changes_its_vector(self, embedder: Embedder, changed: int) -> None:
        words = _text_of(embedder, 5 * self._window(embedder))
        fifth = len(words) // 5
        other = list(words)
        other[changed * fifth : (changed + 1) * fifth] = ["vinegar"] * fifth
        before, after = embedder.embed_documents([" ".join(words), " ".join(other)])
        assert np.abs(before - after).max() > self.least_change

    def test_the_last_words_of_a_long_text_change_its_vector(self, embedder: Embedder) -> None:
        words = _text_of(embedder, 5 * self._window(embedder))
        long, longer = " ".join(words), " ".join([*words, *["vinegar"] * 9])
        before, after = embedder.embed_documents([long, longer])
        assert np.abs(before - after).max() > self.least_change
        assert np.abs(embedder.embed_query(long) - embedder.embed_query(longer)).max() > self.least_change

    @_unusual
    def test_an_unusual_text_gives_a_vector_or_an_embedding_error(self, embedder: Embedder, text: str) -> None:
        try:
            vectors = embedder.embed_documents([text])
        except EmbeddingError:
            return
        assert_sound(vectors, (1, embedder.space.dimension))
        assert_sound(embedder.embed_query(text), (embedder.space.dimension,))

    @_unusual
    def test_an_unusual_text_does_not_change_other_vectors(self, embedder: Embedder, text: str) -> None:
        try:
            vectors = embedder.embed_documents([_TEXTS[0], text, _TEXTS[1]])
        except EmbeddingError:
            return
        alone = embedder.embed_documents([_TEXTS[0], _TEXTS[1]])
        np.testing.assert_allclose(vectors[[0, 2]], alone, rtol=0, atol=self.tolerance)

    @_unusual
    def test_tokens_of_unusual_texts_are_counted(self, embedder: Embedder, text: str) -> None:
        (count,) = embedder.count_tokens([text])
        assert count >= 0

    def test_token_counts_are_one_integer_per_text(self, embedder: Embedder) -> None:
        counts = embedder.count_tokens(_TEXTS)
        assert len(counts) == len(_TEXTS)
        assert {type(count) for count in counts} == {int}
        assert min(counts) > 0
        assert list(embedder.count_tokens(["", _TEXTS[0]])) == [0, counts[0]]
        assert len(embedder.count_tokens([])) == 0

    @law
    @given(lines=st.lists(_line, min_size=1, max_size=8), cut=st.integers(0, 8))
    def test_token_counts_are_subadditive_at_line_ends(self, embedder: Embedder, lines: list[str], cut: int) -> None:
        ended = [line + "\n" for line in lines]
        whole, head, tail, *parts = embedder.count_tokens(
            ["".join(ended), "".join(ended[:cut]), "".join(ended[cut:]), *ended]
        )
        assert whole <= head + tail <= sum(parts)

    @law
    @given(texts=st.lists(_line, max_size=6))
    def test_a_token_count_does_not_depend_on_other_texts(self, embedder: Embedder, texts: list[str]) -> None:
        assert list(embedder.count_tokens(texts)) == [embedder.count_tokens([text])[0] for text in texts]

    def test_the_space_describes_the_vectors(self, embedder: Embedder) -> None:
        before = embedder.space
        assert embedder.embed_query(_TEXTS[0]).shape == (before.dimension,)
        assert embedder.space == before
        assert before.metric == "cosine"
        assert before.model
        assert embedder.max_tokens > 0

    def test_optional_attributes_have_the_right_types(self, embedder: Embedder) -> None:
        assert type(getattr(embedder, "remote", False)) is bool
        texts_per_call = getattr(embedder, "texts_per_call", 1)
        assert type(texts_per_call) is int
        assert texts_per_call >= 1

    def test_several_threads_can_use_it(self, embedder: Embedder) -> None:
        expected = embedder.embed_documents(_TEXTS)
        with ThreadPoolExecutor(4) as executor:
            for vectors in executor.map(embedder.embed_documents, [_TEXTS] * 8):
                np.testing.assert_allclose(vectors, expected, rtol=0, atol=self.tolerance)

    def _window(self, embedder: Embedder) -> int:
        return min(embedder.max_tokens, self.most_tokens // 5)


def assert_sound(vectors: Matrix | Vector, shape: Sequence[int]) -> None:
    """Check that vectors are float32 of this shape, finite, and of unit length."""
    assert vectors.dtype == np.float32
    assert vectors.shape == tuple(shape)
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1, rtol=0, atol=1e-5)


def _text_of(embedder: Embedder, tokens: int) -> list[str]:
    """Return words with at least this many tokens in total; no two neighbours are the same."""
    words = [f"{_WORDS[number % len(_WORDS)]} {number}" for number in range(tokens)]
    counts = np.cumsum(embedder.count_tokens(words))
    return words[: int(np.searchsorted(counts, tokens)) + 1]

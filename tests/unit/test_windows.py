"""Cutting loses nothing and keeps within the bound; pooling makes one sound vector of what was cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import (
    EmbeddingError,
    Matrix,
    cut_windows,
    embed_in_windows,
    estimate_tokens,
    halves,
    pool_windows,
    unit_rows,
)

TEXTS = st.text(st.sampled_from("ab1 \n.é漢語+👩‍👩‍👧"), max_size=400) | st.text(max_size=400)


def count_characters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


class Letters:
    """Embeds a text by how often each of four letters occurs in it; keeps what it was given."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> Matrix:
        self.calls.append(list(texts))
        counts = [[text.count(letter) + 1e-3 for letter in "abcd"] for text in texts]
        return unit_rows(np.array(counts, np.float32), "letters")


@given(text=TEXTS, max_tokens=st.integers(1, 60))
def test_law_windows_cover_the_text_and_fit(text: str, max_tokens: int) -> None:
    parts = cut_windows(text, max_tokens)
    assert "".join(parts) == text
    assert max(estimate_tokens(parts), default=0) <= max_tokens


@given(text=TEXTS, max_tokens=st.integers(1, 60))
def test_law_windows_fit_with_any_token_counter(text: str, max_tokens: int) -> None:
    parts = cut_windows(text, max_tokens, count_characters)
    assert "".join(parts) == text
    assert all(len(part) <= max_tokens for part in parts)


@given(text=TEXTS.filter(lambda text: len(text) > 1))
def test_law_halves_are_never_empty(text: str) -> None:
    left, right = halves(text)
    assert left + right == text
    assert left
    assert right


@pytest.mark.parametrize("text", ["x" * 300_000, "漢" * 100_000, " " * 300_000, "a b " * 75_000, "-" * 300_000])
def test_long_texts_are_cut_completely(text: str) -> None:
    assert "".join(cut_windows(text, 254)) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("first part.\n\nsecond part.", "first part.\n\n"),
        ("one line here\nand another one", "one line here\n"),
        ("A sentence. Another one", "A sentence. "),
        ("twowords here", "twowords "),
        ("indivisible", "indiv"),
    ],
)
def test_a_cut_prefers_white_space(text: str, left: str) -> None:
    assert halves(text)[0] == left


def test_pooling_weighs_by_tokens() -> None:
    vector = pool_windows(np.eye(2, dtype=np.float32), [3, 1])
    assert vector.dtype == np.float32
    np.testing.assert_allclose(vector, np.array([3, 1]) / np.sqrt(10), rtol=1e-6)


def test_windows_whose_vectors_cancel_out_are_an_error() -> None:
    with pytest.raises(EmbeddingError, match="cancel out"):
        pool_windows(np.array([[1, 0], [-1, 0]], np.float32), [5, 5])


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_rows_of_any_scale_get_unit_length(scale: float) -> None:
    rows = unit_rows(np.array([[3, 4], [0, -2]], np.float32) * np.float32(scale), "a server")
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, -1]], rtol=1e-6)


@pytest.mark.parametrize(
    ("row", "expected"),
    [([np.nan, 1.0], "NaN"), ([np.inf, 1.0], "infinity"), ([-np.inf, 0.0], "infinity"), ([0.0, 0.0], "zeros")],
)
def test_invalid_rows_are_rejected_with_their_source(row: list[float], expected: str) -> None:
    with pytest.raises(EmbeddingError, match=rf"a server \(m\) returned .*{expected}"):
        unit_rows(np.array([[1.0, 0.0], row], np.float32), "a server (m)")


def test_each_distinct_window_is_embedded_once_in_one_call() -> None:
    letters = Letters()
    long = "aaaa " + "bbbb "
    matrix = embed_in_windows(["a", long, "a", "bbbb "], 5, letters, count_characters)
    assert letters.calls == [["a", "aaaa ", "bbbb "]]
    assert (matrix.shape, matrix.dtype) == ((4, 4), np.dtype(np.float32))
    assert (matrix[0] == matrix[2]).all()
    np.testing.assert_allclose(matrix[1][:2], [np.sqrt(0.5)] * 2, atol=1e-3)


def test_windows_of_white_space_are_left_out() -> None:
    letters = Letters()
    embed_in_windows(["a b c" + " " * 100, " " * 50], 10, letters, count_characters)
    assert [window for window in letters.calls[0] if not window.strip()] == letters.calls[0][-1:]
    assert "".join(letters.calls[0]).split() == ["a", "b", "c"]


@given(texts=st.lists(TEXTS, min_size=1, max_size=5), max_tokens=st.integers(1, 40))
def test_law_a_batch_equals_one_by_one(texts: list[str], max_tokens: int) -> None:
    together = embed_in_windows(texts, max_tokens, Letters())
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for row, text in zip(together, texts, strict=True):
        np.testing.assert_array_equal(row, embed_in_windows([text], max_tokens, Letters())[0])

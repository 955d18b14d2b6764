"""Cutting loses nothing and keeps within the bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import estimate_tokens
from klaw_embed_ollama.windows import halves, pool, windows

TEXTS = st.text(st.sampled_from("ab1 \n.é漢語+👩‍👩‍👧"), max_size=400) | st.text(max_size=400)


@given(text=TEXTS, max_tokens=st.integers(1, 60))
def test_law_windows_join_to_the_text_and_fit(text: str, max_tokens: int) -> None:
    parts = windows(text, max_tokens)
    assert "".join(parts) == text
    assert all(count <= max_tokens for count in estimate_tokens(parts))


@given(text=TEXTS.filter(lambda text: len(text) > 1))
def test_law_halves_are_never_empty(text: str) -> None:
    left, right = halves(text)
    assert left + right == text
    assert left
    assert right


@pytest.mark.parametrize("text", ["x" * 300_000, "漢" * 100_000, " " * 300_000, "a b " * 75_000, "-" * 300_000])
def test_long_texts_are_cut_to_the_end(text: str) -> None:
    assert "".join(windows(text, 254)) == text


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
def test_a_cut_falls_where_it_hurts_least(text: str, left: str) -> None:
    assert halves(text)[0] == left


def test_pooling_weighs_by_tokens() -> None:
    vectors = np.eye(2, dtype=np.float32)
    np.testing.assert_allclose(pool(vectors, ["one two three", "four"]), [0.75, 0.25])

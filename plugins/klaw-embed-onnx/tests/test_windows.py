from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from klaw_embed_onnx.session import _batches
from klaw_embed_onnx.windows import pool, to_unit_length, windows

#: Texts as the number of tokens of each word.
word_lengths = st.lists(st.integers(1, 30), max_size=60)
sizes = st.integers(1, 40)


def _words(lengths: Sequence[int]) -> list[int | None]:
    return [word for word, length in enumerate(lengths) for _ in range(length)]


@given(word_lengths, sizes)
def test_windows_hold_every_token_once_in_order_and_within_the_size(lengths: list[int], size: int) -> None:
    words = _words(lengths)
    cuts = windows(words, size)
    assert [position for cut in cuts for position in range(*cut.indices(len(words)))] == list(range(len(words)))
    assert all(cut.stop - cut.start <= size for cut in cuts)
    assert len(cuts) == 1 or all(cut.stop > cut.start for cut in cuts)


@given(st.lists(st.integers(1, 3), max_size=200), st.integers(12, 40))
def test_short_words_stay_whole_and_windows_even(lengths: list[int], size: int) -> None:
    words = _words(lengths)
    cuts = windows(words, size)
    assert all(words[cut.start] != words[cut.start - 1] for cut in cuts[1:])
    sizes_found = [cut.stop - cut.start for cut in cuts]
    assert max(sizes_found) <= 2 * min(sizes_found) + 4 or len(words) <= size


@given(st.integers(0, 5000), sizes)
def test_words_of_one_token_give_as_few_windows_as_can_be(tokens: int, size: int) -> None:
    cuts = windows(list(range(tokens)), size)
    found = [cut.stop - cut.start for cut in cuts]
    assert len(found) == max(1, -(-tokens // size))
    assert max(found) - min(found) <= 1


def test_a_text_without_tokens_is_one_empty_window() -> None:
    assert windows([], 254) == [slice(0, 0)]


def test_windows_weigh_as_much_as_they_hold() -> None:
    east, north = np.eye(2, dtype=np.float32)
    np.testing.assert_allclose(pool(np.stack([east, north]), [3, 1]), np.array([3, 1]) / np.sqrt(10), rtol=1e-6)


def test_the_unit_length_of_nothing_is_nothing() -> None:
    np.testing.assert_array_equal(to_unit_length(np.zeros(3, np.float32)), np.zeros(3, np.float32))


@given(st.lists(st.integers(1, 300), max_size=60), st.integers(1, 2000))
def test_batches_hold_each_window_once_within_the_bound(lengths: list[int], batch_tokens: int) -> None:
    batches = _batches([tuple(range(length)) for length in lengths], batch_tokens)
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[number] for number in batch) <= batch_tokens

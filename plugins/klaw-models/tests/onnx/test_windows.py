"""Texts are cut into even windows between words, and windows are put in batches of similar length."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from klaw_models.onnx import cut_tokens, split_batches

#: Texts as the number of tokens of each word.
word_lengths = st.lists(st.integers(1, 30), max_size=60)
sizes = st.integers(1, 40)


def _words(lengths: Sequence[int]) -> list[int | None]:
    return [word for word, length in enumerate(lengths) for _ in range(length)]


@given(word_lengths, sizes)
def test_windows_contain_every_token_once_within_the_size(lengths: list[int], size: int) -> None:
    words = _words(lengths)
    cuts = cut_tokens(words, size)
    assert [position for cut in cuts for position in range(*cut.indices(len(words)))] == list(range(len(words)))
    assert all(cut.stop - cut.start <= size for cut in cuts)
    assert len(cuts) == 1 or all(cut.stop > cut.start for cut in cuts)


@given(st.lists(st.integers(1, 3), max_size=200), st.integers(12, 40))
def test_short_words_stay_whole_and_windows_even(lengths: list[int], size: int) -> None:
    words = _words(lengths)
    cuts = cut_tokens(words, size)
    assert [cut.start for cut in cuts[1:] if words[cut.start] == words[cut.start - 1]] == []
    sizes_found = [cut.stop - cut.start for cut in cuts]
    assert max(sizes_found) <= 2 * min(sizes_found) + 4 or len(words) <= size


@given(st.integers(0, 5000), sizes)
def test_words_of_one_token_give_the_fewest_windows(tokens: int, size: int) -> None:
    cuts = cut_tokens(list(range(tokens)), size)
    found = [cut.stop - cut.start for cut in cuts]
    assert len(found) == max(1, -(-tokens // size))
    assert max(found) - min(found) <= 1


def test_a_text_without_tokens_is_one_empty_window() -> None:
    assert cut_tokens([], 254) == [slice(0, 0)]


@given(st.lists(st.integers(1, 300), max_size=60), st.integers(1, 2000))
def test_batches_contain_each_window_once_within_the_limit(lengths: list[int], batch_tokens: int) -> None:
    batches = split_batches([tuple(range(length)) for length in lengths], batch_tokens)
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[number] for number in batch) <= batch_tokens

"""The chunker ``plain`` obeys the laws of every chunker; a few examples say where it cuts."""

import pytest

from klaw_core.builtin.plain_chunker import PlainChunker, PlainOptions
from klaw_testing.chunker import ChunkerContract, MakeChunker, count_words


class TestPlainChunker(ChunkerContract):
    @pytest.fixture
    def make_chunker(self) -> MakeChunker:
        return lambda max_tokens, overlap_tokens: PlainChunker(PlainOptions(max_tokens, overlap_tokens))


def cut(text, max_tokens, overlap_tokens=0):
    spans = PlainChunker(PlainOptions(max_tokens, overlap_tokens)).split(text, count_words)
    return [text[span.start : span.end] for span in spans]


def test_a_text_that_fits_is_one_chunk():
    assert cut("one two\n\nthree", 8) == ["one two\n\nthree"]


def test_chunks_end_at_paragraphs_if_possible():
    first, second = " ".join(["a"] * 6), " ".join(["b"] * 6)
    assert cut(f"{first}\n\n{second}\n", 10) == [first, second]


def test_overlap_repeats_whole_lines():
    lines = [f"line {number}" for number in range(8)]
    assert cut("\n".join(lines), 8, 2)[1].startswith("line 3\nline 4")


def test_a_word_larger_than_a_chunk_is_split():
    word = "x" * 400
    parts = cut(f"before {word} after", 8)
    assert "".join(parts).replace("before", "").replace("after", "") == word
    assert max(map(len, parts)) <= 8 * 16


@pytest.mark.parametrize(("max_tokens", "overlap"), [(7, 0), (10, 6), (10, -1)])
def test_invalid_sizes_are_rejected(max_tokens, overlap):
    with pytest.raises(ValueError, match="must be"):
        PlainOptions(max_tokens, overlap)

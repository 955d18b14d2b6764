"""Lines count as editors count them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from klaw_core.values.lines import count_lines, line_of, line_starts, take_lines

texts = st.text("ab \r\n\x0b\x0c\x85\u2028", max_size=40)


def pieces(text):
    """Cut a text behind every line end, the obvious way; a final line end begins an empty piece."""
    return re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)


@given(texts)
def test_a_line_begins_after_a_line_end(text):
    starts = line_starts(text)
    cut = pieces(text)
    assert len(starts) == len(cut)
    assert [text[start : start + len(piece)] for start, piece in zip(starts, cut, strict=True)] == cut


@given(texts, st.data())
def test_each_character_is_on_exactly_one_line(text, data):
    offset = data.draw(st.integers(0, len(text)))
    number = line_of(line_starts(text), offset)
    before = "".join(pieces(text)[: number - 1])
    assert len(before) <= offset <= len(before) + len(pieces(text)[number - 1])
    if offset < len(text):
        assert offset < len(before) + len(pieces(text)[number - 1])


@given(texts, st.integers(1, 50), st.integers(1, 50))
def test_a_range_of_lines_has_these_lines(text, first, count):
    assert take_lines(text, first, count) == "".join(pieces(text)[first - 1 : first - 1 + count])


@given(texts)
def test_all_lines_together_are_the_text(text):
    assert take_lines(text, 1, len(text) + 1) == text


@given(texts)
def test_a_final_line_end_starts_no_new_line(text):
    assert count_lines(text) >= 1
    assert count_lines(text) == (count_lines(text + "x") - text.endswith(("\r", "\n")) if text else 1)


def test_examples():
    assert line_starts("") == [0]
    assert line_starts("a\r\nb\rc\nd") == [0, 3, 5, 7]
    assert line_starts("a\n\rb") == [0, 2, 3]
    assert line_starts("a\u2028b\x0cc\x85d") == [0], "as in editors, unlike str.splitlines()"
    assert [count_lines(text) for text in ("", "a", "a\n", "a\nb", "a\nb\r\n", "\n")] == [1, 1, 1, 2, 2, 1]

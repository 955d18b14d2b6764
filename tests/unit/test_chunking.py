"""The core slices the text, numbers the lines and derives the ids; a chunker's spans are not taken unchecked."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from attrs import evolve, frozen
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import Document, PluginContractError, Span, estimate_tokens
from klaw_core.indexing.chunking import make_chunks

MOMENT = datetime(2026, 2, 24, tzinfo=UTC)


@frozen
class Chunker:
    """Yields the spans it was made with."""

    spans: tuple[Span, ...]

    def split(self, _text, _count_tokens, /):
        return self.spans


def document(text, path="notes/a.md"):
    return Document(path, text, "a.md", "notes", MOMENT)


def cut(text, *spans, path="notes/a.md"):
    return make_chunks(document(text, path), Chunker(tuple(Span(*span) for span in spans)), estimate_tokens)


def test_a_chunk_is_a_slice_with_its_lines():
    text = "one\r\ntwo\n\nthree\rfour"
    chunks = cut(text, (0, 3), (5, 10, ("H",)), (10, 20, ("H",), "paragraph"))
    assert [chunk.text for chunk in chunks] == ["one", "two\n\n", "three\rfour"]
    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == [(1, 1), (2, 2), (4, 5)]
    assert [chunk.heading for chunk in chunks] == [(), ("H",), ("H",)]
    assert [chunk.continues for chunk in chunks] == [None, None, "paragraph"]
    assert [(chunk.start, chunk.end) for chunk in chunks] == [(0, 3), (5, 10), (10, 20)]


def test_a_text_without_spans_has_no_chunks():
    assert cut("text") == ()


def test_a_chunk_of_white_space_has_line_numbers():
    (chunk,) = cut("a\n \nb", (2, 4))
    assert (chunk.start_line, chunk.end_line) == (2, 2)


def test_the_context_is_the_text_just_before_the_chunk():
    text = "Anna: When?\n\nBen: On Tuesday.\n"
    first, second = cut(text, (0, 11), (13, 29, (), None, 0))
    assert (first.context, second.context) == ("", "Anna: When?")
    assert second.embedding_text == "Ben: On Tuesday."


def test_a_different_context_changes_the_chunk_id_but_not_the_embedding_hash():
    spans = ((0, 1), (2, 7, (), None, 0))
    one, other, none = (
        cut(text, *chosen)[1]
        for text, chosen in (("a\nhello", spans), ("b\nhello", spans), ("a\nhello", ((0, 1), (2, 7))))
    )
    assert len({one.chunk_id, other.chunk_id, none.chunk_id}) == 3
    assert one.embedding_hash == other.embedding_hash == none.embedding_hash


@pytest.mark.parametrize("context", [-1, 2, 3, 10**12])
def test_a_context_that_does_not_end_at_its_span_is_rejected(context):
    with pytest.raises(PluginContractError, match=r"the span 2\.\.4 of notes/a\.md with a context that begins at"):
        cut("text", (2, 4, (), None, context))


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 5)],
        [(-1, 2)],
        [(2, 2)],
        [(3, 1)],
        [(4, 5)],
        [(2, 4), (0, 1)],
        [(0, 2), (0, 2)],
        [(0, 3), (0, 2)],
        [(0, 10**12)],
    ],
)
def test_spans_out_of_bounds_or_out_of_order_are_rejected_with_their_place(spans):
    with pytest.raises(PluginContractError, match=r"Chunker cut notes/a\.md out of bounds or out of order: .* of 4"):
        cut("text", *spans)


def test_overlapping_spans_in_order_are_accepted():
    assert [chunk.text for chunk in cut("abcdef", (0, 3), (0, 4), (2, 6))] == ["abc", "abcd", "cdef"]


class TestIds:
    def test_an_id_does_not_depend_on_the_text_around_the_chunk(self):
        (before,) = cut("same", (0, 4))
        (after,) = [chunk for chunk in cut("more\nsame", (0, 4), (5, 9)) if chunk.text == "same"]
        assert before.chunk_id == after.chunk_id
        assert (before.start, after.start) == (0, 5)

    def test_path_heading_and_text_each_change_the_id(self):
        ids = {
            cut(text, (0, len(text), heading), path=path)[0].chunk_id
            for text in ("a", "b")
            for heading in ((), ("H",), ("H", "I"), ("H\x1fI",), ("HI",))
            for path in ("notes/a.md", "notes/b.md")
        }
        assert len(ids) >= 2 * 4 * 2, "headings are joined by a character that no heading holds"

    def test_equal_chunks_of_one_document_have_ids_by_their_order(self):
        chunks = cut("same same same", (0, 4), (5, 9), (10, 14))
        assert len({chunk.chunk_id for chunk in chunks}) == 3
        assert [chunk.chunk_id for chunk in cut("same same", (0, 4), (5, 9))] == [c.chunk_id for c in chunks[:2]]

    def test_an_id_is_hexadecimal_and_of_one_length(self):
        (chunk,) = cut("text", (0, 4))
        assert len(chunk.chunk_id) == 32
        int(chunk.chunk_id, 16)

    def test_ids_are_those_of_the_first_release(self):
        """An id that changes makes every stored one new, and everything be embedded again."""
        (chunk,) = cut("text", (0, 4, ("H",)))
        assert chunk.chunk_id == "a98d07703286cf61c42d78ab5916c424"


class TestEmbeddedTexts:
    def text_of(self, text, heading):
        return cut(text, (0, len(text), heading))[0].embedding_text

    def test_the_headings_stand_above_the_text(self):
        assert self.text_of("text", ("A", "B")) == "A > B\ntext"
        assert self.text_of("text", ()) == "text"

    def test_a_heading_that_the_text_begins_with_is_not_repeated(self):
        assert self.text_of("## B\n\ntext", ("A", "B")) == "A\n## B\n\ntext"
        assert self.text_of("# A\n\ntext", ("A",)) == "# A\n\ntext"

    def test_equal_chunks_have_the_same_hash_in_every_document(self):
        (first,) = cut("text", (0, 4, ("A",)))
        (second,) = cut("xx text", (3, 7, ("A",)), path="notes/b.md")
        assert first.embedding_hash == second.embedding_hash
        assert first.chunk_id != second.chunk_id


class TestDocuments:
    def test_text_and_recipe_determine_whether_a_document_has_changed(self):
        one = document("text")
        assert one.content_hash == evolve(one, created_at=datetime(2030, 1, 1, tzinfo=UTC), source="x").content_hash
        assert one.content_hash != evolve(one, text="other").content_hash
        assert one.content_hash != evolve(one, recipe="other").content_hash


@given(st.text(max_size=60), st.data())
def test_any_spans_in_order_make_chunks_that_are_slices(text, data):
    ends = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    spans = list(pairwise(ends))
    chunks = cut(text, *spans)
    assert [chunk.text for chunk in chunks] == [text[start:end] for start, end in spans]
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)
    for chunk in chunks:
        assert 1 <= chunk.start_line <= chunk.end_line

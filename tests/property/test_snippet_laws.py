"""Laws of snippets, for any text and any query."""

from hypothesis import given
from hypothesis import strategies as st

from klaw_core.cli.snippets import find_marks, make_snippet, show_text

WORDS = st.sampled_from(
    ["boat", "boats", "Решили", "решение", "发布", "的", "ERR_TLS_42", "café", "cafe\u0301", "👩‍💻", "a", "-", "#"]
)
TEXTS = st.lists(WORDS | st.text(max_size=6), max_size=120).map(" ".join) | st.text(max_size=600)
QUERIES = st.lists(WORDS | st.text(max_size=6), max_size=6).map(" ".join)
SIZES = st.integers(20, 400)


@given(TEXTS, QUERIES, SIZES)
def test_a_snippet_has_at_most_the_requested_size_and_prose_is_one_line(content, query, size):
    text = make_snippet(content, query, size).text

    assert len(text) <= size
    assert [line for line in text.split("\n") if not line.strip()] == ([] if text else [""])
    if not any(line.lstrip().startswith(("|", "```", "~~~")) for line in content.splitlines()):
        assert text.splitlines() == ([text] if text else [])


@given(TEXTS, QUERIES, SIZES)
def test_marks_are_in_the_text_ordered_and_disjoint(content, query, size):
    snippet = make_snippet(content, query, size)
    edges = [edge for mark in snippet.marks for edge in mark]

    assert edges == sorted(edges)
    assert [edge for edge in edges if not 0 <= edge <= len(snippet.text)] == []
    assert [mark for mark in snippet.marks if mark[0] == mark[1]] == []


@given(TEXTS, QUERIES, SIZES)
def test_a_snippet_is_a_part_of_the_shown_text(content, query, size):
    whole = make_snippet(content, query, 10**9).text
    shown = make_snippet(content, query, size).text

    assert shown == whole or shown.removeprefix("…").removesuffix("…") in whole


@given(TEXTS, QUERIES, SIZES)
def test_a_snippet_contains_a_match_if_one_fits(content, query, size):
    whole = make_snippet(content, query, 10**9)

    if any(end - start <= size - 2 for start, end in whole.marks):
        assert make_snippet(content, query, size).marks


@given(st.lists(st.sampled_from(["boat", "elk", "storm", "harbour"]), min_size=1, max_size=4, unique=True))
def test_adjacent_matches_are_shown_together(words):
    filler = "nothing else to see " * 60
    snippet = make_snippet(f"{filler}{' '.join(words)} {filler}", " ".join(words))

    assert [snippet.text[start:end] for start, end in snippet.marks] == words


@given(TEXTS, QUERIES)
def test_marks_do_not_depend_on_the_order_of_the_query(text, query):
    assert find_marks(text, query) == find_marks(text, " ".join(reversed(query.split())))


@given(TEXTS, QUERIES, SIZES)
def test_a_text_that_is_shown_again_has_the_same_snippet(content, query, size):
    shown = show_text(content, query)
    assert shown.snippet(size) == make_snippet(content, query, size)
    assert shown.snippet(10**6).marks == find_marks(shown.text, query)
    assert show_text(content, query) is not shown
    assert show_text(content, query).snippet(size) == shown.snippet(size)

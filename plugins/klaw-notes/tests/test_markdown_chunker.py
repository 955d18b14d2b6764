"""The Markdown chunker by example: one decision a test."""

import subprocess
import sys
from itertools import pairwise

import pytest

from klaw_core import Span, estimate_tokens
from klaw_notes.chunking import MarkdownChunker, _columns
from klaw_notes.chunking.blocks import parse
from klaw_notes.options import MarkdownOptions
from klaw_testing.chunker import count_characters, count_words, work


def passages(text, max_tokens=20, overlap_tokens=0, count_tokens=count_words):
    spans = MarkdownChunker(MarkdownOptions(max_tokens, overlap_tokens)).split(text, count_tokens)
    return [text[span.start : span.end] for span in spans]


def headings(text, max_tokens=8, count_tokens=count_words):
    return [span.heading for span in MarkdownChunker(MarkdownOptions(max_tokens, 0)).split(text, count_tokens)]


def words(count, word="word"):
    return " ".join([word] * count)


class TestOptions:
    def test_defaults(self):
        assert MarkdownOptions() == MarkdownOptions(max_tokens=400, overlap_tokens=80)

    def test_max_tokens_below_eight_is_rejected(self):
        with pytest.raises(ValueError, match="max_tokens must be at least 8, not 7"):
            MarkdownOptions(max_tokens=7, overlap_tokens=0)

    @pytest.mark.parametrize("overlap", [-1, 51, 100])
    def test_an_overlap_above_half_of_a_chunk_is_rejected(self, overlap):
        with pytest.raises(ValueError, match=rf"overlap_tokens must be 0 to 50 \(half of max_tokens\), not {overlap}"):
            MarkdownOptions(max_tokens=100, overlap_tokens=overlap)


class TestWholeElements:
    def test_an_empty_text_has_no_chunks(self):
        assert passages("") == passages(" \n\t\r\n") == []

    def test_a_short_text_is_one_chunk_without_outer_blank_lines(self):
        assert passages("\n\n# A\n\nb\n\n## C\n\nd\n\n") == ["# A\n\nb\n\n## C\n\nd"]

    def test_a_text_that_fits_is_not_split(self):
        def pairs(texts):  # four half-tokens apart, three tokens together
            return [(len(text.split()) + 1) // 2 for text in texts]

        assert len(passages("One. Two. Three. Four. Five.", 8, 0, pairs)) == 1

    def test_the_indentation_of_a_first_line_is_kept(self):
        text = f"{words(15)}\n\n    code {words(10)}\n"
        assert passages(text)[1] == f"    code {words(10)}"

    @pytest.mark.parametrize(
        "element",
        [
            "```\n" + "a b c\n\n" * 5 + "```",
            "~~~text\n# no heading\n" + "a b c\n\n" * 4,  # never closed
            "    " + "a b c\n\n    " * 5 + "d",
            "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 2,
            "- a b c\n\n  " + words(12) + "\n  - nested",
            "<div>\n" + "a b c\n" * 5 + "</div>",
        ],
        ids=["fence", "open fence", "indented code", "table", "list item", "html"],
    )
    def test_an_element_that_fits_is_not_split(self, element):
        element = element.rstrip()
        assert element in passages(f"{words(10)}.\n\n{element}\n", 20)

    def test_front_matter_is_not_a_heading(self):
        assert headings(f"---\ntitle: x\n---\n\n{words(8)}\n") == [(), ()]


class TestCuts:
    def test_a_paragraph_is_split_after_a_sentence(self):
        text = f"{words(12, 'Alpha')}. {words(12, 'Beta')}! {words(6, 'Gamma')}?"
        assert passages(text) == [f"{words(12, 'Alpha')}.", f"{words(12, 'Beta')}! {words(6, 'Gamma')}?"]

    @pytest.mark.parametrize(
        ("text", "sentences"),
        [
            ("It was Dr. Weiss, i.e. him. He left.", ["It was Dr. Weiss, i.e. him.", "He left."]),
            ("J. R. Tolkien. Version 3.11 of it.", ["J. R. Tolkien.", "Version 3.11 of it."]),
            ("See fig. 3 and no. 7. No. Never.", ["See fig. 3 and no. 7.", "No.", "Never."]),
            ("1. First. 2nd.", ["1. First.", "2nd."]),
            ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
            ("Так решили, т.е. почти. Потом ушли.", ["Так решили, т.е. почти.", "Потом ушли."]),
            ("先看关键词。再看向量！", ["先看关键词。", "再看向量！"]),
            ("他说“好。”然后走了。", ["他说“好。”", "然后走了。"]),
            ("See this  \nand that", ["See this", "and that"]),
            ("Text\n[1]: https://a.b\n[2]: https://c.d", ["Text", "[1]: https://a.b", "[2]: https://c.d"]),
        ],
    )
    def test_the_end_of_a_sentence_is_recognised(self, text, sentences):
        from klaw_notes.chunking import cuts

        edges = [0, *cuts.sentences(text, 0, len(text), 0), len(text)]
        assert [text[start:end].strip() for start, end in pairwise(edges)] == sentences

    def test_long_code_is_split_at_a_blank_line(self):
        lines = ["```", "a b c d e f", "g h i j k l", "", "m n o p q", "r s t u v w", "```"]
        assert passages("\n".join(lines), 16) == ["\n".join(lines[:3]), "\n".join(lines[4:])]

    def test_a_fence_keeps_its_first_and_last_line(self):
        body = ["a b c d e f g"] * 4
        assert passages("\n".join(["```", *body, "```"]), 14) == [
            f"```\n{body[0]}",
            "\n".join(body[1:3]),
            f"{body[3]}\n```",
        ]

    def test_the_head_of_a_table_stays_with_its_first_row(self):
        rows = ["| a | b |", "|---|---|", *["| one two | three |"] * 4]
        assert passages("\n".join(rows), 14) == ["\n".join(rows[:3]), "\n".join(rows[3:5]), rows[5]]

    def test_a_list_is_split_between_items_and_an_item_between_blocks(self):
        item = f"- {words(9)}\n\n  {words(9, 'more')}"
        assert passages(f"- {words(5)}\n{item}\n- last", 12) == [
            f"- {words(5)}",
            f"- {words(9)}",
            f"  {words(9, 'more')}\n- last",
        ]

    def test_an_example_stays_with_its_introduction(self):
        text = f"{words(10)}.\n\nFor example:\n\n- {words(8)}\n\n{words(3)}"
        assert passages(text, 20) == [f"{words(10)}.", f"For example:\n\n- {words(8)}\n\n{words(3)}"]

    def test_a_line_without_boundaries_is_limited_in_characters(self):
        assert [len(passage) for passage in passages("QUJD" * 100, 8)] == [100, 100, 100, 100]

    def test_a_grapheme_cluster_is_split_only_if_it_exceeds_a_chunk(self):
        family = "👨‍👩‍👧‍👦"
        assert passages("ab" + family * 3, 10, 0, count_characters) == ["ab" + family, family, family]
        assert "".join(passages("a" + "\u0301" * 30, 10, 0, count_characters)) == "a" + "\u0301" * 30


class TestSections:
    def test_a_chunk_ends_preferably_before_a_heading(self):
        text = f"# A\n\n{words(8)}.\n\n## B\n\n{words(6)}. {words(9)}."
        assert passages(text) == [f"# A\n\n{words(8)}.", f"## B\n\n{words(6)}. {words(9)}."]

    def test_a_chunk_ends_preferably_before_the_highest_heading(self):
        text = f"# A\n\n{words(6)}\n\n# B\n\n{words(3)}\n\n## C\n\n{words(9)}"
        assert passages(text)[0] == f"# A\n\n{words(6)}"

    def test_consecutive_headings_stay_with_the_next_block(self):
        text = f"{words(15)}\n\n# A\n\n## B\n\n{words(9)}"
        assert passages(text, 16) == [words(15), f"# A\n\n## B\n\n{words(9)}"]

    def test_an_element_is_split_rather_than_separated_from_its_heading(self):
        code = "\n".join(["a b c d e"] * 3)
        text = f"# A\n\n```\n{code}\n```"
        assert passages(text, 17) == ["# A\n\n```\na b c d e\na b c d e", "a b c d e\n```"]

    def test_the_heading_path_includes_the_heading_of_the_chunk(self):
        text = "# A\n\none two three four five\n\n### B `x`\n\nsix seven eight nine\n\nC\n---\n\nten 11 12 13 14 15"
        assert headings(text) == [("A",), ("A", "B `x`"), ("A", "C")]

    def test_the_heading_path_has_no_closing_hashes_and_empty_headings(self):
        text = f"## Title ##\n\n{words(5)}\n\n## #\n\n{words(5)}"
        assert headings(text) == [("Title",), ()]

    def test_a_heading_in_a_quote_starts_no_section(self):
        assert headings(f"> # Quoted\n>\n> {words(3)}\n\n{words(8)}") == [(), ()]

    def test_a_byte_order_mark_does_not_hide_a_heading(self):
        assert headings("\ufeff# A\n\nb") == [("A",)]

    def test_a_very_long_heading_is_shortened_in_the_path(self):
        text = "# " + "A long title " * 40 + f"\n\n{words(20)}"
        assert {heading for path in headings(text) for heading in path} == {"A long title " * 12 + "A"}


class TestOverlap:
    def test_whole_sentences_are_repeated(self):
        text = f"{words(9, 'Alpha')}. {words(4, 'Beta')}. {words(10, 'Gamma')}."
        assert passages(text, 16, 5) == [
            f"{words(9, 'Alpha')}. {words(4, 'Beta')}.",
            f"{words(4, 'Beta')}. {words(10, 'Gamma')}.",
        ]

    def test_nothing_is_repeated_across_a_heading(self):
        before, after = f"{words(8)}. {words(8)}.", f"{words(5)}."
        assert passages(f"# A\n\n{before}\n\n# B\n\n{after}", 16, 8)[-1] == f"# B\n\n{after}"

    def test_overlap_is_dropped_for_an_element_that_needs_the_space(self):
        code = "```\n" + "a b c d\n" * 3 + "```"
        assert passages(f"{words(9)}. {words(4)}.\n\n{code}", 16, 8)[1] == code


class TestContinuation:
    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("```\n" + "a b c\n" * 6 + "```", "code"),
            ("| a |\n|---|\n" + "| b |\n" * 6, "table"),
            (f"- {words(6)}\n\n  {words(6)}", "list item"),
            (f"> {words(6)}\n>\n> {words(6)}", "quote"),
            (f"{words(6)}. {words(6)}.", "paragraph"),
            ("<div>\n" + "a b c\n" * 6 + "</div>", "html"),
        ],
    )
    def test_a_later_piece_names_what_it_continues(self, text, kind):
        first, *others = MarkdownChunker(MarkdownOptions(8, 0)).split(text, count_words)
        assert first.continues is None
        assert others
        assert {span.continues for span in others} == {kind}

    def test_a_paragraph_that_fits_a_chunk_has_no_continuation(self):
        text = f"{words(3)}.\n\n{words(4)}. {words(4)}."
        assert [span.continues for span in MarkdownChunker(MarkdownOptions(8, 0)).split(text, count_words)] == [
            None,
            None,
        ]


class TestCost:
    def test_counting_tokens_is_linear(self):
        text = "".join(f"## Section {i}\n\n{words(40)}. {words(30)}.\n\n```\n{words(9)}\n```\n\n" for i in range(60))
        calls = []

        def count(texts):
            calls.append(sum(map(len, texts)))
            return estimate_tokens(texts)

        MarkdownChunker().split(text, count)
        assert len(calls) <= 2
        assert sum(calls) <= 1.2 * len(text)

    @pytest.mark.parametrize(
        "shape",
        [
            "> " * 20 + "a\n",
            "- a\n",
            "🇷🇺",
            "a\u0301",
            ". ",
            "|a|\n|-|\n",
            "QUJD",
            "[a]: b\n",
            "a\x0c  \n",
            ">\n",
            "```\n",
            "# a\n",
        ],
    )
    def test_hostile_texts_take_linear_time(self, shape):
        chunker = MarkdownChunker()
        chunker.split("warm up", estimate_tokens)
        small, large = (work(chunker, shape * times, estimate_tokens) for times in (500, 2000))
        assert large.lines <= 5 * small.lines + 1000
        assert large.characters <= 4 * len(shape) * 2000

    def test_importing_the_chunker_imports_no_parser(self):
        code = (
            "import sys; from klaw_notes.chunking import MarkdownChunker; c = MarkdownChunker();"
            "heavy = {'markdown_it', 'regex', 'numpy'};"
            "assert not heavy & set(sys.modules), heavy & set(sys.modules);"
            "assert c.split('# A', lambda texts: [1 for _ in texts])"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


def test_spans_have_offsets_of_the_source_text():
    text = "# A\r\n\r\n" + words(7) + "\r\r" + words(7)
    assert MarkdownChunker(MarkdownOptions(9, 0)).split(text, count_words) == (
        Span(0, 7 + 34, ("A",)),
        Span(7 + 34 + 2, len(text), ("A",)),
    )


def test_the_names_of_columns_are_read_once_for_all_spans_of_a_table():
    """A table with 50,000 columns has thousands of spans, and its first row is most of the file."""

    class Counting(str):  # noqa: SLOT000  # counts in an attribute
        slices = 0

        def __getitem__(self, at):
            self.slices += 1
            return super().__getitem__(at)

    text = Counting("| name | age |\n|---|---|\n" + "| ada | 36 |\n" * 50)
    blocks, rows = parse(text), {}
    text.slices = 0
    starts = range(len(text) // 2, len(text) - 1)
    assert {_columns(text, blocks, start, rows) for start in starts} == {("name | age",)}
    assert text.slices == 1
    assert _columns(text, blocks, len(text) // 2, None) == ()

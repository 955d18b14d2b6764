"""The laws of chunking. Each law takes one text with its spans, and raises AssertionError if it does not hold.

Sizes are limited in tokens and in characters: a span may have at most 16 characters per allowed token, because a
megabyte of base64 is a single token for some tokenizers. The laws for headings, code and paragraphs use an independent
parser (:func:`klaw_testing.markdown.elements`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise

import regex  # type: ignore[import-untyped]  # it ships no types
from attrs import define

from klaw_core import Chunker, Span, TokenCounter, estimate_tokens
from klaw_testing.markdown import Element, elements

CHARACTERS_PER_TOKEN = 16
# Certainly the end of a sentence: after a word of four or more letters, and before white space and a capital letter.
_CERTAIN_STOP = re.compile(r"(?<=[^\W\d_]{4})[.!?](?=\s+[A-ZА-Я])|[。！？](?![\u0300-\u036f\u200d])")
_POSSIBLE_STOP = re.compile(r"[.!?…。！？｡][\W_]*\Z|\\\Z")
_LINE_END = re.compile(r"[^\S\r\n]*[\r\n]")
# Includes the empty quote lines that follow a line, which may belong to it.
_LAST_LINE_END = re.compile(r"[^\S\r\n]*(?:\r\n?|\n)(?![ \t]*>[ \t>]*+(?:[\r\n]|\Z))")
_BREAK = re.compile(r" {2}[\r\n]|\s+\[[^\]]+\]:")


@define(slots=False, eq=False)
class Trial:
    """A text, a chunker, and the spans into which the chunker splits the text."""

    chunker: Chunker
    text: str
    max_tokens: int
    overlap_tokens: int
    count_tokens: TokenCounter = estimate_tokens

    @cached_property
    def spans(self) -> list[Span]:
        """Return the spans into which the chunker splits the text."""
        return list(self.chunker.split(self.text, self.count_tokens))

    @cached_property
    def elements(self) -> list[Element]:
        """Return the blocks of the text, found by the independent parser."""
        return elements(self.text)

    @property
    def sections(self) -> list[Element]:
        """Return the headings that start sections."""
        return [element for element in self.elements if element.top and element.level]

    def tokens(self, *bounds: int) -> int:
        """Return the number of tokens of the parts between successive offsets."""
        return sum(self.count_tokens([self.text[start:end] for start, end in pairwise(bounds)]))

    def within(self, limit: int, *bounds: int) -> bool:
        """Return whether the parts between successive offsets have at most ``limit`` tokens together."""
        return bounds[-1] - bounds[0] <= limit * CHARACTERS_PER_TOKEN and self.tokens(*bounds) <= limit


def spans_lie_in_bounds_and_in_order(trial: Trial) -> None:
    """Check that spans lie in the text, and that starts and ends increase."""
    for span in trial.spans:
        assert 0 <= span.start < span.end <= len(trial.text), span
    for before, after in pairwise(trial.spans):
        assert before.start < after.start, (before, after)
        assert before.end < after.end, (before, after)


def all_text_is_covered(trial: Trial) -> None:
    """Check that text outside all spans is white space."""
    covered = 0
    for span in trial.spans:
        assert not trial.text[covered : span.start].strip(), (covered, span)
        covered = span.end
    assert not trial.text[covered:].strip(), covered


def sizes_do_not_exceed_the_maximum(trial: Trial) -> None:
    """Check that no span exceeds the maximum number of tokens, or 16 characters per allowed token."""
    counts = trial.count_tokens([trial.text[span.start : span.end] for span in trial.spans])
    for span, count in zip(trial.spans, counts, strict=True):
        assert count <= trial.max_tokens, (count, span)
        assert span.end - span.start <= trial.max_tokens * CHARACTERS_PER_TOKEN, span


def overlap_does_not_exceed_the_maximum(trial: Trial) -> None:
    """Check that no span repeats more of the previous span than allowed."""
    for before, after in pairwise(trial.spans):
        if after.start < before.end:
            assert trial.within(trial.overlap_tokens, after.start, before.end), (before, after)


def overlap_stays_in_its_section(trial: Trial) -> None:
    """Check that the overlap of a span does not reach back across the heading of its new text."""
    starts = [heading.start for heading in trial.sections]
    for before, after in pairwise(trial.spans):
        fresh = before.end + len(trial.text[before.end :]) - len(trial.text[before.end :].lstrip())
        assert not any(after.start < start <= fresh for start in starts), (before, after)


def splitting_is_deterministic(trial: Trial) -> None:
    """Check that the same text gives the same spans."""
    assert list(trial.chunker.split(trial.text, trial.count_tokens)) == trial.spans


def spans_have_no_outer_white_space(trial: Trial) -> None:
    """Check that spans have no outer white space except the indentation of their first line."""
    for span in trial.spans:
        span_text = trial.text[span.start : span.end]
        first_line = re.split(r"[\r\n]", span_text, maxsplit=1)[0]
        assert first_line.strip(), span
        # A prepended mark and the space after it are one grapheme cluster.
        assert not span_text[-1].isspace() or regex.fullmatch(r"(?s).*\p{GCB=Prepend}\s", span_text), span
        if span_text[0].isspace():
            assert span.start == 0 or trial.text[span.start - 1] in "\r\n", span


def headings_stay_with_the_text_below(trial: Trial) -> None:
    """Check that a span ends with a heading only if the text ends or a row of headings fills over half a span."""
    ends = sorted(span.end for span in trial.spans)
    for element in trial.elements:
        if not (element.row and element.top) or bisect_left(ends, element.start) == bisect_right(ends, element.row[-2]):
            continue
        solid = element.end - len(trial.text[element.start : element.end].lstrip())
        if element.level:  # the row may be split before the heading that makes it too long
            assert not trial.within(trial.max_tokens // 2, *element.row, *element.bounds, element.share_end), element
        elif trial.within(trial.max_tokens, *element.row, solid, regex.compile(r"\X").match(trial.text, solid).end()):
            assert not trial.within(trial.max_tokens // 2, *element.row, solid), element


def elements_that_fit_are_not_cut(trial: Trial) -> None:
    """Check that code, tables and list items are whole if they and the headings directly above fit in one span."""
    kinds = {"fence", "code_block", "table", "list_item"}
    edges = sorted({edge for span in trial.spans for edge in (span.start, span.end)})
    for element in trial.elements:
        if element.kind not in kinds:
            continue
        inside = edges[bisect_right(edges, element.start) : bisect_left(edges, element.end)]
        # A nested element may include the text between it and its neighbours.
        nested = [*sorted({element.share_start, *element.row, *element.bounds}), element.share_end]
        bounds = [*element.row, *element.bounds] if element.top else nested
        assert not inside or not trial.within(trial.max_tokens, *bounds), (element, inside)


def paragraphs_are_cut_at_sentence_ends(trial: Trial) -> None:
    """Check that a paragraph is cut only after sentences, or within a sentence that exceeds the maximum size."""
    text = trial.text
    ends = sorted(span.end for span in trial.spans)
    for element in trial.elements:
        if element.kind != "paragraph" or not element.top:
            continue
        stops = [stop.end() for stop in _CERTAIN_STOP.finditer(text, element.start, element.end)]
        for end in ends[bisect_right(ends, element.start) : bisect_left(ends, element.end)]:
            if _POSSIBLE_STOP.search(text, max(element.start, end - 80), end) or _BREAK.match(text, end):
                continue
            before = max((stop for stop in stops if stop <= end), default=element.start)
            after = min((stop for stop in stops if stop > end), default=element.end)
            under_headings = before == element.start and element.row
            limit = trial.max_tokens // 2 if under_headings else trial.max_tokens
            assert not trial.within(limit, before, after), (element, end)


def code_and_tables_are_cut_at_line_ends(trial: Trial) -> None:
    """Check that code and tables are cut only after lines, or within a line that fills over half a span."""
    text = trial.text
    for element in trial.elements:
        if element.kind not in {"fence", "code_block", "table"} or not element.top:
            continue
        for edge in {edge for span in trial.spans for edge in (span.start, span.end)}:
            if element.start < edge < element.end and text[edge - 1] not in "\r\n" and not _LINE_END.match(text, edge):
                before = max(element.start, *(text.rfind(end, 0, edge) + 1 for end in "\r\n"))
                found = _LAST_LINE_END.search(text, edge, element.end)
                after = found.start() if found else element.end
                empty_in_quote = not text[before:after].strip(" \t>\r\n")
                assert empty_in_quote or not trial.within(trial.max_tokens // 2, before, after), edge


def no_grapheme_cluster_is_cut(trial: Trial) -> None:
    """Check that no grapheme cluster is cut, unless it exceeds the maximum size."""
    edges = {edge for span in trial.spans for edge in (span.start, span.end)}
    for cluster in regex.finditer(r"\X", trial.text):
        start, end = cluster.span()
        if end - start > 1 and edges & set(range(start + 1, end)):
            assert not trial.within(trial.max_tokens, start, end), cluster


def heading_paths_are_correct(trial: Trial) -> None:
    """Check that a span names the headings of its first character, including one that starts there.

    The last name of a piece of a table may be the first row of the table.
    """
    for span in trial.spans:
        path: list[Element] = []
        for heading in trial.sections:
            if heading.start <= span.start:
                path = [*(above for above in path if above.level < heading.level), heading]
        expected = [heading.title for heading in path if heading.title]
        own = span.heading
        if span.continues == "table" and len(own) == len(expected) + 1:
            cells = own[-1].split(" | ")
            assert any(all(cell in line for cell in cells) for line in trial.text[: span.start].splitlines()), span
            own = own[:-1]
        assert len(own) == len(expected), (span, expected)
        for name, title in zip(own, expected, strict=True):
            assert name == title or (len(name) >= 8 and title.startswith(name) and len(title) > len(name)), (
                name,
                title,
            )


def continued_elements_are_marked(trial: Trial) -> None:
    """Check that a span that starts inside code, a table or a list item has the right ``continues``."""
    kinds = {"fence": "code", "code_block": "code", "table": "table", "list_item": "list item"}
    for span in trial.spans:
        if any(element.start < span.start < element.end for element in trial.elements if element.kind in kinds):
            assert span.continues is not None, span
        if span.continues in kinds.values():
            # Text between the blocks of a quote or an item, such as an empty `>`, counts as part of either of them.
            around = [element for element in trial.elements if element.share_start < span.start < element.share_end]
            assert span.continues in {kinds.get(element.kind) for element in around}, span


def a_text_that_fits_is_one_span(trial: Trial) -> None:
    """Check that a text within the maximum size is one span, from its first line to its last."""
    first, last = trial.text.strip()[:1], trial.text.rstrip()
    if first and trial.within(trial.max_tokens, 0, len(trial.text)):
        assert len(trial.spans) == 1, trial.spans
        assert trial.spans[0].end >= len(last), trial.spans


def appending_changes_only_the_last_spans(trial: Trial) -> None:
    """Check that appending a section changes only the last spans.

    A chunker may look ahead by one maximum size from the start of a span, and appended text may become part of the last
    block (an open fence). So a span must stay if the text from its start to the last block exceeds the maximum size.
    """
    last_block = max((element.start for element in trial.elements if element.top), default=0)
    settled = len(trial.text[:last_block].rstrip())
    longer = trial.text + "\n\n## Appended\n\nWhat came later. It has two sentences.\n"
    grown = list(trial.chunker.split(longer, trial.count_tokens))
    for index, span in enumerate(trial.spans):
        if not trial.within(trial.max_tokens, span.start, max(span.start, settled)):
            assert grown[index] == span, (index, span)


#: The laws that hold for every text.
LAWS: tuple[Callable[[Trial], None], ...] = (
    spans_lie_in_bounds_and_in_order,
    all_text_is_covered,
    sizes_do_not_exceed_the_maximum,
    overlap_does_not_exceed_the_maximum,
    overlap_stays_in_its_section,
    splitting_is_deterministic,
    spans_have_no_outer_white_space,
    headings_stay_with_the_text_below,
    elements_that_fit_are_not_cut,
    paragraphs_are_cut_at_sentence_ends,
    code_and_tables_are_cut_at_line_ends,
    no_grapheme_cluster_is_cut,
    heading_paths_are_correct,
    continued_elements_are_marked,
    a_text_that_fits_is_one_span,
    appending_changes_only_the_last_spans,
)

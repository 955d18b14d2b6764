"""What every chunker must do: its laws, and a contract that runs them all.

    class TestMarkdownChunker(ChunkerContract):
        def make(self, max_tokens, overlap_tokens):
            return MarkdownChunker(MarkdownOptions(max_tokens, overlap_tokens))

A law takes a :class:`Trial`, one text cut once, so that :data:`LAWS` can also be run over a directory of
real files. Sizes are measured in tokens and in characters: a passage has at most 16 for each token it may
have, for a megabyte of base64 is a single token to some tokenizers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from types import FrameType
from typing import Any, ClassVar

import regex  # type: ignore[import-untyped]  # it ships no types
from attrs import define, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaw_core.interfaces import Chunker
from klaw_core.testing.markdown import Element, elements, markdown_documents
from klaw_core.tokens import estimate_tokens
from klaw_core.values import Span, TokenCounter

CHARACTERS_PER_TOKEN = 16


def count_characters(texts: Sequence[str], /) -> list[int]:
    """Count every character as a token: the strictest counter there is."""
    return [len(text) for text in texts]


def count_words(texts: Sequence[str], /) -> list[int]:
    """Count what white space separates: the laxest counter, to which a line of base64 is one token."""
    return [len(text.split()) for text in texts]


COUNTERS: tuple[TokenCounter, ...] = (estimate_tokens, count_characters, count_words)


@define(slots=False, eq=False)
class Trial:
    """A text, the chunker it is given to, and what came out."""

    chunker: Chunker
    text: str
    max_tokens: int
    overlap_tokens: int
    count_tokens: TokenCounter = estimate_tokens

    @cached_property
    def spans(self) -> list[Span]:
        """Return the spans that the chunker cuts the text into."""
        return list(self.chunker.split(self.text, self.count_tokens))

    @cached_property
    def elements(self) -> list[Element]:
        """Return the blocks of the text as the oracle reads them."""
        return elements(self.text)

    @property
    def sections(self) -> list[Element]:
        """Return the headings that open sections."""
        return [element for element in self.elements if element.top and element.level]

    def tokens(self, *bounds: int) -> int:
        """Return the tokens of the text between successive offsets, counted part by part."""
        return sum(self.count_tokens([self.text[start:end] for start, end in pairwise(bounds)]))

    def within(self, limit: int, *bounds: int) -> bool:
        """Return whether the text between the outer offsets measures at most ``limit`` tokens, part by part."""
        return bounds[-1] - bounds[0] <= limit * CHARACTERS_PER_TOKEN and self.tokens(*bounds) <= limit


def spans_lie_in_bounds_and_in_order(trial: Trial) -> None:
    """Each span lies in the text, and both its ends lie behind the ends of the span before."""
    for span in trial.spans:
        assert 0 <= span.start < span.end <= len(trial.text), span
    for before, after in pairwise(trial.spans):
        assert before.start < after.start, (before, after)
        assert before.end < after.end, (before, after)


def every_solid_character_is_covered(trial: Trial) -> None:
    """What lies in no span is white space."""
    covered = 0
    for span in trial.spans:
        assert not trial.text[covered : span.start].strip(), (covered, span)
        covered = span.end
    assert not trial.text[covered:].strip(), covered


def sizes_stay_within_the_bound(trial: Trial) -> None:
    """No span has more tokens than it may, nor more than 16 characters for each of them."""
    counts = trial.count_tokens([trial.text[span.start : span.end] for span in trial.spans])
    for span, count in zip(trial.spans, counts, strict=True):
        assert count <= trial.max_tokens, (count, span)
        assert span.end - span.start <= trial.max_tokens * CHARACTERS_PER_TOKEN, span


def overlap_stays_within_its_bound(trial: Trial) -> None:
    """A span repeats no more of the one before it than it may."""
    for before, after in pairwise(trial.spans):
        if after.start < before.end:
            assert trial.within(trial.overlap_tokens, after.start, before.end), (before, after)


def overlap_stays_in_its_section(trial: Trial) -> None:
    """A span that repeats text does not reach back over the heading under which its new text stands."""
    starts = [heading.start for heading in trial.sections]
    for before, after in pairwise(trial.spans):
        fresh = before.end + len(trial.text[before.end :]) - len(trial.text[before.end :].lstrip())
        assert not any(after.start < start <= fresh for start in starts), (before, after)


def splitting_is_deterministic(trial: Trial) -> None:
    """The same text gives the same spans."""
    assert list(trial.chunker.split(trial.text, trial.count_tokens)) == trial.spans


def spans_begin_and_end_with_text(trial: Trial) -> None:
    """No blank lines outside; the indentation of a first line stays with it."""
    for span in trial.spans:
        passage = trial.text[span.start : span.end]
        first_line = re.split(r"[\r\n]", passage, maxsplit=1)[0]
        assert first_line.strip(), span
        # A prepended mark and the space after it are one grapheme cluster.
        assert not passage[-1].isspace() or regex.fullmatch(r"(?s).*\p{GCB=Prepend}\s", passage), span
        if passage[0].isspace():
            assert span.start == 0 or trial.text[span.start - 1] in "\r\n", span


def a_heading_stays_with_what_follows_it(trial: Trial) -> None:
    """No span ends with a heading while text follows, unless a row of headings fills over half of a span."""
    row: list[int] = []
    ends = {span.end for span in trial.spans}
    top = [element for element in trial.elements if element.top]
    for element, following in pairwise(top):
        row = [*(row or [element.start]), following.start] if element.level else []
        if not row or not ends & set(range(element.start + 1, following.start + 1)):
            continue
        if following.level:  # the row may be parted before the heading with which it grows too long
            assert not trial.within(trial.max_tokens // 2, *row, following.share_end), element
        else:
            assert not trial.within(trial.max_tokens // 2, *row), element


def elements_stay_whole(trial: Trial) -> None:
    """Code, tables and list items are not cut if they and the headings right above them fit in one span."""
    kinds = {"fence", "code_block", "table", "list_item"}
    edges = sorted({edge for span in trial.spans for edge in (span.start, span.end)})
    for element in trial.elements:
        if element.kind not in kinds:
            continue
        inside = [edge for edge in edges if element.start < edge < element.end]
        bounds = (
            [element.above, element.start, element.end] if element.top else [element.share_start, element.share_end]
        )
        assert not inside or not trial.within(trial.max_tokens, *bounds), (element, inside)


def paragraphs_are_cut_at_sentence_ends(trial: Trial) -> None:
    """A paragraph is cut after a sentence, unless the sentence fills over half of a span."""
    text = trial.text
    for element in trial.elements:
        if element.kind != "paragraph" or not element.top:
            continue
        for edge in {span.end for span in trial.spans if element.start < span.end < element.end}:
            if re.search(r"([.!?…。！？｡]\W*| {2}|\\)$", text[element.start : edge]) or text[edge:].startswith(
                ("  \n", "  \r")
            ):
                continue
            stops = [
                m.end() for m in re.finditer(r"[.!?…。！？｡]|  [\r\n]|\\[\r\n]", text[element.start : element.end])
            ]
            before = max(
                (element.start + stop for stop in stops if element.start + stop <= edge), default=element.start
            )
            after = min((element.start + stop for stop in stops if element.start + stop > edge), default=element.end)
            assert not trial.within(trial.max_tokens // 2, before, after), (element, edge)


def no_grapheme_cluster_is_cut(trial: Trial) -> None:
    """Spans begin and end between grapheme clusters, unless one cluster alone is larger than a span may be."""
    edges = {edge for span in trial.spans for edge in (span.start, span.end)}
    for cluster in regex.finditer(r"\X", trial.text):
        start, end = cluster.span()
        if end - start > 1 and edges & set(range(start + 1, end)):
            assert not trial.within(trial.max_tokens, start, end), cluster


def headings_are_the_path_in_effect(trial: Trial) -> None:
    """A span names the headings above its first character, outermost first, with the one that opens there."""
    for span in trial.spans:
        path: list[Element] = []
        for heading in trial.sections:
            if heading.start <= span.start:
                path = [*(above for above in path if above.level < heading.level), heading]
        expected = [heading.title for heading in path if heading.title]
        assert len(span.heading) == len(expected), (span, expected)
        for name, title in zip(span.heading, expected, strict=True):
            assert name == title or (len(name) >= 8 and title.startswith(name) and len(title) > len(name)), (
                name,
                title,
            )


def a_continuation_says_so(trial: Trial) -> None:
    """A span that begins inside code, a table or a list item that was cut says that it continues something."""
    kinds = {"fence": "code", "code_block": "code", "table": "table", "list_item": "list item"}
    for span in trial.spans:
        around = [element for element in trial.elements if element.start < span.start < element.end]
        if any(element.kind in kinds for element in around):
            assert span.continues is not None, span
        if span.continues in kinds.values():
            assert span.continues in {kinds.get(element.kind) for element in around}, span


def a_text_that_fits_is_one_span(trial: Trial) -> None:
    """A text within the bound is one span, from its first line to its last."""
    first, last = trial.text.strip()[:1], trial.text.rstrip()
    if first and trial.within(trial.max_tokens, 0, len(trial.text)):
        assert len(trial.spans) == 1, trial.spans
        assert trial.spans[0].end >= len(last), trial.spans


def appending_changes_only_the_tail(trial: Trial) -> None:
    """Spans whose window ends before the last block stay when a section is appended.

    A chunker may look one bound ahead from where a span starts, and what is appended may become part of the
    last block (an open fence). So the spans that are more than one bound away from its start must not change.
    """
    top = [element for element in trial.elements if element.top]
    longer = trial.text + "\n\n## Appended\n\nWhat came later. It has two sentences.\n"
    grown = list(trial.chunker.split(longer, trial.count_tokens))
    for index, span in enumerate(trial.spans):
        if not trial.within(trial.max_tokens, span.start, max(span.start, top[-1].start)):
            assert grown[index] == span, (index, span)


#: The laws that hold for every text.
LAWS: tuple[Callable[[Trial], None], ...] = (
    spans_lie_in_bounds_and_in_order,
    every_solid_character_is_covered,
    sizes_stay_within_the_bound,
    overlap_stays_within_its_bound,
    overlap_stays_in_its_section,
    splitting_is_deterministic,
    spans_begin_and_end_with_text,
    a_heading_stays_with_what_follows_it,
    elements_stay_whole,
    paragraphs_are_cut_at_sentence_ends,
    no_grapheme_cluster_is_cut,
    headings_are_the_path_in_effect,
    a_continuation_says_so,
    a_text_that_fits_is_one_span,
    appending_changes_only_the_tail,
)


class ChunkerContract:
    """Everything a chunker of Markdown must do. Subclass it and say how to make one.

    ``bounds`` are the pairs of maximum and overlap that are tried, ``examples`` how many texts each law sees.
    """

    bounds: ClassVar[tuple[tuple[int, int], ...]] = ((20, 6), (48, 16), (400, 80))
    counters: ClassVar[tuple[TokenCounter, ...]] = COUNTERS
    examples: ClassVar[int] = 100

    def make(self, max_tokens: int, overlap_tokens: int) -> Chunker:
        """Return a chunker with these bounds."""
        raise AttributeError(f"{type(self).__name__} must define make(max_tokens, overlap_tokens)")

    def trial(self, text: str, bounds: tuple[int, int], count_tokens: TokenCounter = estimate_tokens) -> Trial:
        """Return a trial of a chunker with ``(maximum, overlap)`` on a text."""
        return Trial(self.make(*bounds), text, *bounds, count_tokens)

    def holds(self, law: Callable[[Trial], None], texts: st.SearchStrategy[str] | None = None) -> None:
        """Check a law on many texts, bounds and counters. Raise AssertionError with the smallest that breaks it."""

        @settings(max_examples=self.examples, deadline=None, suppress_health_check=list(HealthCheck))
        @given(texts or markdown_documents(), st.sampled_from(self.bounds), st.sampled_from(self.counters))
        def check(text: str, bounds: tuple[int, int], count_tokens: TokenCounter) -> None:
            law(self.trial(text, bounds, count_tokens))

        check()

    def test_spans_lie_in_bounds_and_in_order(self) -> None:
        self.holds(spans_lie_in_bounds_and_in_order)

    def test_every_solid_character_is_covered(self) -> None:
        self.holds(every_solid_character_is_covered)

    def test_sizes_stay_within_the_bound(self) -> None:
        self.holds(sizes_stay_within_the_bound)

    def test_overlap_stays_within_its_bound(self) -> None:
        self.holds(overlap_stays_within_its_bound)

    def test_overlap_stays_in_its_section(self) -> None:
        self.holds(overlap_stays_in_its_section)

    def test_splitting_is_deterministic(self) -> None:
        self.holds(splitting_is_deterministic)

    def test_spans_begin_and_end_with_text(self) -> None:
        self.holds(spans_begin_and_end_with_text)

    def test_a_heading_stays_with_what_follows_it(self) -> None:
        self.holds(a_heading_stays_with_what_follows_it)

    def test_elements_stay_whole(self) -> None:
        self.holds(elements_stay_whole)

    def test_paragraphs_are_cut_at_sentence_ends(self) -> None:
        self.holds(paragraphs_are_cut_at_sentence_ends)

    def test_no_grapheme_cluster_is_cut(self) -> None:
        self.holds(no_grapheme_cluster_is_cut)

    def test_headings_are_the_path_in_effect(self) -> None:
        self.holds(headings_are_the_path_in_effect)

    def test_a_continuation_says_so(self) -> None:
        self.holds(a_continuation_says_so)

    def test_a_text_that_fits_is_one_span(self) -> None:
        self.holds(a_text_that_fits_is_one_span, markdown_documents(max_blocks=3))

    def test_appending_changes_only_the_tail(self) -> None:
        self.holds(appending_changes_only_the_tail)

    def test_white_space_has_no_spans(self) -> None:
        def law(trial: Trial) -> None:
            assert trial.spans == []

        self.holds(law, st.text(" \t\n\r\x0b\x0c\x1c\x85\u2028\u3000", max_size=50))

    def test_work_grows_linearly(self) -> None:
        """Four times the text takes about four times the executed lines and counted characters, clocks aside."""

        def law(trial: Trial) -> None:
            small, large = (
                work(trial.chunker, "\n\n".join([trial.text] * times), trial.count_tokens) for times in (8, 32)
            )
            assert large.lines <= 5 * small.lines + 5_000, (small, large)
            assert large.characters <= 5 * small.characters + 5_000, (small, large)

        list(self.make(*self.bounds[0]).split("# Warm\n\nup", estimate_tokens))  # what is imported once is not counted
        self.holds(law, markdown_documents(max_blocks=4))


@frozen
class Work:
    """What a split did: lines of Python executed, characters counted."""

    lines: int
    characters: int


def work(chunker: Chunker, text: str, count_tokens: TokenCounter) -> Work:
    """Split a text and return the work it took, which unlike time is the same in every run."""
    lines = characters = 0

    def count(texts: Sequence[str], /) -> Sequence[int]:
        nonlocal characters
        characters += sum(map(len, texts))
        return count_tokens(texts)

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        list(chunker.split(text, count))
    finally:
        sys.settrace(previous)
    return Work(lines, characters)

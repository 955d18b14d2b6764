"""The contracts of a chunker: inherit from one and define the fixture; every law is a test.

    class TestMarkdownChunker(MarkdownChunkerContract):
        @pytest.fixture
        def make_chunker(self):
            return lambda max_tokens, overlap_tokens: MarkdownChunker(MarkdownOptions(max_tokens, overlap_tokens))

:class:`ChunkerContract` is for any chunker, :class:`MarkdownChunkerContract` for chunkers of Markdown. :data:`LAWS` are
the laws of the latter that hold for every text; they can also be checked on real files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias

import pytest
from attrs import frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaw_core import Chunker, HeadingChunker, TokenCounter, estimate_tokens, line_starts
from klaw_testing import chunker_laws as laws
from klaw_testing.chunker_laws import LAWS, Trial
from klaw_testing.laws import executed_lines, scaled
from klaw_testing.markdown import hard_documents, markdown_documents
from klaw_testing.report import lacks

__all__ = [
    "COUNTERS",
    "LAWS",
    "ChunkerContract",
    "MakeChunker",
    "MarkdownChunkerContract",
    "Trial",
    "Work",
    "hard_documents",
    "markdown_documents",
    "work",
]

#: Makes the chunker under test: ``make_chunker(max_tokens, overlap_tokens)``.
MakeChunker: TypeAlias = Callable[[int, int], Chunker]


def count_characters(texts: Sequence[str], /) -> list[int]:
    """Count every character as a token, the strictest counter."""
    return [len(text) for text in texts]


def count_words(texts: Sequence[str], /) -> list[int]:
    """Count words separated by white space, the laxest counter: a line of base64 is one token."""
    return [len(text.split()) for text in texts]


def count_quarters(texts: Sequence[str], /) -> list[int]:
    """Count one token per four characters, rounded up: the parts of a text can have more tokens than the whole."""
    return [-(-len(text) // 4) for text in texts]


def count_spelled(texts: Sequence[str], /) -> list[int]:
    """Count words of up to 8 letters, and the letters of longer words: two halves of a word can have fewer tokens."""
    return [sum(1 if len(word) <= 8 else len(word) for word in _WORD.findall(text)) for text in texts]


_WORD = re.compile(r"\w+|[^\w\s]")
COUNTERS: tuple[TokenCounter, ...] = (estimate_tokens, count_characters, count_words, count_quarters, count_spelled)


#: Many headings with little text below, which would fit into an overlap.
_short_sections = st.lists(
    st.sampled_from(("# One", "## Two", "The gate is open.", "Rye bread.", "A boat lies here. It is red.")),
    min_size=5,
    max_size=40,
).map("\n\n".join)


class ChunkerContract:
    """The laws of every chunker; the subclass defines the fixture ``make_chunker``.

    ``bounds`` are the tested pairs of maximum size and overlap in tokens; ``examples`` is the number of texts per law
    in a profile of hypothesis with 100 examples.
    The texts are Markdown; override :meth:`texts` to add texts in the chunker's own format.
    """

    bounds: ClassVar[tuple[tuple[int, int], ...]] = ((20, 6), (48, 16), (400, 80))
    counters: ClassVar[tuple[TokenCounter, ...]] = COUNTERS
    examples: ClassVar[int] = 100

    @pytest.fixture
    def make_chunker(self) -> MakeChunker:
        """Return a function that makes the chunker under test from ``max_tokens`` and ``overlap_tokens``."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    def texts(self) -> st.SearchStrategy[str]:
        """Return the strategy for the texts."""
        return markdown_documents()

    def holds(
        self,
        law: Callable[[Trial], None],
        make_chunker: MakeChunker,
        texts: st.SearchStrategy[str] | None = None,
        *,
        examples: int | None = None,
    ) -> None:
        """Check a law on many texts, bounds and counters. Raise AssertionError with the smallest counterexample."""
        count = scaled(examples or self.examples)

        @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
        @given(
            self.texts() if texts is None else texts,
            st.sampled_from(self.bounds),
            st.sampled_from(self.counters),
        )
        def check(text: str, bounds: tuple[int, int], count_tokens: TokenCounter) -> None:
            law(Trial(make_chunker(*bounds), text, *bounds, count_tokens))

        check()

    def test_spans_lie_in_bounds_and_in_order(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.spans_lie_in_bounds_and_in_order, make_chunker)

    def test_all_text_is_covered(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.all_text_is_covered, make_chunker)

    def test_sizes_do_not_exceed_the_maximum(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.sizes_do_not_exceed_the_maximum, make_chunker, st.one_of(hard_documents(), self.texts()))

    def test_overlap_does_not_exceed_the_maximum(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.overlap_does_not_exceed_the_maximum, make_chunker)

    def test_splitting_is_deterministic(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.splitting_is_deterministic, make_chunker)

    def test_spans_have_no_outer_white_space(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.spans_have_no_outer_white_space, make_chunker)

    def test_no_grapheme_cluster_is_cut(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.no_grapheme_cluster_is_cut, make_chunker, st.one_of(hard_documents(), self.texts()))

    def test_headings_are_in_order_on_lines_with_text(self, make_chunker: MakeChunker) -> None:
        """Only for a HeadingChunker. Every chunk's own headings are among them, so each can be named."""

        def law(trial: Trial) -> None:
            chunker = trial.chunker
            assert isinstance(chunker, HeadingChunker)
            found = chunker.headings(trial.text)
            starts = [*line_starts(trial.text), len(trial.text)]
            assert [heading.line for heading in found] == sorted({heading.line for heading in found})
            for heading in found:
                assert trial.text[starts[heading.line - 1] : starts[heading.line]].strip(), heading
                assert heading.level >= 1
                assert "" not in heading.names
            known = {name for heading in found for name in heading.names}
            # The last heading of a piece of a table may be the table's first row.
            own = (span.heading[:-1] if span.continues == "table" else span.heading for span in trial.spans)
            assert {name for heading in own for name in heading} <= known

        if not isinstance(make_chunker(*self.bounds[0]), HeadingChunker):
            lacks("HeadingChunker")
        self.holds(law, make_chunker)

    def test_white_space_has_no_spans(self, make_chunker: MakeChunker) -> None:
        def law(trial: Trial) -> None:
            assert trial.spans == []

        self.holds(law, make_chunker, st.text(" \t\n\r\x0b\x0c\x1c\x85\u2028\u3000", max_size=50))

    def test_work_grows_linearly(self, make_chunker: MakeChunker) -> None:
        """A text four times as long takes about four times the executed lines and counted characters."""

        def law(trial: Trial) -> None:
            small, large = (
                work(trial.chunker, "\n\n".join([trial.text] * times), trial.count_tokens) for times in (8, 32)
            )
            assert large.lines <= 5 * small.lines + 5_000, (small, large)
            # A short text may be read one more time.
            assert large.characters <= 8 * small.characters + 5_000, (small, large)

        # Do the imports first, so that they are not counted.
        list(make_chunker(*self.bounds[0]).split("# Warm\n\nup", estimate_tokens))
        self.holds(law, make_chunker, markdown_documents(max_blocks=4), examples=max(1, self.examples // 5))


class MarkdownChunkerContract(ChunkerContract):
    """The laws of every chunker, and those for headings, elements and sentences of Markdown."""

    def test_overlap_stays_in_its_section(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.overlap_stays_in_its_section, make_chunker, st.one_of(_short_sections, self.texts()))

    def test_headings_stay_with_the_text_below(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.headings_stay_with_the_text_below, make_chunker)

    def test_elements_that_fit_are_not_cut(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.elements_that_fit_are_not_cut, make_chunker)

    def test_paragraphs_are_cut_at_sentence_ends(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.paragraphs_are_cut_at_sentence_ends, make_chunker)

    def test_code_and_tables_are_cut_at_line_ends(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.code_and_tables_are_cut_at_line_ends, make_chunker)

    def test_heading_paths_are_correct(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.heading_paths_are_correct, make_chunker)

    def test_continued_elements_are_marked(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.continued_elements_are_marked, make_chunker)

    def test_a_text_that_fits_is_one_span(self, make_chunker: MakeChunker) -> None:
        def law(trial: Trial) -> None:
            tokens, characters = trial.tokens(0, len(trial.text)), len(trial.text)
            exact = max(trial.max_tokens, tokens, -(-characters // laws.CHARACTERS_PER_TOKEN))
            fitting = Trial(make_chunker(exact, 0), trial.text, exact, 0, trial.count_tokens)
            laws.a_text_that_fits_is_one_span(fitting)

        self.holds(law, make_chunker)

    def test_appending_changes_only_the_last_spans(self, make_chunker: MakeChunker) -> None:
        self.holds(laws.appending_changes_only_the_last_spans, make_chunker)


@frozen
class Work:
    """The work of a split: executed lines of Python, and characters passed to the token counter."""

    lines: int
    characters: int


def work(chunker: Chunker, text: str, count_tokens: TokenCounter) -> Work:
    """Split a text and return the work, which is the same in every run, unlike time."""
    characters = 0

    def count(texts: Sequence[str], /) -> Sequence[int]:
        nonlocal characters
        characters += sum(map(len, texts))
        return count_tokens(texts)

    lines = executed_lines(lambda: list(chunker.split(text, count)))
    return Work(lines, characters)

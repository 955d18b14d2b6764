"""The Markdown chunker and its options."""

from __future__ import annotations

from attrs import Attribute, field, frozen

from klaw_core.values import Span, TokenCounter

_SMALLEST_PASSAGE = 8


def _at_least_smallest(_options: MarkdownOptions, _attribute: Attribute[int], value: int) -> None:
    if value < _SMALLEST_PASSAGE:
        raise ValueError(f"max_tokens must be at least {_SMALLEST_PASSAGE}, not {value}")


def _at_most_half(options: MarkdownOptions, _attribute: Attribute[int], value: int) -> None:
    if not 0 <= value <= options.max_tokens // 2:
        half = options.max_tokens // 2
        raise ValueError(f"overlap_tokens must be 0 to {half} (half of max_tokens), not {value}")


@frozen
class MarkdownOptions:
    """How large passages are. Tokens are the embedder's own, without the model's special tokens.

    ``max_tokens`` bounds a passage (at least 8), ``overlap_tokens`` what it repeats of the one before it (at
    most half of the bound: more, and most of the index would be repetition). Raise ValueError otherwise.
    """

    max_tokens: int = field(default=400, validator=_at_least_smallest)
    overlap_tokens: int = field(default=80, validator=_at_most_half)


@frozen(eq=False)
class MarkdownChunker:
    """Cuts Markdown between its blocks, keeping what belongs together in one passage.

    See ``docs/explanation/chunking.md`` for what is kept whole and where a cut may fall.
    """

    options: MarkdownOptions = field(factory=MarkdownOptions)

    def split(self, text: str, count_tokens: TokenCounter, /) -> tuple[Span, ...]:
        """Return the spans of ``text``, in order; none if it is empty or white space.

        ``count_tokens`` is called a few times with many pieces each, and reads every character about once.
        Time and memory are linear in the text.
        """
        if not text or text.isspace():
            return ()
        # markdown-it-py and regex are imported here, at the first split: `klaw --help` needs neither.
        from klaw_core.builtin.markdown.blocks import outline, parse
        from klaw_core.builtin.markdown.packing import pack
        from klaw_core.builtin.markdown.pieces import Bounds, Gauge, lay_out, whole

        blocks = parse(text)
        gauge = Gauge(text, count_tokens, Bounds(self.options.max_tokens, self.options.overlap_tokens))
        layout = whole(blocks, gauge) or lay_out(blocks, gauge)
        sections = outline(blocks)
        return tuple(
            Span(start, end, sections.path_at(start), continues) for start, end, continues in pack(layout, gauge.bounds)
        )

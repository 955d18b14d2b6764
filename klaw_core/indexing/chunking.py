"""Turn a chunker's spans into chunks: slice the text, count lines, derive ids."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from attrs import define, frozen

from klaw_core.embedding.token_estimate import estimate_tokens
from klaw_core.errors import EmbeddingError, PluginContractError, PluginError, isolated, quoted
from klaw_core.interfaces.components import Chunker, Embedder, HeadingChunker, VariantChunker
from klaw_core.values.documents import Document
from klaw_core.values.lines import line_of, line_starts
from klaw_core.values.text import Chunk, Heading, Span, TokenCounter, text_hash

_ID_LENGTH = 32  # hexadecimal digits, 128 bits


@frozen
class FormatChunker:
    """The chunker of one document format. ``recipe`` identifies the chunker and its options."""

    chunker: Chunker
    recipe: str

    def variant(self, name: str) -> "FormatChunker":
        """Return the chunker for a variant of the format, or this one if it has no variants. Raise PluginError."""
        if not isinstance(self.chunker, VariantChunker):
            return self
        with isolated(f"the chunker {type(self.chunker).__name__}"):
            return FormatChunker(self.chunker.variant(name), f"{self.recipe}:{name}")

    def headings(self, text: str) -> Sequence[Heading]:
        """Return the headings of a text; if the chunker lists none, those of its chunks. Raise PluginError."""
        with isolated(f"the chunker {type(self.chunker).__name__}"):
            if isinstance(self.chunker, HeadingChunker):
                return tuple(self.chunker.headings(text))
            starts = line_starts(text)
            spans = [(line_of(starts, span.start), span.heading) for span in self.chunker.split(text, estimate_tokens)]
        firsts = (next(run) for _, run in groupby(spans, key=itemgetter(1)))
        return tuple(Heading(line, len(path), path[-1:]) for line, path in firsts)


@define
class TokenMeter:
    """Counts tokens with an embedder's tokenizer, or by estimate once the tokenizer has failed.

    Texts must be stored and found by words even without a model. Documents that were split while ``estimated`` is set
    are split again when a tokenizer is available.
    """

    embedder: Embedder
    estimated: bool = False

    def __call__(self, texts: Sequence[str], /) -> Sequence[int]:
        """Return the token count of each text."""
        if not self.estimated:
            try:
                return self.embedder.count_tokens(texts)
            except (EmbeddingError, PluginError):
                self.estimated = True
        return estimate_tokens(texts)


def make_chunks(document: Document, chunker: Chunker, count_tokens: TokenCounter) -> tuple[Chunk, ...]:
    """Split a document into chunks, in order of position.

    Raise PluginError if the chunker raises. Raise PluginContractError if it yields something other than a Span, a span
    out of bounds or out of order, or one whose context does not end before it.
    """
    text = document.text
    starts = line_starts(text)
    occurrences: Counter[str] = Counter()
    chunks: list[Chunk] = []
    for span in _spans(document, chunker, count_tokens):
        content = text[span.start : span.end]
        context = "" if span.context is None else text[span.context : span.start].rstrip()
        heading = (*document.heading, *span.heading)
        identity = (document.path, "\x1f".join(heading), content, *filter(None, (context,)))
        digest = text_hash("\0".join(identity))
        chunk_id = text_hash(f"{digest}\0{occurrences[digest]}")[:_ID_LENGTH]
        occurrences[digest] += 1
        last = span.start + len(content.rstrip()) - 1
        end_line = line_of(starts, max(last, span.start))
        chunks.append(
            Chunk(
                chunk_id=chunk_id,
                text=content,
                start=span.start,
                end=span.end,
                start_line=line_of(starts, span.start),
                end_line=end_line,
                heading=heading,
                continues=span.continues,
                context=context,
                title=document.title,
                created_at=_written_at(document, end_line),
            )
        )
    return tuple(chunks)


def _written_at(document: Document, line: int) -> datetime | None:
    """Return when a line was written; None if the document has no times for its parts."""
    index = bisect_right(document.times, line, key=itemgetter(0))
    return document.times[index - 1][1] if index else None


def _spans(document: Document, chunker: Chunker, count_tokens: TokenCounter) -> Iterator[Span]:
    """Yield the chunker's spans after checking each. Raise PluginError, PluginContractError."""
    who = f"the chunker {type(chunker).__name__}"
    length = len(document.text)
    previous = (-1, -1)
    with isolated(f"{who}, cutting {document.path}"):
        found: Iterable[Any] = chunker.split(document.text, count_tokens)
        for span in found:
            if not isinstance(span, Span) or not all(isinstance(title, str) for title in span.heading):
                raise PluginContractError(f"{who} cut {document.path} into {quoted(span)}, which is not a Span")
            if not (0 <= span.start < span.end <= length and previous < (span.start, span.end)):
                raise PluginContractError(
                    f"{who} cut {document.path} out of bounds or out of order: "
                    f"{span.start}..{span.end} of {length} characters, after {previous[0]}..{previous[1]}"
                )
            if span.context is not None and not 0 <= span.context < span.start:
                raise PluginContractError(
                    f"{who} returned the span {span.start}..{span.end} of {document.path} with a "
                    f"context that begins at {span.context}, not before the span"
                )
            previous = (span.start, span.end)
            yield span

"""From a chunker's spans to chunks: the core slices the text, numbers the lines and derives the ids."""

from collections import Counter

from klaw_core.errors import PluginContractError
from klaw_core.interfaces import Chunker
from klaw_core.lines import line_of, line_starts
from klaw_core.values import Chunk, Document, TokenCounter, text_hash

_ID_LENGTH = 32  # hexadecimal digits, 128 bits


def make_chunks(document: Document, chunker: Chunker, count_tokens: TokenCounter) -> tuple[Chunk, ...]:
    """Cut a document into chunks, in order of position.

    Raise PluginContractError if the chunker yields a span that is out of bounds or out of order.
    """
    text = document.text
    starts = line_starts(text)
    occurrences: Counter[str] = Counter()
    chunks: list[Chunk] = []
    previous = (-1, -1)
    for span in chunker.split(text, count_tokens):
        if not (0 <= span.start < span.end <= len(text) and previous < (span.start, span.end)):
            raise PluginContractError(
                f"the chunker {type(chunker).__name__} cut {document.path} out of bounds or out of order: "
                f"{span.start}..{span.end} of {len(text)} characters, after {previous[0]}..{previous[1]}"
            )
        previous = (span.start, span.end)
        content = text[span.start : span.end]
        heading = (*document.heading, *span.heading)
        digest = text_hash("\0".join((document.path, "\x1f".join(heading), content)))
        chunk_id = text_hash(f"{digest}\0{occurrences[digest]}")[:_ID_LENGTH]
        occurrences[digest] += 1
        last = span.start + len(content.rstrip()) - 1
        chunks.append(
            Chunk(
                chunk_id=chunk_id,
                text=content,
                start=span.start,
                end=span.end,
                start_line=line_of(starts, span.start),
                end_line=line_of(starts, max(last, span.start)),
                heading=heading,
                continues=span.continues,
            )
        )
    return tuple(chunks)

"""The hooks of the plugin: the chunkers ``markdown`` and ``transcript``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from klaw_core import Chunker, Component, ComponentContext, hookimpl
from klaw_notes.options import MarkdownOptions, TranscriptOptions


def build_markdown(options: MarkdownOptions, _context: ComponentContext) -> Chunker:
    """Build the chunker ``markdown``."""
    from klaw_notes.chunking.chunker import MarkdownChunker

    return MarkdownChunker(options)


def build_transcript(options: TranscriptOptions, _context: ComponentContext) -> Chunker:
    """Build the chunker ``transcript``."""
    from klaw_notes.chunking.transcript import TranscriptChunker

    return TranscriptChunker(options)


@hookimpl
def klaw_chunkers() -> Iterable[Component[Any, Chunker]]:
    """Yield the chunker of Markdown and that of transcripts."""
    summary = "Markdown by its block structure, sizes by the embedder's tokens"
    yield Component("markdown", MarkdownOptions, build_markdown, 2, summary)
    summary = "transcripts: whole messages, one line each, session by session"
    yield Component("transcript", TranscriptOptions, build_transcript, 2, summary)

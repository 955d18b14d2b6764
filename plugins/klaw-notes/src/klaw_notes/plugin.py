"""The hooks of the plugin: the source and the extension of directories of notes, and the chunkers of their texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from klaw_core import Chunker, Component, ComponentContext, NoOptions, SearchEvent, hookimpl
from klaw_notes.options import LinksOptions, MarkdownOptions, TranscriptOptions

if TYPE_CHECKING:
    from klaw_core import Extension, Source
    from klaw_notes.workspace import Workspace
    from klaw_notes.workspace_options import WorkspaceOptions

_API = 2
# What every question with a condition contains, in any case. Others do not import the extension.
QUESTIONS = r'(?:^|\s)(?:-?(?:tags?|path):[^\s:/]|-(?:"|[^\W\d_]{3}))|^\s*"[^"]+"'


def build_markdown(options: MarkdownOptions, _context: ComponentContext) -> Chunker:
    """Build the chunker ``markdown``."""
    from klaw_notes.chunking import MarkdownChunker

    return MarkdownChunker(options)


def build_transcript(options: TranscriptOptions, _context: ComponentContext) -> Chunker:
    """Build the chunker ``transcript``."""
    from klaw_notes.chunking.transcript import TranscriptChunker

    return TranscriptChunker(options)


def build_workspace(options: WorkspaceOptions, context: ComponentContext) -> Workspace:
    """Build the source ``workspace``."""
    from klaw_notes.converting import Converters
    from klaw_notes.workspace import Workspace

    return Workspace(
        options.root,
        options.origin,
        options.include,
        options.exclude,
        options.max_bytes,
        converters=Converters.of(context),
        trust=options.trust,
    )


def build_workspaces(_options: NoOptions, context: ComponentContext) -> Extension:
    """Build the extension ``workspaces``."""
    from klaw_notes.extension import WorkspacesExtension

    return WorkspacesExtension(context)


def build_presence(_options: NoOptions, context: ComponentContext) -> Extension:
    """Build the extension ``presence``."""
    from klaw_notes.presence import PresenceExtension

    return PresenceExtension(context)


def build_conditions(_options: NoOptions, _context: ComponentContext) -> Extension:
    """Build the extension ``conditions``."""
    from klaw_notes.conditions import Conditions

    return Conditions()


def build_links(options: LinksOptions, _context: ComponentContext) -> Extension:
    """Build the extension ``links``."""
    from klaw_notes.links.extension import LinksExtension

    return LinksExtension(options)


@hookimpl
def klaw_chunkers() -> Iterable[Component[Any, Chunker]]:
    """Yield the chunker of Markdown and that of transcripts."""
    summary = "Markdown by its block structure, sizes by the embedder's tokens"
    yield Component("markdown", MarkdownOptions, build_markdown, _API, summary)
    summary = "transcripts: whole messages, one line each, session by session"
    yield Component("transcript", TranscriptOptions, build_transcript, _API, summary)


@hookimpl
def klaw_sources() -> Iterable[Component[Any, Source]]:
    """Yield the source ``workspace``."""
    from klaw_notes.workspace_options import WorkspaceOptions

    yield Component("workspace", WorkspaceOptions, build_workspace, _API, "a directory of Markdown notes")


@hookimpl
def klaw_extensions() -> Iterable[Component[Any, Extension]]:
    """Yield the extensions ``workspaces`` and ``presence``, with the ranks that they have among Klaw's own."""
    summary = "directories of notes that `klaw index DIR` added"
    yield Component("workspaces", NoOptions, build_workspaces, _API, summary, rank=10)
    summary = "says which files of an answer are gone, and what is not read"
    yield Component("presence", NoOptions, build_presence, _API, summary, rank=11, listens=(SearchEvent,))
    summary = 'reads tag:, path:, -word and "phrase" in questions'
    yield Component("conditions", NoOptions, build_conditions, _API, summary, rank=81, questions=QUESTIONS)
    summary = "knows which documents link to which, and adds neighbours to a context"
    yield Component("links", LinksOptions, build_links, _API, summary, rank=82)

"""The hook implementations of klaw-documents: converters of documents and source code, and chunkers of their texts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from klaw_core import Chunker, Component, ComponentContext, Converter, PlainOptions, hookimpl
from klaw_documents.options import CodeOptions, CommandOptions, ParsedOptions, TableOptions, TextOptions

_PARSED = {
    "pdf": "PDF, page by page",
    "docx": "Word documents",
    "html": "web pages, without menus and footers",
    "epub": "e-books, chapter by chapter",
    "notebook": "Jupyter notebooks: cells, and outputs that are text",
    "pptx": "presentations, slide by slide, with their notes",
    "xlsx": "spreadsheets: Excel and OpenDocument, row by row",
    "mail": "messages and mailboxes",
}


def _parsed(name: str, options: ParsedOptions, _context: ComponentContext) -> Converter:
    from klaw_documents.converters import parsed_converter

    return parsed_converter(name, options)


def _org(options: TextOptions, _context: ComponentContext) -> Converter:
    from klaw_documents.converters import OrgConverter

    return OrgConverter(options)


def _rst(options: TextOptions, _context: ComponentContext) -> Converter:
    from klaw_documents.converters import RstConverter

    return RstConverter(options)


def _asciidoc(options: TextOptions, _context: ComponentContext) -> Converter:
    from klaw_documents.converters import AsciiDocConverter

    return AsciiDocConverter(options)


def _canvas(options: TextOptions, _context: ComponentContext) -> Converter:
    from klaw_documents.converters import CanvasConverter

    return CanvasConverter(options)


def _csv(options: TableOptions, _context: ComponentContext) -> Converter:
    from klaw_documents.converters import TableConverter

    return TableConverter(options)


def _subtitles(options: TextOptions, _context: ComponentContext) -> Converter:
    from klaw_documents.converters import SubtitleConverter

    return SubtitleConverter(options)


def _command(options: CommandOptions, _context: ComponentContext) -> Converter:
    from klaw_documents.command import CommandConverter

    return CommandConverter(options)


def _code(options: CodeOptions, _context: ComponentContext) -> Converter:
    from klaw_documents.converters import CodeConverter

    return CodeConverter(options)


@hookimpl
def klaw_converters() -> Iterable[Component[Any, Converter]]:
    """Yield a converter for each kind of file; first the one that the user chooses the files of."""
    yield Component("command", CommandOptions, _command, 2, "files that a command of yours turns into text: OCR")
    for name, summary in _PARSED.items():
        yield Component(name, ParsedOptions, partial(_parsed, name), 2, summary)
    yield Component("org", TextOptions, _org, 2, "Org files")
    yield Component("rst", TextOptions, _rst, 2, "reStructuredText")
    yield Component("asciidoc", TextOptions, _asciidoc, 2, "AsciiDoc")
    yield Component("canvas", TextOptions, _canvas, 2, "canvases of Obsidian")
    yield Component("csv", TableOptions, _csv, 2, "comma-separated values, row by row, where --include names them")
    yield Component("subtitles", TextOptions, _subtitles, 2, "subtitles, SubRip and WebVTT")
    yield Component("code", CodeOptions, _code, 2, "source code, where --include names it")


def _pages(options: PlainOptions, _context: ComponentContext) -> Chunker:
    from klaw_documents.chunkers.pages import PageChunker

    return PageChunker(options)


def _org_chunker(options: PlainOptions, _context: ComponentContext) -> Chunker:
    from klaw_documents.chunkers.org import OrgChunker

    return OrgChunker(options)


def _rst_chunker(options: PlainOptions, _context: ComponentContext) -> Chunker:
    from klaw_documents.chunkers.rst import RstChunker

    return RstChunker(options)


def _asciidoc_chunker(options: PlainOptions, _context: ComponentContext) -> Chunker:
    from klaw_documents.chunkers.asciidoc import AsciiDocChunker

    return AsciiDocChunker(options)


def _code_chunker(options: PlainOptions, _context: ComponentContext) -> Chunker:
    from klaw_documents.chunkers.code import CodeChunker

    return CodeChunker(options)


@hookimpl
def klaw_chunkers() -> Iterable[Component[Any, Chunker]]:
    """Yield the chunkers of texts that are not Markdown."""
    yield Component("pages", PlainOptions, _pages, 2, "text with page breaks, page by page")
    yield Component("org", PlainOptions, _org_chunker, 2, "Org files by their headlines")
    yield Component("rst", PlainOptions, _rst_chunker, 2, "reStructuredText by its sections")
    yield Component("asciidoc", PlainOptions, _asciidoc_chunker, 2, "AsciiDoc by its sections")
    yield Component("code", PlainOptions, _code_chunker, 2, "source code by its functions and classes")

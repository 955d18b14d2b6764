"""The converters: some parse in a separate process, the others decode text files."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath

from attrs import field, frozen

from klaw_core import Conversion, ConversionError, Converter
from klaw_documents.chunkers.languages import LANGUAGES, SUFFIXES
from klaw_documents.options import CodeOptions, CommandOptions, ParsedOptions, TableOptions, TextOptions
from klaw_documents.process import ParserProcess, process_of

_PATTERNS: Mapping[str, tuple[str, ...]] = {
    "pdf": ("*.pdf",),
    "docx": ("*.docx",),
    "html": ("*.html", "*.htm", "*.xhtml"),
    "epub": ("*.epub",),
    "notebook": ("*.ipynb",),
    "pptx": ("*.pptx", "*.pptm", "*.ppsx"),
    "xlsx": ("*.xlsx", "*.xlsm", "*.xlsb", "*.xls", "*.ods"),
    "mail": ("*.eml", "*.mbox"),
}
# Increased when a parser returns another text for the same bytes.
_VERSIONS: Mapping[str, str] = {
    "pdf": "1",
    "docx": "2",
    "html": "2",
    "epub": "3",
    "notebook": "1",
    "pptx": "3",
    "xlsx": "2",
    "mail": "3",
}
_ORG_KEYWORD = re.compile(r"^#\+(title|author|date|filetags):[ \t]*(\S.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
# The tags of an entry, at the end of its heading: https://orgmode.org/manual/Tags.html
_ORG_TAGS = re.compile(r"^\*+[ \t][^\r\n]*?[ \t]:([\w@#%:]+):[ \t]*$", re.MULTILINE)
_MAX_TAGS = 100
_RST_FIELD = re.compile(r"^:(author|date):[ \t]+(\S.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_ATTRIBUTE = re.compile(r"^:(author|revdate|date|keywords|tags):[ \t]+(\S.*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_HEAD = 4096  # characters at the start of a file that may contain its keywords


@frozen
class ConfiguredConverter(Converter):
    """A converter whose options say if its files are only read on request."""

    options: ParsedOptions | CommandOptions | TextOptions | TableOptions | CodeOptions

    @property
    def on_request(self) -> bool:
        """Whether such files are only read if ``include`` matches them."""
        return self.options.on_request


@frozen
class LimitedConverter(ConfiguredConverter):
    """A converter that another process works for, with a limit of size of its own."""

    options: ParsedOptions | CommandOptions

    @property
    def max_bytes(self) -> int:
        """The maximum size of a file."""
        return self.options.max_bytes


@frozen(eq=False)
class ParsedConverter(LimitedConverter):
    """A converter whose parser runs in a separate process, with limits of time and memory."""

    name: str
    options: ParsedOptions
    process: ParserProcess

    @property
    def patterns(self) -> Sequence[str]:
        """The patterns of file names."""
        return _PATTERNS[self.name]

    @property
    def version(self) -> str:
        """The version of the parser."""
        return _VERSIONS[self.name]

    def convert(self, data: bytes, name: str, /) -> Conversion:
        """Parse a file. Raise ConversionError."""
        return self.process.parse(self.name, data, name)


def parsed_converter(name: str, options: ParsedOptions) -> ParsedConverter:
    """Return the converter of a kind of file."""
    return ParsedConverter(name, options, process_of(options.timeout_seconds, options.memory_mb))


@frozen
class TextConverter(ConfiguredConverter):
    """A converter of text files, which needs no process of its own: its time grows with the length of the text."""

    options: TextOptions | TableOptions | CodeOptions = field(factory=TextOptions)


@frozen
class OrgConverter(TextConverter):
    """Org files: their text, the values of ``#+title:`` and similar keywords, and the tags of their entries."""

    patterns = ("*.org",)
    version = "2"

    def convert(self, data: bytes, _name: str, /) -> Conversion:
        """Decode a file. Raise ConversionError."""
        text = decoded(data)
        metadata: dict[str, str | tuple[str, ...]] = {}
        tags = [match[1] for match in islice(_ORG_TAGS.finditer(text), _MAX_TAGS)]
        for key, value in _ORG_KEYWORD.findall(text[:_HEAD]):
            if key.lower() == "filetags":
                tags.insert(0, value.replace(" ", ":"))
            else:
                metadata.setdefault(key.lower(), value)
        if found := dict.fromkeys(filter(None, ":".join(tags).split(":"))):
            metadata["tags"] = tuple(found)[:_MAX_TAGS]
        return Conversion(text, "org", metadata, is_original=True)


@frozen
class RstConverter(TextConverter):
    """reStructuredText: its text, and its author and date, fields at the beginning (``:date: 2026-02-24``).

    https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html#bibliographic-fields
    """

    patterns = ("*.rst",)
    version = "2"

    def convert(self, data: bytes, _name: str, /) -> Conversion:
        """Decode a file. Raise ConversionError."""
        text = decoded(data)
        metadata: dict[str, str] = {}
        for key, value in _RST_FIELD.findall(text[:_HEAD]):
            metadata.setdefault(key.lower(), value)
        return Conversion(text, "rst", metadata, is_original=True)


@frozen
class AsciiDocConverter(TextConverter):
    """AsciiDoc: its text, and its author, date and keywords, attributes at the beginning (``:author: Ann``)."""

    patterns = ("*.adoc", "*.asciidoc", "*.asc")
    version = "1"

    def convert(self, data: bytes, _name: str, /) -> Conversion:
        """Decode a file. Raise ConversionError."""
        text = decoded(data)
        if text.startswith("-----BEGIN "):  # a key or a signature, which is named *.asc, too
            raise ConversionError("is not AsciiDoc")
        metadata: dict[str, str | tuple[str, ...]] = {}
        for key, value in _ATTRIBUTE.findall(text[:_HEAD]):
            if key.lower() in {"keywords", "tags"}:
                metadata.setdefault("tags", tuple(filter(None, map(str.strip, value.split(",")))))
            else:
                metadata.setdefault(key.lower().removeprefix("rev"), value)
        return Conversion(text, "asciidoc", metadata, is_original=True)


@frozen
class CanvasConverter(TextConverter):
    """Canvases of Obsidian: the texts of their cards."""

    patterns = ("*.canvas",)
    version = "1"

    def convert(self, data: bytes, _name: str, /) -> Conversion:
        """Return the cards as Markdown. Raise ConversionError."""
        from klaw_documents.canvas import markdown_of

        return Conversion(as_unicode(markdown_of(decoded(data))))


@frozen
class TableConverter(TextConverter):
    """Comma-separated values, and others: a line for each row, with the names of its columns."""

    options: TableOptions = field(factory=TableOptions)
    patterns = ("*.csv", "*.tsv", "*.tab")
    version = "2"

    def convert(self, data: bytes, name: str, /) -> Conversion:
        """Return the rows as Markdown. Raise ConversionError."""
        from klaw_documents.tables import csv_rows, rows_as_text

        text, metadata = decoded_or_western(data)
        lines = list(rows_as_text(csv_rows(text, tabs=not name.lower().endswith(".csv"))))
        if not lines:
            raise ConversionError("has no text")
        return Conversion(as_unicode("\n".join(lines) + "\n"), "markdown", metadata)


@frozen
class SubtitleConverter(TextConverter):
    """Subtitles: what is said, in paragraphs that begin with their time."""

    patterns = ("*.srt", "*.vtt")
    version = "1"

    def convert(self, data: bytes, _name: str, /) -> Conversion:
        """Return the paragraphs. Raise ConversionError."""
        from klaw_documents.subtitles import text_of

        text, metadata = decoded_or_western(data)
        return Conversion(as_unicode(text_of(text.replace("\r\n", "\n").replace("\r", "\n"))), "markdown", metadata)


@frozen
class CodeConverter(TextConverter):
    """Source code: its text, and the language of the file name."""

    options: CodeOptions = field(factory=CodeOptions)
    patterns = tuple(f"*{suffix}" for suffix in SUFFIXES)
    version = "1"

    def convert(self, data: bytes, name: str, /) -> Conversion:
        """Decode a file. Raise ConversionError."""
        language = SUFFIXES[PurePosixPath(name).suffix.lower()]
        metadata = {"language": LANGUAGES[language].title}
        return Conversion(decoded(data), f"code:{language}", metadata, is_original=True)


def decoded(data: bytes) -> str:
    """Return the text of a file: UTF-8, or UTF-16 with a byte order mark. Raise ConversionError."""
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    if encoding == "utf-8-sig" and b"\0" in data[:8192]:
        raise ConversionError("is binary")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        raise ConversionError(f"is not valid {name} (byte {error.start:,})") from error


def decoded_or_western(data: bytes) -> tuple[str, dict[str, str]]:
    """Return the text of a file, and metadata that says if its encoding is a guess: programs export Windows-1252.

    Raise ConversionError.
    """
    try:
        return decoded(data), {}
    except ConversionError:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:8192]:
            raise
        try:
            return data.decode("windows-1252"), {"encoding": "windows-1252"}
        except UnicodeDecodeError:
            pass
        raise


def as_unicode(text: str) -> str:
    """Return a text without what is not valid Unicode."""
    return text.encode("utf-8", "replace").decode()

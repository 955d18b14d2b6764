"""E-books: the chapters in reading order, as Markdown."""

from __future__ import annotations

import posixpath
import re
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from klaw_core import Conversion, ConversionError
from klaw_documents.parsers.archives import open_archive, property_of, read_member, xml_of
from klaw_documents.parsers.html import decoded
from klaw_documents.parsers.markup import markdown_of
from klaw_documents.parsers.values import described, iso_moment

_PROTECTED = "is protected against copying"
_CONTAINER = "META-INF/container.xml"
# XHTML allows empty-element tags for every element; an HTML parser would treat such an element as open.
_EMPTY_ELEMENT = re.compile(r"<([A-Za-z][\w:.-]*)((?:\s[^<>]*)?)/>")
_VOID_NAMES = "area base br col embed hr img input link meta source track wbr"
_VOID = frozenset(_VOID_NAMES.split())
_CHAPTERS = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")


def parse(data: bytes, _name: str) -> Conversion:
    """Return the text as Markdown. Raise ConversionError."""
    archive = open_archive(data, "EPUB")
    container = xml_of(read_member(archive, _CONTAINER))
    root_file = next((item.get("full-path", "") for item in _named(container, "rootfile")), "")
    package = xml_of(read_member(archive, root_file)) if root_file else None
    encryption = read_member(archive, "META-INF/encryption.xml")
    if package is None:
        raise ConversionError("is not a valid EPUB" if encryption is None else _PROTECTED)
    # Fonts may be encrypted in any book.
    encrypted = {unquote(item.get("URI", "")).lstrip("/") for item in _named(xml_of(encryption), "CipherReference")}
    items = {item.get("id", ""): item for item in _named(package, "item")}
    chapters: list[str] = []
    for reference in _named(package, "itemref"):
        item = items.get(reference.get("idref", ""))
        if item is None or item.get("media-type", _CHAPTERS[0]) not in _CHAPTERS or "nav" in item.get("properties", ""):
            continue
        path = posixpath.normpath(posixpath.join(posixpath.dirname(root_file), unquote(item.get("href", ""))))
        if path in encrypted:
            raise ConversionError(_PROTECTED)
        if (chapter := read_member(archive, path)) is not None:
            chapters.append(markdown_of(_EMPTY_ELEMENT.sub(_opened, decoded(chapter))).strip("\n"))
    text = "\n\n".join(filter(None, chapters))
    if not text.strip():
        raise ConversionError("has no text")
    metadata = described(
        title=property_of(package, "title"),
        author=property_of(package, "creator"),
        language=property_of(package, "language"),
    )
    return Conversion(f"{text}\n", "markdown", metadata, iso_moment(property_of(package, "date")))


def _named(root: ET.Element | None, name: str) -> list[ET.Element]:
    return [] if root is None else [item for item in root.iter() if str(item.tag).rpartition("}")[2] == name]


def _opened(match: re.Match[str]) -> str:
    return match[0] if match[1].lower() in _VOID else f"<{match[1]}{match[2]}></{match[1]}>"

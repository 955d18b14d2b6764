"""Presentations: each slide is a section with its texts, tables and notes, in the order of the slides."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from klaw_core import Conversion, ConversionError
from klaw_documents.parsers.archives import open_archive, property_of, read_member, xml_of
from klaw_documents.parsers.markup import escaped
from klaw_documents.parsers.values import clean, described, iso_moment, one_line

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MAIN = "ppt/presentation.xml"
_SLIDE = re.compile(r"ppt/slides/slide(\d+)\.xml")
# Placeholders that every slide repeats.
_REPEATED = frozenset({"ftr", "hdr", "sldNum", "dt", "sldImg"})


def parse(data: bytes, _name: str) -> Conversion:
    """Return the slides as Markdown. Raise ConversionError."""
    archive = open_archive(data, "presentation")
    names = frozenset(archive.namelist())
    if _MAIN not in names:
        raise ConversionError("is not a valid presentation")
    parts = [
        part for number, name in enumerate(_slides(archive, names), start=1) for part in _slide(archive, name, number)
    ]
    text = "\n\n".join(parts)
    if not text.strip():
        raise ConversionError("has no text")
    properties = xml_of(read_member(archive, "docProps/core.xml"))
    metadata = described(title=property_of(properties, "title"), author=property_of(properties, "creator"))
    return Conversion(f"{text}\n", "markdown", metadata, iso_moment(property_of(properties, "modified")))


def _slides(archive: zipfile.ZipFile, names: frozenset[str]) -> list[str]:
    """Return the names of the slides in the order in which they are shown, or else of their numbers."""
    main = xml_of(read_member(archive, _MAIN))
    targets = _related(archive, _MAIN)
    shown = [] if main is None else [targets.get(item.get(f"{_R}id", ""), "") for item in main.iter(f"{_P}sldId")]
    found = list(dict.fromkeys(name for name in shown if name in names))
    numbered = {int(match[1]): match[0] for match in map(_SLIDE.fullmatch, names) if match}
    return found or [numbered[number] for number in sorted(numbered)]


def _related(archive: zipfile.ZipFile, name: str) -> dict[str, str]:
    """Return the members that a member refers to, by the ids of its references."""
    directory, file = posixpath.split(name)
    root = xml_of(read_member(archive, f"{directory}/_rels/{file}.rels"))
    found = {} if root is None else {item.get("Id", ""): item.get("Target", "") for item in root}
    return {
        key: target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(directory, target))
        for key, target in found.items()
    }


def _slide(archive: zipfile.ZipFile, name: str, number: int) -> Iterator[str]:
    root = xml_of(read_member(archive, name))
    if root is None:
        return
    title, texts = "", []
    for shape in root.iter():
        if shape.tag == f"{_P}sp":
            kind = _placeholder(shape)
            lines = _paragraphs(shape)
            if kind in {"title", "ctrTitle"} and not title:
                title = one_line(" ".join(lines))
            elif kind not in _REPEATED and lines:
                texts.append(escaped("\n".join(lines)))
        elif shape.tag == f"{_A}tbl":
            texts.append(escaped("\n".join(_rows(shape))))
    notes = [
        text
        for target in _related(archive, name).values()
        if "notesSlide" in target
        for text in _notes(archive, target)
    ]
    if title or texts or notes:
        yield f"## Slide {number}{': ' if title else ''}{title}"
        yield from texts
        yield from notes


def _notes(archive: zipfile.ZipFile, name: str) -> Iterator[str]:
    root = xml_of(read_member(archive, name))
    for shape in () if root is None else root.iter(f"{_P}sp"):
        if _placeholder(shape) == "body" and (lines := _paragraphs(shape)):
            yield f"Notes: {' '.join(lines)}"


def _placeholder(shape: ET.Element) -> str:
    """Return what the place of a shape is for; empty if it is a shape of its own."""
    found = next(shape.iter(f"{_P}ph"), None)
    return "" if found is None else found.get("type", "obj")


def _paragraphs(shape: ET.Element) -> list[str]:
    texts = (clean("".join(_pieces(paragraph))) for paragraph in shape.iter(f"{_A}p"))
    return [" ".join(text.split()) for text in texts if text.strip()]


def _pieces(paragraph: ET.Element) -> Iterator[str]:
    for item in paragraph.iter():
        if item.tag == f"{_A}t":
            yield item.text or ""
        elif item.tag == f"{_A}br":
            yield " "


def _rows(table: ET.Element) -> Iterator[str]:
    from klaw_documents.tables import rows_as_text

    rows = ([" ".join(_paragraphs(cell)) for cell in row.iter(f"{_A}tc")] for row in table.iter(f"{_A}tr"))
    yield from rows_as_text(rows)

"""Word documents: mammoth converts them to HTML by their styles, and that is converted to Markdown."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

from klaw_core import Conversion, ConversionError
from klaw_documents.parsers.archives import open_archive, property_of, read_member, refuse_entities, xml_of
from klaw_documents.parsers.markup import markdown_of
from klaw_documents.parsers.values import described, iso_moment


def parse(data: bytes, _name: str) -> Conversion:
    """Return the text as Markdown. Raise ConversionError."""
    archive = open_archive(data, "Word document")
    names = archive.namelist()
    if not any(name.startswith("word/") for name in names):
        raise ConversionError("is not a valid Word document")
    for name in names:
        if name.endswith((".xml", ".rels")):
            refuse_entities(read_member(archive, name) or b"")
    mammoth: Any = import_module("mammoth")
    # Otherwise pictures would be in the text, in base64.
    options = {"convert_image": mammoth.images.img_element(lambda _image: {"src": ""})}
    html = mammoth.convert_to_html(io.BytesIO(data), **options).value
    properties = xml_of(read_member(archive, "docProps/core.xml"))
    metadata = described(title=property_of(properties, "title"), author=property_of(properties, "creator"))
    text = markdown_of(html)
    if not text.strip():
        raise ConversionError("has no text")
    return Conversion(text, "markdown", metadata, iso_moment(property_of(properties, "created")))

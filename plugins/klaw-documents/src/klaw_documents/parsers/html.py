"""Web pages: their main content, as Markdown."""

from __future__ import annotations

import codecs
import re

from klaw_core import Conversion, ConversionError
from klaw_documents.parsers.markup import page_of
from klaw_documents.parsers.values import described, iso_moment

_CHARSET = re.compile(
    rb"""(?:<meta[^>]{0,200}?charset\s*=\s*["']?|<\?xml[^>]{0,100}?encoding\s*=\s*["'])([\w.:-]{1,40})""", re.IGNORECASE
)
_HEAD = 4096  # bytes at the start of a page that may name its encoding
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def parse(data: bytes, _name: str) -> Conversion:
    """Return the text as Markdown. Raise ConversionError."""
    page = page_of(decoded(data))
    if not page.text.strip():
        raise ConversionError("has no text")
    return Conversion(page.text, "markdown", described(title=page.title, author=page.author), iso_moment(page.date))


def decoded(data: bytes) -> str:
    """Return the text of a page, in the encoding that it names, otherwise in UTF-8 or, like browsers, Windows-1252."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    named = _CHARSET.search(data[:_HEAD])
    for encoding in (*([named[1].decode("ascii")] if named else []), "utf-8", "cp1252"):
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("cp1252", "replace")

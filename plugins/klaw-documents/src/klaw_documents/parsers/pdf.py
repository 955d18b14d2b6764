"""PDF files, parsed by PDFium: the text of each page, with page breaks on lines of their own."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from klaw_core import Conversion, ConversionError
from klaw_documents.chunkers.pages import PAGE_BREAK
from klaw_documents.parsers.values import clean, described, pdf_moment

_MAX_PAGES = 20_000
_LAST_OF_FORMAT = 4  # FPDF_ERR_PASSWORD


def parse(data: bytes, _name: str) -> Conversion:
    """Return the text of every page. Raise ConversionError."""
    pdfium: Any = import_module("pypdfium2")
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == _LAST_OF_FORMAT or "password" in str(error).lower():
            raise ConversionError("is encrypted: save a copy without its password") from None
        raise ConversionError("is not a valid PDF") from None
    count = len(document)
    if count > _MAX_PAGES:
        raise ConversionError(f"has more than {_MAX_PAGES:,} pages ({count:,})")
    pages = [_page(pdfium, document, index) for index in range(count)]
    if not any(page.strip() for page in pages):
        what = "page is blank or an image" if count == 1 else f"{count:,} pages are blank or images"
        raise ConversionError(f"has no text: its {what}; if it was scanned, run OCR first, for example with ocrmypdf")
    properties = document.get_metadata_dict()
    title = properties.get("Title", "")
    # Printer drivers write the name of a file as the title.
    title = "" if title.startswith("Microsoft ") or "." in title[-5:] else title
    metadata = described(title=title, author=properties.get("Author"), pages=count)
    return Conversion(PAGE_BREAK.join(pages), "pages", metadata, pdf_moment(properties.get("CreationDate", "")))


def _page(pdfium: Any, document: Any, index: int) -> str:
    """Return the text of a page; empty if the page is damaged."""
    try:
        page = document[index]
        text = page.get_textpage()
        found: str = text.get_text_bounded()
        text.close()
        page.close()
    except pdfium.PdfiumError:
        return ""
    # PDFium joins hyphenated words and marks the place with U+FFFE, which `clean` removes.
    return "\n".join(line.rstrip() for line in clean(found).split("\n")).strip("\n")

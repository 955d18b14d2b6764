"""Jupyter notebooks: the cells in order, code in fences, and the textual outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from klaw_core import Conversion, ConversionError
from klaw_documents.parsers.markup import fenced
from klaw_documents.parsers.values import clean, described

_MAX_OUTPUT_CHARACTERS = 4000  # characters of a cell's outputs; longer ones are usually logs or tables
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # escape sequences for colours


def parse(data: bytes, _name: str) -> Conversion:
    """Return the cells as Markdown. Raise ConversionError."""
    try:
        notebook = json.loads(data)
    except ValueError:
        raise ConversionError("is not a valid notebook: it is not JSON") from None
    cells = _cells(notebook)
    if cells is None:
        raise ConversionError("is not a valid notebook: it has no cells")
    metadata = _mapping(notebook.get("metadata"))
    language = _mapping(metadata.get("language_info")).get("name") or _mapping(metadata.get("kernelspec")).get(
        "language"
    )
    name = language if isinstance(language, str) and language.isalnum() else "python"
    parts = [part.strip("\n") for cell in cells if isinstance(cell, Mapping) for part in _parts(cell, name)]
    text = "\n\n".join(filter(str.strip, parts))
    if not text:
        raise ConversionError("has no text")
    return Conversion(f"{text}\n", "markdown", described(title=metadata.get("title"), language=name))


def _cells(notebook: Any) -> list[Any] | None:
    """Return the cells, which are in worksheets in versions before 4."""
    if not isinstance(notebook, Mapping):
        return None
    if isinstance(notebook.get("cells"), list):
        found: list[Any] = notebook["cells"]
        return found
    sheets = notebook.get("worksheets")
    if not isinstance(sheets, list):
        return None
    return [cell for sheet in sheets for cell in _mapping(sheet).get("cells") or ()]


def _parts(cell: Mapping[str, Any], language: str) -> Iterator[str]:
    kind, source = cell.get("cell_type"), clean(_text(cell.get("source", cell.get("input"))))
    if kind == "heading":  # in version 3
        level = cell.get("level")
        yield f"{'#' * (min(max(level, 1), 6) if isinstance(level, int) else 1)} {' '.join(source.split())}"
    elif kind == "code":
        if source.strip():
            yield fenced(source, language)
        outputs = cell.get("outputs")
        shown = "".join(_output(_mapping(output)) for output in (outputs if isinstance(outputs, list) else ()))
        shown = clean(_ESCAPES.sub("", shown)).strip("\n")
        if len(shown) > _MAX_OUTPUT_CHARACTERS:
            shown = f"{shown[:_MAX_OUTPUT_CHARACTERS].rstrip()}\n…"
        if shown.strip():
            yield fenced(shown, "text")
    else:
        yield source


def _output(output: Mapping[str, Any]) -> str:
    """Return the text of an output."""
    if output.get("output_type") in {"error", "pyerr"}:
        return f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}\n"
    text = output.get("text", _mapping(output.get("data")).get("text/plain"))
    shown = _text(text)
    return shown if shown.endswith("\n") or not shown else f"{shown}\n"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(item for item in value if isinstance(item, str))
    return value if isinstance(value, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

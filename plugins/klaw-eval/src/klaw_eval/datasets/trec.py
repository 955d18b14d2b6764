"""Folders of older test collections: documents, questions and TREC judgements, recognised by their content.

Documents and questions are in SMART's format (``.I`` number, ``.T`` title, ``.W`` text: Cranfield, CISI, MED) or in
TREC's (``<DOC>`` with ``<DOCNO>``, ``<top>`` with ``<num>`` and ``<title>``). Judgements have TREC's four columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from shlex import quote

from klaw_core.cli.kit import counted
from klaw_eval.datasets.judgements import judged_questions, read_trec
from klaw_eval.datasets.reading import read_text, refuse_repeated
from klaw_eval.errors import DatasetError
from klaw_eval.values import Corpus, Dataset, Page

_ROLES = ("documents", "questions", "judgements")
_JUDGED = re.compile(r"\S+\s+\S+\s+\S+\s+-?\d+\s*")
_SNIFFED = 65_536  # bytes at the start of a file, by whose first lines it is recognised
_QUESTIONS_NAME = re.compile(r"qry|quer|topic|question", re.IGNORECASE)

_SMART_RECORD = re.compile(r"^\.I[ \t]+(\S+)[ \t]*$", re.MULTILINE)
_SMART_FIELD = re.compile(r"^\.([A-Z])[ \t]*$", re.MULTILINE)
_DOC = re.compile(r"<DOC>(.*?)</DOC>", re.DOTALL | re.IGNORECASE)
_DOCNO = re.compile(r"<DOCNO>\s*(.*?)\s*</DOCNO>", re.DOTALL | re.IGNORECASE)
_DOC_TITLE = re.compile(r"<(TITLE|HEADLINE|HEAD|TI)>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_TOP = re.compile(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
_NUM = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic:)?\s*([^<]*)", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def read(path: Path) -> Dataset:
    """Return a folder's documents and judged questions. Raise DatasetError."""
    files = _by_role(path)
    pages = tuple(page for file in files["documents"] for page in _pages(file))
    refuse_repeated(path, (page.id for page in pages), "documents")
    (asked,), (judged,) = files["questions"], files["judgements"]
    questions, left_out = judged_questions(dict(_questions(asked)), read_trec(judged))
    corpus = Corpus(path.name, pages=pages, questions=questions)
    return Dataset(path.name, "document", f"one index of {counted(len(pages), 'document')}", (corpus,), left_out)


def _by_role(path: Path) -> dict[str, list[Path]]:
    """Return the files with documents, questions and judgements. Raise DatasetError if one is missing or ambiguous."""
    files: dict[str, list[Path]] = {role: [] for role in _ROLES}
    for file in sorted(path.iterdir()):
        if file.is_file() and (role := _role(file)):
            files[role].append(file)
    for role, found in files.items():
        if not found:
            within = next(iter(sorted(path.glob("*.json"))), None)
            hint = f"klaw eval {quote(str(within))}" if within else "see the known forms: klaw eval --help"
            raise DatasetError(f"{path} has no {role} in a known form", hint=hint)
        if len(found) > 1 and role != "documents":
            names = ", ".join(file.name for file in found)
            raise DatasetError(f"{path} has several files of {role}: {names}", hint="keep only one of them")
    return files


def _role(file: Path) -> str:
    """Return the role of a file, by its first lines, or an empty string."""
    with file.open("rb") as stream:
        lines = [line for line in stream.read(_SNIFFED).decode("latin-1").split("\n")[:200] if line.strip()]
    first = lines[0].strip() if lines else ""
    if _SMART_RECORD.fullmatch(first):
        return "questions" if _QUESTIONS_NAME.search(file.name) else "documents"
    if first.lower().startswith("<doc>"):
        return "documents"
    if first.lower().startswith("<top>"):
        return "questions"
    judged = lines and all(_JUDGED.fullmatch(line) for line in islice(lines, 100))
    return "judgements" if judged else ""


def _pages(file: Path) -> Iterator[Page]:
    text = read_text(file)
    for name, fields in _smart_records(text):
        yield Page(name, _body(fields.get("T", ""), fields.get("W", "")), " ".join(fields.get("T", "").split()))
    for number, found in enumerate(_DOC.finditer(text), start=1):
        docno, title = _DOCNO.search(found[1]), _DOC_TITLE.search(found[1])
        if docno is None:
            raise DatasetError(f"{file}: document {number} has no <DOCNO>")
        body = _DOC_TITLE.sub("", _DOCNO.sub("", found[1]))
        yield Page(docno[1], _TAG.sub(" ", body), " ".join(_TAG.sub(" ", title[2]).split()) if title else "")


def _body(title: str, text: str) -> str:
    """Return the text without the title, if it repeats it, as in Cranfield."""
    words, above = text.split(), title.split()
    if not above or words[: len(above)] != above:
        return text
    match = re.match(r"\s*" + r"\s+".join(map(re.escape, above)), text)
    return text[match.end() :] if match else text


def _questions(file: Path) -> Iterator[tuple[str, str]]:
    """Yield each question's id and text. Judgements of SMART's questions refer to positions, not to numbers."""
    text = read_text(file)
    for place, (_, fields) in enumerate(_smart_records(text), start=1):
        yield str(place), " ".join(fields.get("W", "").split())
    for number, found in enumerate(_TOP.finditer(text), start=1):
        name, title = _NUM.search(found[1]), _TITLE.search(found[1])
        if name is None or title is None:
            raise DatasetError(f"{file}: topic {number} has no {'<title>' if name else '<num>'}")
        yield name[1], " ".join(title[1].split())


def _smart_records(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each record's id, and its fields by letter."""
    _, *pieces = _SMART_RECORD.split(text)
    for name, body in zip(pieces[::2], pieces[1::2], strict=True):
        _, *parts = _SMART_FIELD.split(body)
        yield name, dict(zip(parts[::2], parts[1::2], strict=True))

"""Folders in BEIR's format: ``corpus.jsonl``, ``queries.jsonl`` and judgements in ``qrels/*.tsv``.

Thakur et al., *BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models* (NeurIPS
2021).
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from klaw_core.cli.kit import counted
from klaw_eval.datasets.judgements import judged_questions, read_tsv
from klaw_eval.datasets.reading import read_lines, refuse_repeated
from klaw_eval.errors import DatasetError
from klaw_eval.values import Corpus, Dataset, Page

#: The file by which the format is recognised.
CORPUS = "corpus.jsonl"
_USUAL_PART = "test"


class _Text(msgspec.Struct, frozen=True):
    id: str = msgspec.field(name="_id")
    text: str | None = ""
    title: str | None = ""


def read(path: Path, part: str | None = None) -> Dataset:
    """Return a folder's documents and the questions judged in ``qrels/PART.tsv``. Raise DatasetError.

    The default of ``part`` is ``test``, if it exists, or the only file.
    """
    documents = [item for _, item in read_lines(path / CORPUS, _Text, 'a document {"_id", "title", "text"}')]
    refuse_repeated(path / CORPUS, (item.id for item in documents), "documents")
    pages = tuple(Page(item.id, item.text or "", item.title or "") for item in documents)
    queries = path / "queries.jsonl"
    asked = [item for _, item in read_lines(queries, _Text, 'a question {"_id", "text"}')]
    refuse_repeated(queries, (item.id for item in asked), "questions")
    qrels = _qrels(path / "qrels", part)
    questions, left_out = judged_questions({item.id: item.text or "" for item in asked}, read_tsv(qrels))
    corpus = Corpus(path.name, pages=pages, questions=questions)
    name = f"{path.name}/{qrels.stem}"
    return Dataset(name, "document", f"one index of {counted(len(pages), 'document')}", (corpus,), left_out)


def _qrels(folder: Path, part: str | None) -> Path:
    """Return the file of judgements. Raise DatasetError if it does not exist or is ambiguous."""
    files = {file.stem: file for file in sorted(folder.glob("*.tsv"))}
    wanted = part or (_USUAL_PART if _USUAL_PART in files else next(iter(files), _USUAL_PART))
    if wanted not in files:
        there = ", ".join(files) or "nothing"
        raise DatasetError(f"{folder} has no {wanted}.tsv; found: {there}")
    if part is None and len(files) > 1 and wanted != _USUAL_PART:
        raise DatasetError(f"{folder} has several parts: {', '.join(files)}", hint="name one: --part NAME")
    return files[wanted]

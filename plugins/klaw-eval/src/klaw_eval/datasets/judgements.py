"""Judgements (qrels) of the relevance of documents to questions, in two formats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from klaw_eval.datasets.reading import OmittedQuestions, read_text
from klaw_eval.errors import DatasetError
from klaw_eval.values import Question

#: The judged documents and their grades by question id; grades of 0 or less mean not relevant.
Judgements: TypeAlias = Mapping[str, Mapping[str, float]]

_TREC_COLUMNS = 4
_TSV_COLUMNS = 3


def read_trec(path: Path) -> Judgements:
    """Return the judgements of a file in TREC's format: question, unused column, document, grade."""
    rows = ((number, line.split()) for number, line in _lines(path))
    return _collected(path, "four columns: question 0 document grade", _TREC_COLUMNS, rows)


def read_tsv(path: Path) -> Judgements:
    """Return the judgements of a file in BEIR's format: question, document and grade, with tabs, below a header."""
    rows = ((number, [cell.strip() for cell in line.split("\t")]) for number, line in _lines(path))
    headless = ((number, row) for number, row in rows if number > 1 or _is_number(row[-1]))
    return _collected(path, "three columns separated by tabs: question document grade", _TSV_COLUMNS, headless)


def judged_questions(
    texts: Mapping[str, str], judgements: Judgements
) -> tuple[tuple[Question, ...], Mapping[str, int]]:
    """Return a question for each judged text, and the number of questions that were left out, by reason.

    A question without judgements is not part of the test set; one without a relevant document cannot be asked.
    """
    left_out = OmittedQuestions()
    questions = []
    for name, text in texts.items():
        if name in judgements:
            gold = {document: grade for document, grade in judgements[name].items() if grade > 0}
            if not left_out.reason(text, gold):
                questions.append(Question(name, text, gold))
    missing = len(judgements.keys() - texts.keys())
    if missing:
        left_out["judged, but without a text"] += missing
    return tuple(questions), dict(left_out)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            yield number, line


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _collected(path: Path, wanted: str, columns: int, rows: Iterable[tuple[int, list[str]]]) -> Judgements:
    """Group rows by question, which is the first column; the grade is the last, and the document the one before it."""
    judgements: dict[str, dict[str, float]] = {}
    for number, row in rows:
        if len(row) != columns or not _is_number(row[-1]):
            raise DatasetError(f"{path}:{number}: expected {wanted}, got {' '.join(row)[:80]!r}")
        judgements.setdefault(row[0], {})[row[-2]] = float(row[-1])
    return judgements

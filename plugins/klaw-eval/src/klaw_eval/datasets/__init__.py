"""Readers of test sets in their published formats, each of which returns a :class:`~klaw_eval.values.Dataset`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from klaw_eval.datasets import beam, beir, locomo, questions, squad, trec
from klaw_eval.datasets.reading import read_bytes
from klaw_eval.errors import DatasetError
from klaw_eval.values import Dataset

Format = Literal["locomo", "beir", "trec", "squad", "beam"]
FORMATS: tuple[Format, ...] = get_args(Format)
UNITS = locomo.UNITS

_FORMS: Mapping[Format, str] = {
    "locomo": "a LoCoMo file (a JSON list of conversations)",
    "beir": f"a BEIR folder ({beir.CORPUS}, queries.jsonl, qrels/)",
    "trec": "a TREC folder (documents, questions, judgements)",
    "squad": 'a SQuAD file (a JSON object with "data")',
    "beam": f"a BEAM folder (*/{beam.CHAT}, */{beam.QUESTIONS})",
}


def recognise(path: Path) -> Format:
    """Return the format of a test set. Raise DatasetError if it does not exist or its format is unknown."""
    if not path.exists():
        raise DatasetError(f"{path} does not exist", hint="give a file or folder of a test set: klaw eval DATASET")
    if path.is_dir():
        if any(path.glob(f"*/{beam.CHAT}")):
            return "beam"
        return "beir" if (path / beir.CORPUS).exists() else "trec"
    if path.suffix == ".jsonl":
        raise DatasetError(f"{path} is not a test set", hint=f"for your own questions: klaw eval --questions {path}")
    first = read_bytes(path).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if first in {b"[", b"{"}:
        return "locomo" if first == b"[" else "squad"
    raise DatasetError(f"{path} has an unknown form; known: {', '.join(_FORMS.values())}")


def read_dataset(
    path: Path, form: Format, *, unit: str = "session", pooled: bool = False, part: str | None = None
) -> Dataset:
    """Read a test set. Raise DatasetError if the file does not have its format, or has no questions.

    ``unit`` and ``pooled`` are for LoCoMo; ``part`` is the name of BEIR's qrels.
    """
    if path.is_dir() != (form in {"beir", "trec", "beam"}):
        raise DatasetError(f"{path} is a {'folder' if path.is_dir() else 'file'}, expected {_FORMS[form]}")
    match form:
        case "locomo":
            dataset = locomo.read(path, unit, pooled=pooled)
        case "beir":
            dataset = beir.read(path, part)
        case "trec":
            dataset = trec.read(path)
        case "squad":
            dataset = squad.read(path)
        case "beam":
            dataset = beam.read(path)
    return asking(dataset, path)


def read_bilingual(path: Path, other: Path) -> Dataset:
    """Read two SQuAD files, which are translations of each other, as one bilingual test set. Raise DatasetError."""
    return asking(squad.read_bilingual(path, other), path)


def read_questions(path: Path) -> Dataset:
    """Read the user's own questions. Raise DatasetError."""
    return asking(questions.read(path), path)


def asking(dataset: Dataset, path: Path) -> Dataset:
    """Return the test set if it has documents and questions. Raise DatasetError otherwise, with the reason."""
    if not dataset.own and not any(corpus.pages or corpus.talks for corpus in dataset.corpora):
        raise DatasetError(f"{path} contains no documents")
    if not any(dataset.questions()):
        reasons = "; ".join(f"{count} {reason}" for reason, count in dataset.left_out.items())
        raise DatasetError(f"{path} contains no usable question{f' ({reasons})' if reasons else ''}")
    return dataset

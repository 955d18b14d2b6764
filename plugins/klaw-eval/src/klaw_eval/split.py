"""Select questions: one of two fixed halves, and a sample for a quick run."""

from __future__ import annotations

from hashlib import sha256

from klaw_eval.values import Dataset

#: One for tuning, the other for reporting.
HALVES = ("tune", "report")


def half_of(side: str) -> str:
    """Return the half of :attr:`Question.side`, which only depends on its hash: even or odd."""
    return HALVES[sha256(side.encode("utf-8", "surrogatepass")).digest()[-1] % 2]


def select(dataset: Dataset, half: str | None, limit: int | None) -> Dataset:
    """Return the test set with the questions of one half (None: both), at most ``limit`` of them.

    The sample is selected by another hash, so it covers the whole set and is the same each time.
    """
    ids = [question.id for question in dataset.questions() if half is None or half_of(question.side) == half]
    if limit is not None:
        ids = sorted(ids, key=lambda name: sha256(f"limit\0{name}".encode("utf-8", "surrogatepass")).digest())[:limit]
    return dataset.only(set(ids))

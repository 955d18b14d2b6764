"""Which questions are asked: a half that is the same for ever, and a sample for a quick look."""

from __future__ import annotations

from hashlib import sha256

from klaw_eval.values import Dataset

#: Tune on one, report the other.
HALVES = ("tune", "report")


def half_of(side: str) -> str:
    """Return the half of what :attr:`Question.side` says, by its hash and nothing else: even or odd."""
    return HALVES[sha256(side.encode("utf-8", "surrogatepass")).digest()[-1] % 2]


def select(dataset: Dataset, half: str | None, limit: int | None) -> Dataset:
    """Return the test set with the questions of one half (None: of both), at most ``limit`` of them.

    The sample is drawn by another hash: it comes from everywhere in the set, and is the same the next time.
    """
    ids = [question.id for question in dataset.questions() if half is None or half_of(question.side) == half]
    if limit is not None:
        ids = sorted(ids, key=lambda name: sha256(f"limit\0{name}".encode("utf-8", "surrogatepass")).digest())[:limit]
    return dataset.only(set(ids))

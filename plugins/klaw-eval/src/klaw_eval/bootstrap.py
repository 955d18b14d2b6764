"""The confidence interval of a mean: percentiles of a bootstrap over groups of questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import field, frozen

from klaw_eval.metrics import Scores

RESAMPLES = 2_000
SEED = 0
LEVEL = 0.95
_BLOCK = 4_000_000  # counts drawn at once, which limits the memory


@frozen
class Interval:
    """Means and their intervals, one value per column each."""

    mean: Scores = field(eq=False)
    low: Scores = field(eq=False)
    high: Scores = field(eq=False)


def resampled_over(groups: Sequence[str]) -> str:
    """Return what :func:`interval` resamples: ``conversations`` if there are several, otherwise ``questions``."""
    return "conversations" if len(set(groups)) > 1 else "questions"


def interval(values: Scores, groups: Sequence[str] = ()) -> Interval:
    """Return the mean over questions of each column and its 95 % interval; the result is deterministic.

    ``values`` has shape (questions, columns). Questions of one group (a conversation) are not independent, so whole
    groups are resampled if there are several (Field and Welsh, *Bootstrapping clustered data*, JRSS B 2007). For a
    paired interval, pass the differences of two systems on the same questions.
    """
    if resampled_over(groups) == "conversations":
        _, members = np.unique(np.array(groups), return_inverse=True)
    else:
        members = np.arange(len(values))
    drawn = int(members.max()) + 1
    sums = np.zeros((drawn, values.shape[1]))
    np.add.at(sums, members, values)
    counts = np.bincount(members, minlength=drawn).astype(np.float64)
    means = np.concatenate([times @ sums / (times @ counts)[:, None] for times in _draws(drawn)])
    low, high = np.quantile(means, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
    return Interval(values.mean(axis=0), low, high)


def _draws(size: int) -> Iterator[Scores]:
    """Yield, in blocks, the number of times that each of ``size`` groups is drawn in each resample."""
    generator = np.random.default_rng(SEED)
    rows = max(1, _BLOCK // size)
    for start in range(0, RESAMPLES, rows):
        block = min(rows, RESAMPLES - start)
        drawn = (generator.integers(size, size=size) for _ in range(block))
        yield np.array([np.bincount(members, minlength=size) for members in drawn], np.float64)

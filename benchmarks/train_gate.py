"""Train the gate's classifier of acknowledgements, and measure the gate.

    python benchmarks/train_gate.py [--missed .015] [--dry-run] [--test DIR]

Trains on ``benchmarks/gate/{en,ru,zh}.{ack,need}.txt``: one message a line, written by a language model for this
purpose; ``ack`` need nothing from memory, ``need`` do. Most needs are close to acknowledgements: short, with thanks,
without a question mark. Logistic regression with an L2 penalty, classes of equal weight, by full gradients with
momentum (Nesterov). The threshold of each language is the lowest at which, in cross-validation with five folds, at most
the share ``--missed`` of its needs is declined. The weights are rounded to bytes and written to the extension; the same
messages give the same bytes.

DIR has files of the same names, with messages that nothing was trained on (``NAME.en.ack.txt`` for several sets).
Printed are the acknowledgements that lead to a lookup and the needs that are declined, by the rules alone
and by the gate with the new weights.
"""

from __future__ import annotations

import argparse
import json
import math
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from klaw_facts import acknowledgements, gate
from klaw_facts.acknowledgements import PARTS_FACTOR, STEP, WEIGHTS, Classifier, features_of, hash_of, language_of

HERE = Path(__file__).parent / "gate"
LANGUAGES = ("en", "ru", "zh")
SIZE = 1 << 17
FOLDS = 5
PENALTY = 1.0
ROUNDS = 150
BYTE = 127


class Features:
    """A sparse matrix: a row for each message, a column for each hash."""

    def __init__(self, messages: Sequence[str]) -> None:
        columns: list[int] = []
        values: list[float] = []
        ends: list[int] = []
        for message in messages:
            words, parts = features_of(message)
            part = PARTS_FACTOR / math.sqrt(len(parts) or 1)
            for group, value in ((sorted(words), 1.0), (sorted(parts), part)):
                columns += [hash_of(feature, SIZE) for feature in group]
                values += [value] * len(group)
            ends.append(len(columns))
        self.columns, self.values = np.array(columns), np.array(values)
        self.rows = np.repeat(np.arange(len(ends)), np.diff([0, *ends]))
        self.count = len(ends)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of each row."""
        return np.bincount(self.rows, self.values * weights[self.columns], minlength=self.count)

    def gradient(self, errors: np.ndarray) -> np.ndarray:
        """Return the sum of the rows, each times its error."""
        return np.bincount(self.columns, self.values * errors[self.rows], minlength=SIZE)

    def largest(self) -> float:
        """Return an estimate of the largest eigenvalue of the matrix times its transpose, by power iteration."""
        vector = np.ones(self.count)
        for _ in range(20):
            vector = self.scores(self.gradient(vector / np.linalg.norm(vector)))
        return float(np.linalg.norm(vector))


def fit(features: Features, labels: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Return the weights of a regression on the rows that are counted."""
    share = np.where(labels, 0.5 / labels[counted].mean(), 0.5 / (1 - labels[counted].mean())) * counted
    step = 1 / (0.25 * share.max() * features.largest() + PENALTY)
    weights = ahead = np.zeros(SIZE)
    for number in range(ROUNDS):
        errors = share * (1 / (1 + np.exp(-features.scores(ahead))) - labels)
        moved = ahead - step * (features.gradient(errors) + PENALTY * ahead)
        ahead = moved + number / (number + 3) * (moved - weights)
        weights = moved
    return weights


def load(directory: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Return the acknowledgements and the needs of each file of a directory, by name (``en`` or ``NAME.en``)."""
    found = {}
    for path in sorted(directory.glob("*.ack.txt")):
        name = path.name.removesuffix(".ack.txt")
        needs = (directory / f"{name}.need.txt").read_text("utf-8").splitlines()
        found[name] = (list(dict.fromkeys(path.read_text("utf-8").splitlines())), list(dict.fromkeys(needs)))
    return found


def train(missed: float) -> Classifier:
    """Train on all messages; print the share of acknowledgements over the threshold in cross-validation."""
    sets = load(HERE)
    messages = [message for pair in sets.values() for messages in pair for message in messages]
    labels = np.array([kind == 0 for pair in sets.values() for kind in (0, 1) for _ in pair[kind]])
    languages = np.array([language_of(message) or "" for message in messages])
    features = Features(messages)
    folds = np.random.default_rng(1).permutation(len(messages)) % FOLDS
    unseen = np.zeros(len(messages))
    for fold in range(FOLDS):
        there = folds == fold
        unseen[there] = features.scores(fit(features, labels, ~there))[there]
    thresholds = {}
    for language in LANGUAGES:
        of = languages == language
        needs = np.sort(unseen[of & ~labels])[::-1]
        thresholds[language] = round(float(needs[int(missed * len(needs))]), 4)
        looked_up = (unseen[of & labels] <= thresholds[language]).mean()
        print(f"{language}: {labels[of].sum()} acknowledgements, {len(needs)} needs; {looked_up:.3f} are looked up")
    rounded = np.clip(np.round(fit(features, labels, np.ones(len(messages), bool)) / STEP), -BYTE, BYTE)
    return Classifier((rounded + BYTE + 1).astype(np.uint8).tobytes(), thresholds)


def measure(directory: Path) -> None:
    """Print what the gate does with the messages of a directory, by the rules alone and with the classifier."""
    for name, (ack, need) in load(directory).items():
        counts = []
        for decide in (gate.rules_decline, gate.declines):
            looked_up, declined = sum(not decide(each) for each in ack), [each for each in need if decide(each)]
            counts.append(f"{looked_up} of {len(ack)} looked up, {len(declined)} of {len(need)} declined")
        print(f"{name}: rules {counts[0]}; with the classifier {counts[1]} {declined or ''}")


def main() -> None:
    """Train, write and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missed", type=float, default=0.015)
    parser.add_argument("--dry-run", action="store_true", help="measure the weights that are there")
    parser.add_argument("--test", type=Path)
    options = parser.parse_args()
    if not options.dry_run:
        made = train(options.missed)
        WEIGHTS.write_bytes(json.dumps(dict(made.thresholds)).encode() + b"\n" + zlib.compress(made.weights, 9))
        print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size:,} bytes")
        acknowledgements.classifier.cache_clear()
    if options.test:
        measure(options.test)


if __name__ == "__main__":
    main()

"""What the benchmarks search: real sentences with real vectors, chunks of about 300 words made of them, real questions.

    python benchmarks/corpus.py DATA --cache DIR [--count 100000]     embed once, and print what there is

DATA holds any of these; what is not there is left out:

- ``notes/**/*.md``: Markdown, such as the RFCs of Rust (https://github.com/rust-lang/rfcs)
- ``cranfield/cran.all.1400`` and ``cran.qry`` (http://ir.dcs.gla.ac.uk/resources/test_collections/cran/)
- ``locomo/*.json``: LoCoMo (https://github.com/snap-research/locomo; CC BY-NC 4.0)
- ``xquad/xquad.en.json`` (https://github.com/google-deepmind/xquad)

An *excerpt* is a sentence of a document, or two or three that follow each other, at most 600 characters; each is
distinct, and its vector is the default model's. A *chunk* is an excerpt and sentences from around it, or now and then
from anywhere, until it has 200 to 400 words: so its words are natural, and its vector is that of its first excerpt,
because embedding whole chunks would take twenty times as long and cost a search the same. Beyond the real vectors
others are made: the normalised mixture of a real one, one of its neighbours in the text, and noise. Everything is the
same in every run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # peers must not carry Klaw in their memory
    from klaw_core import Embedder

Vector: TypeAlias = NDArray[np.float32]  # unit length
Matrix: TypeAlias = NDArray[np.float32]  # rows of unit length

# An excerpt of a real text is not shorter than this: headings, list marks and greetings are no sentences.
_MIN_CHARACTERS = 25
_MAX_CHARACTERS = 600
_MAX_SENTENCES = 3
_WORDS = (200, 400)
_RUN = 3  # sentences that a chunk takes at once
_NEAR = 12  # runs: as far as "around an excerpt" reaches
_NOISE = 0.35  # the length of the noise in a made vector, beside a mixture of length 1
_BATCH = 512


@dataclass(frozen=True)
class Excerpt:
    """Consecutive sentences of a document: ``place`` counts sentences through all documents in order."""

    text: str
    place: int


@dataclass(frozen=True)
class Embedded:
    """Texts, such as questions, and their vectors, row i for text i: float32, unit length."""

    texts: Sequence[str]
    vectors: Matrix

    def save(self, directory: Path) -> None:
        """Write both into a directory."""
        (directory / "questions.json").write_text(json.dumps(self.texts))
        np.save(directory / "questions.npy", self.vectors)

    @classmethod
    def load(cls, directory: Path) -> Embedded:
        """Read what :meth:`save` wrote."""
        return cls(json.loads((directory / "questions.json").read_text()), np.load(directory / "questions.npy"))


class Chunks(Sequence[str]):
    """Texts of 200 to 400 words, made when they are asked for: chunk i begins with excerpt i, and is always the same.

    Beyond the excerpts they begin with one again, and go on in another way.
    """

    def __init__(self, excerpts: Sequence[Excerpt], sentences: Sequence[str], count: int) -> None:
        self._excerpts, self._sentences, self._count = excerpts, sentences, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._make(number) for number in range(*index.indices(self._count))]
        if not 0 <= index < self._count:
            raise IndexError(index)
        return self._make(index)

    def _make(self, number: int) -> str:
        excerpt = self._excerpts[number % len(self._excerpts)]
        dice = random.Random(number)
        parts = [excerpt.text]
        words, wanted = excerpt.text.count(" ") + 1, dice.randint(*_WORDS)
        while words < wanted:
            near = excerpt.place + _RUN * dice.randint(1, _NEAR) if dice.random() < 0.7 else dice.randrange(1 << 30)
            first = near % len(self._sentences)
            run = " ".join(self._sentences[first : first + _RUN])
            parts.append(run)
            words += run.count(" ") + 1
        return " ".join(parts)


class Corpus:
    """Everything that the benchmarks take from ``data``; what was embedded is kept in ``cache``."""

    def __init__(self, data: Path, cache: Path) -> None:
        self._data, self._cache = data, cache

    def embedded(self, count: int) -> Embedded:
        """Return ``count`` excerpts, or as many as there are, with the default model's vectors."""
        texts = [excerpt.text for excerpt in self.excerpts]
        return Embedded(texts[:count], self._embed(texts, count))

    def chunks(self, count: int) -> Chunks:
        """Return ``count`` texts of 200 to 400 words; chunk i begins with excerpt i."""
        return Chunks(self.excerpts, self._sentences, count)

    def vectors(self, count: int, real: int = 100_000) -> Matrix:
        """Return a vector for each of ``count`` chunks: the first ``real`` are real ones, the others are made."""
        known = self.embedded(min(real, count)).vectors
        if len(known) >= count:
            return known
        path = self._cache / f"{sha256(known.tobytes()).hexdigest()[:16]}-{count}.npy"
        if not path.exists():
            self._write_made(path, known, count)
        return np.asarray(np.load(path, mmap_mode="r"))

    def questions(self, count: int = 240) -> Embedded:
        """Return real questions, as many of each set, with their vectors."""
        sets = [list(dict.fromkeys(found)) for found in (self._xquad_questions(), self._turns(), self._cranfield())]
        for questions in sets:
            random.Random(0).shuffle(questions)
        dealt = [item for group in zip(*_padded(sets), strict=True) for item in group if item is not None]
        return Embedded(dealt[:count], self._embed(dealt, count))

    @cached_property
    def excerpts(self) -> Sequence[Excerpt]:
        """Every distinct excerpt: single sentences first, then pairs, and so on; among these in a random order."""
        found: dict[str, int] = {}
        for length in range(1, _MAX_SENTENCES + 1):
            new: dict[str, int] = {}
            for start, sentences in self._documents:
                for first in range(len(sentences) - length + 1):
                    text = " ".join(sentences[first : first + length])[:_MAX_CHARACTERS]
                    if text not in found:
                        new.setdefault(text, start + first)
            shuffled = list(new.items())
            random.Random(length).shuffle(shuffled)
            found |= dict(shuffled)
        return [Excerpt(text, place) for text, place in found.items()]

    @cached_property
    def _documents(self) -> Sequence[tuple[int, Sequence[str]]]:
        """The sentences of every document, with the number of the first."""
        documents, start = [], 0
        for text in self._texts():
            parts = [" ".join(part.split()) for part in re.split(r"(?<=[.!?])\s+|\n+", text)]
            sentences = [part for part in parts if len(part) > _MIN_CHARACTERS]
            documents.append((start, sentences))
            start += len(sentences)
        if not start:
            raise SystemExit(f"{self._data} has none of notes/, cranfield/, locomo/, xquad/")
        return documents

    @cached_property
    def _sentences(self) -> Sequence[str]:
        return [sentence for _, sentences in self._documents for sentence in sentences]

    def _texts(self) -> Iterator[str]:
        for note in sorted(self._data.glob("notes/**/*.md")):
            yield note.read_text("utf-8", errors="replace")
        for abstracts in sorted(self._data.glob("cranfield/cran.all.1400")):
            for record in re.split(r"^\.I \d+\n", abstracts.read_text(errors="replace"), flags=re.MULTILINE):
                yield record.partition(".W\n")[2]
        for sample in self._conversations():
            sessions = sample["conversation"].items()
            for turns in (turns for name, turns in sessions if re.fullmatch(r"session_\d+", name)):
                yield "\n".join(f"{turn['speaker']}: {turn['text']}" for turn in turns)
        yield from (paragraph["context"] for paragraph in self._paragraphs())

    def _xquad_questions(self) -> Iterator[str]:
        for paragraph in self._paragraphs():
            yield from (item["question"] for item in paragraph["qas"])

    def _turns(self) -> Iterator[str]:
        for sample in self._conversations():
            yield from (item["question"] for item in sample["qa"])

    def _cranfield(self) -> Iterator[str]:
        for queries in sorted(self._data.glob("cranfield/cran.qry")):
            for record in re.split(r"^\.I \d+\n", queries.read_text(), flags=re.MULTILINE)[1:]:
                yield " ".join(record.partition(".W\n")[2].split())

    def _conversations(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self._data.glob("locomo/*.json")):
            yield from json.loads(path.read_text())

    def _paragraphs(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self._data.glob("xquad/xquad.en.json")):
            yield from chain.from_iterable(article["paragraphs"] for article in json.loads(path.read_text())["data"])

    def _embed(self, texts: Sequence[str], count: int) -> Matrix:
        """Return the default model's vectors of the first ``count`` texts; what is in the cache is only read."""
        self._cache.mkdir(parents=True, exist_ok=True)
        embedder = default_model()
        key = sha256("\0".join([repr(embedder.space), *texts]).encode()).hexdigest()[:16]
        path = self._cache / f"{key}.npy"
        known: Matrix = np.load(path) if path.exists() else np.empty((0, embedder.space.dimension), np.float32)
        if len(known) < count:
            known = np.concatenate((known, embed(texts[len(known) : count], embedder)))
            _save(path, known)
        return known[:count]

    def _write_made(self, path: Path, known: Matrix, count: int) -> None:
        """Write the real vectors and those that are made of them, a part at a time: they may not fit in memory."""
        places = np.array([excerpt.place for excerpt in self.excerpts[: len(known)]])
        in_text = np.argsort(places, kind="stable")
        rank = np.empty_like(in_text)
        rank[in_text] = np.arange(len(in_text))
        dice = np.random.default_rng(0)
        partial = path.with_suffix(f".{os.getpid()}.npy")
        out = np.lib.format.open_memmap(partial, "w+", np.float32, (count, known.shape[1]))
        out[: len(known)] = known
        for first in range(len(known), count, 1 << 16):
            own = np.arange(first, min(first + (1 << 16), count)) % len(known)
            near = in_text[(rank[own] + dice.integers(1, 9, own.size)) % len(in_text)]
            share = dice.uniform(0.5, 1, (own.size, 1)).astype(np.float32)
            mixed = _unit(share * known[own] + (1 - share) * known[near])
            noise = dice.standard_normal(mixed.shape, np.float32) * np.float32(_NOISE / known.shape[1] ** 0.5)
            out[first : first + own.size] = _unit(mixed + noise)
        out.flush()
        partial.replace(path)


def embed(texts: Sequence[str], embedder: Embedder) -> Matrix:
    """Embed texts, short ones together; row i is for text i."""
    vectors = np.empty((len(texts), embedder.space.dimension), np.float32)
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    for first in range(0, len(order), _BATCH):
        part = order[first : first + _BATCH]
        vectors[part] = embedder.embed_documents([texts[number] for number in part])
    return vectors


def default_model() -> Embedder:
    """Return the embedder of Klaw's default configuration."""
    from klaw_core import ComponentContext
    from klaw_core.plugins.discover import discover

    component = discover().component("embedder", "onnx")
    place = Path(tempfile.gettempdir())  # it keeps nothing there
    embedder: Embedder = component.factory(component.options(), ComponentContext(place, place))
    return embedder


def _padded(sets: Iterable[Sequence[str]]) -> list[list[str | None]]:
    """Return the sets, each as long as the longest."""
    lists = [list(items) for items in sets]
    longest = max(map(len, lists))
    return [[*items, *[None] * (longest - len(items))] for items in lists]


def _unit(rows: Matrix) -> Matrix:
    unit: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32, copy=False)
    return unit


def _save(path: Path, vectors: Matrix) -> None:
    partial = path.with_suffix(f".{os.getpid()}.npy")
    np.save(partial, vectors)
    partial.replace(path)


def main() -> None:
    """Embed what the other benchmarks will ask for, and print what there is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--count", type=int, default=100_000)
    arguments = parser.parse_args()
    corpus = Corpus(arguments.data, arguments.cache)
    print(f"{len(corpus.excerpts):,} distinct excerpts")
    embedded, questions = corpus.embedded(arguments.count), corpus.questions()
    lengths = [len(text) for text in embedded.texts]
    print(f"{len(lengths):,} embedded, {sum(lengths) / len(lengths):.0f} characters each on average")
    print(f"{len(questions.texts)} questions, such as {questions.texts[:3]}")
    sample = corpus.chunks(1_000)[:]
    print(f"chunks of {sum(len(text.split()) for text in sample) / len(sample):.0f} words, for example:\n{sample[0]}")


if __name__ == "__main__":
    main()

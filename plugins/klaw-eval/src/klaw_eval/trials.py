"""Compare embedders on a copy of a part of a memory, with the user's own questions, before a reindex.

The copy and its indexes are in a temporary directory, which is removed at the end. The memory is only read.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from statistics import fmean, median
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from klaw_core import EmbeddingError, KlawError, Memory
from klaw_eval.building import OpenIndex, holds, refuse_elsewhere, text_units
from klaw_eval.errors import DatasetError
from klaw_eval.metrics import DEPTH
from klaw_eval.running import MODES, ProgressBars, ranked
from klaw_eval.values import Question

if TYPE_CHECKING:
    from klaw_core import Config, SearchResult

_NAME = "part"
_NOTES = frozenset((".md", ".markdown", ".txt"))
_UNSAFE = re.compile(r"[^\w. +-]+")
_LONGEST_SEGMENT = 80
_FIRST = 5


@frozen
class Figures:
    """The quality of one kind of search, and ``found``: for each question the rank of the first right answer, or 0."""

    found: tuple[int, ...] = field(repr=False)

    def hit(self, depth: int) -> float:
        """Return the share of the questions with a right answer among the first ``depth`` results."""
        return fmean(0 < rank <= depth for rank in self.found)

    @property
    def mrr(self) -> float:
        """The mean of 1 / rank of the first right answer; 0 for a rank above ten."""
        return fmean(1 / rank if rank else 0.0 for rank in self.found)


@frozen
class Trial:
    """What an embedder found. ``fused`` is an ordinary search, ``vectors`` a search by vectors alone.

    ``question_seconds`` is the median of whole searches in a process that has the model loaded. ``index_seconds`` and
    ``index_bytes`` are those of the part; ``reindex_seconds`` is an estimate for the whole memory.
    """

    embedder: str
    model: str
    dimension: int
    fused: Figures
    vectors: Figures
    question_seconds: float
    index_seconds: float
    index_bytes: int
    reindex_seconds: float


@frozen
class Part:
    """The documents of a memory that are copied for a comparison, by the number of their file.

    ``chunks`` and ``all_chunks`` count those of the memory's own index. ``missing`` are the right answers that the
    memory does not have; they count as not found.
    """

    paths: Mapping[int, str]
    chunks: int
    all_documents: int
    all_chunks: int
    missing: tuple[str, ...]


@frozen
class Trials:
    """The trials of some embedders on the same part and questions, in the order in which they were given."""

    part: Part
    questions: tuple[Question, ...] = field(repr=False)
    trials: tuple[Trial, ...]


def compare_embedders(
    config: Config, other: Config, questions: Sequence[Question], bars: ProgressBars, *, chunks: int | None
) -> Trials:
    """Index a part of the configured memory with its embedder and with that of ``other``, and ask the questions.

    The part has the documents with the right answers, and others up to ``chunks`` (None: all). The other embedder is
    tried first, because it is the one that may not work. Raise DatasetError if no right answer is in the memory,
    EmbeddingError if an embedder fails, KlawError.
    """
    with tempfile.TemporaryDirectory(prefix="klaw-try-") as directory:
        place = Path(directory).resolve()
        with Memory.open(config) as memory:
            part = _copied(memory, questions, chunks, place / _NAME)
        second = _trial(_apart(other, place / "other"), part, questions, place, bars)
        first = _trial(_apart(config, place / "configured"), part, questions, place, bars)
    return Trials(part, tuple(questions), (first, second))


def _apart(config: Config, data_dir: Path) -> Config:
    """Return the configuration of an index of its own: in a file, wherever the memory's own index is."""
    kept = config.store.options if config.store.type == "sqlite" else {}
    options = {key: value for key, value in kept.items() if key != "path"}
    return evolve(config, data_dir=data_dir, sources=(), store=evolve(config.store, type="sqlite", options=options))


def _copied(memory: Memory, questions: Sequence[Question], chunks: int | None, place: Path) -> Part:
    """Write the documents of a part into a directory. Raise DatasetError if none has a right answer."""
    searched = memory.collections(searched=True)
    listed = {each.path: each.chunks for each in memory.recent(None) if each.collection in searched}
    wanted, missing = _wanted(memory, listed, questions)
    if not wanted:
        shown = ", ".join(map(repr, list(listed)[:2])) or "nothing"
        raise DatasetError(
            f"no right answer is in the memory: the questions expect {', '.join(map(repr, missing[:2]))}; "
            f"the memory has {shown}",
            hint="check that the questions belong to this memory: klaw list",
        )
    # The same documents at each call, from everywhere in the memory.
    order = sorted(listed, key=lambda path: (path not in wanted, sha256(_bytes(path)).digest()))
    paths: dict[int, str] = {}
    count = 0
    for path in order:
        if path not in wanted and chunks is not None and count >= chunks:
            break
        text = _text(memory, path)
        if text is not None:
            _write(place, len(paths), path, text)
            paths[len(paths)] = path
            count += listed[path]
    return Part(paths, count, len(listed), sum(listed.values()), missing)


def _wanted(
    memory: Memory, listed: Mapping[str, int], questions: Sequence[Question]
) -> tuple[set[str], tuple[str, ...]]:
    """Return the paths of documents with right answers, and the right answers that no document has."""
    texts = dict.fromkeys(text for question in questions for text in question.contains)
    gold = dict.fromkeys(name for question in questions if not question.contains for name in question.gold)
    wanted = {name for name in gold if name in listed}
    found = set[str]()
    for path in listed if texts else ():
        content = _text(memory, path) or ""
        if here := {text for text in texts if holds(content, text)}:
            found |= here
            wanted.add(path)
    return wanted, tuple(name for name in (*gold, *texts) if name not in wanted and name not in found)


def _text(memory: Memory, path: str) -> str | None:
    try:
        return memory.get(path).content
    except KlawError:  # it has gone since the last index run
        return None


def _write(place: Path, number: int, path: str, text: str) -> None:
    """Write a document at a path with the words of its own, because a search also reads names.

    An id of a document may be any string, so its path is not used as it is. A converted document is text.
    """
    segments = [_UNSAFE.sub("_", part).strip(" .")[-_LONGEST_SEGMENT:] for part in PurePosixPath(path).parts]
    name = Path(*[segment for segment in segments if segment] or ["document"])
    if name.suffix.lower() not in _NOTES:
        name = name.with_name(f"{name.name}.md")
    file = place / f"{number:07}" / name
    try:
        file.parent.mkdir(parents=True)
        file.write_bytes(_bytes(text))
    except OSError as error:
        raise DatasetError(f"{file} cannot be written: {error.strerror or error}") from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _trial(config: Config, part: Part, questions: Sequence[Question], place: Path, bars: ProgressBars) -> Trial:
    with Memory.open(config) as memory:
        refuse_elsewhere(memory, place)
        memory.embedder.embed_documents(["A first text, so that a missing model is reported at once."])
        with bars.indexing() as on_progress:
            report = memory.index(place / _NAME, name=_NAME, on_progress=on_progress)
        space = memory.status().space
        if report.lacking or space is None:
            raise EmbeddingError("; ".join(report.notices) or f"{config.embedding.type} has embedded nothing")
        index = OpenIndex(memory, _units(part), frozenset(part.paths.values()))
        seconds, figures = _asked(index, questions, bars)
    return Trial(
        str(space),
        space.model,
        space.dimension,
        figures["fused"],
        figures["vectors"],
        seconds,
        report.seconds,
        sum(file.stat().st_size for file in config.data_dir.glob("klaw.db*")),
        report.seconds * part.all_chunks / max(1, part.chunks),
    )


def _units(part: Part) -> Callable[[SearchResult, Question], Iterable[str]]:
    def units_of(result: SearchResult, question: Question) -> Iterator[str]:
        if question.contains:
            yield from text_units(result, question)
        else:
            yield part.paths[int(PurePosixPath(result.path).parts[1])]

    return units_of


def _asked(index: OpenIndex, questions: Sequence[Question], bars: ProgressBars) -> tuple[float, Mapping[str, Figures]]:
    """Ask the questions; return the median seconds of an ordinary search, and the figures of both kinds."""
    index.memory.search(questions[0].text, DEPTH, mode="fts")  # opens and imports what every search needs
    ranks: dict[str, list[int]] = {"fused": [], "vectors": []}
    seconds, notices = [], Counter[str]()
    with bars.asking(len(questions)) as asked_one:
        for question in questions:
            started = time.perf_counter()
            index.memory.search(question.text, DEPTH)  # the only one that embeds the question
            seconds.append(time.perf_counter() - started)
            for kind, found in ranks.items():
                names = ranked(index, question, MODES[kind], notices)
                right = (rank for rank, name in enumerate(names, start=1) if name in question.gold)
                found.append(next(right, 0))
            asked_one()
    return median(seconds), {kind: Figures(tuple(found)) for kind, found in ranks.items()}


def only_one_finds(a: Figures, b: Figures) -> tuple[int, int]:
    """Return how many questions only ``a``, and only ``b``, answers among the first five results."""
    pairs = [(0 < one <= _FIRST, 0 < other <= _FIRST) for one, other in zip(a.found, b.found, strict=True)]
    return sum(one and not other for one, other in pairs), sum(other and not one for one, other in pairs)

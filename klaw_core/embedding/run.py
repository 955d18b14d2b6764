"""Vectors for texts: computed call by call, never taken unchecked, and left for later where an embedder fails."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import define, field

from klaw_core.embedding.abilities import is_remote, texts_per_call
from klaw_core.errors import (
    EmbedderUnavailableError,
    KlawError,
    ModelCorruptError,
    ModelNotFoundError,
    PluginContractError,
    PluginError,
    VectorSpaceError,
    as_klaw_error,
    isolated,
)
from klaw_core.interfaces.components import Embedder
from klaw_core.values.vectors import Matrix, SpaceRecord, Vector, VectorSpace

#: Embedded once, when an index is made; its vector proves later that an embedder is still in the same space.
PROBE = "The quick brown fox jumps over the lazy dog; Съешь ещё этих мягких французских булок; 天地玄黄，宇宙洪荒。"

#: What helps where an index is of another model than the configured one; to embed what lacks a vector does not.
ALL_ANEW = "`klaw reindex` embeds everything again"

#: The least cosine of two probe vectors of one model; why it is this: docs/decisions/0017-embedders-and-spaces.md.
SAME_MODEL = 0.98

#: The same under one set of weights, in any runtime and precision that serves them: 8 bits in one and float32 in
#: another agree to .997 (docs/decisions/0054-openvino.md).
SAME_WEIGHTS = 0.99

#: How many characters one call to a local model holds at most, 64 ordinary chunks: calls of equal work, whatever the
#: lengths, so that a kill costs little, Ctrl-C is heard soon and the time left is a fair guess.
CHARACTERS_PER_CALL = 80_000

#: A commit has a price: what a local model answers in so many seconds is kept together.
SECONDS_PER_COMMIT = 1.0

#: After these an embedder is not asked again in the same run: the next call would meet the same.
UNUSABLE = (EmbedderUnavailableError, ModelNotFoundError, ModelCorruptError, PluginError, VectorSpaceError)

# Of other failures so many in a row: one text may be at fault, which halving finds, or a server that has fallen ill.
_MOST_FAILURES = 16
_UNIT_TOLERANCE = 1e-3
# Revisions that do not identify any weights.
_UNKNOWN_WEIGHTS = {"", "unknown"}


@define
class EmbeddingRun:
    """What one run asked of an embedder, what it cost, and what went wrong: the mutable part of embedding.

    ``error`` is the last failure; once the run has ``stopped``, nothing more is sent. ``texts_per_call`` takes the
    place of the embedder's own. ``embedded`` counts texts answered, ``cached`` those that were found in the cache.
    ``waiting`` are the keys of chunks that were written in this run and have no vector yet, by collection.
    ``proven`` is the record whose probe the model has last agreed with: each collection has one of its own.
    """

    texts_per_call: int | None = None
    error: KlawError | None = None
    stopped: bool = False
    embedded: int = 0
    cached: int = 0
    waiting: dict[str, list[int]] = field(factory=dict)
    proven: SpaceRecord | None = None
    _failures: int = 0

    def call_size(self, embedder: Embedder) -> int:
        """Return how many texts one call holds, one at least. Raise what the embedder raises if it cannot say."""
        return max(1, self.texts_per_call or texts_per_call(embedder))

    def fail(self, error: Exception) -> None:
        """Note a failure; stop if the next call would fail too."""
        self.error = as_klaw_error(error)
        self._failures += 1
        self.stopped = self.stopped or isinstance(self.error, UNUSABLE) or self._failures >= _MOST_FAILURES

    @property
    def failing(self) -> bool:
        """Whether the last calls failed, more than one: then no single text is at fault."""
        return self.stopped or self._failures > 1

    def succeed(self, texts: int) -> None:
        """Note that so many texts were answered."""
        self.embedded += texts
        self._failures = 0


def embed_chunk_texts(
    chunk_texts: Mapping[str, str], embedder: Embedder, run: EmbeddingRun, record: SpaceRecord | None = None
) -> Iterator[dict[str, Vector]]:
    """Embed texts by their hash; yield the vectors of one call at a time.

    A call that fails is noted, and its halves are tried, so that one text that is refused costs only itself.

    Of a model on a server, or one whose revision does not identify its weights, the first call of a run takes the
    probe along, and its vector must agree with the one in ``record``.
    """
    # Similar lengths side by side waste no padding; the hash makes the order independent of the files'.
    digests = deque(sorted(chunk_texts, key=lambda digest: (len(chunk_texts[digest]), digest)))
    longest = True
    halves: list[list[str]] = []  # of calls that failed: one text may be at fault; the next call is the last of them
    while (digests or halves) and not run.stopped:
        part: list[str] = []
        try:
            unproven = record is not None and run.proven is not record and _may_have_changed(record, embedder)
            proof = [PROBE] if unproven else []
            if halves:
                part = halves.pop()
            else:
                part = _take(digests, chunk_texts, run.call_size(embedder) - len(proof), embedder, longest=longest)
                longest = not longest  # in turn, so that the texts a second so far foretell the rest
            matrix = _embed([*proof, *(chunk_texts[digest] for digest in part)], embedder)
            if record is not None and proof:
                require_same_weights(record, matrix[0])
        except Exception as error:  # noqa: BLE001  # an embedder may raise anything; what is stored must not suffer
            run.fail(error)
            if len(part) > 1:
                middle = len(part) // 2
                halves += [part[middle:], part[:middle]]
        else:
            run.proven = record
            run.succeed(len(part))
            if part:
                yield dict(zip(part, matrix[len(proof) :], strict=True))


def _take(
    waiting: deque[str], chunk_texts: Mapping[str, str], most: int, embedder: Embedder, *, longest: bool
) -> list[str]:
    """Take the texts of one call from one end of ``waiting``, which is in order of length."""
    room = math.inf if is_remote(embedder) else CHARACTERS_PER_CALL
    part: list[str] = []
    while waiting and len(part) < most:
        room -= len(chunk_texts[waiting[-1 if longest else 0]])
        if part and room < 0:
            break
        part.append(waiting.pop() if longest else waiting.popleft())
    return part


def gathered(answers: Iterable[Mapping[str, Vector]], embedder: Embedder) -> Iterator[Mapping[str, Vector]]:
    """Join the answers of several calls to what is to be kept in one transaction.

    Only a local model's: what a server was asked may have been paid for, and is kept before it is asked again. What
    Ctrl-C, or an error, leaves behind comes before that is raised.
    """
    part: dict[str, Vector] = {}
    began = time.monotonic()
    try:
        for answer in answers:
            part.update(answer)
            if time.monotonic() - began >= SECONDS_PER_COMMIT or is_remote(embedder):
                whole, part = part, {}
                yield whole
                began = time.monotonic()
    except BaseException:
        if part:
            yield part
        raise
    if part:
        yield part


def embed_question(text: str, embedder: Embedder) -> Vector:
    """Embed a query. Raise EmbeddingError, or PluginContractError if the embedder breaks its Protocol."""
    import numpy as np

    space = embedder.space
    with isolated(f"the embedder of {space.model}"):
        vector = embedder.embed_query(text)
        check_vectors(np.asarray(vector)[None], 1, space)
    return vector


def check_vectors(matrix: Matrix, count: int, space: VectorSpace) -> None:
    """Raise PluginContractError unless ``matrix`` is float32, (count, dimension), with rows of unit length.

    vec0 accepts NaN and zero vectors and answers wrongly later; here the embedder can still be named.
    """
    import numpy as np

    wanted = (count, space.dimension)
    shape, dtype = getattr(matrix, "shape", None), getattr(matrix, "dtype", None)
    if shape != wanted or dtype != np.float32:
        raise PluginContractError(
            f"the embedder of {space.model} returned {dtype} of shape {shape}, expected float32 of shape {wanted}"
        )
    lengths = np.linalg.norm(matrix, axis=1)
    wrong = np.flatnonzero(~(np.abs(lengths - 1.0) <= _UNIT_TOLERANCE))  # also true of NaN
    if wrong.size:
        raise PluginContractError(
            f"the embedder of {space.model} returned a vector of length {lengths[wrong[0]]:.4g}, expected 1"
        )


def make_space_record(embedder: Embedder) -> SpaceRecord:
    """Embed the probe and return the record that an index keeps of its vector space. Raise EmbeddingError."""
    return SpaceRecord(embedder.space, _embed([PROBE], embedder)[0])


def agreement(first: Vector, second: Vector) -> float:
    """Return the cosine of two unit vectors; 0 if they are not of one dimension, or not numbers."""
    if first.shape != second.shape:
        return 0.0
    cosine = float(first @ second)
    return cosine if cosine == cosine else 0.0  # noqa: PLR0124  # NaN


def require_same_space(record: SpaceRecord, space: VectorSpace, collection: str) -> None:
    """Raise VectorSpaceError if the collection was indexed in another space than ``space``."""
    if record.space != space:
        raise VectorSpaceError(
            f"the collection {collection!r} was indexed with {record.space}; the configured embedder is {space}",
            hint=f"{ALL_ANEW}, or set memory.embedding back",
        )


def require_same_weights(record: SpaceRecord, probe: Vector) -> None:
    """Raise ModelChangedError if the model of the recorded space now gives the probe another vector."""
    similarity = agreement(record.probe, probe)
    if similarity < SAME_MODEL:
        raise ModelChangedError(
            f"the model behind {record.space} has changed: its vector of the probe sentence has a similarity of "
            f"{similarity:.3f} only",
            hint=ALL_ANEW,
        )


class ModelChangedError(VectorSpaceError):
    """The name of a model stands for other weights than when the index was made."""


def stack(digests: Sequence[str], vectors: Mapping[str, Vector]) -> Matrix:
    """Return the vectors of these hashes as one float32 matrix, row i for hash i."""
    import numpy as np

    return np.stack([vectors[digest] for digest in digests]).astype(np.float32, copy=False)


def _embed(texts: Sequence[str], embedder: Embedder) -> Matrix:
    space = embedder.space
    with isolated(f"the embedder of {space.model}"):
        matrix = embedder.embed_documents(texts)
        check_vectors(matrix, len(texts), space)
    return matrix


def _may_have_changed(record: SpaceRecord, embedder: Embedder) -> bool:
    return record.space.revision in _UNKNOWN_WEIGHTS or is_remote(embedder)

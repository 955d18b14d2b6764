"""Compute vectors of texts call by call, check each vector, and continue after failed calls."""

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

#: The probe sentence. Its vector is stored with a new index, and proves later that an embedder is in the same space.
PROBE = "The quick brown fox jumps over the lazy dog; Съешь ещё этих мягких французских булок; 天地玄黄，宇宙洪荒。"

#: The hint when an index was built with another model than the configured one.
ALL_ANEW = "`klaw reindex` embeds everything again"

#: The lowest cosine of two probe vectors of one model; see docs/decisions/0017-embedders-and-spaces.md.
SAME_MODEL = 0.98

#: The lowest cosine of two probe vectors of the same weights, in any runtime and precision: int8 in one runtime and
#: float32 in another agree to .997 (docs/decisions/0054-openvino.md).
SAME_WEIGHTS = 0.99

#: Characters per call to a local model, about 64 ordinary chunks. Calls of equal size lose little when they are
#: killed, react to Ctrl-C soon, and make the remaining time predictable.
CHARACTERS_PER_CALL = 80_000

#: Seconds of a local model's work per commit, because a commit has a fixed cost.
SECONDS_PER_COMMIT = 1.0

#: Errors after which a run does not call the embedder again, because the next call would fail too.
UNUSABLE = (EmbedderUnavailableError, ModelNotFoundError, ModelCorruptError, PluginError, VectorSpaceError)

# Consecutive failures of other kinds before a run stops. A single bad text causes fewer: halving the call isolates it.
_MAX_FAILURES = 16
_UNIT_TOLERANCE = 1e-3
# Revisions that do not identify the weights.
_UNKNOWN_WEIGHTS = {"", "unknown"}


@define
class EmbeddingRun:
    """The state of one run of an embedder: its counts, its failures, and the chunks that wait for a vector.

    ``error`` is the last failure. Once ``stopped`` is set, the run makes no more calls. ``texts_per_call`` overrides
    the embedder's own value. ``embedded`` counts embedded texts, ``cached`` those whose vector was in the cache.
    ``waiting`` maps a collection to the keys of chunks that this run has written without a vector. ``proven`` is the
    record whose probe vector the model has confirmed last.
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
        """Return the number of texts per call, at least one. Raise what the embedder raises."""
        return max(1, self.texts_per_call or texts_per_call(embedder))

    def fail(self, error: Exception) -> None:
        """Record a failure; stop the run if the next call would fail too."""
        self.error = as_klaw_error(error)
        self._failures += 1
        self.stopped = self.stopped or isinstance(self.error, UNUSABLE) or self._failures >= _MAX_FAILURES

    @property
    def failing(self) -> bool:
        """Whether more than one call in a row has failed, so that the cause is not a single text."""
        return self.stopped or self._failures > 1

    def succeed(self, texts: int) -> None:
        """Record a successful call."""
        self.embedded += texts
        self._failures = 0


def embed_chunk_texts(
    chunk_texts: Mapping[str, str], embedder: Embedder, run: EmbeddingRun, record: SpaceRecord | None = None
) -> Iterator[dict[str, Vector]]:
    """Embed texts, given by hash; yield the vectors of one call at a time.

    A failed call is recorded, and its two halves are tried, so that one refused text does not affect the others.

    If the model is on a server, or its revision does not identify its weights, the first call of a run includes the
    probe, whose vector must agree with the one in ``record``.
    """
    # Texts of similar length in one call need little padding; the hash makes the order independent of the files.
    digests = deque(sorted(chunk_texts, key=lambda digest: (len(chunk_texts[digest]), digest)))
    longest = True
    halves: list[list[str]] = []  # of failed calls; the last one is tried next
    while (digests or halves) and not run.stopped:
        part: list[str] = []
        try:
            unproven = record is not None and run.proven is not record and _may_have_changed(record, embedder)
            proof = [PROBE] if unproven else []
            if halves:
                part = halves.pop()
            else:
                part = _take(digests, chunk_texts, run.call_size(embedder) - len(proof), embedder, longest=longest)
                longest = not longest  # alternate, so that the rate so far predicts the remaining time
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
    """Take the texts of one call from one end of ``waiting``, which is sorted by length."""
    room = math.inf if is_remote(embedder) else CHARACTERS_PER_CALL
    part: list[str] = []
    while waiting and len(part) < most:
        room -= len(chunk_texts[waiting[-1 if longest else 0]])
        if part and room < 0:
            break
        part.append(waiting.pop() if longest else waiting.popleft())
    return part


def gathered(answers: Iterable[Mapping[str, Vector]], embedder: Embedder) -> Iterator[Mapping[str, Vector]]:
    """Merge the vectors of several calls into parts; the caller commits each part in one transaction.

    Vectors from a server are not merged: they may have been paid for, and are committed before the next call. On
    Ctrl-C or an error, yield the vectors collected so far before it is raised again.
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
    """Embed a question. Raise EmbeddingError, or PluginContractError if the embedder violates its Protocol."""
    import numpy as np

    space = embedder.space
    with isolated(f"the embedder of {space.model}"):
        vector = embedder.embed_query(text)
        check_vectors(np.asarray(vector)[None], 1, space)
    return vector


def check_vectors(matrix: Matrix, count: int, space: VectorSpace) -> None:
    """Raise PluginContractError unless ``matrix`` is float32, (count, dimension), with rows of unit length.

    vec0 accepts NaN and zero vectors, and returns wrong results later. Here the error can still name the embedder.
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
    """Embed the probe; return the record of the vector space that is stored with an index. Raise EmbeddingError."""
    return SpaceRecord(embedder.space, _embed([PROBE], embedder)[0])


def agreement(first: Vector, second: Vector) -> float:
    """Return the cosine of two unit vectors; 0 if their dimensions differ or the result is NaN."""
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
    """The weights behind a model's name have changed since the index was built."""


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

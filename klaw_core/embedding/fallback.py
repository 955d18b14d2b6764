"""Several embedders as one: the first that works serves, and only in the vector space that the index is in.

Whoever holds a :class:`FallbackEmbedder` holds an embedder. It takes the place of a single one as well, so that a
model that is missing is met where a vector is needed, not where a memory is opened. The law is that what ``space``
says is true of every vector that comes out, for the life of the object.
Reasons: docs/decisions/0017-embedders-and-spaces.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import index
from typing import Any, TypeVar

from attrs import evolve, frozen

from klaw_core.embedding.abilities import is_remote, model_name, texts_per_call
from klaw_core.embedding.run import SAME_MODEL, UNUSABLE, agreement, make_space_record
from klaw_core.errors import (
    EmbedderUnavailableError,
    EmbeddingError,
    KlawError,
    PluginContractError,
    PluginError,
    VectorSpaceError,
    as_klaw_error,
    isolated,
)
from klaw_core.hookspecs import Component
from klaw_core.interfaces.components import Embedder
from klaw_core.values.vectors import Matrix, SpaceRecord, Vector, VectorSpace

T = TypeVar("T")

# How long an embedder that failed is left alone while another one serves.
_ASIDE_SECONDS = 60.0


@frozen(eq=False, repr=False)
class Option:
    """An embedder that may serve: what the configuration calls it, and what builds it, or gives what it has built."""

    name: str
    build: Callable[[], Embedder]


@frozen(eq=False, repr=False)
class _Serving:
    """The embedder that serves, and the space that its vectors count as of."""

    option: Option
    embedder: Embedder
    space: VectorSpace


def auto_types(installed: Iterable[Component[Any, Embedder]], environment: Mapping[str, str]) -> list[str]:
    """Return the names of the embedders that ``auto`` chooses among, in order of rank.

    A provider is one of them only if one of its keys is in the environment: with the key, the person who chooses
    ``auto`` has agreed that notes go there.
    """
    choices = [(component.auto, component.name) for component in installed if component.auto is not None]
    found = [(auto.rank, name) for auto, name in choices if not auto.keys or any(map(environment.get, auto.keys))]
    return [name for _, name in sorted(found)]


def _serving(option: Option) -> _Serving:
    """Build the embedder and ask what space it is in. Raise EmbeddingError, PluginError."""
    with isolated(f"embedder {option.name}"):
        embedder = option.build()
        space: Any = embedder.space
    if not isinstance(space, VectorSpace):
        raise PluginContractError(f"embedder {option.name}: its space is {space!r:.80}, not a VectorSpace")
    return _Serving(option, embedder, space)


def _counts(option: Option, counts: Iterable[Any], expected: int) -> Sequence[int]:
    """Return an embedder's counts of tokens. Raise PluginContractError unless there is one for each text."""
    found = [index(count) for count in counts]
    if len(found) != expected or any(count < 0 for count in found):
        raise PluginContractError(f"embedder {option.name}: {expected} texts have the token counts {found!r:.80}")
    return found


class FallbackEmbedder:
    """The first of several embedders that works; implements ``Embedder``. Safe to use from several threads.

    ``get_records`` reads the spaces of the index, none if it has none yet. Where there are several, one that cannot be
    served must not keep the next from being. An embedder serves if its space is a recorded one, or if dimension, metric
    and its vector of the probe sentence agree with it. If none does, none serves: the right one may only be away, and
    is asked again later. A single option is taken as it is, and not probed.
    """

    def __init__(self, options: Sequence[Option], get_records: Callable[[], Sequence[SpaceRecord]]) -> None:
        self._options = tuple(options)
        self._get_records = get_records
        self._aside: dict[str, tuple[KlawError, float]] = {}
        self._serving: _Serving | None = None
        self._space: VectorSpace | None = None
        self._lock = threading.RLock()

    @property
    def space(self) -> VectorSpace:
        """Return what these vectors may be compared with. Raise EmbeddingError or PluginError if none works."""
        return self._serve().space

    @property
    def max_tokens(self) -> int:
        """Return how many tokens the model reads at once."""
        return self._serve().embedder.max_tokens

    @property
    def texts_per_call(self) -> int:
        """Return how many texts the one that serves takes at once."""
        return texts_per_call(self._serve().embedder)

    @property
    def remote(self) -> bool:
        """Return whether the one that serves, or will be tried first, asks a server. None is asked for that."""
        serving = self._serving
        try:
            embedder = self._options[0].build() if serving is None else serving.embedder
        except Exception:  # noqa: BLE001  # an embedder may raise anything; whoever needs a vector is told
            return False
        return is_remote(embedder)

    @property
    def model(self) -> str:
        """Return the name of the model that is tried first, where it is known; otherwise empty. No server is asked."""
        try:
            return model_name(self._options[0].build())
        except Exception:  # noqa: BLE001  # as above
            return ""

    @property
    def serving(self) -> Embedder:
        """The one that serves."""
        return self._serve().embedder

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return one vector a text. Raise EmbeddingError."""
        return self._try(lambda embedder: embedder.embed_documents(texts))

    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a question. Raise EmbeddingError."""
        return self._try(lambda embedder: embedder.embed_query(text))

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        """Return each text's tokens, by the first tokenizer there is: whichever model serves, texts are cut alike."""
        failure: KlawError | None = None
        for option in self._options:
            try:
                with isolated(f"embedder {option.name}"):
                    return _counts(option, option.build().count_tokens(texts), len(texts))
            except (EmbeddingError, PluginError) as error:
                failure = failure or error
        raise failure or self._none_works()

    def name(self) -> str:
        """Return which one serves, empty if none does."""
        try:
            return self._serve().option.name
        except Exception:  # noqa: BLE001  # an embedder may raise anything; `problems` says what
            return ""

    def problems(self) -> list[str]:
        """Return why others than the one that serves do not, each in one line. Servers are asked; no note is sent."""
        name = self.name()
        with self._lock:
            return [f"embedder {option}: {error}" for option, (error, _) in self._aside.items() if option != name]

    def _try(self, work: Callable[[Embedder], T]) -> T:
        """Ask the one that serves; if it is out of order, the next one of the same space. Each has one try."""
        failure: KlawError | None = None
        for _ in self._options:  # bounded: one may take longer to fail than the others stay aside
            try:
                serving = self._serve()
            except KlawError as error:
                raise (failure or error) from None
            try:
                return work(serving.embedder)
            except UNUSABLE as error:
                if len(self._options) == 1:
                    raise
                self._put_aside(serving.option, error)
                failure = error
        raise failure or self._none_works()

    def _serve(self) -> _Serving:
        with self._lock:
            if self._serving is None:
                self._serving = self._choose()
                self._space = self._serving.space
            return self._serving

    def _choose(self) -> _Serving:
        """Return the first that works in the space that is wanted. Raise KlawError if there is none."""
        if len(self._options) == 1:
            return _serving(self._options[0])
        records = self._get_records()
        if self._space is not None:
            records = [record for record in records if record.space == self._space]
        first = self._space or (records[0].space if records else None)
        working: list[_Serving] = []
        for found in self._working():
            if first in {None, found.space}:
                return found
            working.append(found)
        for record in records:
            for found in working:
                if found.space == record.space or self._agrees(found, record):
                    return evolve(found, space=record.space)
        raise self._none_works(first)

    def _working(self) -> Iterator[_Serving]:
        """Yield what can be built and says what space it is in, leaving out what failed a moment ago."""
        now = time.monotonic()
        for option in self._options:
            if self._aside.get(option.name, (None, now))[1] > now:
                continue
            try:
                yield _serving(option)
            except Exception as error:  # noqa: BLE001  # an embedder may raise anything
                self._put_aside(option, error)
            else:
                self._aside.pop(option.name, None)

    def _agrees(self, found: _Serving, record: SpaceRecord) -> bool:
        """Return whether vectors of another name are of the recorded space."""
        problem: Exception
        own = found.space
        if (own.dimension, own.metric) != (record.space.dimension, record.space.metric):
            problem = VectorSpaceError(f"its vectors are {own}, the index uses {record.space}")
        else:
            try:
                cosine = agreement(make_space_record(found.embedder).probe, record.probe)
                problem = VectorSpaceError(
                    f"its vectors are {own}, the index uses {record.space}, and for a probe sentence they agree to "
                    f"{cosine:.3f} only; {SAME_MODEL} is needed"
                )
                if cosine >= SAME_MODEL:
                    return True
            except Exception as error:  # noqa: BLE001  # as above
                problem = error
        self._put_aside(found.option, problem)
        return False

    def _put_aside(self, option: Option, error: Exception) -> None:
        with self._lock:
            self._aside[option.name] = (as_klaw_error(error), time.monotonic() + _ASIDE_SECONDS)
            if self._serving is not None and self._serving.option == option:
                self._serving = None

    def _none_works(self, wanted: VectorSpace | None = None) -> KlawError:
        """Return the error that names all that failed, and the vector space that one is needed for."""
        reasons = "; ".join(f"{name}: {error}" for name, (error, _) in self._aside.items())
        where, hint = "", "see [memory.embedding], and `klaw plugins`"
        if wanted is not None:
            where = f" in the vector space {wanted}"
            hint = "start the embedder of that space, or switch to another one with `klaw reindex`"
        return EmbedderUnavailableError(f"no embedder works{where} ({reasons or 'none is installed'})", hint=hint)

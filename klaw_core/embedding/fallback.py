"""Several embedders behind one: the first that works in the vector space of the index is used.

:class:`FallbackEmbedder` also wraps a single embedder, so that a missing model fails when a vector is needed, and not
when a memory is opened. Invariant: every vector that the object returns is in the space that ``space`` returns.
See docs/decisions/0017-embedders-and-spaces.md.
"""

from __future__ import annotations

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
    quoted,
)
from klaw_core.holds import ThreadLock
from klaw_core.hookspecs import Component
from klaw_core.interfaces.components import Embedder
from klaw_core.values.vectors import Matrix, SpaceRecord, Vector, VectorSpace

T = TypeVar("T")

# Seconds before an embedder that has failed is tried again, while another one is in use.
_ASIDE_SECONDS = 60.0


@frozen(eq=False, repr=False)
class Option:
    """An embedder to choose from: its name in the configuration, and a function that returns it, built once."""

    name: str
    build: Callable[[], Embedder]


@frozen(eq=False, repr=False)
class _Serving:
    """The embedder in use, and the vector space that its vectors are recorded under."""

    option: Option
    embedder: Embedder
    space: VectorSpace


def auto_types(installed: Iterable[Component[Any, Embedder]], environment: Mapping[str, str]) -> list[str]:
    """Return the names of the embedders that ``auto`` chooses from, by rank.

    A provider that needs a key takes part only if the key is in the environment. Setting the key is the consent to
    send notes to that provider.
    """
    choices = [(component.auto, component.name) for component in installed if component.auto is not None]
    found = [(auto.rank, name) for auto, name in choices if not auto.keys or any(map(environment.get, auto.keys))]
    return [name for _, name in sorted(found)]


def _serving(option: Option) -> _Serving:
    """Build the embedder and read its vector space. Raise EmbeddingError, PluginError."""
    with isolated(f"embedder {option.name}"):
        embedder = option.build()
        space: Any = embedder.space
    if not isinstance(space, VectorSpace):
        raise PluginContractError(f"embedder {option.name}: its space is {quoted(space)}, not a VectorSpace")
    return _Serving(option, embedder, space)


def _counts(option: Option, counts: Iterable[Any], expected: int) -> Sequence[int]:
    """Check an embedder's token counts. Raise PluginContractError unless there is one count per text."""
    found = [index(count) for count in counts]
    if len(found) != expected or any(count < 0 for count in found):
        raise PluginContractError(f"embedder {option.name}: {expected} texts have the token counts {quoted(found)}")
    return found


class FallbackEmbedder:
    """The first of several embedders that works. Implements ``Embedder``, and is safe to use from several threads.

    ``get_records`` returns the vector spaces of the index, if it has any. An embedder is used if its space is among
    them, or if its dimension, metric and vector of the probe sentence agree with one of them. If no embedder fits,
    every call fails: the right one may be temporarily unavailable, and is tried again later. If there is only one
    option, it is used without a probe.
    """

    def __init__(self, options: Sequence[Option], get_records: Callable[[], Sequence[SpaceRecord]]) -> None:
        self._options = tuple(options)
        self._get_records = get_records
        self._aside: dict[str, tuple[KlawError, float]] = {}
        self._serving: _Serving | None = None
        self._space: VectorSpace | None = None
        self._lock = ThreadLock("the choice of the embedder")

    @property
    def space(self) -> VectorSpace:
        """Return the vector space of all returned vectors. Raise EmbeddingError or PluginError if no embedder works."""
        return self._serve().space

    @property
    def max_tokens(self) -> int:
        """Return the size of the model's window in tokens."""
        return self._serve().embedder.max_tokens

    @property
    def texts_per_call(self) -> int:
        """Return how many texts the embedder in use accepts per call."""
        return texts_per_call(self._serve().embedder)

    @property
    def remote(self) -> bool:
        """Return whether the embedder in use, or the first option, calls a server. This makes no call."""
        serving = self._serving
        try:
            embedder = self._options[0].build() if serving is None else serving.embedder
        except Exception:  # noqa: BLE001  # an embedder may raise anything; the next call for a vector reports it
            return False
        return is_remote(embedder)

    @property
    def model(self) -> str:
        """Return the model name of the first option; empty if it is not known. This makes no call."""
        try:
            return model_name(self._options[0].build())
        except Exception:  # noqa: BLE001  # as above
            return ""

    @property
    def serving(self) -> Embedder:
        """The embedder in use."""
        return self._serve().embedder

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return one vector per text. Raise EmbeddingError."""
        return self._try(lambda embedder: embedder.embed_documents(texts))

    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a question. Raise EmbeddingError."""
        return self._try(lambda embedder: embedder.embed_query(text))

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        """Return each text's token count, by the first option that has a tokenizer.

        Chunks must not depend on which embedder is in use.
        """
        failure: KlawError | None = None
        for option in self._options:
            try:
                with isolated(f"embedder {option.name}"):
                    return _counts(option, option.build().count_tokens(texts), len(texts))
            except (EmbeddingError, PluginError) as error:
                failure = failure or error
        raise failure or self._all_failed_error()

    def name(self) -> str:
        """Return the name of the option in use; empty if no embedder works."""
        try:
            return self._serve().option.name
        except Exception:  # noqa: BLE001  # an embedder may raise anything; `problems` reports it
            return ""

    def problems(self) -> list[str]:
        """Return why the other options are not in use, one line each. This may call servers, but sends no notes."""
        name = self.name()
        with self._lock.hold():
            return [f"embedder {option}: {error}" for option, (error, _) in self._aside.items() if option != name]

    def _try(self, work: Callable[[Embedder], T]) -> T:
        """Call the embedder in use; if it fails, the next one in the same space. Each option is tried once."""
        failure: KlawError | None = None
        for _ in self._options:  # bounded, because one option may take longer to fail than the pause of the others
            try:
                serving = self._serve()
            except KlawError as error:
                raise (failure or error) from None
            try:
                return work(serving.embedder)
            except UNUSABLE as error:
                if len(self._options) == 1:
                    raise
                self._mark_failed(serving.option, error)
                failure = error
        raise failure or self._all_failed_error()

    def _serve(self) -> _Serving:
        with self._lock.hold():
            if self._serving is None:
                self._serving = self._choose()
                self._space = self._serving.space
            return self._serving

    def _choose(self) -> _Serving:
        """Return the first option that works in a wanted space. Raise KlawError if there is none."""
        if len(self._options) == 1:
            return _serving(self._options[0])
        records = self._get_records()
        if self._space is not None:
            records = [record for record in records if record.space == self._space]
        first = self._space or (records[0].space if records else None)
        working: list[_Serving] = []
        for found in self._working_options():
            if first in {None, found.space}:
                return found
            working.append(found)
        for record in records:
            for found in working:
                if found.space == record.space or self._agrees(found, record):
                    return evolve(found, space=record.space)
        raise self._all_failed_error(first)

    def _working_options(self) -> Iterator[_Serving]:
        """Yield the options that can be built and have a vector space, without those that failed a moment ago."""
        now = time.monotonic()
        for option in self._options:
            if self._aside.get(option.name, (None, now))[1] > now:
                continue
            try:
                yield _serving(option)
            except Exception as error:  # noqa: BLE001  # an embedder may raise anything
                self._mark_failed(option, error)
            else:
                self._aside.pop(option.name, None)

    def _agrees(self, found: _Serving, record: SpaceRecord) -> bool:
        """Return whether vectors of a model with another name belong to the recorded space."""
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
        self._mark_failed(found.option, problem)
        return False

    def _mark_failed(self, option: Option, error: Exception) -> None:
        with self._lock.hold():
            self._aside[option.name] = (as_klaw_error(error), time.monotonic() + _ASIDE_SECONDS)
            if self._serving is not None and self._serving.option == option:
                self._serving = None

    def _all_failed_error(self, wanted: VectorSpace | None = None) -> KlawError:
        """Return the error that names each failed option and the wanted vector space."""
        reasons = "; ".join(f"{name}: {error}" for name, (error, _) in self._aside.items())
        where, hint = "", "see [memory.embedding], and `klaw plugins`"
        if wanted is not None:
            where = f" in the vector space {wanted}"
            hint = "start the embedder of that space, or switch to another one with `klaw reindex`"
        return EmbedderUnavailableError(f"no embedder works{where} ({reasons or 'none is installed'})", hint=hint)

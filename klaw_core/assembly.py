"""Assemble a configuration: select components, check their options, build them, and check that they fit together.

Hooks are called only here. After that, everything is a plain call on a typed object.
"""

from __future__ import annotations

import os
from collections import abc
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from attrs import evolve

from klaw_core.config.options import build_options, withheld
from klaw_core.config.tables import AUTO
from klaw_core.errors import (
    NO_DESCRIPTOR,
    RAISE_LIMIT,
    ConfigError,
    KlawError,
    PluginContractError,
    PluginError,
    PluginNotFoundError,
    RetrievalError,
    check_base,
    isolated,
    reason,
)
from klaw_core.holds import ThreadLock
from klaw_core.hookspecs import Component, ComponentContext
from klaw_core.interfaces.index import Index, Retriever
from klaw_core.interfaces.store import RepairableStore
from klaw_core.kinds import CHUNKER, CONVERTER, EMBEDDER, KINDS, LANGUAGE_MODEL, RERANKER, RETRIEVER, SOURCE, STORE
from klaw_core.plugins.registry import Registry
from klaw_core.searching.retrievers import AbsentRetriever, ConfiguredRetriever
from klaw_core.values.config import Config, Selection
from klaw_core.values.lazy import Lazy
from klaw_core.values.text import DEFAULT_FORMAT, TRANSCRIPT_FORMAT
from klaw_core.values.vectors import SpaceRecord

if TYPE_CHECKING:  # a search by words does not need these; they are imported where they are used
    from klaw_core.embedding.fallback import FallbackEmbedder
    from klaw_core.files.copies import Copies
    from klaw_core.indexing.chunking import FormatChunker
    from klaw_core.indexing.collection import Collection
    from klaw_core.indexing.flow import Indexer
    from klaw_core.indexing.redacting import DocumentRedactor
    from klaw_core.interfaces.components import Embedder, Fusion
    from klaw_core.interfaces.converter import Converter
    from klaw_core.interfaces.language_model import LanguageModel
    from klaw_core.interfaces.store import Store
    from klaw_core.plugins.isolation import IsolatedSource
    from klaw_core.searching.stages import Stage

# The names of embedders in the configuration, and the functions that build them at their first call.
_Embedders: TypeAlias = "Sequence[tuple[str, Callable[[], Embedder]]]"
T = TypeVar("T")


class Assembly:
    """The components of a ``Memory``.

    Components that a command may not need (embedder, chunker) are built at first use. All options are checked here.
    Raise ConfigError with every problem, PluginError if a plugin is missing or does not fit.
    """

    def __init__(self, config: Config, registry: Registry, *, replace_damaged: bool = False) -> None:
        self.config = config
        self.registry = registry
        self.context = ComponentContext(
            config.data_dir,
            config.cache_dir,
            config.offline,
            config.agent,
            self.build_converters,
            config.conversations.redactor if config.conversations.redact_notes else None,
            replace_damaged,
        )
        self._problems: list[str] = []
        self._missing: list[PluginError] = []
        self._later: list[PluginError] = []  # of components that only some calls need
        #: Rerankers and language models that cannot be built. Embedders report their own problems.
        self.unusable: list[PluginError] = []
        self._lock = ThreadLock("the list of chunkers")
        self._chunkers: dict[str, FormatChunker] = {}
        self._embedders = self._embedders_of(config.embedding)
        self._chunker = self._prepare(config.chunking)
        build_store = self._prepare(config.store)
        build_fusion = self._prepare(config.fusion)
        retrieval = retrieval_of(config, registry)
        build_retrievers = self._prepare_retrievers(retrieval)
        self.stages = self._stages_of(config.reranking)
        build_sources = [self._prepare(selection) for selection in config.sources]
        self._language_model = (
            None if config.language_model is None else self._prepare(config.language_model, or_else=True)
        )
        for selection in config.formats.values():
            self._prepare(selection)
        for selection in (*config.converters.values(), *config.extensions.values()):
            self._prepare(selection)
        self._raise_problems()
        self.fusion: Fusion = build_fusion()
        self.sources: Sequence[IsolatedSource] = tuple(build_source() for build_source in build_sources)
        if not config.data_dir.is_dir():
            from klaw_core.files.atomic import make_private_directory

            make_private_directory(config.data_dir)
        self.store: Store[Any] = build_store()
        try:
            retrievers = (
                ConfiguredRetriever(selection.type, AbsentRetriever(), 1.0, str(build_retriever))
                if isinstance(build_retriever, PluginError)
                else self._configured(selection, build_retriever())
                for selection, build_retriever in build_retrievers
            )
            self.retrievers = tuple(configured for configured in retrievers if configured is not None)
            #: What happened if the store has replaced its damaged data, until a reindex has filled it again.
            self.replaced = self.store.replaced if isinstance(self.store, RepairableStore) else ()
        except BaseException:
            self.store.close()
            raise

    @cached_property
    def embedder(self) -> FallbackEmbedder:
        """The embedder, in the vector space of the index if possible. The model is loaded at its first call."""
        return _fallback(self._embedders, self._records)

    def embedder_for_new_index(self, selection: Selection | None = None) -> FallbackEmbedder:
        """Return an embedder (default: the configured one) in its own vector space, regardless of the index.

        Raise ConfigError, PluginError.
        """
        embedders = self._embedders if selection is None else self._embedders_of(selection)
        self._raise_problems()
        return _fallback(embedders, lambda: ())

    def move_to(self, embedder: FallbackEmbedder, selection: Selection | None) -> None:
        """Replace the embedder after a reindex has moved the index to its space."""
        self.embedder = embedder
        if selection is not None:
            self._embedders = self._embedders_of(selection)
            self.config = evolve(self.config, embedding=selection)

    @property
    def language_model(self) -> LanguageModel | None:
        """The configured language model, None if there is none. Raise PluginError if it cannot be built."""
        return None if self._language_model is None else self._language_model()

    @property
    def copies(self) -> Copies:
        """The copies of texts outside of the store."""
        from klaw_core.files.copies import Copies

        return Copies.of(self.config.cache_dir, self.config.data_dir)

    def build_converters(self, make: Callable[[str, Converter, Any], T]) -> Sequence[T]:
        """Build every converter: the configured ones in order, then the others by name.

        Return what ``make`` makes of the name, the converter and the options of each. `klaw plugins` and `klaw doctor`
        report a converter that cannot be built or used; the others work.
        """
        found: list[T] = []
        configured = {selection.type: selection for selection in self.config.converters.values()}
        self.registry.load_listed()
        for name in dict.fromkeys((*configured, *sorted(self.registry.listed_names(CONVERTER)))):
            selection = configured.get(name) or Selection(CONVERTER.name, name, f"memory.converters.{name}")
            try:
                component = self.registry.component(CONVERTER, name)
                options = build_options(component, selection, [])
                found.append(make(name, build(component, options, selection, self.context), options))
            except PluginError as error:
                if str(error) not in map(str, self.unusable):
                    self.unusable.append(error)
        return found

    def chunker_of(self, document_format: str) -> FormatChunker:
        """Return the chunker of documents of a format.

        It is the component with the format's name. For ``markdown``, and for a format without such a component, it is
        the configured chunker. The part of a format after a colon is a variant: ``code:python``. Raise PluginError,
        ConfigError.
        """
        with self._lock.hold():
            if document_format not in self._chunkers:
                self._chunkers[document_format] = self._make_chunker(document_format)
            return self._chunkers[document_format]

    def _make_chunker(self, document_format: str) -> FormatChunker:
        from klaw_core.indexing.chunking import FormatChunker

        name, _, variant = document_format.partition(":")
        if variant:
            return self.chunker_of(name).variant(variant)
        selection = self._selection_of(document_format)
        if selection is None:
            return self.chunker_of(DEFAULT_FORMAT)
        if selection is self.config.chunking:
            return FormatChunker(self._chunker(), self._recipe)
        component = self.registry.component(CHUNKER, selection.type)
        problems: list[str] = []
        options = build_options(component, selection, problems)
        if problems:
            raise ConfigError(problems, hint="`klaw config path` prints the path of your file")
        return FormatChunker(build(component, options, selection, self.context), f"{selection.type} {options!r}")

    def _selection_of(self, document_format: str) -> Selection | None:
        """Return the table that configures a format's chunker; None if no chunker has that name."""
        if document_format in self.config.formats:
            return self.config.formats[document_format]
        if document_format in {DEFAULT_FORMAT, self.config.chunking.type}:
            return self.config.chunking
        if document_format == TRANSCRIPT_FORMAT:
            settings = self.config.conversations
            options = {
                "max_tokens": settings.max_tokens,
                "packed_tokens": settings.packed_tokens,
                "context_tokens": settings.context_tokens,
            }
            return Selection("chunker", TRANSCRIPT_FORMAT, "memory.conversations", options)
        if document_format in self.registry.names(CHUNKER):
            return Selection("chunker", document_format, f"memory.formats.{document_format}")
        return None

    def collection(self, name: str, *, store: Store[Any] | None = None, embedder: Embedder | None = None) -> Collection:
        """Return a collection of the store, with the configured indexes and embedder unless others are given."""
        from klaw_core.indexing.collection import Collection

        return Collection(store or self.store, embedder or self.embedder, self.indexes(), name)

    def indexer(self, name: str, *, store: Store[Any] | None = None, embedder: Embedder | None = None) -> Indexer:
        """Return the indexer of a collection; parameters as for :meth:`collection`."""
        from klaw_core.indexing.flow import Indexer

        collection = self.collection(name, store=store, embedder=embedder)
        return Indexer(collection, self.chunker_of, self.document_redactor)

    @property
    def document_redactor(self) -> DocumentRedactor:
        """The redactor of documents that are indexed, or read for a model."""
        from klaw_core.indexing.redacting import DocumentRedactor

        settings = self.config.conversations
        return DocumentRedactor(settings.redactor, notes=settings.redact_notes)

    def indexes(self) -> tuple[tuple[str, Index[Any]], ...]:
        """Return the working retrievers that keep rows, with their names."""
        return tuple(
            (configured.name, configured.retriever)
            for configured in self.retrievers
            if isinstance(configured.retriever, Index) and not configured.problem
        )

    def _records(self) -> Sequence[SpaceRecord]:
        """Return the vector space of each collection; usually they are the same."""
        with self.store.read() as snapshot:
            return [record for record in map(snapshot.space, snapshot.collections()) if record is not None]

    def _stages_of(self, selections: Sequence[Selection]) -> Sequence[Stage]:
        """Return the reranking stages, in order."""
        if not selections:
            return ()
        from klaw_core.searching.stages import Stage

        installed = self.registry.listed_names(RERANKER)
        return tuple(
            Stage(selection.type, self._builder(selection), selection.paths)
            for selection in selections
            if (selection.type in installed if selection.is_default else not self._lacks_key(selection))
        )

    def _builder(self, selection: Selection) -> Callable[[], Any]:
        """Return the function that builds a reranker; a default one is looked up at its first use."""
        if selection.is_default:
            return partial(self._default_stage, selection)
        return self._prepare(selection, or_else=True)

    def _default_stage(self, selection: Selection) -> Any:
        component = self.registry.component(RERANKER, selection.type)
        return build(component, component.options(), selection, self.context)

    def _lacks_key(self, selection: Selection) -> bool:
        """Whether the owner keeps an option to itself: an agent's search works without this stage, which would fail."""
        try:
            return bool(withheld(self.registry.component(selection.kind, selection.type), selection))
        except PluginError:  # reported when it is prepared
            return False

    def _embedders_of(self, selection: Selection) -> _Embedders:
        """Return the embedders to choose from for this selection, in order."""
        first = [(selection.type, self._prepare(selection, or_else=True))]
        if selection.type == AUTO:
            from klaw_core.embedding.fallback import auto_types

            found = auto_types(self.registry.components(EMBEDDER), os.environ)
            first = [(name, self._prepare(evolve(selection, type=name), or_else=True)) for name in found]
        others = ((f"{item.type} ({item.place})", self._prepare(item, or_else=True)) for item in selection.fallback)
        return (*first, *others)

    def _raise_problems(self) -> None:
        """Raise all collected problems as one PluginError or ConfigError."""
        missing, self._missing = self._missing, []
        later, self._later = self._later, []
        problems, self._problems = self._problems, []
        if problems:
            problems += [str(error) for error in (*missing, *later)]
            raise ConfigError(list(dict.fromkeys(problems)), hint="`klaw config path` prints the path of your file")
        if missing:
            raise _together([*missing, *later])

    def _prepare(self, selection: Selection, *, or_else: bool = False) -> Callable[[], Any]:
        """Look up the component and check its options; return a function that builds it once, later.

        A missing component is a problem now, or with ``or_else`` only when it is built.
        """
        try:
            component = self.registry.component(selection.kind, selection.type)
        except PluginError as error:
            error.message = f"{selection.place}: {error.message}"
            if or_else:
                return self._postpone(selection, error)
            self._missing.append(error)
            return lambda: None
        if selection.problem:
            return self._postpone(selection, PluginError(selection.problem, hint="set it, or change the setting"))
        options = build_options(component, selection, self._problems)
        if selection is self.config.chunking:
            self._recipe = f"{selection.type} {options!r}"
        return Lazy(partial(build, component, options, selection, self.context)).get

    def _prepare_retrievers(
        self, selections: Sequence[Selection]
    ) -> list[tuple[Selection, Callable[[], Any] | PluginError]]:
        """Prepare the retrievers. One that cannot be built is a problem only if there is no other."""
        prepared: list[tuple[Selection, Callable[[], Any] | PluginError]] = []
        for selection in selections:
            before = len(self._later)
            build_retriever = self._prepare(selection, or_else=True)
            prepared.append((selection, self._later[before] if len(self._later) > before else build_retriever))
        failures = [found for _, found in prepared if isinstance(found, PluginError)]
        if len(failures) == len(prepared):
            self._missing += failures
            self._later = [error for error in self._later if error not in failures]
        return prepared

    def _postpone(self, selection: Selection, error: PluginError) -> Callable[[], Any]:
        """Record a component that cannot be built; return a function that raises the error."""
        self._later.append(error)
        if selection.kind in {RERANKER.name, LANGUAGE_MODEL.name}:
            self.unusable.append(error)
        return partial(_refuse, error)

    def _configured(self, selection: Selection, retriever: Retriever[Any]) -> ConfiguredRetriever | None:
        """Return the retriever with the problem that disables it, if any; None if it is not used."""
        problem = ""
        try:
            if not join(self.store, retriever, selection, self.config):
                return None
        except RetrievalError as error:
            problem = str(error)
        return ConfiguredRetriever(selection.type, retriever, selection.weight, problem)


def build_store(config: Config, registry: Registry) -> Store[Any]:
    """Build only the configured store. Raise ConfigError, PluginError, StoreError."""
    problems: list[str] = []
    component = registry.component(STORE, config.store.type)
    options = build_options(component, config.store, problems)
    if problems:
        raise ConfigError(problems, hint="`klaw config path` prints the path of your file")
    context = ComponentContext(config.data_dir, config.cache_dir, config.offline, config.agent)
    store: Store[Any] = build(component, options, config.store, context)
    return store


def build(component: Component[Any, Any], options: Any, selection: Selection, context: ComponentContext) -> Any:
    """Call the factory, and check that the component has the methods of its kind.

    Raise KlawError; an error of the plugin, or a wrong return value, becomes a PluginError that names it.
    """
    try:
        built = component.factory(options, context)
        lacking = [name for name in KINDS[selection.kind].methods if not callable(getattr(built, name, None))]
    except KlawError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{selection.place}: the {selection.kind} {selection.type!r} could not be built: {reason(error)}",
            hint=RAISE_LIMIT if getattr(error, "errno", 0) in NO_DESCRIPTOR else "see `klaw plugins`",
        ) from error
    if lacking:
        raise PluginContractError(
            f"{selection.place}: the {selection.kind} {selection.type!r} was built as {type(built).__name__}, "
            f"which lacks {' and '.join(lacking)}",
            hint="see `klaw plugins`",
        )
    if selection.kind == RETRIEVER.name:
        check_base(built, Retriever, f"{selection.place}: the {selection.kind} {selection.type!r}")
    if selection.kind == SOURCE.name:
        from klaw_core.plugins.isolation import IsolatedSource

        return IsolatedSource.of(built, selection.type, configured=True)
    return built


def retrieval_of(config: Config, registry: Registry) -> Sequence[Selection]:
    """Return the retrievers to use: the configured ones, or those that the store's component names."""
    if not config.default_retrieval:
        return config.retrieval
    try:
        names = registry.component(STORE, config.store.type).retrievers
    except PluginError:  # reported when the store itself is prepared
        return config.retrieval
    if not names:
        return config.retrieval
    return [Selection("retriever", name, f"memory.retrieval[{index}]") for index, name in enumerate(names)]


def join(store: Store[Any], retriever: Retriever[Any], selection: Selection, config: Config) -> bool:
    """Check that the retriever fits the store, and enlist it if it keeps rows.

    Return whether it is used: a retriever that needs vectors is not used with the embedder ``none``. Raise PluginError
    if it does not fit, RetrievalError if only this retriever cannot be used, StoreError.
    """
    who = f"{selection.place}: the retriever {selection.type!r}"
    with isolated(who):
        fits = issubclass(store.offers, retriever.joins)
        needs_vectors, keeps_rows = bool(retriever.needs_vectors), isinstance(retriever, Index)
    if not fits:
        joins, offers = (f"{kind.__module__}.{kind.__qualname__}" for kind in (retriever.joins, store.offers))
        raise PluginError(
            f"{who} needs a store that offers {joins}; the store {config.store.type!r} offers {offers}",
            hint="choose a retriever of that store: `klaw plugins`",
        )
    if needs_vectors and config.embedding.type == "none":
        return False
    if keeps_rows:
        try:
            with isolated(who):
                store.enlist(selection.type, retriever)  # type: ignore[arg-type]  # checked above
        except PluginError as error:
            raise RetrievalError(error.message, hint=error.hint) from error
    return True


def _fallback(embedders: _Embedders, get_records: Callable[[], Sequence[SpaceRecord]]) -> FallbackEmbedder:
    from klaw_core.embedding.fallback import FallbackEmbedder, Option

    return FallbackEmbedder([Option(name, build) for name, build in embedders], get_records)


def _refuse(error: PluginError) -> Any:
    raise error.with_traceback(None)  # each time a kept one is raised, it would also keep the frames of the call


def option_problems(selections: Sequence[Selection], disabled: abc.Collection[str] = ()) -> list[str]:
    """Return the missing components, and the problems in the options of the others."""
    from klaw_core.plugins.discover import discover

    registry = discover(disabled=disabled)
    problems: list[str] = []
    for selection in selections:
        try:
            component = registry.component(selection.kind, selection.type)
        except PluginError as error:
            problems.append(f"{selection.place}: {error}")
            continue
        if selection.problem:
            problems.append(selection.problem)
        else:
            build_options(component, selection, problems)
    return problems


def _together(errors: Sequence[PluginError]) -> PluginError:
    """Merge errors about missing components into one, with one command that installs all first-party ones."""
    if len(errors) == 1:
        return errors[0]
    from klaw_core.plugins.catalogue import install_command

    extras: set[str] = set()
    others: list[str] = []
    for error in errors:
        if isinstance(error, PluginNotFoundError) and error.extras:
            extras.update(error.extras)
        else:
            others.append(error.hint)
    hints = [*([install_command(sorted(extras))] if extras else []), *filter(None, dict.fromkeys(others))]
    message = "; ".join(error.message for error in errors)
    return PluginNotFoundError(message, hint="; ".join(hints), extras=sorted(extras))

"""From a configuration to working parts: pick components, build options, check that they fit together.

This is the only place where hooks are asked. Afterwards everything is a plain call on a typed object.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from attrs import frozen

from klaw_core.builtin.transcript import TranscriptChunker, TranscriptOptions
from klaw_core.config import Config, Selection, build_options
from klaw_core.errors import ConfigError, KlawError, PluginError, PluginNotFoundError, RetrievalError
from klaw_core.files import make_private_directory
from klaw_core.hookspecs import Component, Place
from klaw_core.interfaces import Chunker, Embedder, Fusion, Index, Reranker, Retriever, Source, Store
from klaw_core.plugins import Registry, discover


@frozen
class Leg:
    """One retriever as configured. ``problem`` says why it cannot take part; then it is not asked."""

    name: str
    retriever: Retriever[Any]
    weight: float
    problem: str = ""


class Parts:
    """Everything a ``Memory`` works with.

    What a command may not need (the embedder, the chunker) is built at first use. All options are checked
    at once, here; raise ConfigError with every problem, PluginError if a plugin is missing or does not fit.
    """

    def __init__(self, config: Config, registry: Registry) -> None:
        self.config = config
        self.registry = registry
        self._place = Place(config.data_dir, config.cache_dir, config.offline)
        self._problems: list[str] = []
        self._missing: list[PluginError] = []
        self._embedder = self._prepare(config.embedding)
        self._chunker = self._prepare(config.chunking)
        build_store = self._prepare(config.store)
        build_fusion = self._prepare(config.fusion)
        build_legs = [(selection, self._prepare(selection)) for selection in config.retrieval]
        self._reranker = self._prepare(config.reranking) if config.reranking else None
        build_sources = [self._prepare(selection) for selection in config.sources]
        if self._missing:
            raise _together(self._missing)
        if self._problems:
            raise ConfigError(self._problems, hint="`klaw config path` names the file")
        self.fusion: Fusion = build_fusion()
        self.sources: tuple[Source, ...] = tuple(build() for build in build_sources)
        make_private_directory(config.data_dir)
        self.store: Store[Any] = build_store()
        try:
            legs = (self._join(selection, build()) for selection, build in build_legs)
            self.legs = tuple(leg for leg in legs if leg is not None)
        except BaseException:
            self.store.close()
            raise

    @cached_property
    def embedder(self) -> Embedder:
        """The embedder; its model still loads at its own first use."""
        return self._embedder()  # type: ignore[no-any-return]  # components are typed by their kind

    @cached_property
    def chunker(self) -> Chunker:
        """The chunker."""
        return self._chunker()  # type: ignore[no-any-return]  # components are typed by their kind

    @property
    def recipe(self) -> str:
        """What decides how a text is cut: the chunkers, their options, and whose tokens are counted."""
        return f"{self._cutting} {self.formats['transcript']!r} {self.embedder.space.model}"

    @cached_property
    def formats(self) -> Mapping[str, Chunker]:
        """The chunkers of documents that are not Markdown, by their format."""
        settings = self.config.conversations
        return {"transcript": TranscriptChunker(TranscriptOptions(settings.max_tokens, settings.overlap_tokens))}

    @cached_property
    def reranker(self) -> Reranker | None:
        """The reranker, if one is configured."""
        return None if self._reranker is None else self._reranker()

    def indexes(self) -> tuple[tuple[str, Index[Any]], ...]:
        """Return the working retrievers that keep rows, with their names."""
        return tuple(
            (leg.name, leg.retriever) for leg in self.legs if isinstance(leg.retriever, Index) and not leg.problem
        )

    def _prepare(self, selection: Selection) -> Callable[[], Any]:
        """Look the component up and check its options now; return what builds it later."""
        try:
            component = self.registry.component(selection.kind, selection.type)
        except PluginError as error:
            error.message = f"{selection.place}: {error.message}"
            self._missing.append(error)
            return lambda: None
        options = build_options(component, selection, self._problems)
        if selection is self.config.chunking:
            self._cutting = f"{selection.type} {options!r}"
        return partial(self._build, component, options, selection)

    def _build(self, component: Component[Any, Any], options: Any, selection: Selection) -> Any:
        """Call the factory; what a plugin raises there is named as its fault."""
        try:
            return component.factory(options, self._place)
        except KlawError:
            raise
        except Exception as error:
            raise PluginError(
                f"{selection.place}: the {selection.kind} {selection.type!r} could not be built: "
                f"{type(error).__name__}: {error}",
                hint="see `klaw plugins`",
            ) from error

    def _join(self, selection: Selection, retriever: Retriever[Any]) -> Leg | None:
        """Check that the retriever fits the store, and let it enlist if it keeps rows.

        Return None for one that needs vectors where nothing is to be embedded.
        """
        if not issubclass(self.store.offers, retriever.joins):
            joins, offers = (f"{kind.__module__}.{kind.__qualname__}" for kind in (retriever.joins, self.store.offers))
            raise PluginError(
                f"{selection.place}: the retriever {selection.type!r} works in a store that offers {joins}, "
                f"but the store {self.config.store.type!r} offers {offers}",
                hint="choose a retriever of that store: `klaw plugins`",
            )
        if retriever.needs_vectors and self.config.embedding.type == "none":
            return None
        problem = ""
        if isinstance(retriever, Index):
            try:
                self.store.enlist(selection.type, retriever)
            except RetrievalError as error:
                problem = str(error)
        return Leg(selection.type, retriever, selection.weight, problem)


def option_problems(selections: Sequence[Selection]) -> list[str]:
    """Return what is wrong with the options of those components that are installed."""
    registry = discover()
    problems: list[str] = []
    for selection in selections:
        try:
            component = registry.component(selection.kind, selection.type)
        except PluginError:
            continue
        build_options(component, selection, problems)
    return problems


def _together(errors: Sequence[PluginError]) -> PluginError:
    """Return one error that says everything that is missing, and one command that installs it where one does."""
    if len(errors) == 1:
        return errors[0]
    to_install = all(error.hint.startswith("pip install") for error in errors)
    hints = ["pip install 'klaw[default]'"] if to_install else list(dict.fromkeys(error.hint for error in errors))
    return PluginNotFoundError("; ".join(error.message for error in errors), hint="; ".join(filter(None, hints)))

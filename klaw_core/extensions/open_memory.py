"""An open memory: its parts, each built when it is first needed, and closing it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from attrs import evolve

from klaw_core.assembly import Assembly, option_problems
from klaw_core.config.opening import config_for
from klaw_core.errors import KlawError, PluginNotFoundError, QueryError, quoted
from klaw_core.holds import operations
from klaw_core.plugins.registry import LiveComponent, Registry
from klaw_core.values.collections import MEMORY, STANDARD_COLLECTIONS
from klaw_core.values.config import Config
from klaw_core.values.search import CloseEvent

# Imported where they are used, so that a search in a fresh process does not load them.
if TYPE_CHECKING:
    from klaw_core.extensions.host import Extensions
    from klaw_core.interfaces.components import Embedder
    from klaw_core.interfaces.extension import Extension, Host
    from klaw_core.searching.flow import Searcher
    from klaw_core.sources.catalogue import Sources
    from klaw_core.sources.index_runs import IndexRuns, LastRun
    from klaw_core.sources.reading import Reader
    from klaw_core.values.candidates import Preference
    from klaw_core.values.search import SearchRequest, SearchResults

T = TypeVar("T")

# More names of collections would not fit on a line.
_MAX_NAMES = 6


def _listed(names: Sequence[str]) -> str:
    """Return collections as words: ``the collections 'memory', 'work'``."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    collections = "the collection" if len(names) == 1 else "the collections"
    return f"{collections} {', '.join(map(quoted, names[:_MAX_NAMES]))}{more}"


@operations
class OpenMemory(ABC):
    """The parts of ``Memory``, which adds the public methods."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._process = os.getpid()
        self._last_runs: dict[tuple[str, str], LastRun] = {}

    @classmethod
    def open(
        cls,
        config: Config | str | Path | None = None,
        *,
        data_dir: str | Path | None = None,
        registry: Registry | None = None,
        components: Iterable[LiveComponent] = (),
        replace_damaged: bool = False,
    ) -> Self:
        """Assemble a memory from its configuration (default: the user's file and the environment).

        A path can replace the configuration: ``"notes.db"`` is the database file, with the files that belong to the
        user next to it in ``notes.db-data``; a path without a suffix is a data directory, like ``data_dir``.
        ``components`` are live objects that the configuration can select in addition to installed plugins, for instance
        an embedder of the calling program. If the database is damaged, raise DatabaseCorruptError; with
        ``replace_damaged`` set it aside instead, begin with an empty one, and fill it with :meth:`reindex`. Raise
        ConfigError, PluginError or StoreError. Models are loaded later, when they are first needed.
        """
        config = config_for(config, data_dir, option_problems)
        if registry is None:
            from klaw_core.plugins.discover import discover

            registry = discover(disabled=config.disabled_plugins)
        live = tuple(components)
        registry = registry.with_live(live) if live else registry
        return cls(Assembly(config, registry, replace_damaged=replace_damaged))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the store; closing twice is allowed."""
        is_own = self._process == os.getpid()  # in a forked child, threads of the parent may hold any of its locks
        if is_own and "extensions" in self.__dict__:
            self.extensions.emit(CloseEvent())
        self._assembly.store.close()

    @property
    def config(self) -> Config:
        """The configuration this memory was assembled from."""
        return self._assembly.config

    @property
    def erases_later(self) -> str:
        """When the bytes of forgotten texts are deleted; empty if they are deleted when ``forget`` returns."""
        return self._assembly.store.erases_later

    @property
    def isolates(self) -> bool:
        """Whether the store keeps this memory apart from those of other agents."""
        return self._assembly.store.isolates

    @property
    def embedder(self) -> Embedder:
        """The configured embedder, in the space of the index; its model loads at its first use.

        Raise PluginError, ConfigError. With ``type = "none"`` its methods raise EmbeddingError.
        """
        return self._assembly.embedder

    @cached_property
    def extensions(self) -> Extensions:
        """The installed extensions."""
        from klaw_core.extensions.host import Extensions

        return Extensions(self.config, self._assembly.registry, self._make_host, self._assembly.context)

    def _make_host(self) -> Host:
        from klaw_core.extensions.memory_host import MemoryHost

        return MemoryHost(self._assembly, lambda: self._runs, self.search_for, lambda: self.extensions)

    @overload
    def extension(self, key: str) -> Extension: ...
    @overload
    def extension(self, key: type[T]) -> T: ...
    def extension(self, key: str | type[T]) -> Extension | T:
        """Return an extension by its name, or by its class, which types it.

        Raise PluginError if it is not installed or cannot be built, ConfigError.
        """
        if isinstance(key, str):
            return self.extensions.get(key)
        found = next((item for item in self.extensions.all().values() if isinstance(item, key)), None)
        if found is None:
            raise PluginNotFoundError(f"no extension of the class {key.__qualname__} is installed", hint="klaw plugins")
        return found

    @abstractmethod
    def search_for(self, request: SearchRequest) -> SearchResults:
        """Search; extensions call this through their host."""

    def _part(self, name: str) -> Any:
        """Return an extension that a method or a property passes a call to."""
        return self.extensions.get(name)

    def _check_collections(self, names: Sequence[str]) -> None:
        """Raise QueryError unless these collections exist."""
        if not names:
            raise QueryError("no collection given", hint=f"known: {', '.join(STANDARD_COLLECTIONS)}")
        unknown = [name for name in names if name not in STANDARD_COLLECTIONS]
        if not unknown:
            return
        with self._assembly.store.read() as snapshot:  # sources are asked only then, which may read directories
            unknown = sorted(set(unknown).difference(snapshot.collections()))
        known = self._sources.collections() if unknown else ()
        for name in unknown:
            if name not in known:
                raise QueryError(f"unknown collection {name!r}", hint=f"known: {', '.join(known)}")

    @cached_property
    def _separate(self) -> frozenset[str]:
        return (self._assembly.registry.separate_collections() | {*self.config.search.separate}) - {MEMORY}

    def _explain_empty(self, results: SearchResults, names: Sequence[str]) -> SearchResults:
        """Replace the hint that nothing is indexed, if something is, or can be: the database may have been lost."""
        from klaw_core.searching.flow import NOTHING_INDEXED

        if NOTHING_INDEXED not in results.hints:
            return results
        with self._assembly.store.read() as snapshot:
            held = sorted(name for name in snapshot.collections() if not snapshot.is_empty(name))
        told = NOTHING_INDEXED
        if held:
            content = f"{_listed(held)} {'has' if len(held) == 1 else 'have'} content: klaw search -c NAME"
            told = f"{_listed(names)} {'is' if len(names) == 1 else 'are'} empty; {content}"
        else:
            with suppress(KlawError):  # sources that cannot be listed are reported by an index run
                if any(self._sources.of(name) for name in names):
                    told = "the index is empty: klaw index"
        replaced = {NOTHING_INDEXED: self.config.conversations.redactor.text(told)}
        notices, hints = ((replaced.get(text, text) for text in each) for each in (results.notices, results.hints))
        return evolve(results, notices=tuple(notices), hints=tuple(hints))

    def _preferences(self, question: str) -> Sequence[tuple[str, Preference]]:
        """Return what extensions prefer for a question; for most questions none is built."""
        return self.extensions.preferences(question) if self._assembly.registry.asked(question) else ()

    @property
    def _sources(self) -> Sources:
        """The sources as they are now; a call takes them once, and passes them on."""
        from klaw_core.sources.catalogue import Sources

        return Sources(self._assembly, self.extensions.sources)

    def _reader(self, sources: Sources) -> Reader:
        from klaw_core.sources.reading import Reader

        made = self._assembly
        return Reader(made.store, sources, made.document_redactor, made.chunker_of)

    @property
    def _runs(self) -> IndexRuns:
        """The index runs of one call, with the sources as they are now."""
        from klaw_core.sources.index_runs import IndexRuns

        return IndexRuns(self._assembly, self._sources, self.extensions.emit, self._last_runs)

    @cached_property
    def _searcher(self) -> Searcher:
        from klaw_core.searching.flow import Searcher

        assembly = self._assembly
        return Searcher(
            assembly.store,
            lambda: assembly.embedder,
            assembly.retrievers,
            assembly.fusion,
            assembly.stages,
            self.config.conversations.redactor,
            self._preferences,
        )

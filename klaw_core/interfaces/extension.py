"""Extensions: features that own data, tools, checks or commands, without the core knowing their names.

An extension is a component (hook ``klaw_extensions``, options in ``[extensions.NAME]``). Its class inherits the classes
below that say what it does, and defines their methods:

    class Diary(SourcedExtension, ToolExtension): ...

What a class does not inherit is never called, whatever its methods are called. An extension is built when something
first asks for it: an index run, a check, an export, a tool, an event it listens to, or ``Memory.extension``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from klaw_core.interfaces.components import Embedder
    from klaw_core.interfaces.language_model import LanguageModel
    from klaw_core.interfaces.source import Source
    from klaw_core.interfaces.store import Snapshot, Store, Transaction
    from klaw_core.values.candidates import Preference
    from klaw_core.values.config import Config
    from klaw_core.values.documents import Document
    from klaw_core.values.events import Event
    from klaw_core.values.findings import Finding
    from klaw_core.values.runs import IndexReport
    from klaw_core.values.search import SearchRequest, SearchResults
    from klaw_core.values.tools import Tool

R = TypeVar("R")
A = TypeVar("A", bound="type[Extension]")

#: The attributes of each ability that must be sequences of names; checked when an extension is built.
LISTS_OF_NAMES: dict[type[Extension], Sequence[str]] = {}


def lists_names(*attributes: str) -> Callable[[A], A]:
    """Declare, as a decorator of an ability, which of its attributes are sequences of names."""

    def declare(ability: A) -> A:
        LISTS_OF_NAMES[ability] = attributes
        return ability

    return declare


class Host(Protocol):
    """The services of the memory for an extension. Safe to use from several threads."""

    @property
    def config(self) -> Config:
        """Return the configuration."""

    @property
    def data_dir(self) -> Path:
        """Return the directory of files that must not be lost."""

    @property
    def agent(self) -> str:
        """Return the agent whose memory this is; empty if it is not one of several."""

    @property
    def store(self) -> Store[Any]:
        """Return the store."""

    @property
    def embedder(self) -> Embedder:
        """Return the embedder. Raise EmbeddingError, PluginError."""

    @property
    def language_model(self) -> LanguageModel | None:
        """Return the configured language model, None if none is configured. Raise PluginError."""

    def extension(self, name: str, /) -> Any:
        """Return another extension. Raise PluginError if it is not installed or cannot be built, ConfigError."""

    def read(self) -> AbstractContextManager[Snapshot[Any]]:
        """Open a snapshot of the store."""

    def write(self) -> AbstractContextManager[Transaction[Any]]:
        """Begin a transaction of the store."""

    def reserved_origins(self) -> frozenset[str]:
        """Return the origins that belong to extensions, including this one's."""

    def check_writable(self, collection: str, /) -> None:
        """Raise QueryError if the name of a collection is invalid, or if the collection belongs to an extension."""

    def index(self, origin: str, /) -> IndexReport:
        """Update the index from the extension's sources of this origin.

        Raise NotFoundError if there are none, WorkspaceError, StoreError.
        """

    def index_documents(self, documents: Sequence[Document], collection: str = ..., /) -> IndexReport:
        """Index documents that the extension has just recorded, without scanning its sources. Raise StoreError."""

    def remove_documents(self, paths: Sequence[str], collection: str, /) -> Exception | None:
        """Remove documents from a collection and its indexes. Return what :meth:`emit` does. Raise StoreError."""

    def forget(self, paths: Sequence[str], /) -> None:
        """Remove documents from every collection, index and cache. Raise StoreError, also for listeners that failed."""

    def forget_removed_text(self, origin: str, paths: Sequence[str], /) -> Exception | None:
        """Forget the text that documents of the extension's sources of this origin no longer have.

        The rest of each document stays indexed. A document that cannot be read now is removed. Return what :meth:`emit`
        does. Raise StoreError.
        """

    def search(self, request: SearchRequest, /) -> SearchResults:
        """Search as ``Memory.search_for`` does."""

    def emit(self, event: Event, /) -> Exception | None:
        """Send an event to every listener; return the error of those that failed, which a forgetting caller reports."""


class Extension:
    """A feature with a name. The classes below, and those of libraries, declare what else it does."""

    __slots__ = ()

    if TYPE_CHECKING:  # an attribute or a property

        @property
        def name(self) -> str:
            """Return the name it is registered under."""


class AttachedExtension(Extension):
    """An extension that uses the rest of the memory."""

    __slots__ = ()

    @abstractmethod
    def attach(self, host: Host, /) -> None:
        """Store the host; called once, before anything else."""


@lists_names("origins")
class SourcedExtension(Extension):
    """An extension with its own documents."""

    __slots__ = ()
    #: Whether the extension checks the collection of a record when it is added. Otherwise each index run does, and
    #: fails for an earlier record, which was added before another extension had its collection.
    checks_collections = False

    if TYPE_CHECKING:  # an attribute or a property

        @property
        def origins(self) -> Sequence[str]:
            """Return the origins that only this extension's sources may have.

            Their indexed documents stay if the source is missing: a lost journal must not empty the index as well.
            """

    @abstractmethod
    def sources(self) -> Sequence[Source]:
        """Return the present sources, without those whose files do not exist yet."""


class ToolExtension(Extension):
    """An extension that language models can use."""

    __slots__ = ()

    @abstractmethod
    def tools(self) -> Sequence[Tool]:
        """Return its tools."""


class CheckedExtension(Extension):
    """An extension that ``klaw doctor`` examines."""

    __slots__ = ()

    @abstractmethod
    def check(self) -> Iterable[Finding]:
        """Yield each problem with the command that fixes it. Change nothing."""

    @abstractmethod
    def fix(self, findings: Sequence[Finding], /) -> None:
        """Fix what can be fixed without loss. ``findings`` are all those of this extension's last check."""


class ListeningExtension(Extension):
    """An extension that receives events; its component lists them in ``listens``."""

    __slots__ = ()

    @abstractmethod
    def on(self, event: Event, /) -> None:
        """Handle an event. An exception is logged and does not reach the caller that caused the event."""


class PreferringExtension(Extension):
    """An extension that prefers some chunks for a question; its component says for which ``questions`` it is asked."""

    __slots__ = ()

    @abstractmethod
    def prefer(self, question: str, /) -> Preference | None:
        """Return what to prefer, None for nothing. If this raises, the search goes on without it."""


class StatusExtension(Extension):
    """An extension with facts for ``klaw status``."""

    __slots__ = ()

    @abstractmethod
    def status(self) -> dict[str, int | str]:
        """Return what ``klaw status`` shows, by name."""

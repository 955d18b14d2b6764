"""The host of extensions over one memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, frozen

from klaw_core.assembly import Assembly
from klaw_core.interfaces.language_model import LanguageModel
from klaw_core.values.collections import MEMORY

if TYPE_CHECKING:
    from klaw_core.extensions.host import Extensions
    from klaw_core.interfaces.components import Embedder
    from klaw_core.interfaces.store import Snapshot, Store, Transaction
    from klaw_core.sources.index_runs import IndexRuns
    from klaw_core.values.config import Config
    from klaw_core.values.documents import Document
    from klaw_core.values.events import Event
    from klaw_core.values.prompts import Completion, Prompt
    from klaw_core.values.runs import IndexReport
    from klaw_core.values.search import SearchRequest, SearchResults
    from klaw_redaction import Redactor


@frozen(eq=False, repr=False)
class RedactingModel(LanguageModel):
    """A language model whose prompts contain no secret, whoever wrote them."""

    wrapped: LanguageModel
    redactor: Redactor

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.wrapped.model

    @property
    def max_tokens(self) -> int:
        """The limit of tokens."""
        return self.wrapped.max_tokens

    def complete(self, prompt: Prompt, /) -> Completion:
        """Return the completion of the redacted prompt."""
        strike = self.redactor.text
        messages = tuple(evolve(message, content=strike(message.content)) for message in prompt.messages)
        return self.wrapped.complete(evolve(prompt, messages=messages))

    def count_tokens(self, text: str, /) -> int:
        """Return the number of tokens of a text."""
        return self.wrapped.count_tokens(text)

    def status(self) -> Mapping[str, int | str]:
        """Return what ``klaw status`` shows, by name."""
        return self.wrapped.status()

    def check(self) -> None:
        """Check that completions are possible."""
        self.wrapped.check()


@define(eq=False, repr=False)
class MemoryHost:
    """Implements ``Host`` over the assembly of one memory."""

    assembly: Assembly
    get_runs: Callable[[], IndexRuns]
    search_memory: Callable[[SearchRequest], SearchResults]
    get_extensions: Callable[[], Extensions]

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.assembly.config

    @property
    def data_dir(self) -> Path:
        """The directory of files that must not be lost."""
        return self.assembly.config.data_dir

    @property
    def agent(self) -> str:
        """The agent whose memory this is."""
        return self.assembly.config.agent

    @property
    def store(self) -> Store[Any]:
        """The store."""
        return self.assembly.store

    @property
    def embedder(self) -> Embedder:
        """The embedder."""
        return self.assembly.embedder

    @property
    def language_model(self) -> LanguageModel | None:
        """The configured language model, for prompts of which secrets are redacted."""
        model = self.assembly.language_model
        return None if model is None else RedactingModel(model, self.config.conversations.redactor)

    def extension(self, name: str, /) -> Any:
        """Return another extension."""
        return self.get_extensions().get(name)

    def read(self) -> AbstractContextManager[Snapshot[Any]]:
        """Open a snapshot of the store."""
        return self.assembly.store.read()

    def write(self) -> AbstractContextManager[Transaction[Any]]:
        """Begin a transaction of the store."""
        return self.assembly.store.write()

    def reserved_origins(self) -> frozenset[str]:
        """Return the origins that belong to extensions."""
        return self.get_extensions().reserved_origins()

    def check_writable(self, collection: str, /) -> None:
        """Check that a collection belongs to no extension."""
        self.assembly.registry.check_writable(collection)

    def index(self, origin: str, /) -> IndexReport:
        """Update the index from the sources of one origin."""
        runs = self.get_runs()
        return runs.over(runs.sources.with_origin(origin), alone=True)

    def index_documents(self, documents: Sequence[Document], collection: str = MEMORY, /) -> IndexReport:
        """Index documents that the extension has just recorded."""
        return self.get_runs().documents(documents, collection)

    def remove_documents(self, paths: Sequence[str], collection: str, /) -> Exception | None:
        """Forget documents of one collection."""
        return self.get_runs().remove(paths, collection)

    def forget(self, paths: Sequence[str], /) -> None:
        """Forget documents in all collections."""
        if failure := self.get_runs().remove(paths):
            raise failure

    def forget_removed_text(self, origin: str, paths: Sequence[str], /) -> Exception | None:
        """Forget the text that documents of an origin no longer have."""
        return self.get_runs().forget_removed_text(origin, paths)

    def search(self, request: SearchRequest, /) -> SearchResults:
        """Search as ``Memory.search_for`` does."""
        return self.search_memory(request)

    def emit(self, event: Event, /) -> Exception | None:
        """Send an event to its listeners."""
        return self.get_extensions().emit(event)

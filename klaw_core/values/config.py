"""The configuration as a value."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from attrs import field, frozen

if TYPE_CHECKING:  # a search in a fresh process does not need it
    from klaw_redaction import Redactor

_ROLES = ("user", "assistant", "system", "tool")

# The fields of the settings below are the keys of their tables. `klaw_core.config.settings` reads a table by the types
# of the defaults and by the metadata: "at_least" (default 0) limits a number, "roles" are the possible strings.


@frozen
class CacheSettings:
    """The table ``memory.cache``: the maximum number of cached vectors. The least recently used are removed first."""

    max_entries: int = 250_000


@frozen
class SearchSettings:
    """The table ``memory.search``: ``separate`` are collections that a search leaves out unless it names them.

    Collections of extensions that ask for it, such as ``facts``, are separate besides these.
    """

    separate: tuple[str, ...] = ()


@frozen
class SyncSettings:
    """The table ``memory.sync``: ``on_search`` updates the sources of the searched collections before each search."""

    on_search: bool = False


@frozen
class ConversationSettings:
    """The table ``memory.conversations``: how messages are indexed, and what is redacted.

    Messages with a role in ``include_roles`` become chunks of at most ``max_tokens``. Consecutive messages share a
    chunk if they have at most ``packed_tokens`` together. Each chunk is also found by the ``context_tokens`` before it.
    Text that matches a pattern in ``redact`` (syntax of the library ``regex``) is redacted, and so are keys and tokens
    of known forms if ``redact_secrets`` is true: in conversations, saved memories and documents of other sources, and
    in notes only if ``redact_notes`` is true.
    """

    include_roles: tuple[str, ...] = field(default=("user", "assistant"), metadata={"roles": _ROLES})
    redact: tuple[str, ...] = ()
    redact_secrets: bool = True
    redact_notes: bool = False
    max_tokens: int = field(default=256, metadata={"at_least": 8})
    packed_tokens: int = 16
    context_tokens: int = 96

    @property
    def redactor(self) -> Redactor:
        """The redactor of secrets: that of the known formats, unless they are turned off, and of the own patterns."""
        return _redactor(self.redact, builtin=self.redact_secrets)


@lru_cache(maxsize=8)
def _redactor(own: tuple[str, ...], *, builtin: bool) -> Redactor:
    """Return the redactor of these patterns; one object for all, because it keeps what it has computed."""
    from klaw_redaction import Redactor
    from klaw_redaction.forms import BUILTIN_PATTERNS

    patterns = (*(BUILTIN_PATTERNS if builtin else ()), *own)
    return Redactor(patterns)


@frozen
class Selection:
    """A table that selects a component: its ``type``, its options as written, and its place in the file.

    ``problem`` says why it cannot be used (a ``${VAR}`` that is not set) if the rest works without it. ``inherited``
    are the options that an agent has from the owner's configuration. ``paths``: a reranker gets only chunks below these
    paths. ``is_default``: no file names it, so it is left out where its plugin is not installed.
    """

    kind: str
    type: str
    place: str  # dotted, as in the file: memory.embedding, memory.retrieval[0]
    options: Mapping[str, Any] = field(factory=dict, repr=False)  # may contain keys, because ${VAR} is expanded
    weight: float = 1.0
    fallback: tuple[Selection, ...] = ()  # for an embedder: the ones to use if it fails, in this order
    problem: str = ""
    inherited: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    is_default: bool = False


def named_embedding(text: str, current: Selection) -> Selection:
    """Return the selection that ``TYPE`` or ``TYPE:MODEL`` means if ``current`` is configured.

    If the type is the same, its other options stay; otherwise they are dropped.
    """
    kind, _, model = text.partition(":")
    kept = kind == current.type
    options = {**(current.options if kept else {}), **({"model": model} if model else {})}
    return Selection("embedder", kind, "memory.embedding", options, fallback=current.fallback if kept else ())


@frozen
class Config:
    """Everything that was configured, frozen. ``files`` are those that were read, in order.

    An agent inherits the fields that :data:`klaw_core.config.agents.INHERITED` lists, and no other.

    ``default_retrieval``: no file configures ``[[memory.retrieval]]``, so the store's own retrievers are used.
    ``formats`` are the chunkers of document formats, ``converters`` those of files, ``extensions`` the tables of
    extensions, all by name. ``own_data_dir``: the data directory is not the user's usual one. ``notices`` are messages
    for the user. ``layers`` are the tables that were merged into ``table``, by the names of their files or variables.
    """

    data_dir: Path
    cache_dir: Path
    store: Selection
    chunking: Selection
    embedding: Selection
    retrieval: tuple[Selection, ...]
    fusion: Selection
    reranking: tuple[Selection, ...] = ()  # stages, in the order in which they are applied
    sources: tuple[Selection, ...] = ()
    language_model: Selection | None = None
    formats: Mapping[str, Selection] = field(factory=dict)
    converters: Mapping[str, Selection] = field(factory=dict)
    extensions: Mapping[str, Selection] = field(factory=dict)
    conversations: ConversationSettings = ConversationSettings()
    cache: CacheSettings = CacheSettings()
    search: SearchSettings = SearchSettings()
    sync: SyncSettings = SyncSettings()
    disabled_plugins: tuple[str, ...] = ()
    offline: bool = False
    agent: str = ""
    default_retrieval: bool = False
    own_data_dir: bool = False
    notices: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    table: Mapping[str, Any] = field(factory=dict, eq=False, repr=False)  # merged, as `klaw config list` shows it
    layers: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=(), eq=False, repr=False)  # lowest first
    agents: Mapping[str, Mapping[str, Any]] = field(factory=dict, repr=False)  # the tables [agents.NAME] as written

    @property
    def fingerprint(self) -> str:
        """A string that is equal for configurations of the same memory: a hash, so that it reveals no key."""
        import json
        from hashlib import sha256

        apart = {"notices", "files", "table", "layers", "own_data_dir"}
        values = attrs.asdict(self, filter=lambda attribute, _: attribute.name not in apart)
        return sha256(json.dumps(values, default=str, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()

    def selections(self) -> list[Selection]:
        """Return every table that selects a component, except defaults that may be missing."""
        single = (self.store, self.chunking, self.embedding, self.fusion, self.language_model)
        return [
            *(selection for selection in single if selection is not None),
            *self.embedding.fallback,
            *self.retrieval,
            *(selection for selection in self.reranking if not selection.is_default),
            *self.sources,
            *self.formats.values(),
            *self.converters.values(),
            *self.extensions.values(),
        ]

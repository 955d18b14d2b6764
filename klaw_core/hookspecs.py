"""Every hook, on one page. A hook takes no arguments and yields components.

    from klaw_core import Component, hookimpl

    @hookimpl
    def klaw_embedders():
        yield Component("hashing", options=HashingEmbedder, factory=lambda options, context: options, api=2)

A distribution names the module that holds its hooks as an entry point of the group ``klaw``:

    [project.entry-points.klaw]
    hello = "klaw_hello.plugin"

That module should import little: heavy imports belong in the factories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pluggy
from attrs import field, frozen

if TYPE_CHECKING:
    from klaw_core.interfaces.components import Chunker, Embedder, Fusion, Reranker
    from klaw_core.interfaces.converter import Converter
    from klaw_core.interfaces.extension import Extension
    from klaw_core.interfaces.index import Retriever
    from klaw_core.interfaces.language_model import LanguageModel
    from klaw_core.interfaces.source import Source
    from klaw_core.interfaces.store import Store

#: The generation of hooks and Protocols that this core speaks.
API = 2

hookspec = pluggy.HookspecMarker("klaw")
hookimpl = pluggy.HookimplMarker("klaw")

OptionsT = TypeVar("OptionsT")
T_co = TypeVar("T_co", covariant=True)


@frozen
class ComponentContext:
    """Information for a factory about the memory of its component.

    ``data_dir`` is for files that must not be lost, ``cache_dir`` for files that can be computed again. ``agent`` is
    the name of the agent whose memory this is, empty if there is only one memory; a store that several agents share
    must use it to separate their rows. ``offline`` forbids network access. ``converters`` builds the converters of all
    plugins, and returns what a function makes of the name, the converter and the options of each; a PluginError of that
    function is reported. ``redactor`` removes secrets from notes, None if they stay. With ``replace_damaged``, a
    :class:`RepairableStore` with damaged data replaces it when it is built, instead of raising DatabaseCorruptError.
    """

    data_dir: Path
    cache_dir: Path
    offline: bool = False
    agent: str = ""
    converters: Callable[[Callable[[str, Any, Any], Any]], Sequence[Any]] = field(
        default=lambda _make: (), eq=False, repr=False
    )
    redactor: Any = field(default=None, eq=False, repr=False)  # a Redactor, whose import is not cheap
    replace_damaged: bool = False


@frozen
class AutoChoice:
    """Makes an embedder one of those that ``type = "auto"`` chooses from.

    The lowest ``rank`` that works is taken; local models have ranks below 100, servers 100 and more. An embedder with
    ``keys`` is considered only if one of these environment variables is set.
    """

    rank: int
    keys: tuple[str, ...] = ()


@frozen
class NoOptions:
    """The options of a component that has none."""


@frozen
class Component(Generic[OptionsT, T_co]):
    """A component that a plugin provides under a name.

    ``name`` is the value of ``type =`` in the configuration; ``options`` is an attrs class whose fields are the other
    keys; ``factory`` builds the component from its options and a :class:`ComponentContext`; ``api`` is the generation
    of this API that the plugin was written for. Extensions are used in the order of their ``rank``: their tools, their
    records in an export, their parts of a context; those that come with Klaw have ranks below 100.

    The remaining fields concern one kind each. ``auto``: an embedder takes part in ``type = "auto"``. ``retrievers``:
    the retrievers to use with a store if ``[[memory.retrieval]]`` is not configured. ``listens``: the events that an
    extension receives, and for which it is built. ``separate``: collections of an extension that a search leaves out
    unless it names them, and to which only the extension writes. ``questions``: a regular expression; an extension is
    asked what it prefers for a question that contains a match, in any case. ``keeps_journals``: a store is a
    ``JournalingStore``, so a command that needs only journals opens the store instead of files.
    """

    name: str
    options: type[OptionsT]
    factory: Callable[[OptionsT, ComponentContext], T_co]
    api: int
    summary: str = ""
    rank: int = field(default=100, kw_only=True)
    auto: AutoChoice | None = None
    retrievers: tuple[str, ...] = ()
    listens: tuple[type, ...] = ()
    keeps_journals: bool = False
    separate: tuple[str, ...] = field(default=(), kw_only=True)
    questions: str = field(default="", kw_only=True)


@hookspec
def klaw_embedders() -> Iterable[Component[Any, Embedder]]:
    """Yield embedders, which turn texts into vectors.

    yield Component("hashing", HashingOptions, lambda options, _: HashingEmbedder(options), api=2)
    """
    return ()


@hookspec
def klaw_chunkers() -> Iterable[Component[Any, Chunker]]:
    """Yield chunkers, which cut documents. A chunker also cuts every document whose ``format`` is its name.

    yield Component("org", OrgOptions, lambda options, _: OrgChunker(options), api=2)
    """
    return ()


@hookspec
def klaw_retrievers() -> Iterable[Component[Any, Retriever[Any]]]:
    """Yield retrievers, which answer queries with keys; one that is an ``Index`` also keeps rows.

    yield Component("fts5", Fts5Options, lambda options, _: Fts5Index(options), api=2)
    """
    return ()


@hookspec
def klaw_fusions() -> Iterable[Component[Any, Fusion]]:
    """Yield fusions, which make one ranking of several.

    yield Component("rrf", ReciprocalRankFusion, lambda options, _: options, api=2)
    """
    return ()


@hookspec
def klaw_stores() -> Iterable[Component[Any, Store[Any]]]:
    """Yield stores, which keep chunks and own the transactions.

    yield Component("sqlite", SqliteOptions, open_store, api=2, retrievers=("sqlite-vec", "fts5"))
    """
    return ()


@hookspec
def klaw_sources() -> Iterable[Component[Any, Source]]:
    """Yield sources, which documents come from.

    yield Component("mailbox", MailboxOptions, lambda options, _: Mailbox(options.path), api=2)
    """
    return ()


@hookspec
def klaw_converters() -> Iterable[Component[Any, Converter]]:
    """Yield converters, which turn the files of directories into text: PDF, say. Options: ``[memory.converters.NAME]``.

    yield Component("pdf", PdfOptions, lambda options, _: PdfConverter(options), api=2)
    """
    return ()


@hookspec
def klaw_rerankers() -> Iterable[Component[Any, Reranker]]:
    """Yield rerankers, which reorder the best chunks.

    yield Component("recency", RecencyOptions, lambda options, _: Recency(options), api=2)
    """
    return ()


@hookspec
def klaw_language_models() -> Iterable[Component[Any, LanguageModel]]:
    """Yield language models, which complete prompts.

    yield Component("openai", ChatOptions, lambda options, _: ChatModel(options), api=2)
    """
    return ()


@hookspec
def klaw_extensions() -> Iterable[Component[Any, Extension]]:
    """Yield extensions: features with data, tools, checks or commands of their own. Options: ``[extensions.NAME]``.

    yield Component("diary", DiaryOptions, lambda options, context: Diary(options, context.data_dir), api=2)
    """
    return ()

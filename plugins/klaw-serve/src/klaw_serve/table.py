"""The table of all operations that a client can call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from klaw_core import NotFoundError, PluginNotFoundError, quoted
from klaw_serve.chats import CHAT_OPERATIONS
from klaw_serve.facts import FACT_OPERATIONS
from klaw_serve.operations import Json, Operation
from klaw_serve.reading import READING_OPERATIONS
from klaw_serve.schemas import boolean, integer, several, string
from klaw_serve.searching import SEARCH_OPERATIONS
from klaw_serve.tenants import Tenant
from klaw_tools import answer_to_model

_PATH = string("A document's path: notes/a.md.", 1_000)
_SECTION: Json = {
    "type": "string",
    "description": "The section: about the user or the agent.",
    "enum": ["user", "agent"],
}
_KEY = string("The key.", 200)
_COLLECTION = string("The collection; default memory.", 200)


def _get(tenant: Tenant, given: Json) -> Any:
    return tenant.memory.get(given["path"], given.get("first_line", 1), given.get("lines"))


def _documents(tenant: Tenant, given: Json) -> Any:
    limit = given.get("limit", 100)
    found = tenant.memory.documents(
        collection=given.get("collection", "memory"),
        prefix=given.get("prefix", ""),
        after=given.get("after", ""),
        limit=limit,
    )
    return {"documents": found, "after": found[-1].path if len(found) == limit else None}


def _recent(tenant: Tenant, given: Json) -> Any:
    origin, collection = given.get("origin"), given.get("collection")
    return {"documents": tenant.memory.recent(given.get("limit", 10), origin=origin, collection=collection)}


def _save(tenant: Tenant, given: Json) -> Any:
    saved: Any = tenant.memory.extension("saved")
    given = dict(given)
    label, chat = given.pop("source", "manual"), given.pop("chat_id", None)
    return saved.save(given.pop("text"), label, chat, None, trust=tenant.trust, **given)


def _core_update(tenant: Tenant, given: Json) -> Any:
    tenant.memory.core.update(given["section"], given["key"], given["value"], trust=tenant.trust)
    return tenant.memory.core.get()


def _core_delete(tenant: Tenant, given: Json) -> Any:
    tenant.memory.core.delete(given["section"], given["key"], trust=tenant.trust)
    return tenant.memory.core.get()


def _tool(tenant: Tenant, given: Json) -> Any:
    """Run a tool of the memory. Raise NotFoundError for a tool that ``memory.tools`` does not list."""
    tools = tenant.memory.toolbox()
    if given["name"] not in tools:
        raise NotFoundError(f"there is no tool {quoted(given['name'])}", hint=f"known: {', '.join(tools)}")
    return answer_to_model(tools, given["name"], given.get("arguments", {}))


def _index(tenant: Tenant, given: Json) -> Any:
    origin = given.get("origin")
    if origin is not None and origin not in {source.origin for source in tenant.memory.sources()}:
        raise NotFoundError(f"there is no source {quoted(origin)}", hint="GET /api/sources")
    return tenant.run.start(origin, force=given.get("force", False))


def _extensions(tenant: Tenant, _given: Json) -> Any:
    """Return which optional features are installed, so that a page shows only what works."""
    try:
        tenant.memory.extension("facts")
    except PluginNotFoundError:
        return {"facts": False}
    return {"facts": True}


_OWN: Final[Sequence[Operation]] = (
    Operation(
        "memory.get",
        "GET",
        "/api/document",
        "Read a document, or some of its lines.",
        _get,
        {
            "path": _PATH,
            "first_line": integer("The first line to read.", 1, 10**9),
            "lines": integer("The number of lines.", 1, 10**9),
        },
        ("path",),
    ),
    Operation(
        "memory.forget",
        "DELETE",
        "/api/document",
        "Forget a saved memory, or exclude a note from its workspace.",
        lambda tenant, given: tenant.memory.forget(given["path"]),
        {"path": _PATH},
        ("path",),
        read_only=False,
    ),
    Operation(
        "memory.restore",
        "POST",
        "/api/restore",
        "Restore a forgotten note.",
        lambda tenant, given: tenant.memory.restore(given["path"]),
        {"path": _PATH},
        ("path",),
        read_only=False,
    ),
    Operation(
        "memory.documents",
        "GET",
        "/api/documents",
        "List documents by path, one page at a time.",
        _documents,
        {
            "collection": _COLLECTION,
            "prefix": string("Only paths that start with this; empty for all.", 1_000, least=0),
            "after": string("The last path of the previous page; empty for the first one.", 1_000, least=0),
            "limit": integer("At most this many.", 1, 1_000),
        },
    ),
    Operation(
        "memory.recent",
        "GET",
        "/api/recent",
        "List the newest documents.",
        _recent,
        {
            "limit": integer("At most this many; default 10.", 1, 1_000),
            "origin": string("Only this source.", 200),
            "collection": _COLLECTION,
        },
    ),
    Operation(
        "memory.collections",
        "GET",
        "/api/collections",
        "List the collections, and those that a search covers if it names none.",
        lambda tenant, _: {
            "collections": tenant.memory.collections(),
            "searched": tenant.memory.collections(searched=True),
        },
    ),
    Operation(
        "memory.sources",
        "GET",
        "/api/sources",
        "List the sources of documents.",
        lambda tenant, _: {"sources": tenant.memory.sources()},
    ),
    Operation(
        "memory.save",
        "POST",
        "/api/memories",
        "Save a text; it can be found at once.",
        _save,
        {
            "text": string("The text to save.", 100_000),
            "source": string("The source label in results; default manual.", 200),
            "chat_id": string("The chat that it comes from: telegram_123456.", 300),
            "tags": several("Tags, which filters find: tags=NAME.", string("A tag.", 100)),
            "supersedes": string("The path of the saved memory that it replaces.", 200),
        },
        ("text",),
        {"content": "text"},
        read_only=False,
        status=201,
    ),
    Operation(
        "memory.status", "GET", "/api/status", "Report what is indexed.", lambda tenant, _: tenant.memory.status()
    ),
    Operation("memory.doctor", "GET", "/api/doctor", "Examine everything.", lambda tenant, _: tenant.memory.doctor()),
    Operation("memory.extensions", "GET", "/api/extensions", "Report which optional parts are installed.", _extensions),
    Operation(
        "memory.index",
        "POST",
        "/api/index",
        "Start an index run; its progress is sent as events.",
        _index,
        {"origin": string("Only this source.", 200), "force": boolean("Chunk every document again.")},
        read_only=False,
        status=202,
    ),
    Operation(
        "memory.index_state", "GET", "/api/index", "Report the progress of the index run.", lambda t, _: t.run.state
    ),
    Operation("memory.core_get", "GET", "/api/core", "Read core memory.", lambda tenant, _: tenant.memory.core.get()),
    Operation(
        "memory.core_update",
        "PUT",
        "/api/core/{section}/{key}",
        "Set a key of core memory.",
        _core_update,
        {"section": _SECTION, "key": _KEY, "value": string("The value; it may be empty.", 10_000, least=0)},
        ("section", "key", "value"),
        read_only=False,
    ),
    Operation(
        "memory.core_delete",
        "DELETE",
        "/api/core/{section}/{key}",
        "Delete a key of core memory.",
        _core_delete,
        {"section": _SECTION, "key": _KEY},
        ("section", "key"),
        read_only=False,
    ),
    Operation(
        "memory.tools",
        "GET",
        "/api/tools",
        "List the tools that a language model can be offered.",
        lambda tenant, _: {"tools": list(tenant.memory.toolbox().values())},
    ),
    Operation(
        "memory.tool",
        "POST",
        "/api/tools/{name}",
        "Call a tool; invalid arguments are reported in the answer.",
        _tool,
        {
            "name": string("The tool's name.", 200),
            "arguments": {"type": "object", "description": "Arguments that satisfy the tool's schema."},
        },
        ("name",),
        read_only=False,
    ),
)

#: All operations by name.
OPERATIONS: Final[Mapping[str, Operation]] = {
    operation.name: operation
    for operation in (*SEARCH_OPERATIONS, *_OWN, *READING_OPERATIONS, *CHAT_OPERATIONS, *FACT_OPERATIONS)
}


def offered(*, read_only: bool) -> Mapping[str, Operation]:
    """Return the operations of a server."""
    return {name: each for name, each in OPERATIONS.items() if each.read_only or not read_only}

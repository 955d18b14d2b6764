"""Operations of the page: a document as a tree of blocks, and another text in place of a saved one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from klaw_core import NotFoundError, quoted, to_json
from klaw_serve.operations import Json, Operation
from klaw_serve.schemas import moment, several, string
from klaw_serve.tenants import Tenant

_PATH = string("A document's path: notes/a.md.", 1_000)
_SAVED = "saved"


def _rendered(tenant: Tenant, given: Json) -> Any:
    """Return a document with its blocks: null if it is not Markdown, or too long."""
    from klaw_serve.rendering import is_markdown, render  # the parser is imported when the first document is shown

    found = tenant.memory.get(given["path"])
    records = (
        record
        for collection in tenant.memory.collections()
        for record in tenant.memory.documents(collection=collection, prefix=found.path, limit=1)
        if record.path == found.path
    )
    record = next(records, None)
    return {
        "path": found.path,
        "content": found.content,
        "start_line": found.start_line,
        "file": None if found.file is None else str(found.file),
        "notice": found.notice,
        "created_at": None if record is None else record.created_at,
        "origin": None if record is None else record.origin,
        **(_saved(tenant, found.path) if found.path.startswith(f"{_SAVED}/") else {"tags": [], "versions": []}),
        "blocks": render(found.content) if is_markdown(found.path) else None,
    }


def _links(tenant: Tenant, given: Json) -> Any:
    """Return what a document links to, what links to it, and its broken links."""
    links: Any = tenant.memory.extension("links")
    return to_json(links.of(tenant.memory.get(given["path"]).path))


def _saved(tenant: Tenant, path: str) -> Json:
    """Return the tags of a saved memory, and all its versions, the oldest first, if there are several."""
    saved: Any = tenant.memory.extension(_SAVED)
    found = saved.history(path)
    gone = {each.supersedes for each in found}
    strike = saved.redactor.text
    versions = [
        {"path": each.id, "created_at": each.created_at, "text": strike(each.text), "current": each.id not in gone}
        for each in found
    ]
    tags = next((each.tags for each in found if each.id == path), ())
    return {"tags": tags, "versions": versions if len(versions) > 1 else []}


def _replace(tenant: Tenant, given: Json) -> Any:
    """Save a text in place of a saved one, with what the old one had."""
    saved: Any = tenant.memory.extension(_SAVED)
    try:
        old = saved.version(given["path"])
    except NotFoundError as error:
        hint = "a note is changed in its file; `klaw list --saved` shows the saved memories"
        raise NotFoundError(f"{quoted(given['path'])} is not a saved memory", hint=hint) from error
    tags = tuple(given.get("tags", old.tags))
    created_at = moment(given, "created_at") or old.created_at
    replaced = {"path": old.id, "text": old.text, "tags": old.tags, "created_at": old.created_at}
    if (given["text"], tags, created_at) == (old.text, old.tags, old.created_at):
        return {"path": old.id, "notice": "", "replaced": replaced}
    kept: Any = {"tags": tags, "supersedes": old.id, "trust": tenant.trust}
    found = saved.save(given["text"], old.source, old.chat_id, created_at, **kept)
    return {"path": found.path, "notice": found.notice, "replaced": replaced}


READING_OPERATIONS: Final[Sequence[Operation]] = (
    Operation(
        "memory.rendered",
        "GET",
        "/api/rendered",
        "Read a document, and if it is Markdown, as a tree of blocks, in which HTML is text.",
        _rendered,
        {"path": _PATH},
        ("path",),
    ),
    Operation(
        "memory.links",
        "GET",
        "/api/links",
        "What a document links to, what links to it (backlinks), and which of its links are broken.",
        _links,
        {"path": _PATH},
        ("path",),
    ),
    Operation(
        "memory.replace",
        "PUT",
        "/api/memories",
        "Save a text in place of a saved one, with its source and chat; `klaw history` shows the old one.",
        _replace,
        {
            "path": string("The path of the saved memory: saved/2026-02-24/0123456789ab.", 1_000),
            "text": string("The new text.", 100_000),
            "created_at": string("Its date; default that of the old text.", 40),
            "tags": several("Its tags; default those of the old text.", string("A tag.", 100)),
        },
        ("path", "text"),
        {"content": "text"},
        read_only=False,
    ),
)

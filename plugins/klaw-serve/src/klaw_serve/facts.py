"""Operations on facts, if the extension `facts` is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from klaw_core import to_json
from klaw_serve.operations import Json, Operation
from klaw_serve.schemas import boolean, integer, moment, string
from klaw_serve.tenants import Tenant

_EXTENSION = "facts"


def _facts(tenant: Tenant, given: Json) -> Any:
    """Return the facts that are true now, or all facts, the newest first.

    For a query, return the best match first, each with its relevance.
    """
    extension: Any = tenant.memory.extension(_EXTENSION)
    as_of, limit = moment(given, "as_of", day="last"), given.get("limit", 100)
    if given.get("query", "").strip():
        found = extension.search(given["query"], limit, as_of=as_of)
        judged = [
            {"relevance": result and result.relevance, "is_weak": bool(result and result.is_weak)}
            for result in found.results
        ]
        facts = [{**to_json(fact), **judgement} for fact, judgement in zip(found, judged, strict=True)]
        return {"facts": facts, "notices": found.notices}
    found = list(reversed(extension.list(as_of=as_of, everything=given.get("everything", False))))[:limit]
    return {"facts": found, "notices": ()}


def _history(tenant: Tenant, given: Json) -> Any:
    extension: Any = tenant.memory.extension(_EXTENSION)
    return {"facts": extension.history(given["name"])}


FACT_OPERATIONS: Final[Sequence[Operation]] = (
    Operation(
        "memory.facts",
        "GET",
        "/api/facts",
        "List facts, or find facts that match a question.",
        _facts,
        {
            "query": string("The question; empty to list facts.", 4_000, least=0),
            "as_of": string("Facts that were true on this day.", 40),
            "everything": boolean("Include facts that are no longer true."),
            "limit": integer("At most this many; default 100.", 1, 1_000),
        },
    ),
    Operation(
        "memory.fact_history",
        "GET",
        "/api/facts/{name}",
        "Return the history of a fact: the facts that it replaced and that replaced it, oldest first.",
        _history,
        {"name": string("A fact's id, or a slot.", 300)},
        ("name",),
    ),
)

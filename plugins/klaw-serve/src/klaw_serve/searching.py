"""Operations that answer a question: search, and the context for a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, get_args

import msgspec

from klaw_core import Condition, Filters, SearchRequest, parse_condition
from klaw_journals.trust import Trust
from klaw_serve.operations import Json, Operation
from klaw_serve.schemas import integer, moment, number, one_of, several, string
from klaw_serve.tenants import Tenant

_MAX_RESULTS = 1_000
_MAX_LABEL_CHARACTERS = 1_000
# A query of this length fits into the head of a request even if every character is percent-encoded.
_MAX_QUERY_CHARACTERS = 8_000

_CONDITION: Final[Json] = {
    "type": ["string", "object"],
    "description": "year>=2025, or an object of key, operator and value.",
    "minLength": 1,
    "maxLength": _MAX_LABEL_CHARACTERS,
    "properties": {
        "key": {"type": "string"},
        "operator": {"enum": ["=", "!=", "<", "<=", ">", ">=", "in"]},
        "value": {"type": ["string", "number", "boolean", "array"]},
    },
    "required": ["key", "operator", "value"],
    "additionalProperties": False,
}

_SEARCH: Final[dict[str, Json]] = {
    "query": string(
        "The question, in plain words; without one, conditions list the newest.", _MAX_QUERY_CHARACTERS, least=0
    ),
    "limit": integer("At most this many chunks; default 10.", 1, _MAX_RESULTS),
    "mode": one_of("By words and meaning (hybrid), words (fts) or meaning (vector).", "hybrid", "fts", "vector"),
    "collection": several("Collections; default all but separate ones.", string("A name.", _MAX_LABEL_CHARACTERS)),
    "source": string("Only this source: MEMORY.md, conversation, manual.", _MAX_LABEL_CHARACTERS),
    "path": string("Only paths that start with this: notes/2026/.", _MAX_LABEL_CHARACTERS),
    "chat_id": string("Only this chat: telegram_123456.", _MAX_LABEL_CHARACTERS),
    "since": string("From when on: 2026-02-24, 2026-02, 7d, last week.", 40),
    "until": string("Up to when; a day is included.", 40),
    "where": several("Only metadata like tags=work, year>=2025.", _CONDITION),
    "min_score": number("Leave out results with a lower score.", -1e9, 1e9),
    "min_relevance": number("Leave out results with a lower relevance.", 0, 1),
    "per_document": integer("At most this many chunks per note; default 3.", 1, _MAX_RESULTS),
}


# Arguments that a SearchRequest has under the same name.
_SAME = ("limit", "mode", "min_score", "min_relevance", "per_document")


def _search(tenant: Tenant, given: Json) -> Any:
    filters = Filters(
        source=given.get("source"),
        path=given.get("path"),
        chat_id=given.get("chat_id"),
        since=moment(given, "since", day="first"),
        until=moment(given, "until", day="end"),
        metadata=tuple(map(_condition, given.get("where", ()))),
    )
    same = {name: given[name] for name in _SAME if name in given}
    request = SearchRequest(
        given.get("query", ""), filters=filters, collections=given.get("collection") or None, **same
    )
    found = tenant.memory.search_for(request)
    # msgspec returns the same as to_json in a fifth of the time.
    results = [{**msgspec.to_builtins(item), "is_weak": item.is_weak} for item in found]
    for result in results:
        if not result["about"]:
            del result["about"]
    return {"results": results, "notices": found.notices}


def _condition(given: str | Json) -> Condition:
    if isinstance(given, str):
        return parse_condition(given)
    value = given["value"]
    return Condition(given["key"], given["operator"], tuple(value) if isinstance(value, list) else value)


def _nearest(tenant: Tenant, given: Json) -> Any:
    return {"nearest": tenant.memory.nearest(given["query"], given["texts"])}


def _context(tenant: Tenant, given: Json) -> Any:
    context = tenant.memory.context(
        given["message"],
        chat=given.get("chat"),
        budget=given.get("budget", 1_000),
        seen=given.get("seen", ()),
        part=given.get("part"),
        filters=Filters(metadata=tuple(map(_condition, given.get("where", ())))),
        min_relevance=given.get("min_relevance"),
        trust=given.get("trust"),
    )
    sources = [item.source for item in context.items if item.source]
    return {"context": str(context), "tokens": context.tokens, "sources": sources, "notices": context.notices}


SEARCH_OPERATIONS: Final[Sequence[Operation]] = (
    Operation(
        "memory.search",
        "GET",
        "/api/search",
        "Find the chunks that answer a question, best first.",
        _search,
        _SEARCH,
        (),
        {"q": "query", "k": "limit", "top_k": "limit", "topK": "limit", "n": "limit", "collections": "collection"},
    ),
    Operation(
        "memory.nearest",
        "POST",
        "/api/nearest",
        "Return the index of the text that is nearest in meaning to a question that was searched for before.",
        _nearest,
        {
            "query": string("The question.", 100_000),
            "texts": several("Parts of a result's text.", string("A text; it may be empty.", 100_000, least=0), 1_000),
        },
        ("query", "texts"),
    ),
    Operation(
        "memory.context",
        "GET",
        "/api/context",
        "Return the text from memory for a prompt with a message.",
        _context,
        {
            "message": string("The message; empty for the stable part only.", 100_000, least=0),
            "chat": string("The chat of the message: telegram_123456.", 300),
            "budget": integer("At most this many tokens; default 1000.", 1, 1_000_000),
            "seen": several("Sources of items that the model already has.", string("A source.", 1_000), 1_000),
            "part": one_of(
                "Only the part that is always the same (stable), or the part that depends on the message.",
                "stable",
                "volatile",
            ),
            "where": _SEARCH["where"],
            "min_relevance": _SEARCH["min_relevance"],
            "trust": one_of("The lowest class of texts to take; default agent.", *get_args(Trust)),
        },
        ("message",),
        {"query": "message", "max_tokens": "budget"},
    ),
)

"""The tools that use the whole memory: search, read, forget, context for a message, status."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from attrs import evolve, frozen

from klaw_core import (
    Condition,
    Filters,
    NotFoundError,
    QueryError,
    SearchRequest,
    SearchResult,
    SearchResults,
    Tool,
    parse_condition,
    parse_moment,
    to_json,
)
from klaw_core.cli.kit import with_shown_path
from klaw_core.cli.targets import parse_target
from klaw_core.values.collections import MEMORY
from klaw_core.values.lines import count_lines, take_lines
from klaw_core.values.tools import Json
from klaw_tools.arguments import shown
from klaw_tools.extension import ToolsExtension
from klaw_tools.options import MAX_BUDGET, MAX_RESULTS, MIN_BUDGET, ToolsOptions
from klaw_tools.schemas import integer, number, one_of, string, strings

if TYPE_CHECKING:
    from klaw_core import DocumentRecord, Excerpt, ForgetReport, Status
    from klaw_core.extensions.host import Extensions
    from klaw_tools import Context

_MAX_WEAK = 3  # results if all are weak
_PER_DOCUMENT = 3
_MAX_QUERY_CHARACTERS = 4_000
_MAX_LABEL_CHARACTERS = 200
_MAX_PATH_CHARACTERS = 1_000
_MAX_CONDITIONS = 20
_LINES = 200
_MAX_LINES = 2_000
_MAX_ANSWER_CHARACTERS = 40_000
_RANGE = re.compile(r":\d+-\d+$")

_LIMIT_NAMES = ("k", "n", "top_k", "topk", "max_results", "num_results", "count", "size")
_PATH_NAMES = ("file", "file_path", "filepath", "filename", "uri", "id", "chunk_id", "target", "document")


class ToolMemory(Protocol):
    """The methods of ``Memory`` that tools call."""

    @property
    def extensions(self) -> Extensions:
        """Return the installed extensions."""

    def search_for(self, request: SearchRequest, /) -> SearchResults:
        """Search."""

    def get(self, path: str, first_line: int = ..., lines: int | None = ..., /, *, redact: bool = ...) -> Excerpt:
        """Read a document."""

    def collections(self) -> Sequence[str]:
        """Return the names of all collections."""

    def documents(self, *, collection: str, after: str, limit: int) -> Sequence[DocumentRecord]:
        """Return indexed documents in order of path, a page at a time."""

    def forget(self, target: str, /) -> ForgetReport:
        """Forget a document."""

    def context(self, message: str, /, *, budget: int = ...) -> Context:
        """Return the context for a message."""

    def status(self) -> Status:
        """Return what is indexed."""


def memory_tools(memory: ToolMemory) -> Sequence[Tool]:
    """Return the tools that need more than one extension."""
    given = memory.extensions.all().get("tools")
    own = _MemoryTools(memory, given.options if isinstance(given, ToolsExtension) else ToolsOptions())
    return (own.search(), own.get(), own.forget(), own.context(), own.status())


@frozen(eq=False)
class _MemoryTools:
    memory: ToolMemory
    options: ToolsOptions

    def search(self) -> Tool:
        properties = {
            "query": string("In plain words; may be empty with where.", _MAX_QUERY_CHARACTERS, least=0),
            "limit": integer(f"Chunks; {self.options.max_results} by default.", 1, MAX_RESULTS),
            "path": string("Path prefix: notes/2026/.", _MAX_PATH_CHARACTERS),
            "collection": string("docs or memory,docs. Default: all but docs, facts.", _MAX_LABEL_CHARACTERS),
            "source": string("Only from MEMORY.md, conversation, manual.", _MAX_LABEL_CHARACTERS),
            "since": string("From 2026-02-24 or 7d on.", 40),
            "until": string("Until then, included.", 40),
            "tags": strings("These tags.", _MAX_CONDITIONS),
            "where": strings("Metadata: year>=2025.", _MAX_CONDITIONS),
            "mode": one_of("Words (fts), meaning or both.", "hybrid", "fts", "vector"),
            "min_relevance": number("Drop what is less relevant.", 0, 1),
            "per_document": integer("Chunks of one note; 3 by default.", 1, MAX_RESULTS),
        }
        return Tool(
            "memory_search",
            "Search long-term memory: notes, past conversations, saved facts. Use it before saying you do not know.",
            properties,
            self._search,
            ("query",),
            read_only=True,
            aliases={
                **dict.fromkeys(("q", "question", "text", "search", "input", "search_query"), "query"),
                **dict.fromkeys(_LIMIT_NAMES, "limit"),
                **dict.fromkeys(("relevance", "threshold", "min_similarity"), "min_relevance"),
                **dict.fromkeys(("prefix", "file", "folder", "directory"), "path"),
                **dict.fromkeys(("collections", "namespace"), "collection"),
                **dict.fromkeys(("tag", "labels"), "tags"),
                **dict.fromkeys(("filter", "filters", "metadata", "conditions"), "where"),
                **dict.fromkeys(("after", "from", "start_date"), "since"),
                **dict.fromkeys(("before", "to", "end_date"), "until"),
            },
        )

    def _search(self, arguments: Json) -> Json:
        path = _RANGE.sub("", arguments["path"]) if "path" in arguments else None
        filters = Filters(
            source=arguments.get("source"),
            path=path,
            since=_moment(arguments, "since", "first"),
            until=_moment(arguments, "until", "end"),
            metadata=tuple(_conditions(arguments)),
        )
        if not arguments["query"].strip() and not filters:
            raise QueryError(
                "query is empty", hint="say what to find, or give tags, where, path, source, since or until"
            )
        given = arguments.get("collection")
        collections = None if given is None else [name.strip() for name in given.split(",") if name.strip()]

        request = SearchRequest(
            arguments["query"],
            arguments.get("limit", self.options.max_results),
            arguments.get("mode", "hybrid"),
            filters=filters,
            collections=collections,
            min_relevance=arguments.get("min_relevance", self.options.min_relevance or None),
            per_document=arguments.get("per_document", _PER_DOCUMENT),
        )
        results = self.memory.search_for(request)
        if not results and filters.source is not None and path is None:
            # A model that has seen a result confuses its path with its source.
            below = evolve(filters, source=None, path=_RANGE.sub("", filters.source))
            results = self.memory.search_for(evolve(request, filters=below)) or results
        kept = results[:_MAX_WEAK] if results.nothing_fits else results
        # A directory is described once.
        described = {result.about: result.chunk_id for result in reversed(kept) if result.about}
        shown_at = {chunk: about for about, chunk in described.items()}
        answer: Json = {"results": [_for_model(result, shown_at.get(result.chunk_id, "")) for result in kept]}
        return answer | ({"notices": list(results.notices)} if results.notices else {})

    def get(self) -> Tool:
        properties = {
            "path": string("A result's path: notes/a.md or notes/a.md:12-40.", _MAX_PATH_CHARACTERS),
            "first_line": integer("From this line on.", 1, 10**9),
            "lines": integer("Lines; 200 by default.", 1, _MAX_LINES),
        }
        return Tool(
            "memory_get",
            "Read a note, conversation or saved memory around a search result.",
            properties,
            self._get,
            ("path",),
            read_only=True,
            aliases={
                **dict.fromkeys(_PATH_NAMES, "path"),
                **dict.fromkeys(("from", "start", "line", "start_line", "offset", "from_line"), "first_line"),
                **dict.fromkeys(("limit", "count", "num_lines", "line_count", "max_lines"), "lines"),
            },
        )

    def _get(self, arguments: Json) -> Json:
        first, wanted = arguments.get("first_line"), arguments.get("lines")
        read = partial(self._excerpt, first=first, lines=wanted)
        excerpt, lines = with_shown_path(self.memory, arguments["path"], read)
        content = take_lines(excerpt.content, 1, lines)[:_MAX_ANSWER_CHARACTERS]
        last = excerpt.start_line + count_lines(content) - 1
        answer: Json = {"path": excerpt.path, "start_line": excerpt.start_line, "end_line": last, "content": content}
        answer |= {} if excerpt.trust == "owner" else {"trust": excerpt.trust}
        answer |= {"next_line": last + 1} if excerpt.end_line > last else {}
        return answer | ({"notice": excerpt.notice} if excerpt.notice else {})

    def _excerpt(self, target: str, first: int | None, lines: int | None) -> tuple[Excerpt, int]:
        """Return the requested lines plus one, and the requested number."""
        try:
            wanted = lines or _LINES
            return self.memory.get(target, first or 1, wanted + 1, redact=True), wanted  # a file name may end in :40
        except NotFoundError:
            path, start, count = parse_target(target)
            if path == target:
                raise
            wanted = lines or min((count if first is None else None) or _LINES, _MAX_LINES)
            return self.memory.get(path, first or start, wanted + 1, redact=True), wanted

    def forget(self) -> Tool:
        properties = {"path": string("A result's path: saved/2026-02-24-1a2b3c.", _MAX_PATH_CHARACTERS)}
        return Tool(
            "memory_forget",
            "Forget a saved memory or note permanently. Only when the user asks.",
            properties,
            self._forget,
            ("path",),
            destructive=True,
            opt_in=True,
            aliases=dict.fromkeys(_PATH_NAMES, "path"),
        )

    def _forget(self, arguments: Json) -> Json:
        path = _RANGE.sub("", arguments["path"])
        if path.endswith("/"):
            raise QueryError(f"{shown(path)} is a whole workspace or chat; this tool forgets one document")
        report = with_shown_path(self.memory, path, self.memory.forget)
        return {"forgotten": list(report.paths), "chunks": report.chunks}

    def context(self) -> Tool:
        properties = {
            "message": string("The message to answer.", _MAX_QUERY_CHARACTERS),
            "budget": integer(f"Most tokens; {self.options.context_tokens} by default.", MIN_BUDGET, MAX_BUDGET),
        }
        return Tool(
            "memory_context",
            "Return what helps to answer a message: core memory, facts, the best chunks.",
            properties,
            self._context,
            ("message",),
            read_only=True,
            aliases={
                **dict.fromkeys(("query", "q", "question", "text", "prompt", "input"), "message"),
                **dict.fromkeys(("max_tokens", "tokens", "token_budget", "limit"), "budget"),
            },
        )

    def _context(self, arguments: Json) -> Json:
        context = self.memory.context(arguments["message"], budget=arguments.get("budget", self.options.context_tokens))
        answer: Json = {"context": str(context), "tokens": context.tokens}
        return answer | ({"notices": list(context.notices)} if context.notices else {})

    def status(self) -> Tool:
        return Tool(
            "memory_status",
            "Return what is indexed, and any problems.",
            {},
            self._status,
            read_only=True,
        )

    def _status(self, _arguments: Json) -> Json:
        status = self.memory.status()
        whole: Json = to_json(status)
        origins = {
            name: {**counts, "collections": list(status.collections.get(name, (MEMORY,)))}
            for name, counts in whole["origins"].items()
        }
        return {"origins": origins, "embedder": status.embedder, "problems": list(status.problems)}


def _conditions(arguments: Json) -> Iterator[Condition]:
    """Yield the conditions on metadata of a search. Raise QueryError."""
    yield from (Condition("tags", "=", tag.removeprefix("#")) for tag in arguments.get("tags", ()))
    yield from map(parse_condition, arguments.get("where", ()))


def _moment(arguments: Json, name: str, day: Literal["first", "end"]) -> datetime | None:
    """Return the moment of an argument."""
    text = arguments.get(name)
    if text is None:
        return None
    try:
        return parse_moment(text, datetime.now(UTC), day=day)
    except ValueError as error:
        raise QueryError(f"{name} is not a date: {shown(text)}", hint=str(error)) from error


def _for_model(result: SearchResult, about: str = "") -> Json:
    """Return the short form of a search result that tools return to a model, and what its directory is, if given."""
    return {
        **({"directory": about} if about else {}),
        "content": result.content,
        **({"context": result.context} if result.context else {}),
        "origin": result.origin,
        "source": result.source,
        **({} if result.trust == "owner" else {"trust": result.trust}),
        "created_at": to_json(result.created_at),
        "path": f"{result.path}:{result.start_line}-{result.end_line}",
        "heading": " > ".join(result.heading),
        "score": round(result.score, 6),
        **({} if result.relevance is None else {"relevance": round(result.relevance, 2)}),
        **({"is_weak": True} if result.is_weak else {}),
        **({"also": list(result.also)} if result.also else {}),
    }

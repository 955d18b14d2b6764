"""The tools ``search`` and ``fetch``, with the arguments and answers that connectors of ChatGPT expect.

``search(query)`` answers ``{"results": [{"id", "title", "url"}]}``, ``fetch(id)`` answers ``{"id", "title", "text",
"url", "metadata"}``. An id is the path of a document, a URL is that of its resource.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from klaw_core import Memory, Tool
from klaw_core.cli.kit import with_shown_path
from klaw_mcp.resources import uri_of

SEARCH = "search"
FETCH = "fetch"

_LINES = re.compile(r":\d+(-\d+)?\Z")


def connector_tools(memory: Memory, search: Tool) -> dict[str, Tool]:
    """Return both tools by name. ``search`` is the tool ``memory_search``, whose results are shown."""
    return {SEARCH: _search(search), FETCH: _fetch(memory)}


def _search(tool: Tool) -> Tool:
    def run(arguments: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, dict[str, str]] = {}
        for result in tool.run({"query": arguments["query"]})["results"]:
            path = _LINES.sub("", result["path"])
            title = " > ".join(filter(None, (path, result.get("heading"))))
            found.setdefault(path, {"id": path, "title": title, "url": uri_of(path)})
        return {"results": list(found.values())}

    query = {"type": "string", "description": "A question, or words.", "minLength": 1}
    return Tool(SEARCH, "Search the user's memory.", {"query": query}, run, ("query",), read_only=True)


def _fetch(memory: Memory) -> Tool:
    def run(arguments: dict[str, Any]) -> dict[str, Any]:
        found = with_shown_path(memory, arguments["id"], partial(memory.get, redact=True))
        metadata = {"notice": found.notice} if found.notice else {}
        names = {"id": found.path, "title": found.path, "url": uri_of(found.path)}
        return {**names, "text": found.content, "metadata": metadata}

    name = {"type": "string", "description": "Of a result of search.", "minLength": 1}
    return Tool(FETCH, "Read a document of the user's memory.", {"id": name}, run, ("id",), read_only=True)

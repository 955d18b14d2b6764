"""The JSON form of search results, as ``klaw search --json`` and a server write it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import attrs

from klaw_core.cli.json_forms import to_json
from klaw_core.values.search import Contribution, SearchResult, SearchResults
from klaw_core.values.tools import Json

if TYPE_CHECKING:
    from klaw_core.cli.snippets import ChooseWindow


def result_to_json(
    result: SearchResult, *, explain: bool = True, query: str | None = None, choose: ChooseWindow | None = None
) -> Json:
    """Return a search result; its contributions only with ``explain``, its snippet only for a ``query``.

    The snippet is the part of the content that matches the query best, at most 300 characters long. ``choose`` selects
    it if no word of the query matches.
    """
    fields: Json = to_json(result)
    if not explain:
        del fields["explain"]
    if query is not None:
        from klaw_core.cli.snippets import snippet_of  # only results of a search need it

        fields["snippet"] = snippet_of(result, query, choose).text
    return fields


def results_from_json(given: Json) -> SearchResults:
    """Parse the JSON form of search results. Raise KeyError, TypeError, ValueError if it is invalid."""
    known = {field.name for field in attrs.fields(SearchResult)}
    results = tuple(
        _result_from_json({name: value for name, value in each.items() if name in known}) for each in given["results"]
    )
    return SearchResults(results, tuple(given["notices"]))


def _result_from_json(given: Json) -> SearchResult:
    metadata = {key: tuple(value) if isinstance(value, list) else value for key, value in given["metadata"].items()}
    return SearchResult(
        **{
            **given,
            "heading": tuple(given["heading"]),
            "created_at": datetime.fromisoformat(given["created_at"]),
            "explain": tuple(Contribution(**part) for part in given["explain"]),
            "metadata": metadata,
            "also": tuple(given["also"]),
        }
    )

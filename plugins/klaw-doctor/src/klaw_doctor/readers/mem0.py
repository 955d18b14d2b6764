"""mem0: the JSON that ``get_all`` returns, a list or an object with ``results``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from klaw_core import SkippedEntry
from klaw_doctor.readers.files import named_files, parse_json
from klaw_doctor.readers.records import as_string, document, moment_of, objects, skipped
from klaw_journals import Record

# What `get_all` returns if it is not told how many memories: 100 before version 1, 20 since.
_DEFAULT_LIMITS = {20, 100}
_OWNERS = ("user_id", "agent_id", "run_id", "app_id", "categories")


def read(source: Path) -> Iterator[Record | SkippedEntry]:
    """Yield every memory as a document, with its metadata and its owner."""
    for name, content in named_files(source, "*.json"):
        value = parse_json(name, content)
        found = value.get("results", value.get("memories")) if isinstance(value, Mapping) else value
        if not isinstance(found, list):
            yield skipped(name, "neither a list of memories nor an object with results")
        if reason := _why_incomplete(value, found):
            yield skipped(name, reason)
        for number, item in enumerate(objects(found)):
            key, text = as_string(item.get("id")), as_string(item.get("memory")) or as_string(item.get("text"))
            if not key or not text.strip():
                yield skipped(f"{name}, memory {number + 1}", "it has no id or no text")
                continue
            own = item.get("metadata")
            metadata = {**(own if isinstance(own, Mapping) else {}), **{key: item.get(key) for key in _OWNERS}}
            moment = moment_of(item.get("updated_at")) or moment_of(item.get("created_at"))
            yield document("mem0", key, text, moment, metadata, format="text")


def _why_incomplete(value: object, found: object) -> str:
    """Return why a file probably lacks memories; empty if nothing indicates it."""
    count = len(found) if isinstance(found, list) else 0
    if isinstance(value, Mapping) and value.get("next"):
        return f"the first {count} memories of several pages: export the others, too"
    if count in _DEFAULT_LIMITS:
        return f"perhaps more than its {count} memories, which `get_all` returns by default: export with top_k=100000"
    return ""

"""Name the records of an export."""

from collections.abc import Mapping

from klaw_core.cli.kit import counted

# The names of the kinds of records in an export.
_RECORDS = {
    "workspace": ("workspace", "workspaces"),
    "core": ("fact of core memory", "facts of core memory"),
    "saved": ("saved memory", "saved memories"),
    "note": ("note", "notes"),
    "document": ("document", "documents"),
    "message": ("message", "messages"),
    "summary": ("summary", "summaries"),
}


def records(counts: Mapping[str, int]) -> str:
    """Return the number of records by kind: ``1 workspace, 2 saved memories``; empty if there are none."""
    return ", ".join(counted(count, *_RECORDS.get(kind, (kind,))) for kind, count in counts.items())

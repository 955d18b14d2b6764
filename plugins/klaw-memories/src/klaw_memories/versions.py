"""Versions of saved memories: which record replaces which, and the source of the current ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define

from klaw_core import Divisible, ForgetReport, NotFoundError, quoted
from klaw_memories.journal_extension import JournalSource, JsonRecord

_RANGE = re.compile(r":\d+(?:-\d+)?$")  # as in a result
_SAVED = "saved/"
_MAX_LISTED = 3


def replaced(records: Mapping[str, JsonRecord]) -> set[str]:
    """Return the ids that another record replaces."""
    return {record["supersedes"] for record in records.values() if record.get("supersedes")}


def earlier(records: Mapping[str, JsonRecord], ids: Iterable[str]) -> list[str]:
    """Return ids with those of all earlier versions of them."""
    found: dict[str, None] = {}
    left = list(ids)
    while left:
        name = left.pop()
        if name not in found:
            found[name] = None
            old = records.get(name, {}).get("supersedes")
            left += [old] if old else []
    return list(found)


def find_version(records: Mapping[str, JsonRecord], name: str) -> Mapping[str, Any]:
    """Return a record by its path, as results show it, or by the beginning of it. Raise NotFoundError."""
    wanted = _RANGE.sub("", name.strip())
    wanted = wanted if wanted.startswith(_SAVED) else f"{_SAVED}{wanted}"
    if wanted in records:
        return records[wanted]
    found = [each for each in records if each.startswith(wanted)] if wanted != _SAVED else []
    if len(found) == 1:
        return records[found[0]]
    if found:
        listed = ", ".join(found[:_MAX_LISTED])
        raise NotFoundError(f"{len(found):,} saved memories begin with {quoted(wanted)}", hint=f"one of {listed}")
    raise NotFoundError(f"no saved memory has the path {quoted(wanted, 200)}", hint="`klaw list --saved` shows paths")


@define(eq=False)
class VersionedSource(JournalSource, Divisible):
    """The current memories. Earlier versions can be read and forgotten by their paths, but not found."""

    def part(self, target: str, /) -> str | None:
        """Return the text of an earlier version; None if there is none of this path."""
        records = self.owner.journal.replay().records
        record = records.get(target)
        return None if record is None or target not in replaced(records) else str(record["text"])

    def forget_part(self, target: str, /) -> ForgetReport | None:
        """Forget an earlier version, and those before it; None if there is none of this path. Raise StoreError."""
        if self.part(target) is None:
            return None
        gone: Sequence[str] = self.owner.with_earlier([target])
        self.owner.journal.forget(gone)
        return ForgetReport(tuple(gone), 0)

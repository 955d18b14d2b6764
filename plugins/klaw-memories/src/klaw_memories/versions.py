"""Versions of saved memories: which record replaces which, and the source of the current ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define

from klaw_core import Divisible, ForgetReport, NotFoundError, quoted
from klaw_journals.trust import FOREIGN, OWNER, lowest
from klaw_memories.journal_extension import JournalSource, JsonRecord

if TYPE_CHECKING:
    from klaw_memories.saved_extension import SavedExtension

_RANGE = re.compile(r":\d+(?:-\d+)?$")  # as in a result
_SAVED = "saved/"
_MAX_LISTED = 3


def replacements(records: Mapping[str, JsonRecord]) -> dict[str, str]:
    """Return the id that each record replaces.

    A record can come from an import or another machine, so what it says about itself is not enough: nobody replaces
    what is by somebody who is trusted more, and records that replace each other in a circle, or themselves, replace
    nothing. So a memory with versions always has one that is current.
    """
    said = {name: old for name, record in records.items() if (old := record.get("supersedes")) and _may(records, name)}
    circles: set[str] = set()
    seen: set[str] = set()
    for start in said:
        path: dict[str, None] = {}
        name = start
        while name in said and name not in seen and name not in path:
            path[name] = None
            name = said[name]
        if name in path:
            steps = list(path)
            circles.update(steps[steps.index(name) :])
        seen.update(path)
    return {name: old for name, old in said.items() if name not in circles}


def _may(records: Mapping[str, JsonRecord], name: str) -> bool:
    """Return whether the writer of a record may replace what it says that it replaces."""
    record = records[name]
    old = records.get(record["supersedes"], {}).get("trust", OWNER if record["supersedes"] in records else FOREIGN)
    return may_replace(str(old), str(record.get("trust", OWNER)))


def may_replace(old: str, new: str) -> bool:
    """Return whether a writer of a class may replace what one of another class wrote."""
    return lowest((old, new)) == lowest((old,))


def replaced(records: Mapping[str, JsonRecord]) -> set[str]:
    """Return the ids that another record replaces."""
    return set(replacements(records).values())


def earlier(records: Mapping[str, JsonRecord], ids: Iterable[str]) -> list[str]:
    """Return ids with those of all earlier versions of them."""
    replaces = replacements(records)
    return list(dict.fromkeys(name for each in ids for name in chain_of(replaces, each)))


def chain_of(replaces: Mapping[str, str], name: str) -> list[str]:
    """Return an id with those that it replaces, the last one first; ``replaces`` has no circle."""
    found = [name]
    while found[-1] in replaces:
        found.append(replaces[found[-1]])
    return found


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

    if TYPE_CHECKING:
        owner: SavedExtension

    def part(self, target: str, /) -> str | None:
        """Return the text of an earlier version; None if there is none of this path."""
        return self.owner.texts_of_earlier().get(target) if target.startswith(_SAVED) else None

    def forget_part(self, target: str, /) -> ForgetReport | None:
        """Forget an earlier version, and those before it; None if there is none of this path. Raise StoreError."""
        if self.part(target) is None:
            return None
        gone: Sequence[str] = self.owner.with_earlier([target])
        self.owner.journal.forget(gone)
        return ForgetReport(tuple(gone), 0)

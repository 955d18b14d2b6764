"""What every machine with the same versions and traces shows: a pure function, without a clock, an order or a place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field, frozen

from klaw_sync.values import KINDS, Version, is_deletion, renamed

#: The names of the traces of each scope.
Forgotten = Mapping[str, frozenset[str] | set[str]]


@frozen
class Conflict:
    """A value that another one has replaced although its writer had not seen it."""

    kind: str
    id: str
    version: Version

    @property
    def text(self) -> str:
        """The value, for people; empty if it is a deletion."""
        body = self.version.body or {}
        return str(body.get("value", body.get("text", "")))


@define
class Merged:
    """The result of a merge.

    ``places``: the shown records of each journal and log, in order. ``shown``: the record that stands for each live
    version, by version; ``heads``: the live versions of each id of a register that nothing has replaced.
    """

    places: dict[tuple[str, str], list[tuple[str, dict[str, Any]]]] = field(factory=lambda: defaultdict(list))
    shown: dict[str, tuple[str, dict[str, Any]]] = field(factory=dict)
    heads: dict[tuple[str, str], list[Version]] = field(factory=lambda: defaultdict(list))
    conflicts: list[Conflict] = field(factory=list)


def is_alive(version: Version, forgotten: Forgotten) -> bool:
    """Return whether a version had seen every forgetting of what it belongs to."""
    return all(forgotten.get(scope, frozenset()) <= version.seen for scope in version.scopes)


def merge(versions: Iterable[Version], forgotten: Forgotten) -> Merged:
    """Merge all versions."""
    known = list(versions)
    over = {name for version in known for name in version.over}
    live = [
        version
        for version in known
        if version.body is not None and not version.is_bad and version.kind in KINDS and is_alive(version, forgotten)
    ]
    merged = Merged()
    groups: dict[tuple[str, ...], list[Version]] = defaultdict(list)
    for version in live:
        kind, body = KINDS[version.kind], version.body or {}
        if not kind.register:
            groups[kind.group(version.place, body)].append(version)
        elif version.v not in over:
            merged.heads[kind.name, kind.id_of(body)].append(version)
    _add_registers(merged)
    _add_groups(merged, groups)
    for (name, place), rows in merged.places.items():
        if KINDS[name].form == "log":
            merged.places[name, place] = _in_turn(rows, {version.v: version for version in live})
    return merged


def _add_registers(merged: Merged) -> None:
    """Show the last write of each id; those that it had not seen are conflicts."""
    for (kind, name), heads in sorted(merged.heads.items()):
        heads.sort(key=lambda version: (version.t, version.v))
        *others, last = heads
        for version in heads:
            merged.shown[version.v] = last.v, last.body or {}
        if not is_deletion(last.body or {}):
            merged.places[kind, last.place].append((last.v, last.body or {}))
        merged.conflicts += [Conflict(kind, name, version) for version in others if version.body != last.body]


def _add_groups(merged: Merged, groups: Mapping[tuple[str, ...], list[Version]]) -> None:
    """Equal records are one; the same id with another text gets an id of its own."""
    taken: dict[tuple[str, str], tuple[str, ...]] = {}
    rows: list[tuple[Version, dict[str, Any]]] = []
    for group, members in sorted(groups.items()):
        first = min(members, key=lambda version: version.order)
        kind, body = KINDS[first.kind], first.body or {}
        if kind.content and taken.setdefault((kind.name, kind.id_of(body)), group) != group:
            body = renamed(body)
        rows.append((first, body))
        for version in members:
            merged.shown[version.v] = first.v, body
    for version, body in sorted(rows, key=lambda row: row[0].order):
        merged.places[version.kind, version.place].append((version.v, body))


def _in_turn(
    rows: list[tuple[str, dict[str, Any]]], by_name: Mapping[str, Version]
) -> list[tuple[str, dict[str, Any]]]:
    """Order the lines of a log: those of one machine stay in its order, whatever its clock did."""
    top: dict[str, int] = {}
    keyed = []
    for v, body in sorted(rows, key=lambda row: (by_name[row[0]].machine, by_name[row[0]].number, row[0])):
        version = by_name[v]
        top[version.machine] = max(top.get(version.machine, 0), version.t)
        keyed.append((top[version.machine], version.machine, version.number, v, body))
    return [(v, body) for *_, v, body in sorted(keyed, key=lambda item: item[:4])]

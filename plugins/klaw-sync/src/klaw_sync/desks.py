"""The journals of this machine, as places with records: each is read, and replaced, under the lock of its writers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_core import RecordError, StoreCorruptError
from klaw_journals import FileJournals, parse_json
from klaw_journals.contents import is_file_name
from klaw_sync.values import KINDS, Kind

Body = dict[str, Any]
#: Returns the records to keep, in order, for those that are there.
Change = Callable[[list[Body]], Sequence[Mapping[str, Any]]]
Forgotten = Callable[[Any], bool]

_SECTIONS = ("user", "agent")
_HISTORY = "history"  # the field of core memory with what an agent has replaced
_TRUST = "trust"  # the field of core memory with the classes of keys that the owner did not write
_MAX_TEXT_BYTES = 16 << 20


@frozen
class Desk:
    """A place of a journal: a log, or the whole journal if it has none."""

    root: Path
    kind: Kind
    place: str = ""

    @property
    def path(self) -> Path:
        """The file."""
        suffix = ".json" if self.kind.form == "text" else ".jsonl"
        return (
            self.root / self.kind.name / f"{self.place}{suffix}"
            if self.place
            else self.root / f"{self.kind.name}{suffix}"
        )

    @property
    def stamp(self) -> str:
        """A text that changes whenever the file does; empty if there is none."""
        try:
            status = self.path.stat()
        except OSError:
            return ""
        return f"{status.st_ino}.{status.st_size}.{status.st_mtime_ns}"

    def settle(self, change: Change, is_forgotten: Forgotten = lambda _record: False) -> bool:
        """Replace the records; return whether they differ. Raise RecordError, StoreError.

        ``is_forgotten`` says of a record that is only kept on this machine, such as an earlier value of core memory,
        whether its owner has forgotten it elsewhere.
        """
        journals = FileJournals(self.root)
        if self.kind.form == "records":
            return journals.records(self.kind.name).settle(lambda held: change([dict(record) for record in held]))
        if self.kind.form == "log":
            group, _, name = self.place.partition("/")
            return journals.logs(self.kind.name).log(group, name).settle(change)
        return self._settle_text(change, is_forgotten)

    def _settle_text(self, change: Change, is_forgotten: Forgotten) -> bool:
        text = FileJournals(self.root).text(self.kind.name)
        with text.changing():
            data = text.read(_MAX_TEXT_BYTES + 1)
            try:
                table = parse_json(data) if data is not None else {}
                _require_objects(table)
            except RecordError as error:
                raise StoreCorruptError(
                    f"{text.location} is not core memory: {error.message}", hint="klaw doctor"
                ) from error
            held = [
                {"section": section, "key": key, "value": value, **_class_of(table, section, key)}
                for section in _SECTIONS
                for key, value in _section(table, section).items()
            ]
            # One order on all machines: it is that of the keys in a context, which a provider of models caches.
            wanted = sorted(map(dict, change(list(held))), key=_rank)
            past = table.get(_HISTORY)
            left = [each for each in past if not is_forgotten(each)] if isinstance(past, list) else past
            if wanted == held and left == past:
                return False
            if left != past:
                table.pop(_HISTORY)
                table |= {_HISTORY: left} if left else {}
            for section in _SECTIONS:
                table[section] = {body["key"]: body["value"] for body in wanted if body["section"] == section}
            classes = {
                section: {body["key"]: body[_TRUST] for body in wanted if body["section"] == section and _TRUST in body}
                for section in _SECTIONS
            }
            table.pop(_TRUST, None)
            if any(classes.values()):
                table[_TRUST] = {section: keys for section, keys in classes.items() if keys}
            kept = {(body["section"], body["key"]) for body in wanted}
            if left != past or any((body["section"], body["key"]) not in kept for body in held):
                text.remove_copies()
            text.replace(json.dumps(table, ensure_ascii=False, indent=2) + "\n")
        return True


def _rank(body: Body) -> tuple[bool, str]:
    return body["section"] != _SECTIONS[0], body["key"]


def _require_objects(table: Mapping[str, Any]) -> None:
    """Raise RecordError if a section is there but has no keys: an empty one would delete its keys everywhere."""
    for where in (table, _section(table, _TRUST)):
        for name in (*_SECTIONS, _TRUST) if where is table else _SECTIONS:
            if not isinstance(where.get(name, {}), dict):
                raise RecordError(f"its {name if where is table else f'{_TRUST}.{name}'!r} is not an object")


def _section(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def _class_of(table: Mapping[str, Any], section: str, key: str) -> dict[str, Any]:
    """Return the class of a key of core memory that the owner did not write, as a field."""
    classes = _section(_section(table, _TRUST), section)
    return {_TRUST: classes[key]} if key in classes else {}


def desks(root: Path, kinds: Sequence[str]) -> Iterator[Desk]:
    """Yield the places of these journals that exist, in a fixed order: sources before what is derived from them."""
    for name, kind in KINDS.items():
        if name not in kinds:
            continue
        if kind.form != "log":
            yield Desk(root, kind)
            continue
        logs = FileJournals(root).logs(name)
        for group in logs.groups():
            if isinstance(group, str):
                for log in logs.names(group):
                    if isinstance(log, str):
                        yield Desk(root, kind, f"{group}/{log}")


def is_place(kind: Kind, place: str) -> bool:
    """Return whether a journal may have this place: a name from another machine becomes the name of a file."""
    if kind.form != "log":
        return place == ""
    group, slash, name = place.partition("/")
    return bool(slash) and is_file_name(group) and is_file_name(name) and group not in {".", ".."}

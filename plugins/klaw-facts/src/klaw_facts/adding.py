"""Add the operations of an export. Decide which may be added: none on facts that exist here and are not in the export.

An export of this memory, or of a copy of it, contains the facts that its operations change. An operation on any other
existing fact would be an attempt to change it from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field

from klaw_facts.journal import FactsJournal
from klaw_facts.records import FACT_OPERATIONS
from klaw_journals import ImportCounts, Record

_BATCH = 500


@define
class Admission:
    """Decides about the lines of an export, in their order, given the existing lines."""

    _lines: dict[str, str] = field(factory=dict)  # operation by id
    _batches: dict[str, set[str]] = field(factory=dict)
    _digests: dict[tuple[str, str], str] = field(factory=dict)
    _profile: str = ""
    _told: set[str] = field(factory=set)  # ids whose lines are equal here and in the export
    _told_batches: set[str] = field(factory=set)

    @classmethod
    def over(cls, known: Mapping[str, Mapping[str, Any]]) -> Admission:
        """Return an Admission for a memory with these lines, given by id."""
        made = cls()
        for name, line in known.items():
            made._lines[name] = line["op"]
            made._batches.setdefault(_batch(line), set()).add(name)
            if line["op"] == "profile":
                made._profile = name
            elif line["op"] == "digest":
                made._digests[line["chat"], line["day"]] = name
        return made

    def tell(self, line: Mapping[str, Any]) -> None:
        """Register a line of the export that exists here or was added."""
        self._told.add(line["id"])
        self._told_batches.add(_batch(line))

    def refusal(self, line: Mapping[str, Any]) -> str:
        """Return why a new line may not be added; empty if it may."""
        op = line["op"]
        if op in FACT_OPERATIONS and self._is_ours(line["fact"]):
            return f"{line['id']} would change {line['fact']}, which the import does not contain"
        if op in {"merge", "undo"}:
            return self._refusal_of_people_or_undo(line)
        if op == "decide" and self._is_ours(line["proposal"]):
            return f"{line['id']} would decide on {line['proposal']}, which the import does not contain"
        if op == "profile" and (self._is_ours(self._profile) or not self._told.issuperset(line["facts"])):
            return f"{line['id']} is a profile of facts that the import does not contain, or there is another already"
        if op == "digest" and self._is_ours(self._digests.get((line["chat"], line["day"]), "")):
            return f"{line['chat']} already has another digest of {line['day']}"
        return ""

    def _refusal_of_people_or_undo(self, line: Mapping[str, Any]) -> str:
        if line["op"] == "merge" and any(op == "assert" and self._is_ours(name) for name, op in self._lines.items()):
            return f"{line['id']} would merge people, and the import does not contain all facts of this memory"
        if line["op"] == "undo" and self._is_not_told(line["batch"]):
            return f"{line['id']} would undo {line['batch']}, which the import does not contain"
        return ""

    def _is_not_told(self, batch: str) -> bool:
        return batch not in self._told_batches or bool(self._batches.get(batch, set()) - self._told)

    def _is_ours(self, name: str) -> bool:
        return name in self._lines and name not in self._told


def _batch(line: Mapping[str, Any]) -> str:
    name: str = line["id"] if line["op"] == "batch" else line.get("batch") or ""
    return name


def add_operations(journal: FactsJournal, records: Iterable[Record]) -> ImportCounts:
    """Add operations, except those on known facts that the import does not contain; old lines do not change."""
    known = {line["id"]: line for line in journal.operations()}
    admission = Admission.over(known)
    counts = ImportCounts()
    batch: list[Any] = []
    for record in records:
        name = record.value["value"]["id"]
        lines = journal.gate.lines([record.value["value"]])
        if not lines:
            counts += ImportCounts(kept=(f"{name} is a secret, and secrets are not stored as facts",))
            continue
        value = lines[0]
        here = known.get(name)
        if here is not None and here != value:
            counts += ImportCounts(kept=(f"{value['id']} differs from the stored one",))
            continue
        if here is not None:
            counts += ImportCounts(present=1)
        elif refusal := admission.refusal(value):
            counts += ImportCounts(kept=(refusal,))
            continue
        else:
            known[value["id"]] = value
            batch.append(value)
        admission.tell(value)
    for first in range(0, len(batch), _BATCH):
        journal.append(batch[first : first + _BATCH])
    return counts + ImportCounts(added=len(batch))

"""Fold the lines of the journal into a state: facts, watermarks of chats, digests and proposals.

The state known at a moment is the fold of the lines up to that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import define, evolve, field

from klaw_facts.records import (
    FACT_OPERATIONS,
    GUARDED,
    apply_changes,
    parse_batch,
    parse_digest,
    parse_fact,
    parse_quotes,
)
from klaw_facts.validity import begun_after
from klaw_facts.values import OWNER, PERSON, Batch, Digest, Fact, Proposal
from klaw_journals import parse_ts
from klaw_journals.trust import OWNER as TRUSTED
from klaw_journals.trust import lowest


@define(eq=True)
class State:
    """The state of the journal. ``profile`` are lines with the ids of their facts; ``suppressed`` are keyed hashes.

    ``profile_basis`` identifies the facts from which a model chose the profile; it is empty if rules did. Operations of
    batches that are ``undone`` are ignored, but not their watermarks: their messages count as read. ``people`` is the
    person that each merged one counts as; ``parted`` are those whose merge was undone.
    """

    facts: dict[str, Fact] = field(factory=dict)
    batches: dict[str, Batch] = field(factory=dict)
    watermarks: dict[str, str] = field(factory=dict)
    digests: dict[tuple[str, str], Digest] = field(factory=dict)
    proposals: dict[str, Proposal] = field(factory=dict)
    profile: tuple[tuple[str, str], ...] = ()
    profile_basis: str = ""
    suppressed: set[str] = field(factory=set)
    undone: set[str] = field(factory=set)
    people: dict[str, str] = field(factory=dict)
    parted: set[str] = field(factory=set)

    def copy(self) -> State:
        """Return an independent copy."""
        containers = ["facts", "batches", "watermarks", "digests", "proposals", "suppressed"]
        containers += ["undone", "people", "parted"]
        copies = {name: getattr(self, name).copy() for name in containers}
        return State(**copies, profile=self.profile, profile_basis=self.profile_basis)

    def visible(self, as_of: datetime) -> dict[str, Fact]:
        """Return the facts that are visible at a moment."""
        return {name: fact for name, fact in self.facts.items() if fact.is_visible_at(as_of)}

    def placed(self, fact: Fact) -> Fact:
        """Return a fact with the person that it counts as."""
        person = self.people.get(fact.identity, "")
        person = "" if person == fact.identity else person
        return fact if fact.counts_as == person else evolve(fact, counts_as=person)

    def waiting(self) -> list[Proposal]:
        """Return the ends that a person can decide on, oldest first: not of facts that have ended before."""
        return [each for each in self.proposals.values() if _is_open(each, self.facts.get(each.fact))]

    def failed(self) -> list[Batch]:
        """Return the batches that failed, oldest first."""
        return [batch for batch in self.batches.values() if batch.state == "failed"]

    def apply(self, record: Mapping[str, Any]) -> None:  # noqa: C901  # one case an operation
        """Apply one valid operation. An operation on a fact that does not exist changes nothing."""
        op = record["op"]
        if op != "batch" and record.get("batch") in self.undone:
            self.parted.update(record["people"] if op == "merge" else ())
            return
        if op == "assert":
            fact = parse_fact(record).with_person()
            self.facts.setdefault(fact.id, self.placed(fact))
        elif op in FACT_OPERATIONS:
            self._apply_to_fact(op, record)
        elif op == "batch":
            batch = parse_batch(record)
            self.batches[batch.id] = evolve(batch, state="undone") if batch.id in self.undone else batch
            if batch.chat and batch.through:
                self.watermarks[batch.chat] = batch.through
        elif op == "digest":
            digest = parse_digest(record)
            self.digests[digest.chat, digest.day] = digest
        elif op == "profile":
            self.profile = tuple(zip(record.get("facts", ()), record.get("lines", ()), strict=False))
            self.profile_basis = record.get("basis") or ""
        elif op == "decide":
            self.proposals.pop(record["proposal"], None)
        elif op == "suppress":
            self.suppressed.add(record["key"])
        elif op == "merge":
            self._merge(record["people"])

    def _merge(self, people: Sequence[str]) -> None:
        """Count people, and everybody whom they were merged with before, as one: the owner, or the first by name."""
        known = {self.people.get(name, name) for name in people}
        group = {*people, *(name for name, person in self.people.items() if person in known)}
        self.people.update(dict.fromkeys(group, OWNER if OWNER in group else min(group)))
        for fact in self.facts.values():
            if fact.identity in group:
                self.facts[fact.id] = self.placed(fact)

    def _apply_to_fact(self, op: str, record: Mapping[str, Any]) -> None:
        fact = self.facts.get(record["fact"])
        by = record.get("by", PERSON)
        if fact is None or (op in GUARDED and fact.is_by_person and by != PERSON):
            return
        other = self.facts.get(record.get("by_fact") or "")
        if record.get("merged") and other is not None and other.who != fact.who:
            return  # they count as one person no more
        ts = parse_ts(record["ts"])
        if op == "propose":
            name = record["id"]
            until = _moment(record.get("valid_to"))
            precision = record.get("precision", "moment")
            proposal = Proposal(
                name, fact.id, record.get("by_fact", ""), until, record.get("reason", ""), ts, precision
            )
            self.proposals[name] = proposal
            return
        self.facts[fact.id] = self.placed(_changed(fact, op, record, ts))
        if op == "end" and other is not None:
            self._succeed(self.facts[fact.id], other, record)

    def _succeed(self, old: Fact, new: Fact, record: Mapping[str, Any]) -> None:
        """Note in both facts that one followed the other: no value of a slot begins before the one before has ended.

        The end is known as exactly as the begin. Earlier versions did not write how exactly that is.
        """
        if "precision" not in record and old.valid_to == new.valid_from:
            self.facts[old.id] = evolve(old, end_precision=new.precision)
        self.facts[new.id] = begun_after(new, old, record.get("by", PERSON))


def _is_open(proposal: Proposal, fact: Fact | None) -> bool:
    if fact is None or fact.is_hidden:
        return False
    return fact.valid_to is None or (proposal.valid_to is not None and proposal.valid_to < fact.valid_to)


def _changed(fact: Fact, op: str, record: Mapping[str, Any], ts: datetime) -> Fact:  # noqa: PLR0911  # one for each op
    """Return a fact after one operation on it."""
    if op == "confirm":
        quotes = tuple(dict.fromkeys((*fact.quotes, *parse_quotes(record.get("quotes", ())))))
        affirmed, more = _moment(record.get("affirmed_at")) or fact.affirmed_at, fact.confirmations + 1
        return evolve(fact, quotes=quotes, confirmations=more, confirmed_at=ts, affirmed_at=affirmed)
    if op == "end":
        until = _moment(record.get("valid_to")) or ts
        told = {"ended_by": record.get("by_fact"), "end_reason": record.get("reason", "")}
        return evolve(fact, valid_to=until, end_precision=record.get("precision", "moment"), ended_at=ts, **told)
    if op == "reopen":
        live = evolve(fact, valid_to=None, end_precision="moment", ended_at=None, ended_by=None)
        return evolve(live, end_reason="", retracted_at=None)
    if op == "retract":
        return evolve(fact, retracted_at=ts, end_reason=record.get("reason", fact.end_reason))
    if op == "edit":
        edited = apply_changes(fact, record["changes"])
        by_person = "text" in record["changes"] and record.get("by", PERSON) == PERSON
        trust = lowest((str(record.get("trust", TRUSTED)),))
        return evolve(edited, verified=PERSON, trust=trust) if by_person else edited
    if op == "link":
        return evolve(fact, supersedes=tuple(dict.fromkeys((*fact.supersedes, record.get("other", "")))))
    if op == "unquote":
        gone = (record.get("chat"), record.get("message"))
        return evolve(fact, quotes=tuple(item for item in fact.quotes if (item.chat, item.message) != gone))
    if op in {"pin", "unpin"}:
        return evolve(fact, is_pinned=op == "pin")
    return evolve(fact, is_archived=op == "archive")


def fold(records: Iterable[Mapping[str, Any]], known_at: datetime | None = None) -> State:
    """Return the state after these lines; with ``known_at``, after those up to that moment."""
    known = [record for record in records if known_at is None or parse_ts(record["ts"]) <= known_at]
    state = State(undone={record["batch"] for record in known if record["op"] == "undo"})
    for record in known:
        state.apply(record)
    return state


def _moment(text: object) -> datetime | None:
    return None if text is None else parse_ts(text)


def without_person_guard(state: State, by: str) -> State:
    """Return a state in which facts of a person can be ended, if ``by`` is a person."""
    if by != PERSON:
        return state
    own = state.copy()
    own.facts = {
        name: evolve(fact, made_by="", verified="none") if fact.is_by_person else fact
        for name, fact in state.facts.items()
    }
    return own

"""Decide whether a new fact confirms a known one, ends one, or is new. Similarity only selects candidates for that.

A fact ends another only if both have the same single-valued slot, or if a model says so, with an integer. The end of a
person's fact is only proposed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from attrs import define, evolve, field

from klaw_core import format_ts, parse_ts
from klaw_facts.extracting.slots import same_value
from klaw_facts.fold import State
from klaw_facts.options import FactsOptions
from klaw_facts.records import fact_record, operation
from klaw_facts.values import Fact, normalised


@define(eq=False)
class Resolver:
    """Turns new facts into operations, given the previous state and the earlier operations of this batch.

    Ends are collected until the batch is complete: if there are more than ``max_ends``, all need review.
    ``words_count``: a fact with the same value of a slot in other words is a new fact, as for stated facts.
    """

    state: State
    options: FactsOptions
    ts: datetime
    by: str
    batch: str
    words_count: bool = field(default=False, kw_only=True)
    operations: list[dict[str, Any]] = field(factory=list)
    ends: list[dict[str, Any]] = field(factory=list)
    confirmed: int = 0
    asserted: int = 0
    _by_text: dict[tuple[str, str], list[Fact]] = field(init=False)
    _by_slot: dict[tuple[str, str], list[Fact]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._by_text, self._by_slot = {}, {}
        for fact in self.state.facts.values():
            if fact.retracted_at is None and not fact.is_archived:
                self._remember(fact)

    def add(self, fact: Fact) -> Fact:
        """Add a fact: confirm a known fact with the same content, or assert it and end the facts that it replaces.

        Return the known fact, or the new one.
        """
        known = self._same(fact)
        if known is not None:
            if set(fact.quotes) - set(known.quotes):
                quotes = [quote.record() for quote in fact.quotes]
                self._do("confirm", known, quotes=quotes)
                self.confirmed += 1
            return known
        later = None
        if self.options.is_single(fact.slot):
            later = self._end_earlier(fact)
        self.operations.append({**fact_record(fact, self.ts), "batch": self.batch})
        if later is not None:  # it became known late: it was true until the later value began
            until = format_ts(_begin(later, self.ts))
            self._do("end", fact, by_fact=later.id, reason="slot", valid_to=until)
            fact = evolve(fact, valid_to=parse_ts(until))
        self.asserted += 1
        self._remember(fact)
        return fact

    def finish(self) -> list[dict[str, Any]]:
        """Return the operations of the batch."""
        if len(self.ends) > self.options.max_ends:
            proposed = [
                operation(
                    "propose", self.ts, by=self.by, batch=self.batch, **_without(end, "id", "op", "ts", "by", "batch")
                )
                for end in self.ends
            ]
            return [*self.operations, *proposed]
        return [*self.operations, *self.ends]

    def end(self, old: Fact, new: Fact, reason: str) -> None:
        """End a fact when another begins; only propose the end of a person's fact."""
        moment = new.valid_from or new.said_at or self.ts
        values: dict[str, Any] = {
            "fact": old.id,
            "by_fact": new.id,
            "reason": reason,
            "valid_to": format_ts(moment),
            "batch": self.batch,
        }
        if old.is_by_person:
            self.operations.append(operation("propose", self.ts, by=self.by, **values))
        else:
            self.ends.append(operation("end", self.ts, by=self.by, **values))

    def _same(self, fact: Fact) -> Fact | None:
        moment = _begin(fact, self.ts)
        same = self._by_text.get((fact.subject, normalised(fact.text)), ())
        ended = {end["fact"] for end in self.ends}
        for known in same:  # a fact that ended before this was said is not confirmed by it
            if known.id not in ended and (known.valid_to is None or moment < known.valid_to):
                return known
        if self.words_count or not fact.slot or not self.options.is_single(fact.slot):
            return None
        live = [item for item in self._by_slot.get((fact.subject, fact.slot), ()) if item.valid_to is None]
        return next((item for item in live if same_value(item.value, fact.value)), None)

    def _end_earlier(self, fact: Fact) -> Fact | None:
        """End the earlier values of this slot; return the first later value, which ends this one."""
        moment = _begin(fact, self.ts)
        live = [
            item
            for item in self._by_slot.get((fact.subject, str(fact.slot)), ())
            if item.valid_to is None and not same_value(item.value, fact.value)
        ]
        later = sorted(
            (item for item in live if _begin(item, self.ts) > moment), key=lambda item: _begin(item, self.ts)
        )
        ended = {end["fact"] for end in self.ends}
        for old in live:
            if _begin(old, self.ts) <= moment and old.id not in ended:
                self.end(old, fact, "slot")
        return later[0] if later else None

    def _do(self, op: str, fact: Fact, **values: Any) -> None:
        self.operations.append(operation(op, self.ts, by=self.by, fact=fact.id, batch=self.batch, **values))

    def _remember(self, fact: Fact) -> None:
        self._by_text.setdefault((fact.subject, normalised(fact.text)), []).append(fact)
        if fact.slot:
            self._by_slot.setdefault((fact.subject, fact.slot), []).append(fact)


def nominees(fact: Fact, facts: Iterable[Fact]) -> list[Fact]:
    """Return current facts of the same subject that share a content word with a fact, as candidates for a model."""
    words = set(normalised(fact.text).split())
    return [
        other
        for other in facts
        if other.id != fact.id
        and other.subject == fact.subject
        and len(words & set(normalised(other.text).split())) > 1
    ]


def _begin(fact: Fact, ts: datetime) -> datetime:
    return fact.valid_from or fact.said_at or fact.recorded_at or ts


def _without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}

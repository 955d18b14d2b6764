"""Decide whether a new fact confirms a known one, ends one, or is new. Similarity only selects candidates for that.

A fact ends another only if both have the same single-valued slot, or if a model says so, with an integer. The end of a
person's fact is only proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice, takewhile
from typing import Any

from attrs import define, evolve, field

from klaw_facts.extracting.begins import endings_of
from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.fold import State
from klaw_facts.options import FactsOptions
from klaw_facts.records import fact_record, operation
from klaw_facts.succession import RESOLUTION, Turn, succession, turn_of
from klaw_facts.validity import begun_after, is_dated, later_by
from klaw_facts.values import OWNER, Fact, make_id, normalised
from klaw_journals import format_ts, parse_ts

#: The reason of an end if another value of a slot followed.
SLOT = "slot"


@define(eq=False, slots=False)
class Resolver:
    """Turns new facts into operations, given the previous state and the earlier operations of this batch.

    Ends are collected until the batch is complete: if more than ``max_ends`` current facts would end, all need review.
    ``words_count``: a fact with the same value of a slot in other words is a new fact, as for stated facts.
    ``only_unnamed`` returns the only person who speaks without a name and an id, or nothing if there are several.
    """

    state: State
    options: FactsOptions
    ts: datetime
    by: str
    batch: str
    words_count: bool = field(default=False, kw_only=True)
    only_unnamed: Callable[[], str] = field(default=str, kw_only=True)
    operations: list[dict[str, Any]] = field(factory=list)
    ends: list[dict[str, Any]] = field(factory=list)
    confirmed: int = 0
    asserted: int = 0
    _facts: dict[str, Fact] = field(init=False)
    _by_text: dict[str, list[str]] = field(init=False)
    _by_slot: dict[str, list[str]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._facts, self._by_text, self._by_slot = {}, {}, {}
        for fact in self.state.facts.values():
            if fact.retracted_at is None and not fact.is_archived:
                self._remember(fact)

    def add(self, fact: Fact) -> Fact:
        """Add a fact: confirm a known fact with the same content, or assert it and end the facts that it replaces.

        Return the known fact, or the new one.
        """
        if (read_again := self._facts.get(fact.id) or self.state.facts.get(fact.id)) is not None:
            return read_again  # as it is now: ended, edited or retracted
        fact = fact.with_person()
        self._recognise_owner(fact)
        fact = self._in_turn(self.state.placed(fact))
        known = self._same(fact)
        if known is not None and self._may_change(fact, known):
            if set(fact.quotes) - set(known.quotes):
                self._confirm(known, fact)
            return self._facts[known.id]
        self.operations.append({**fact_record(fact, self.ts), "batch": self.batch})
        self.asserted += 1
        self._remember(fact)
        self._end_others(fact)
        return self._facts[fact.id]

    def take_back(self, messages: Iterable[SourceMessage]) -> None:
        """Retract what was taken only from messages that these take back, except what a person has written."""
        back = {(message.chat, message.takes_back) for message in messages if message.takes_back}
        for fact in [*self._facts.values()] if back else ():
            if fact.quotes and not fact.is_by_person and {(item.chat, item.message) for item in fact.quotes} <= back:
                self._do("retract", fact, reason="taken back")

    def finish(self) -> list[dict[str, Any]]:
        """Return the operations of the batch."""
        known = self.state.facts
        ending = [end for end in self.ends if end["fact"] not in known or known[end["fact"]].valid_to is None]
        if len(ending) > self.options.max_ends:
            proposed = [
                operation(
                    "propose", self.ts, by=self.by, batch=self.batch, **_without(end, "id", "op", "ts", "by", "batch")
                )
                for end in self.ends
            ]
            return [*self.operations, *proposed]
        return [*self.operations, *self.ends]

    def end(self, old: Fact, new: Fact, reason: str) -> None:
        """End a fact when another begins, but not before it was last true; only propose the end of a person's fact."""
        self._end(old, new, self._end_of(turn_of(old, self.ts), turn_of(new, self.ts)), reason)

    def join(self, people: Sequence[str], by: str, batch: str = "") -> None:
        """Count people as one: a value that one of them stated ends the earlier value that another one stated.

        The merge is of its own ``batch``, so that reversing it reverses nothing else.
        """
        before = {name: fact.who for name, fact in self._facts.items()}
        line = operation("merge", self.ts, by=by, batch=batch or make_id("b", self.batch, *people), people=list(people))
        self.operations.append(line)
        self.state = self.state.copy()
        self.state.apply(line)
        for fact in list(self._facts.values()):
            self._facts[fact.id] = self.state.placed(fact)
        person = self.state.people[people[0]]
        joined = [fact for fact in self._facts.values() if fact.who == person]
        self.settle(joined, lambda old, new: before[old.id] != before[new.id])

    def settle(self, facts: Iterable[Fact], concerns: Callable[[Fact, Fact], bool]) -> None:
        """End the values of single slots where the next values of their persons begin, if a pair of them is meant.

        Of two values that were said in turn, the one that was said last is the later one.
        """
        slots = {(fact.slot, fact.who): fact for fact in facts if self.options.is_single(fact.slot)}
        for fact in slots.values():
            turns = sorted(self._succession(fact, str(fact.slot)), key=lambda turn: turn.known)
            for place, turn in enumerate(turns):
                if turn.endings:
                    continue
                after = (item for item in turns[place + 1 :] if item.differs_from(turn))
                later = next((item for item in after if concerns(turn.fact, item.fact)), None)
                if later is None:
                    continue
                moment, end = self._end_of(turn, later), turn.fact.valid_to
                if end is None or (end > moment and turn.fact.end_reason == SLOT):
                    self._end(self._facts[turn.fact.id], self._facts[later.fact.id], moment, SLOT)

    def _in_turn(self, fact: Fact) -> Fact:
        """Return a fact that names no time, and so was said now, as said after everything that is known of its slot.

        A clock that was put back gives it an earlier time. What was said in a message was said when the message says.
        """
        if fact.said_at is not None or not self._slots_of(fact):
            return fact
        others = [self._facts[name] for slot in self._slots_of(fact) for name in self._by_slot.get(slot, ())]
        moments = [
            max(turn_of(item, self.ts).said, item.affirmed_at or self.ts) for item in others if item.who == fact.who
        ]
        latest = max(moments, default=self.ts)
        return evolve(fact, said_at=later_by(latest, RESOLUTION)) if latest > self.ts else fact

    def _end_of(self, old: Turn, new: Turn) -> datetime:
        """Return when a value ends that another one follows: no later than now, if a clock was ahead of this one."""
        if new.corrects(old) and old.fact.valid_from is not None:
            return max(new.begin, old.fact.valid_from)
        begin = new.begin if new.fact.valid_from else min(new.begin, self.ts)
        return max(begin, min(old.known, max(old.fact.valid_from or self.ts, self.ts)))

    def _recognise_owner(self, fact: Fact) -> None:
        """Count the only person who speaks without a name as the owner, once one of them states what the other did."""
        if OWNER in self.state.people or not (fact.identity == OWNER or fact.is_of_unnamed):
            return
        names = {*self._by_text.get(normalised(fact.text), ())}
        if self.options.is_single(fact.slot):
            names |= {*self._by_slot.get(str(fact.slot), ())}
        met = [self._facts[name] for name in names]
        people = {fact.identity, *(item.identity for item in met if item.identity == OWNER or item.is_of_unnamed)}
        if OWNER in people and self._only_unnamed in people - self.state.parted - self.state.people.keys():
            self.join([OWNER, self._only_unnamed], self.by)

    @cached_property
    def _only_unnamed(self) -> str:
        return self.only_unnamed()

    def _may_change(self, new: Fact, old: Fact) -> bool:
        """Return whether a fact may confirm or end another: a foreign one only foreign ones, unless configured."""
        return self.options.foreign or old.is_foreign or not new.is_foreign

    def _end(self, old: Fact, new: Fact, moment: datetime, reason: str) -> None:
        if not self._may_change(new, old):
            return
        precision = new.precision if is_dated(new) and moment != old.valid_from else "by"
        until = format_ts(moment)
        told = {"by_fact": new.id, "reason": reason, "valid_to": until, "precision": precision}
        marks = {"batch": self.batch, **_across(old, new)}
        if old.is_by_person:
            self.operations.append(operation("propose", self.ts, by=self.by, fact=old.id, **told, **marks))
            return
        self.ends = [end for end in self.ends if reason != SLOT or (end["fact"], end["reason"]) != (old.id, SLOT)]
        self.ends.append(operation("end", self.ts, by=self.by, fact=old.id, **told, **marks))
        ended = evolve(old, valid_to=parse_ts(until), end_precision=precision, ended_by=new.id, end_reason=reason)
        self._facts[old.id] = ended
        self._facts[new.id] = begun_after(self._facts.get(new.id, new), ended, self.by)

    def _same(self, fact: Fact) -> Fact | None:
        """Return the known fact that this one only repeats."""
        moment = turn_of(fact, self.ts).begin
        same = [self._facts[name] for name in self._by_text.get(normalised(fact.text), ())]
        same = [known for known in same if known.identity == fact.identity]
        slots = self._slots_of(fact)
        if not slots:
            return next((known for known in same if known.valid_to is None or moment < known.valid_to), None)
        turns = self._succession(fact, slots[0])
        place = [turn.fact.id for turn in turns].index(fact.id)
        for known in _repeated(turns, place):
            ended = known.valid_to is not None and known.valid_to <= moment
            if known.affirmed_at is not None and moment < later_by(known.affirmed_at, RESOLUTION):
                ended = False  # it was confirmed by this, or later
            if not ended and (not self.words_count or known in same):
                return known
        return None

    def _confirm(self, known: Fact, fact: Fact) -> None:
        """Note that a fact was said again; if that says since when it is true, or was said before, note this too."""
        told: dict[str, Any] = {"quotes": [quote.record() for quote in fact.quotes]}
        undated = [turn_of(item, self.ts).said for item in (fact, known) if not is_dated(item)]
        affirmed = max((moment for moment in (*undated, known.affirmed_at) if moment), default=None)
        if affirmed is not None:
            told["affirmed_at"] = format_ts(affirmed)
        self._do("confirm", known, **told)
        self.confirmed += 1
        again = evolve(known, affirmed_at=affirmed)
        is_undated = known.valid_from is not None and not is_dated(known) and not known.is_by_person
        if is_undated and fact.valid_from and known.valid_from and fact.valid_from < known.valid_from:
            changes = {"valid_from": format_ts(fact.valid_from), "precision": fact.precision}
            self._do("edit", known, changes=changes)
            again = evolve(again, valid_from=fact.valid_from, precision=fact.precision)
        self._facts[known.id] = again
        self._end_others(again)

    def _slots_of(self, fact: Fact) -> Sequence[str]:
        """Return the slots with one value at a time of which a fact tells a value, or the end of one."""
        slots = [fact.slot or "", *(item.slot for item in endings_of(fact))]
        return [slot for slot in slots if slot and self.options.is_single(slot)]

    def _succession(self, fact: Fact, slot: str) -> Sequence[Turn]:
        """Return the values of a slot, with this fact."""
        others = [self._facts[name] for name in self._by_slot.get(slot, ()) if name != fact.id]
        others = [item for item in others if item.who == fact.who and self._may_change(item, fact)]
        return succession([*others, fact], self.ts)

    def _end_others(self, fact: Fact) -> None:
        """End the values of a slot that this one has followed, and this one where the next value begins."""
        for slot in self._slots_of(fact):
            self._end_others_of(slot, fact)

    def _end_others_of(self, slot: str, fact: Fact) -> None:
        turns = self._succession(fact, slot)
        place = [turn.fact.id for turn in turns].index(fact.id)
        mine = turns[place]
        after = {turn.fact.id for turn in turns[place + 1 :]}
        for turn in _values(turns[:place]):
            old, moment = turn.fact, self._end_of(turn, mine)
            # Not if only the clock says so: with the same end, it was another value that followed.
            ended_later = old.valid_to is not None and (moment < old.valid_to or old.ended_by in after)
            if (old.valid_to is None or (ended_later and old.end_reason == SLOT)) and mine.differs_from(turn):
                self._end(old, fact, moment, SLOT)
        later = next((turn for turn in turns[place + 1 :] if turn.differs_from(mine)), None)
        if later is not None and not mine.endings:
            # A value whose time encloses this one has begun before it: it is known again when it is said.
            is_later = later.begin > mine.known or (later.is_dated and later.begin >= mine.begin)
            moment = later.begin if is_later else later.known
            self._end_now(fact, later, self._end_of(mine, later) if later.corrects(mine) else moment)

    def _end_now(self, fact: Fact, later: Turn, moment: datetime) -> None:
        """End a fact that became known late: it was true until the later value began."""
        precision = later.fact.precision if later.is_dated and moment == later.begin else "by"
        until = format_ts(moment)
        told = {"by_fact": later.fact.id, "reason": SLOT, "valid_to": until, "precision": precision}
        here = self._facts[fact.id]
        if here.valid_to != parse_ts(until) and (fact.made_by == here.made_by or not here.is_by_person):
            self._do("end", fact, **told, **_across(here, later.fact))
            ended = evolve(here, valid_to=parse_ts(until), end_precision=precision, ended_by=later.fact.id)
            self._facts[fact.id] = evolve(ended, end_reason=SLOT)
            self._facts[later.fact.id] = begun_after(later.fact, ended, self.by)

    def _do(self, op: str, fact: Fact, **values: Any) -> None:
        self.operations.append(operation(op, self.ts, by=self.by, fact=fact.id, batch=self.batch, **values))

    def _remember(self, fact: Fact) -> None:
        self._facts[fact.id] = fact
        self._by_text.setdefault(normalised(fact.text), []).append(fact.id)
        for slot in {fact.slot, *(item.slot for item in endings_of(fact))} - {None}:
            self._by_slot.setdefault(str(slot), []).append(fact.id)


def nominees(fact: Fact, facts: Iterable[Fact]) -> list[Fact]:
    """Return current facts of the same subject that share a content word with a fact, as candidates for a model."""
    words = set(normalised(fact.text).split())
    return [
        other
        for other in facts
        if other.id != fact.id and other.who == fact.who and len(words & set(normalised(other.text).split())) > 1
    ]


def _across(old: Fact, new: Fact) -> dict[str, bool]:
    """Return the mark of an end that holds only as long as two people count as one."""
    return {} if old.identity == new.identity else {"merged": True}


def _repeated(turns: Sequence[Turn], place: int) -> Iterator[Fact]:
    """Yield the facts beside a turn that it only repeats: said by the same one, without another value between."""
    mine = turns[place]
    after = takewhile(lambda turn: not turn.differs_from(mine), turns[place + 1 :])
    before = takewhile(lambda turn: not mine.differs_from(turn), reversed(turns[:place]))
    for beside in (after, before):
        same = (turn for turn in beside if bool(turn.endings) == bool(mine.endings))
        yield from islice((turn.fact for turn in same if turn.fact.identity == mine.fact.identity), 1)


def _values(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Yield the turns of values, without those that say that one has ended."""
    return (turn for turn in turns if not turn.endings)


def _without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}

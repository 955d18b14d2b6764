"""End the values of single slots that became known apart: on two machines, or by an import.

Whoever states a value ends the one before. Nobody has done that if a value arrives in the journal itself: its machine
had not seen the other value. Of the values that are true at once then, each ends where the next one begins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from attrs import evolve

from klaw_facts.extracting.begins import endings_of
from klaw_facts.extracting.resolve import Resolver
from klaw_facts.fold import State, without_person_guard
from klaw_facts.options import FactsOptions
from klaw_facts.values import PERSON, Fact, make_id, normalised

_RULES = "rules"
#: Whoever wrote one of these has decided, or asked somebody to decide, whether a fact has ended: because of one other
#: fact, or at all.
_DECIDED = {"end", "reopen", "propose"}


def settled(state: State, lines: Iterable[Mapping[str, Any]], options: FactsOptions) -> list[dict[str, Any]]:
    """Return the ends, which every machine with the same journal derives with the same ids."""
    decided = {(line["fact"], line.get("by_fact")) for line in lines if line["op"] in _DECIDED}
    slots: dict[tuple[str, str], dict[str, Fact]] = defaultdict(dict)
    for fact in state.facts.values():
        for slot in (fact.slot, *(item.slot for item in endings_of(fact))):
            if slot and not fact.is_hidden and options.is_single(slot):
                slots[slot, fact.who][fact.id] = fact
    return [line for facts in slots.values() for line in _settled(facts, decided, options)]


def _settled(
    facts: dict[str, Fact], decided: AbstractSet[tuple[str, str | None]], options: FactsOptions
) -> list[dict[str, Any]]:
    """Return the ends of the values that a slot of one person has had, if several of them have none."""
    current = [fact for fact in facts.values() if fact.valid_to is None and fact.slot]
    ended = [item for fact in facts.values() for item in endings_of(fact)]
    several = len({normalised(fact.value or "") for fact in current}) > 1
    if not several and not any(item.ends(fact.value or "") for item in ended for fact in current):
        return []
    # Not the time at which this machine has learnt of it: others learn of it at another time.
    moment = max(fact.recorded_at for fact in current if fact.recorded_at is not None)
    batch = make_id("b", "settled", *sorted(fact.id for fact in current))
    options = evolve(options, max_ends=len(facts))
    found: list[dict[str, Any]] = []
    for by in (PERSON, _RULES):  # what a person says ends what a person has said; of others it is only proposed
        resolver = Resolver(without_person_guard(State(facts), by), options, moment, by, batch)
        resolver.settle(
            (resolver.state.facts[fact.id] for fact in current),
            lambda old, new, by=by: (  # type: ignore[misc]
                (old.valid_to is not None or decided.isdisjoint([(old.id, None), (old.id, new.id)]))
                and facts[new.id].is_by_person == (by == PERSON)
            ),
        )
        found += resolver.finish()
    return found

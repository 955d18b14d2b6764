"""End the values of single slots that became known apart: on two machines, or by an import.

Whoever states a value ends the one before. Nobody has done that if a value arrives in the journal itself: its machine
had not seen the other value. Of the values that are true at once then, each ends where the next one begins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from attrs import evolve

from klaw_facts.extracting.resolve import Resolver
from klaw_facts.fold import State, without_person_guard
from klaw_facts.options import FactsOptions
from klaw_facts.values import PERSON, Fact, make_id, normalised

_RULES = "rules"
#: Whoever wrote one of these about a fact has decided, or asked somebody to decide, until when it is true.
_DECIDED = {"end", "reopen", "propose"}


def settled(state: State, lines: Iterable[Mapping[str, Any]], options: FactsOptions) -> list[dict[str, Any]]:
    """Return the ends, which every machine with the same journal derives with the same ids."""
    decided = {line["fact"] for line in lines if line["op"] in _DECIDED}
    found: list[dict[str, Any]] = []
    for facts in _at_once(state, options):
        if len({fact.id for fact in facts} - decided) > 0:
            found += _settled(state, facts, decided, options)
    return found


def _at_once(state: State, options: FactsOptions) -> list[list[Fact]]:
    """Return the facts without an end of each slot and person that have several values."""
    slots: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in state.facts.values():
        if fact.slot and fact.valid_to is None and not fact.is_hidden and options.is_single(fact.slot):
            slots[fact.slot, fact.who].append(fact)
    return [facts for facts in slots.values() if len({normalised(fact.value or "") for fact in facts}) > 1]


def _settled(state: State, facts: list[Fact], decided: Collection[str], options: FactsOptions) -> list[dict[str, Any]]:
    # Not the time at which this machine has learnt of it: others learn of it at another time.
    moment: datetime = max(fact.recorded_at for fact in facts if fact.recorded_at is not None)
    batch = make_id("b", "settled", *sorted(fact.id for fact in facts))
    options = evolve(options, max_ends=len(state.facts))
    found: list[dict[str, Any]] = []
    persons = {fact.id for fact in facts if fact.is_by_person}
    for by in (PERSON, _RULES):  # what a person says ends what a person has said; of others it is only proposed
        resolver = Resolver(without_person_guard(state, by), options, moment, by, batch)
        resolver.settle(
            (resolver.state.facts[fact.id] for fact in facts),
            lambda old, new, by=by: (  # type: ignore[misc]
                (old.valid_to is not None or old.id not in decided) and (new.id in persons) == (by == PERSON)
            ),
        )
        found += resolver.finish()
    return found

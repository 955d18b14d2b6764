"""The values that a slot has had."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from klaw_facts.fold import State
from klaw_facts.keeper import find_fact
from klaw_facts.values import Fact

_NEVER = datetime.min.replace(tzinfo=UTC)


def values_over_time(state: State, name: str | None) -> Sequence[Fact]:
    """Return the facts of a slot, or of the slot of a fact, from the oldest value on. Raise NotFoundError.

    Without a name, those of every slot that has had more than one value.
    """
    if name is None:
        return _changed_values(state)
    found = [fact for fact in state.facts.values() if fact.slot == name]
    if not found:
        fact = find_fact(state, name)
        same = [item for item in state.facts.values() if item.slot == fact.slot and item.who == fact.who]
        found = same if fact.slot else [fact]
    return sorted(found, key=_by_validity)


def _changed_values(state: State) -> list[Fact]:
    slots: dict[tuple[str, str], list[Fact]] = {}
    for fact in state.facts.values():
        if fact.slot and fact.retracted_at is None:
            slots.setdefault((fact.who, fact.slot), []).append(fact)
    changed = [facts for _, facts in sorted(slots.items()) if len({fact.value for fact in facts}) > 1]
    return [fact for facts in changed for fact in sorted(facts, key=_by_validity)]


def _by_validity(fact: Fact) -> tuple[datetime, str]:
    return fact.valid_from or fact.created_at or _NEVER, fact.id

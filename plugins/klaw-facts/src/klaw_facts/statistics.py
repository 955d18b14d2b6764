"""Counts of facts, and the usage of extraction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from attrs import frozen

from klaw_facts.fold import State


@frozen
class FactStatistics:
    """Counts. ``calls_today`` and ``tokens_today`` are those of the language model, by the day in UTC."""

    facts: int = 0
    current: int = 0
    ended: int = 0
    retracted: int = 0
    archived: int = 0
    pinned: int = 0
    categories: Mapping[str, int] = {}
    made_by: Mapping[str, int] = {}
    subjects: int = 0
    quotes: int = 0
    in_review: int = 0
    digests: int = 0
    profile_lines: int = 0
    forgotten: int = 0
    batches: int = 0
    batches_failed: int = 0
    refused: int = 0
    calls_today: int = 0
    tokens_today: int = 0
    calls: int = 0
    tokens: int = 0
    messages_waiting: int = 0


def count(state: State, now: datetime, messages_waiting: int = 0) -> FactStatistics:
    """Return the counts of a state. Categories and makers are those of current facts, most frequent first."""
    facts = list(state.facts.values())
    current = list(state.visible(now).values())
    batches = list(state.batches.values())
    today = [batch for batch in batches if batch.recorded_at is not None and batch.recorded_at.date() == now.date()]
    return FactStatistics(
        facts=len(facts),
        current=len(current),
        ended=sum(fact.valid_to is not None and fact.valid_to <= now for fact in facts),
        retracted=sum(fact.retracted_at is not None for fact in facts),
        archived=sum(fact.is_archived for fact in facts),
        pinned=sum(fact.is_pinned for fact in current),
        categories=dict(Counter(fact.category for fact in current).most_common()),
        made_by=dict(Counter(fact.made_by for fact in current).most_common()),
        subjects=len({fact.subject for fact in current}),
        quotes=sum(len(fact.quotes) for fact in facts),
        in_review=len(state.waiting()),
        digests=len(state.digests),
        profile_lines=len(state.profile),
        forgotten=len(state.suppressed),
        batches=len(batches),
        batches_failed=len(state.failed()),
        refused=sum(batch.refused for batch in batches),
        calls_today=sum(batch.calls for batch in today),
        tokens_today=sum(batch.tokens_in + batch.tokens_out for batch in today),
        calls=sum(batch.calls for batch in batches),
        tokens=sum(batch.tokens_in + batch.tokens_out for batch in batches),
        messages_waiting=messages_waiting,
    )

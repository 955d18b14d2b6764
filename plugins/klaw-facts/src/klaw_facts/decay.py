"""The weight of a fact: its importance, halved after each half-life of its category."""

from __future__ import annotations

from datetime import UTC, datetime
from math import log2

from klaw_core import ConfigError
from klaw_facts.options import FactsOptions
from klaw_facts.recalls import Recalled
from klaw_facts.values import Fact

_SECONDS_A_DAY = 86_400


def score(fact: Fact, options: FactsOptions, now: datetime) -> float:
    """Return the weight of a fact, 0 to 1. Raise ConfigError for a category without a curve."""
    return fact.importance * freshness(fact, options, now)


def kept_score(fact: Fact, options: FactsOptions, now: datetime, recalled: Recalled | None) -> float:
    """Return the weight for archiving: a fact that is recalled fades from the last recall on, and more slowly.

    Its half-life doubles with the first recall, and grows with the logarithm of their number. Recalls do not change the
    order of facts in a search or a context, where they would confirm themselves.
    """
    half_life = options.curves.get(fact.category) or 0.0
    if recalled is None or not half_life:
        return score(fact, options, now)
    last = datetime.fromisoformat(recalled.day).replace(tzinfo=UTC)
    days = max((now - last).total_seconds() / _SECONDS_A_DAY, 0.0)
    slower = 1 + log2(1 + recalled.count)
    return max(score(fact, options, now), fact.importance * float(2 ** (-days / (half_life * slower))))


def freshness(fact: Fact, options: FactsOptions, now: datetime) -> float:
    """Return the remaining share of a fact's importance, 0 to 1. Raise ConfigError for a category without a curve."""
    half_life = options.curves.get(fact.category)
    if half_life is None:
        raise ConfigError(
            [f"extensions.facts.half_life_days has no entry for the category {fact.category!r}"],
            hint=f"klaw config set extensions.facts.half_life_days.{fact.category} 90",
        )
    moments = [
        item for item in (fact.valid_from, fact.said_at or fact.recorded_at, fact.confirmed_at) if item is not None
    ]
    if not half_life or not moments:
        return 1.0
    days = max((now - max(moments)).total_seconds() / _SECONDS_A_DAY, 0.0)
    return float(2 ** (-days / half_life))

"""The weight of a fact: its importance, halved after each half-life of its category."""

from __future__ import annotations

from datetime import datetime

from klaw_core import ConfigError
from klaw_facts.options import FactsOptions
from klaw_facts.values import Fact

_SECONDS_A_DAY = 86_400


def score(fact: Fact, options: FactsOptions, now: datetime) -> float:
    """Return the weight of a fact, 0 to 1. Raise ConfigError for a category without a curve."""
    return fact.importance * freshness(fact, options, now)


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

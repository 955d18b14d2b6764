"""The table ``[extensions.facts]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen, validators

#: The days after which the score of a fact has halved, by category; 0 is never.
HALF_LIFE_DAYS: Mapping[str, float] = {
    "identity": 0,
    "rule": 0,
    "relationship": 0,
    "preference": 720,
    "config": 180,
    "credential": 180,
    "decision": 365,
    "solution": 365,
    "event": 90,
    "conversation": 14,
    "temp": 2,
    "debug": 2,
}

#: Whether a slot has one value at a time. A name that ends in ``*`` stands for all that begin so.
SLOTS: Mapping[str, str] = {
    **dict.fromkeys(("name", "birthday", "home", "employer", "job_title", "partner"), "single"),
    **dict.fromkeys(("timezone", "language", "email", "phone"), "single"),
    **dict.fromkeys(("deadline:*", "version:*", "port:*"), "single"),
}

_ROLES = frozenset({"user", "assistant", "system", "tool"})
_EXTRACTORS = ("none", "rules", "model")
_COMPRESSORS = ("rules", "model")
_GATES = ("rules", "always", "never")
_MODES = ("classic", "enhanced")


def _curves(_instance: object, _attribute: Any, value: Mapping[str, float]) -> None:
    wrong = [name for name, days in value.items() if days < 0]
    if wrong:
        raise ValueError(f"half_life_days: {', '.join(wrong)}: expected 0 (never) or a positive number of days")


def _cardinality(_instance: object, _attribute: Any, value: Mapping[str, str]) -> None:
    for name, kind in value.items():
        if kind not in {"single", "many"}:
            raise ValueError(f"slots: {name}: expected 'single' or 'many', got {kind!r}")


def _known_roles(_instance: object, _attribute: Any, value: tuple[str, ...]) -> None:
    if unknown := [role for role in value if role not in _ROLES]:
        raise ValueError(f"roles: unknown role {unknown[0]!r}; known: {', '.join(sorted(_ROLES))}")


@frozen
class FactsOptions:
    """Options of the extension ``facts``.

    ``extractor``: what finds facts in conversations: ``none``, ``rules``, or ``model`` (``[memory.language_model]``).
    ``compressor``: what writes digests, merges and the profile: ``rules``, or ``model`` (``[memory.language_model]``).
    ``roles``: whose messages facts are taken from.
    ``categories``: categories of your own; each needs a curve in ``half_life_days``.
    ``half_life_days``: how fast the facts of a category lose weight; 0 is never. Added to the built-in curves.
    ``slots``: whether a slot has one value at a time (``single``) or several (``many``). Added to the built-in ones.
    ``gate``: which messages need nothing from memory: ``rules`` decide, ``always`` or ``never`` look something up.
    ``mode``: how facts are searched for a context: ``enhanced`` (words and vectors) or ``classic`` (words).
    ``max_facts``: how many facts a context is offered.
    ``cut``: facts that score less than this part of the best one are not offered.
    ``decay_weight``: how much of its score a fact can lose with age.
    ``window_tokens``: how many tokens of messages a model is asked about at once.
    ``max_calls_per_day``, ``max_tokens_per_day``: bounds of what extraction and compression may ask a model for.
    ``max_ends``: how many ends one batch may make; if there are more, all of them wait for review.
    ``profile_tokens``: how long the profile may be.
    """

    extractor: str = field(default="none", validator=validators.in_(_EXTRACTORS))
    compressor: str = field(default="rules", validator=validators.in_(_COMPRESSORS))
    roles: tuple[str, ...] = field(default=("user",), validator=_known_roles)
    categories: tuple[str, ...] = ()
    half_life_days: dict[str, float] = field(factory=dict, validator=_curves)
    slots: dict[str, str] = field(factory=dict, validator=_cardinality)
    gate: str = field(default="rules", validator=validators.in_(_GATES))
    mode: str = "enhanced"
    max_facts: int = field(default=5, validator=validators.ge(0))
    cut: float = field(default=0.5, validator=[validators.ge(0.0), validators.le(1.0)])
    decay_weight: float = field(default=0.2, validator=[validators.ge(0.0), validators.le(1.0)])
    window_tokens: int = field(default=1500, validator=validators.ge(100))
    max_calls_per_day: int = field(default=200, validator=validators.ge(0))
    max_tokens_per_day: int = field(default=200_000, validator=validators.ge(0))
    max_ends: int = field(default=3, validator=validators.ge(0))
    profile_tokens: int = field(default=400, validator=validators.ge(0))

    def __attrs_post_init__(self) -> None:
        missing = [name for name in self.categories if name not in self.curves]
        if missing:
            raise ValueError(f"categories: {', '.join(missing)}: each category needs an entry in half_life_days")

    @property
    def curves(self) -> Mapping[str, float]:
        """The half-life of every category, in days; 0 is never."""
        return {**HALF_LIFE_DAYS, **self.half_life_days}

    @property
    def is_classic(self) -> bool:
        """Whether facts are searched by words only; an unknown mode is ``classic``."""
        return self.mode != "enhanced"

    def is_single(self, slot: str | None) -> bool:
        """Whether a slot has one value at a time."""
        return self._kind(slot) == "single"

    def is_declared(self, slot: str | None) -> bool:
        """Whether the configuration or Klaw says how many values a slot has."""
        return self._kind(slot) is not None

    def _kind(self, slot: str | None) -> str | None:
        if not slot:
            return None
        table = {**SLOTS, **self.slots}
        prefixes = [name for name in table if name.endswith("*") and slot.startswith(name[:-1])]
        return table.get(slot) or (table[max(prefixes, key=len)] if prefixes else None)

"""The table ``[extensions.facts]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from attrs import field, frozen, validators

#: The half-life of a fact's score in days, by category; 0 is never.
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

#: The number of messages of a chat that are not summarised.
KEEP = 10

#: Whether a slot has one value at a time. A name that ends in ``*`` matches all slots with that prefix.
SLOTS: Mapping[str, str] = {
    **dict.fromkeys(("name", "birthday", "home", "employer", "job_title", "partner"), "single"),
    **dict.fromkeys(("timezone", "language", "email", "phone"), "single"),
    **dict.fromkeys(("deadline:*", "version:*", "port:*"), "single"),
}

# What the memory of an agent inherits from the owner's configuration: not the use of a language model, which costs.
_INHERITED = {"agents": True}
_WITHOUT_MODEL = {"agents": ("none", "rules")}

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

    ``extractor``: how facts are extracted: ``none``, ``rules``, or ``model`` (``[memory.language_model]``).
    ``compressor``: how digests, merges and the profile are written: ``rules``, or ``model``.
    ``roles``: the roles of messages from which facts are extracted.
    ``foreign``: whether facts of foreign writers are extracted from imported chats, and may end other facts.
    ``categories``: additional categories; each needs a curve in ``half_life_days``.
    ``half_life_days``: half-life of facts by category, in days; 0 is never. These are added to the built-in curves.
    ``slots``: whether a slot has one value at a time (``single``) or several (``many``), added to the built-in ones.
    ``gate``: when memory is searched for a message: as ``rules`` decide, ``always``, or ``never``.
    ``mode``: how facts are searched for a context: ``enhanced`` (words and vectors) or ``classic`` (words).
    ``arrange``: whether a context marks outdated statements, by rules for English, Russian and Chinese.
    ``max_facts``: maximum number of facts in a context.
    ``cut``: facts with less than this share of the best relevance are not offered; weak ones never are.
    ``decay_weight``: the share of its score that a fact can lose with age.
    ``window_tokens``: tokens of messages per call of a model.
    ``max_ends``: maximum number of ends per batch; if there are more, all need review.
    ``profile_tokens``: maximum size of the profile.
    ``compact_above``: a run at night summarises a chat with more messages than this after its summary; 0 is never.
    """

    moved: ClassVar[Mapping[str, str]] = {
        "max_calls_per_day": "memory.language_model.max_requests_per_day",
        "max_tokens_per_day": "memory.language_model.max_tokens_per_day",
    }

    extractor: str = field(default="none", validator=validators.in_(_EXTRACTORS), metadata=_WITHOUT_MODEL)
    compressor: str = field(default="rules", validator=validators.in_(_COMPRESSORS), metadata=_WITHOUT_MODEL)
    roles: tuple[str, ...] = field(default=("user",), validator=_known_roles, metadata=_INHERITED)
    foreign: bool = field(default=False, metadata=_INHERITED)
    categories: tuple[str, ...] = field(default=(), metadata=_INHERITED)
    half_life_days: dict[str, float] = field(factory=dict, validator=_curves, metadata=_INHERITED)
    slots: dict[str, str] = field(factory=dict, validator=_cardinality, metadata=_INHERITED)
    gate: str = field(default="rules", validator=validators.in_(_GATES), metadata=_INHERITED)
    mode: str = field(default="enhanced", metadata=_INHERITED)
    arrange: bool = field(default=True, metadata=_INHERITED)
    max_facts: int = field(default=5, validator=validators.ge(0), metadata=_INHERITED)
    cut: float = field(default=0.3, validator=[validators.ge(0.0), validators.le(1.0)], metadata=_INHERITED)
    decay_weight: float = field(default=0.2, validator=[validators.ge(0.0), validators.le(1.0)], metadata=_INHERITED)
    window_tokens: int = field(default=1500, validator=validators.ge(100), metadata=_INHERITED)
    max_ends: int = field(default=3, validator=validators.ge(0), metadata=_INHERITED)
    profile_tokens: int = field(default=400, validator=validators.ge(0), metadata=_INHERITED)
    compact_above: int = field(default=0, validator=validators.ge(0), metadata=_INHERITED)

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
        """Whether the configuration or the built-in table declares how many values a slot has."""
        return self._kind(slot) is not None

    def _kind(self, slot: str | None) -> str | None:
        if not slot:
            return None
        table = {**SLOTS, **self.slots}
        prefixes = [name for name in table if name.endswith("*") and slot.startswith(name[:-1])]
        return table.get(slot) or (table[max(prefixes, key=len)] if prefixes else None)

"""Put chunks that an extension prefers for a question further up; ``--explain`` shows the bonus under its name."""

from __future__ import annotations

from collections.abc import Sequence

from klaw_core.errors import PluginError, isolated
from klaw_core.values.candidates import Preference
from klaw_core.values.search import Contribution, Hit
from klaw_core.values.text import StoredChunk


def prefer(
    name: str, preference: Preference, found: Sequence[tuple[StoredChunk, Hit]], notices: list[str]
) -> Sequence[tuple[StoredChunk, Hit]]:
    """Return the results in their new order, after the bonus for the chunks that an extension prefers, or only those.

    If its preference raises, the order is as before, and a notice says why.
    """
    bonus = preference.weight * max((hit.score for _, hit in found), default=0.0)
    if bonus <= 0 and not preference.requires:
        return found
    try:
        with isolated(f"the extension {name!r}"):
            preferred = {stored.key for stored, _ in found if preference.holds(stored)}
    except PluginError as error:
        notices.append(str(error))
        return found
    if preference.requires:
        return [(stored, hit) for stored, hit in found if stored.key in preferred]
    ranks = iter(range(1, len(found) + 1))
    moved = [
        (stored, _with_bonus(hit, Contribution(name, next(ranks), 1.0, preference.weight, bonus), preference.relevance))
        if stored.key in preferred
        else (stored, hit)
        for stored, hit in found
    ]
    return sorted(moved, key=lambda item: -item[1].score)


def _with_bonus(hit: Hit, part: Contribution, relevance: float | None) -> Hit:
    return Hit(hit.key, hit.score + part.value, (*hit.contributions, part), relevance or hit.relevance, hit.unreached)

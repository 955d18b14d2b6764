"""Put chunks that an extension prefers for a question further up; ``--explain`` shows the bonus under its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from klaw_core.errors import PluginError, isolated
from klaw_core.values.candidates import Preference
from klaw_core.values.search import Contribution, Hit
from klaw_core.values.text import StoredChunk


def prefer(
    name: str,
    preference: Preference,
    found: Sequence[tuple[StoredChunk, Hit]],
    notices: list[str],
    judged: Callable[[Hit], float | None],
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
    parts = (Contribution(name, rank, 1.0, preference.weight, bonus) for rank in count(1))

    def raised(hit: Hit) -> Hit:
        relevance = hit.relevance if preference.relevance is None else max(preference.relevance, judged(hit) or 0.0)
        return Hit(hit.key, hit.score + bonus, (*hit.contributions, next(parts)), relevance, hit.unreached)

    moved = [(stored, raised(hit) if stored.key in preferred else hit) for stored, hit in found]
    return sorted(moved, key=lambda item: -item[1].score)

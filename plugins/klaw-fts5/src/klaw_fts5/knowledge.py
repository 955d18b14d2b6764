"""What is kept in memory between questions of which chunks hold a term: the words of questions come again."""

from __future__ import annotations

from array import array

from attrs import define, field

from klaw_core.words.query import Term
from klaw_fts5.packed.state import PackedState

# Some megabytes each: more is forgotten all at once, and counted again.
_MOST_COUNTS, _MOST_KEYS = 20_000, 500_000


@define(eq=False)
class WordKnowledge:
    """How many chunks hold each term that was asked about, and which ones, in one state of a collection."""

    _counts: dict[Term, tuple[int, int]] = field(factory=dict, init=False)
    _keys: dict[Term, array[int]] = field(factory=dict, init=False)
    _kept_keys: int = field(default=0, init=False)

    def counted(self, term: Term) -> tuple[int, int]:
        """Return how many chunks were found to hold a term, and up to how many they were counted: 0 if never."""
        return self._counts.get(term, (0, 0))

    def keep_count(self, term: Term, found: int, bound: int) -> None:
        """Keep what was counted."""
        if len(self._counts) >= _MOST_COUNTS:
            self._counts = {}
        self._counts[term] = found, bound

    def keys(self, term: Term) -> array[int] | None:
        """Return the keys of the chunks that hold a term, None if they are not known."""
        return self._keys.get(term)

    def keep_keys(self, term: Term, keys: array[int]) -> None:
        """Keep the keys of all chunks that hold a term."""
        if self._kept_keys + len(keys) > _MOST_KEYS:
            self._keys, self._kept_keys = {}, 0
        self._keys[term] = keys
        self._kept_keys += len(keys)


@define(eq=False)
class KnowledgeCache:
    """The knowledge of each collection in its last state.

    A state's stamp is random and renewed by every change: what is kept under it holds in any snapshot and in any file.
    """

    _kept: dict[str, tuple[bytes, WordKnowledge]] = field(factory=dict, init=False)

    def of(self, collection: str, state: PackedState | None) -> WordKnowledge:
        """Return what is known in a state; nothing, which is not kept, without a state."""
        if state is None:
            return WordKnowledge()
        stamp, knowledge = self._kept.get(collection, (b"", None))
        if knowledge is None or stamp != state.stamp:
            knowledge = WordKnowledge()
            self._kept[collection] = state.stamp, knowledge
        return knowledge

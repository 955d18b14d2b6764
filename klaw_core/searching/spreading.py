"""Not all results from one document, where others fit nearly as well."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence

from attrs import define, field

from klaw_core.values.search import Hit
from klaw_core.values.text import StoredChunk

# What fits nearly as well: so much of the score that stands back for it.
_NEARLY = 0.75

_Place = tuple[str, str]


@define(eq=False, repr=False)
class Spread:
    """Takes hits, best first, until there are as many as are ``wanted``; of one document at most ``per_document``.

    What is beyond that stands back until another document's hit is clearly worse. Messages of one chat are no document:
    each is somebody else's word.
    """

    wanted: int | None
    per_document: int | None
    _taken: list[tuple[int, StoredChunk, Hit]] = field(factory=list, init=False)
    _back: deque[tuple[int, StoredChunk, Hit]] = field(factory=deque, init=False)
    _counts: Counter[_Place] = field(factory=Counter, init=False)
    _seen: int = field(default=0, init=False)

    @property
    def count(self) -> int:
        """How many were taken."""
        return len(self._taken)

    @property
    def is_full(self) -> bool:
        """Whether nothing more is wanted."""
        return self.wanted is not None and len(self._taken) >= self.wanted

    def add(self, collection: str, stored: StoredChunk, hit: Hit) -> None:
        """Take the next hit, or let it stand back."""
        while self._back and not self.is_full and self._back[0][2].score * _NEARLY > hit.score:
            self._taken.append(self._back.popleft())
        if self.is_full:
            return
        self._seen += 1
        place = (collection, stored.path)
        if self.per_document is not None and stored.chat_id is None and self._counts[place] >= self.per_document:
            self._back.append((self._seen, stored, hit))
            return
        self._counts[place] += 1
        self._taken.append((self._seen, stored, hit))

    def fill(self) -> None:
        """Take what stood back: there is nothing else."""
        while self._back and not self.is_full:
            self._taken.append(self._back.popleft())

    @property
    def taken(self) -> list[tuple[StoredChunk, Hit]]:
        """What was taken, best first."""
        return [(stored, hit) for _, stored, hit in sorted(self._taken, key=_order)]

    @property
    def also(self) -> Mapping[int, Sequence[StoredChunk]]:
        """The chunks that stood back, by the key of the best hit of their document."""
        if not self._back:
            return {}
        first: dict[str, int] = {}
        for stored, hit in self.taken:
            first.setdefault(stored.path, hit.key)
        others: defaultdict[int, list[StoredChunk]] = defaultdict(list)
        for _, stored, _ in self._back:
            if stored.path in first:
                others[first[stored.path]].append(stored)
        return others


def _order(item: tuple[int, StoredChunk, Hit]) -> int:
    return item[0]

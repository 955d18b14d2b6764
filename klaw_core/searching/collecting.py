"""Collect the results of a search, with a limit on the chunks of one document if others are nearly as good."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from operator import itemgetter

from attrs import define, field

from klaw_core.values.search import Hit
from klaw_core.values.text import StoredChunk

# A deferred hit is taken before any hit whose score is lower by more than this share of its own.
_CLEARLY = 0.25

_Document = tuple[str, str]


@define(eq=False, repr=False)
class ResultCollector:
    """Collects hits, best first, up to ``wanted`` (None: no limit), of which ``per_document`` are from one document.

    More hits of that document are deferred, until the hits of other documents are clearly worse. The limit does not
    apply to the messages of a chat, because each is a statement of its own.
    """

    wanted: int | None
    per_document: int | None
    _taken: list[tuple[int, StoredChunk, Hit]] = field(factory=list, init=False)
    _deferred: deque[tuple[int, StoredChunk, Hit]] = field(factory=deque, init=False)
    _counts: dict[_Document, int] = field(factory=dict, init=False)
    _seen: int = field(default=0, init=False)

    @property
    def count(self) -> int:
        """The number of collected hits."""
        return len(self._taken)

    @property
    def is_full(self) -> bool:
        """Whether as many hits as wanted are collected."""
        return self.wanted is not None and len(self._taken) >= self.wanted

    def add(self, collection: str, stored: StoredChunk, hit: Hit) -> None:
        """Collect or defer the next hit."""
        while self._deferred and not self.is_full and _is_clearly_better(self._deferred[0][2], hit):
            self._taken.append(self._deferred.popleft())
        if self.is_full:
            return
        self._seen += 1
        if self.per_document is not None and stored.chat_id is None:
            document = (collection, stored.path)
            count = self._counts.get(document, 0)
            if count >= self.per_document:
                self._deferred.append((self._seen, stored, hit))
                return
            self._counts[document] = count + 1
        self._taken.append((self._seen, stored, hit))

    def fill(self) -> None:
        """Collect deferred hits, after the last :meth:`add`."""
        while self._deferred and not self.is_full:
            self._taken.append(self._deferred.popleft())

    @property
    def taken(self) -> list[tuple[StoredChunk, Hit]]:
        """The collected hits and their chunks, best first."""
        return [(stored, hit) for _, stored, hit in sorted(self._taken, key=itemgetter(0))]

    @property
    def left_out(self) -> Mapping[int, Sequence[StoredChunk]]:
        """The chunks that are still deferred, by the key of the best collected hit of their document."""
        if not self._deferred:
            return {}
        best: dict[str, int] = {}
        for stored, hit in self.taken:
            best.setdefault(stored.path, hit.key)
        others: defaultdict[int, list[StoredChunk]] = defaultdict(list)
        for _, stored, _ in self._deferred:
            if stored.path in best:
                others[best[stored.path]].append(stored)
        return others


def _is_clearly_better(one: Hit, other: Hit) -> bool:
    return one.score - _CLEARLY * abs(one.score) > other.score  # the scores of a stage may be negative

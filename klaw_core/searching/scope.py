"""Where one search looks: a snapshot, and for each collection its query and its retrievers.

Keys are unique within a collection only. A search of several collections ranks their hits together, so each key is
combined with the number of its collection; where there is one collection, keys stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen

from klaw_core.errors import RetrievalError, as_klaw_error
from klaw_core.searching.contracts import check_hits
from klaw_core.searching.judging import is_unreachable, judge
from klaw_core.searching.retrievers import ConfiguredRetriever
from klaw_core.searching.spreading import Spread
from klaw_core.values.search import Hit, Query, Ranking, SearchResult
from klaw_core.values.text import StoredChunk

if TYPE_CHECKING:
    from klaw_core.interfaces.store import Snapshot
    from klaw_core.values.text import Chunk


# A model that hardly knows a question's script finds chance likenesses in others.
_HALF_KNOWN = 0.5
# How many of the nearest chunks that words did not find are read, to see whether words could have.
_LOOKED_AT = 20


@frozen(eq=False)
class Target:
    """One collection of a search: the query as this collection is asked, and who is asked.

    ``familiarity`` is how well the model knows the question's script, from 0 to 1.
    """

    query: Query
    retrievers: Sequence[ConfiguredRetriever]
    familiarity: float = 1.0


@define(eq=False, slots=False)
class Scope:
    """The collections of one search, in one snapshot. ``collapse``: copies of a text are left out.

    ``relevance`` returns that of a hit of the last :meth:`ask` by its key, None if no retriever can say.
    """

    snapshot: Snapshot[Any]
    targets: Sequence[Target]
    collapse: bool = True
    # Keys that were found and have no chunk that can be read.
    unreadable: set[int] = field(factory=set, init=False)
    relevance: Callable[[int], float | None] = field(default=lambda _key: None, init=False)
    _read: dict[int, StoredChunk] = field(factory=dict, init=False)

    def ask(self, depth: int, notices: list[str]) -> list[Ranking]:
        """Return one ranking per retriever, best first by its own scores, of at most ``depth`` hits.

        A retriever that fails is named and left out. Raise RetrievalError if none answers.
        """
        found: dict[str, list[Ranking]] = {}
        failure: RetrievalError | None = None
        for number, target in enumerate(self.targets):
            for configured in target.retrievers:
                try:
                    hits = tuple(configured.retriever.search(self.snapshot.resource, target.query, depth))
                    check_hits(hits, depth, target.query.within, f"the retriever {configured.name!r}")
                    if configured.noticing is not None:
                        remarks = configured.noticing.notices(self.snapshot.resource, target.query)
                        notices.extend(map(str, remarks))
                except (Exception, SystemExit) as error:  # noqa: BLE001  # a plugin may raise anything; the others go on
                    problem = as_klaw_error(error)
                    failure = failure or RetrievalError(f"{configured.name}: {problem.message}", hint=problem.hint)
                    notices.append(f"searched without {configured.name}: {problem}")
                    continue
                if target.familiarity < 1 and configured.retriever.needs_vectors:
                    hits = tuple(_damped(hit, target.familiarity) for hit in hits)
                ranking = Ranking(configured.name, self._combined(hits, number), configured.weight)
                found.setdefault(configured.name, []).append(ranking)
                if not hits and target.query.within is None:
                    from klaw_core.searching.lacking import lacking_chunks

                    notices.extend(lacking_chunks(self.snapshot, configured, target.query.collection))
        if failure is not None and not found:
            raise failure
        return self._judged([_merged(rankings, depth) for rankings in found.values()])

    def _judged(self, rankings: list[Ranking]) -> list[Ranking]:
        """Return the rankings with the hits marked that words could not have found; keep what tells a relevance."""
        vectors = [ranking for ranking in rankings if ranking.retriever in self._vector_retrievers]
        words = [ranking for ranking in rankings if ranking.retriever not in self._vector_retrievers]
        known = min((target.familiarity for target in self.targets), default=1.0)
        if words and known > _HALF_KNOWN:
            reached = {hit.key for ranking in words for hit in ranking.hits}
            vectors = [self._mark_unreached(ranking, reached) for ranking in vectors]
        self.relevance = judge(words, vectors, known)
        return [*words, *vectors]

    def _mark_unreached(self, ranking: Ranking, reached: Collection[int]) -> Ranking:
        asked = [hit.key for hit in ranking.hits[:_LOOKED_AT] if hit.key not in reached and hit.relevance is not None]
        question = self.targets[0].query.text
        read = self._chunks(asked)
        unreached = {key for key in asked if key in read and is_unreachable(question, read[key].chunk.text)}
        if not unreached:
            return ranking
        hits = tuple(
            Hit(hit.key, hit.score, hit.contributions, hit.relevance, unreached=True) if hit.key in unreached else hit
            for hit in ranking.hits
        )
        return Ranking(ranking.retriever, hits, ranking.weight)

    def _combined(self, hits: tuple[Hit, ...], number: int) -> tuple[Hit, ...]:
        count = len(self.targets)
        return hits if count == 1 else tuple(evolve(hit, key=hit.key * count + number) for hit in hits)

    def target_of(self, key: int) -> Target:
        """Return where the chunk of a key of a ranking was looked for."""
        return self.targets[key % len(self.targets)]

    def collection_of(self, key: int) -> str:
        """Return the collection that a key of a ranking belongs to."""
        return self.target_of(key).query.collection

    def hydrate(self, hits: Sequence[Hit], spread: Spread) -> None:
        """Give the chunks of the hits to ``spread``, but for one whose text, or most of whose span, a better one shows.

        They are fetched a part at a time, until nothing more is wanted.
        """
        texts: set[str] = set()
        shown: dict[tuple[str, str], list[Chunk]] = {}
        first, times = 0, 1
        while first < len(hits) and not spread.is_full:
            size = len(hits) if spread.wanted is None else times * (spread.wanted - spread.count)
            part = hits[first : first + size]
            stored = self._chunks([hit.key for hit in part])
            for hit in part:
                found = stored.get(hit.key)
                if found is None:
                    self.unreadable.add(hit.key)
                    continue
                collection = self.collection_of(hit.key)
                if self.collapse:
                    others = shown.setdefault((collection, found.path), [])
                    if found.chunk.text in texts or _is_shown(found.chunk, others):
                        continue
                    others.append(found.chunk)
                    texts.add(found.chunk.text)
                spread.add(collection, found, hit)
            first += size
            times *= 2

    def _chunks(self, keys: Sequence[int]) -> Mapping[int, StoredChunk]:
        """Return the chunks of combined keys, by those keys, with those that were read before."""
        self._read.update(self._fetched([key for key in keys if key not in self._read]))
        return self._read

    def _fetched(self, keys: Sequence[int]) -> dict[int, StoredChunk]:
        count = len(self.targets)
        if count == 1:
            collection = self.targets[0].query.collection
            return {stored.key: stored for stored in self.snapshot.chunks(collection, keys)}
        found: dict[int, StoredChunk] = {}
        for number, target in enumerate(self.targets):
            own = [key // count for key in keys if key % count == number]
            for stored in self.snapshot.chunks(target.query.collection, own):
                key = stored.key * count + number
                found[key] = evolve(stored, key=key)
        return found

    def result(self, stored: StoredChunk, hit: Hit, also: Sequence[StoredChunk] = ()) -> SearchResult:
        """Return a chunk and its hit as a result; ``also`` are other chunks of its document."""
        chunk = stored.chunk
        return SearchResult(
            content=chunk.text,
            path=stored.path,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            heading=chunk.heading,
            score=hit.score,
            source=stored.source,
            created_at=stored.created_at,
            chunk_id=chunk.chunk_id,
            chat_id=stored.chat_id,
            explain=hit.contributions,
            context=chunk.context,
            collection=self.collection_of(stored.key),
            metadata=stored.metadata,
            similarity=self._similarity(hit),
            origin=stored.origin,
            relevance=self.relevance(hit.key),
            also=tuple([f"{other.path}:{other.chunk.start_line}-{other.chunk.end_line}" for other in also]),
        )

    def _similarity(self, hit: Hit) -> float | None:
        for part in hit.contributions:
            if part.component in self._vector_retrievers:
                return part.raw
        return None

    @cached_property
    def _vector_retrievers(self) -> set[str]:
        return {
            configured.name
            for target in self.targets
            for configured in target.retrievers
            if configured.retriever.needs_vectors
        }


def _damped(hit: Hit, familiarity: float) -> Hit:
    """Return a hit believed in only as far as the model knows what it was asked."""
    return hit if hit.relevance is None else evolve(hit, relevance=hit.relevance * familiarity)


def _merged(rankings: Sequence[Ranking], depth: int) -> Ranking:
    """Return the hits of one retriever in several collections as one ranking, by its own scores."""
    if len(rankings) == 1:
        return rankings[0]
    from heapq import merge  # one collection needs no merging

    hits = merge(*(ranking.hits for ranking in rankings), key=_best_first)
    return evolve(rankings[0], hits=tuple(islice(hits, depth)))


def _best_first(hit: Hit) -> tuple[float, int]:
    return -hit.score, hit.key


def _is_shown(chunk: Chunk, others: Sequence[Chunk]) -> bool:
    """Return whether one of the others, of the same document, shows most of a chunk."""
    return any(
        2 * (min(chunk.end, other.end) - max(chunk.start, other.start)) > chunk.end - chunk.start for other in others
    )

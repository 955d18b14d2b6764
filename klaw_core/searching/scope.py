"""The scope of one search: a snapshot, and for each collection a query and the retrievers.

Keys are unique only within a collection. If a search has several collections, each key is combined with the number of
its collection, so that their hits can be ranked together. With one collection, keys are not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen

from klaw_core.errors import RetrievalError, as_klaw_error
from klaw_core.interfaces.index import Index
from klaw_core.searching.collecting import ResultCollector
from klaw_core.searching.contracts import check_hits
from klaw_core.searching.relevance import combine_relevance, is_unreachable
from klaw_core.searching.retrievers import ConfiguredRetriever
from klaw_core.values.metadata import TRUST, with_trust
from klaw_core.values.search import Hit, Query, Ranking, SearchResult
from klaw_core.values.text import StoredChunk

if TYPE_CHECKING:
    from klaw_core.interfaces.store import Snapshot
    from klaw_core.values.text import Chunk


# Below this familiarity, chunks in other scripts are near to the question only by chance.
_FAMILIAR = 0.5
# The greatest relevance of a result if a name in the question is absent: so low that also a fact, of higher relevance
# than other texts, is weak.
_IF_ABSENT = 0.01
# The number of nearest chunks that are checked for words in common with the question.
_MAX_CHECKED = 20


@frozen(eq=False, repr=False)
class Target:
    """One collection of a search: its query and its retrievers.

    ``familiarity`` is how well the model knows the question's script, from 0 to 1.
    """

    query: Query
    retrievers: Sequence[ConfiguredRetriever]
    familiarity: float = 1.0


@define(eq=False, repr=False, slots=False)
class Scope:
    """The collections of one search, in one snapshot. ``collapse``: leave out copies and overlapping chunks.

    ``relevance`` is a function from the key of a hit of the last :meth:`ask` to its relevance, or None if unknown.
    ``unreadable`` are the keys that retrievers found but whose chunks cannot be read. ``absent`` are the names in the
    question that no chunk of any collection contains: then nothing answers it, and every result is weak.
    """

    snapshot: Snapshot[Any]
    targets: Sequence[Target]
    collapse: bool = True
    unreadable: set[int] = field(factory=set, init=False)
    absent: Sequence[str] | None = field(default=None, init=False)
    relevance: Callable[[int], float | None] = field(default=lambda _key: None, init=False)
    _read: dict[int, StoredChunk] = field(factory=dict, init=False)
    _asked: set[tuple[str, str]] = field(factory=set, init=False)
    _last: tuple[int, list[Ranking]] | None = field(default=None, init=False)

    def ask(self, depth: int, notices: list[str]) -> list[Ranking]:
        """Return one ranking of at most ``depth`` hits per retriever, ordered by its own scores.

        If a retriever fails, a notice names it. Raise RetrievalError if all fail. The last rankings are kept.
        """
        if self._last is not None and self._last[0] == depth:
            return self._last[1]
        found: dict[str, list[Ranking]] = {}
        failure: RetrievalError | None = None
        for number, target in enumerate(self.targets):
            for configured in target.retrievers:
                try:
                    hits = tuple(configured.retriever.search(self.snapshot.resource, target.query, depth))
                    check_hits(hits, depth, target.query.within, f"the retriever {configured.name!r}")
                    notices.extend(map(str, configured.retriever.notices(self.snapshot.resource, target.query)))
                    if not configured.retriever.needs_vectors:
                        named = configured.retriever.absent(self.snapshot.resource, target.query)
                        self.absent = [name for name in named if self.absent is None or name in self.absent]
                except (Exception, SystemExit) as error:  # noqa: BLE001  # a plugin may raise anything; the others answer
                    problem = as_klaw_error(error)
                    failure = failure or RetrievalError(f"{configured.name}: {problem.message}", hint=problem.hint)
                    notices.append(f"searched without {configured.name}: {problem}")
                    continue
                if target.familiarity < 1 and configured.retriever.needs_vectors:
                    known = target.familiarity
                    hits = tuple(evolve(hit, relevance=hit.relevance and hit.relevance * known) for hit in hits)
                if len(self.targets) > 1:
                    hits = tuple(evolve(hit, key=hit.key * len(self.targets) + number) for hit in hits)
                ranking = Ranking(configured.name, hits, configured.weight)
                found.setdefault(configured.name, []).append(ranking)
                notices.extend(self._lacking(configured, target.query, found=bool(hits)))
        if failure is not None and not found:
            raise failure
        merged = (each[0] if len(each) == 1 else _merged(each, depth) for each in found.values())
        self._last = depth, self._with_relevance(list(merged))
        return self._last[1]

    def _lacking(self, configured: ConfiguredRetriever, query: Query, *, found: bool) -> Iterable[str]:
        """Return a notice if a retriever lacks chunks, at the first question to it."""
        if (configured.name, query.collection) in self._asked:
            return ()
        self._asked.add((configured.name, query.collection))
        index = configured.retriever
        if not isinstance(index, Index):
            return ()
        count = partial(self.snapshot.count, query.collection)
        with suppress(Exception, SystemExit):  # below, a failure becomes a notice
            lacking = index.lacking(self.snapshot.resource, query.collection, count)
            if lacking == 0 or (lacking is None and (found or query.within is not None)):
                return ()
        from klaw_core.searching.why_nothing import lacking_chunks

        return lacking_chunks(self.snapshot, configured, query.collection)

    def _with_relevance(self, rankings: list[Ranking]) -> list[Ranking]:
        """Set ``relevance``, and return the rankings with ``Hit.unreached`` set."""
        vectors = [ranking for ranking in rankings if ranking.retriever in self._vector_retrievers]
        words = [ranking for ranking in rankings if ranking.retriever not in self._vector_retrievers]
        familiar = min((target.familiarity for target in self.targets), default=1.0)
        if words and familiar > _FAMILIAR:
            reached = {hit.key for ranking in words for hit in ranking.hits}
            vectors = [self._mark_unreached(ranking, reached) for ranking in vectors]
        whole = all(target.query.within is None for target in self.targets)
        self.relevance = combine_relevance(words, vectors, familiar, whole=whole)
        return [*words, *vectors]

    def _mark_unreached(self, ranking: Ranking, reached: Collection[int]) -> Ranking:
        """Set ``Hit.unreached`` for the hits that are not ``reached`` and that words could not have found."""
        nearest = ranking.hits[:_MAX_CHECKED]
        checked = [hit.key for hit in nearest if hit.key not in reached and hit.relevance is not None]
        question = self.targets[0].query.text
        texts = self._texts(checked)
        unreached = {key for key in checked if key in texts and is_unreachable(question, texts[key])}
        hits = tuple(evolve(hit, unreached=True) if hit.key in unreached else hit for hit in ranking.hits)
        return Ranking(ranking.retriever, hits, ranking.weight)

    def target_of(self, key: int) -> Target:
        """Return the target of a combined key."""
        return self.targets[key % len(self.targets)]

    def collection_of(self, key: int) -> str:
        """Return the collection of a combined key."""
        return self.targets[key % len(self.targets)].query.collection

    def hydrate(self, hits: Sequence[Hit], collector: ResultCollector) -> None:
        """Read the chunks of the hits and add them to ``collector``, until it is full.

        With ``collapse``, a chunk is left out if a better one has the same text or contains most of its span. Chunks
        are read in batches: as many as are missing, then twice as many, and so on.
        """
        texts: set[str] = set()
        kept: dict[tuple[str, str], list[Chunk]] = {}
        first, factor = 0, 1
        while first < len(hits) and not collector.is_full:
            size = len(hits) if collector.wanted is None else factor * (collector.wanted - collector.count)
            batch = hits[first : first + size]
            chunks = self._chunks([hit.key for hit in batch])
            for hit in batch:
                stored = chunks.get(hit.key)
                if stored is None:
                    self.unreadable.add(hit.key)
                    continue
                collection = self.collection_of(hit.key)
                if self.collapse:
                    chunk = stored.chunk
                    others = kept.setdefault((collection, stored.path), [])
                    if chunk.text in texts or (others and _overlaps(chunk, others)):
                        continue
                    others.append(chunk)
                    texts.add(chunk.text)
                collector.add(collection, stored, hit)
            first += size
            factor *= 2

    def _chunks(self, keys: Sequence[int]) -> Mapping[int, StoredChunk]:
        """Return the chunks of all combined keys that were read so far, including ``keys``."""
        missing = [key for key in keys if key not in self._read]
        count = len(self.targets)
        for number, target in enumerate(self.targets):
            own = missing if count == 1 else [key // count for key in missing if key % count == number]
            for stored in self.snapshot.chunks(target.query.collection, own):
                key = stored.key * count + number
                self._read[key] = stored if count == 1 else evolve(stored, key=key)
        return self._read

    def _texts(self, keys: Sequence[int]) -> Mapping[int, str]:
        """Return the texts of the chunks of combined keys."""
        count = len(self.targets)
        found: dict[int, str] = {}
        for number, target in enumerate(self.targets):
            own = [key // count for key in keys if key % count == number]
            texts = self.snapshot.texts(target.query.collection, own)
            found.update((key * count + number, text) for key, text in texts.items())
        return found

    def result(self, stored: StoredChunk, hit: Hit, also: Sequence[StoredChunk] = ()) -> SearchResult:
        """Return a chunk and its hit as a result; ``also`` are chunks of its document that were left out."""
        chunk = stored.chunk
        similarities = (part.raw for part in hit.contributions if part.component in self._vector_retrievers)
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
            metadata=with_trust(stored.metadata, "owner") if (trust := stored.metadata.get(TRUST)) else stored.metadata,
            trust=str(trust or "owner"),
            similarity=next(similarities, None),
            origin=stored.origin,
            relevance=self.judged(hit),
            also=tuple([f"{other.path}:{other.chunk.start_line}-{other.chunk.end_line}" for other in also]),
        )

    def judged(self, hit: Hit) -> float | None:
        """Return the relevance that a preference or a stage gave a fused hit, or else the estimated one."""
        relevance = self.relevance(hit.key) if hit.relevance is None else hit.relevance
        return min(relevance or 0.0, _IF_ABSENT) if self.absent else relevance

    @cached_property
    def _vector_retrievers(self) -> set[str]:
        return {
            configured.name
            for target in self.targets
            for configured in target.retrievers
            if configured.retriever.needs_vectors
        }


def _merged(rankings: Sequence[Ranking], depth: int) -> Ranking:
    """Merge the rankings of one retriever in several collections by its own scores."""
    from heapq import merge  # one collection needs no merging

    hits = merge(*(ranking.hits for ranking in rankings), key=lambda hit: (-hit.score, hit.key))
    return evolve(rankings[0], hits=tuple(islice(hits, depth)))


def _overlaps(chunk: Chunk, others: Sequence[Chunk]) -> bool:
    """Return whether another chunk of the same document contains more than half of a chunk."""
    return any(
        2 * (min(chunk.end, other.end) - max(chunk.start, other.start)) > chunk.end - chunk.start for other in others
    )

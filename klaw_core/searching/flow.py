"""The search flow: a question in, chunks out, each with where it stands and why it ranked.

embed once if any retriever needs it → one snapshot → each retriever over-fetches, filtered inside → fusion →
hydrate → collapse what overlaps → the reranking stages, if any
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import cached_property, partial
from operator import ge, index
from typing import TYPE_CHECKING, Any, Literal, get_args

from attrs import frozen

from klaw_core.errors import (
    PluginContractError,
    QueryError,
    RetrievalError,
    VectorSpaceError,
    as_klaw_error,
    isolated,
)
from klaw_core.values.search import Filters, Hit, Query, Ranking, SearchResult, SearchResults, check_filters
from klaw_core.values.text import StoredChunk

if TYPE_CHECKING:  # what only vectors or stages need is imported with them
    from klaw_core.embedding.query_vectors import QueryVectors
    from klaw_core.interfaces.components import Embedder, Fusion
    from klaw_core.interfaces.store import Snapshot, Store
    from klaw_core.searching.reranking import Stage
    from klaw_core.searching.retrievers import ConfiguredRetriever
    from klaw_core.values.text import Chunk
    from klaw_core.values.vectors import Keys, SpaceRecord, Vector

Mode = Literal["hybrid", "fts", "vector"]

# A question longer than this says nothing a shorter one would not; the embedder would pool it to mush.
MAX_QUERY_CHARACTERS = 10_000
# The most hits a retriever is asked for; also vec0's own limit.
_DEEPEST = 4096
_LARGEST_KEY = 2**63
_NOTHING_EMBEDDED = "searched without vectors: nothing is embedded yet: klaw embed"


class _OutdatedError(Exception):
    """What was known of a collection from the search before does not hold any more."""


@frozen(eq=False, repr=False)
class Searcher:
    """Searches the collections of one store. ``get_embedder`` is called only if a retriever needs a vector."""

    store: Store[Any]
    get_embedder: Callable[[], Embedder]
    retrievers: Sequence[ConfiguredRetriever]
    fusion: Fusion
    stages: Sequence[Stage] = ()

    @cached_property
    def _query_vectors(self) -> QueryVectors:
        from klaw_core.embedding.query_vectors import QueryVectors

        return QueryVectors()

    @cached_property
    def _spaces(self) -> dict[tuple[int, str], SpaceRecord]:
        """The space of each collection when this process last searched it.

        One that was forked knows none: it is to meet the store, which says so, before a model that lost its threads.
        """
        return {}

    def search(
        self,
        text: str,
        *,
        limit: int,
        mode: Mode = "hybrid",
        filters: Filters = Filters(),  # noqa: B008  # frozen
        collection: str = "memory",
        min_score: float | None = None,
    ) -> SearchResults:
        """Return at most ``limit`` chunks, best first.

        A retriever that cannot answer is left out and named in the notices; the others' answer stands. Raise
        QueryError if the query is empty or too long, EmbeddingError, RetrievalError or VectorSpaceError if no
        retriever could answer.
        """
        _check(text, limit, mode)
        check_filters(filters)
        search = partial(
            self._search, text, limit=limit, mode=mode, filters=filters, collection=collection, min_score=min_score
        )
        known = self._spaces.pop((os.getpid(), collection), None)
        if known is not None:
            with suppress(_OutdatedError):
                return search(known=known)
        return search(known=None)

    def _search(
        self,
        text: str,
        *,
        limit: int,
        mode: Mode,
        filters: Filters,
        collection: str,
        min_score: float | None,
        known: SpaceRecord | None,
    ) -> SearchResults:
        """Search as :meth:`search` does. Raise _OutdatedError if the collection has left the space ``known``."""
        notices: list[str] = []
        retrievers = self._usable(mode, notices)
        vector, embedded_in = self._embed(text, retrievers, collection, notices, known)
        with self.store.read() as snapshot:
            if embedded_in is not None and not self._is_in(snapshot, collection, embedded_in):
                if known is not None:
                    raise _OutdatedError
                _drop_moved(collection, retrievers, notices)
            within = snapshot.select(collection, filters) if filters else None
            query = Query(text, collection, vector, within)
            found = self._find(snapshot, retrievers, query, limit, notices)
            if not found and not snapshot.keys(collection).size:
                notices[:] = [notice for notice in notices if notice != _NOTHING_EMBEDDED]
                notices.append("nothing is indexed yet: klaw index DIR")
            elif within is not None and not within.size:
                from klaw_core.searching.why_nothing import unmatched

                notices.extend(unmatched(snapshot, collection, filters))
        if self.stages:
            from klaw_core.searching.reranking import rerank

            found, failures = rerank(self.stages, self.store, query, found, limit)
            notices.extend(failures)
        good = found if min_score is None else [(stored, hit) for stored, hit in found if hit.score >= min_score]
        results = tuple(_result(stored, hit) for stored, hit in good[:limit])
        return SearchResults(results, tuple(dict.fromkeys(notices)))

    def _usable(self, mode: Mode, notices: list[str]) -> list[ConfiguredRetriever]:
        wanted = [
            configured
            for configured in self.retrievers
            if mode == "hybrid" or configured.retriever.needs_vectors == (mode == "vector")
        ]
        if not wanted:
            kind = "uses vectors" if mode == "vector" else "searches words"
            raise QueryError(f"mode {mode}: no configured retriever {kind}", hint="see [[memory.retrieval]]")
        notices.extend(f"{configured.name} is off: {configured.problem}" for configured in wanted if configured.problem)
        usable = [configured for configured in wanted if not configured.problem]
        if not usable:
            raise RetrievalError("; ".join(notices))
        return usable

    def _embed(
        self,
        text: str,
        retrievers: list[ConfiguredRetriever],
        collection: str,
        notices: list[str],
        known: SpaceRecord | None,
    ) -> tuple[Vector | None, SpaceRecord | None]:
        """Embed the question if a retriever needs it, and say in which space; on failure leave those retrievers out.

        ``known`` is the space of the last search: so a question in a row needs no other snapshot before its own.
        """
        needing = [configured for configured in retrievers if configured.retriever.needs_vectors]
        if not needing:
            return None, None
        record = known
        if record is None:
            with self.store.read() as snapshot:
                record = snapshot.space(collection)
        if record is None:  # nothing was indexed with vectors yet: no reason to load a model
            _leave_out(needing, retrievers)
            notices.append(_NOTHING_EMBEDDED)
            return None, None
        try:
            return self._query_vectors.embed(text, self.get_embedder(), record, collection), record
        except Exception as error:  # an embedder may raise anything; words can still answer
            if known is not None:
                with self.store.read() as snapshot:
                    if not self._is_in(snapshot, collection, known):
                        raise _OutdatedError from error
            _leave_out(needing, retrievers)
            problem = as_klaw_error(error)
            if not retrievers:
                raise problem from error
            notices.append(f"searched without vectors: {problem}")
            return None, None

    def _is_in(self, snapshot: Snapshot[Any], collection: str, known: SpaceRecord) -> bool:
        """Return whether the collection is in the known space, of the same weights; remember it for the next search."""
        from klaw_core.embedding.query_vectors import record_identity

        record = snapshot.space(collection)
        if record is None or record_identity(record) != record_identity(known):
            return False
        self._spaces[os.getpid(), collection] = record
        return True

    def _find(
        self,
        snapshot: Snapshot[Any],
        retrievers: Sequence[ConfiguredRetriever],
        query: Query,
        limit: int,
        notices: list[str],
    ) -> Sequence[tuple[StoredChunk, Hit]]:
        """Ask and fuse; where copies of one text leave too few results, ask again for more.

        Without a reranking stage ``limit`` are all that anybody will look at: no others are fetched.
        """
        depth = _depth(self.fusion, limit)
        wanted = None if self.stages else limit
        while True:
            rankings = self._ask(snapshot, retrievers, query, depth, notices)
            found = self._first(snapshot, query.collection, rankings, depth * len(rankings), wanted)
            exhausted = all(len(ranking.hits) < depth for ranking in rankings)
            if len(found) >= limit or exhausted or depth >= _DEEPEST:
                return found
            depth = min(4 * depth, _DEEPEST)

    def _first(
        self, snapshot: Snapshot[Any], collection: str, rankings: Sequence[Ranking], most: int, wanted: int | None
    ) -> Sequence[tuple[StoredChunk, Hit]]:
        """Return the ``wanted`` first of at most ``most`` (None: all).

        They are looked for among the first twice as many: a smaller limit cuts off the end of what a fusion returns.
        """
        if wanted is not None and 2 * wanted < sum(len(ranking.hits) for ranking in rankings):
            found = _hydrate(snapshot, collection, _fuse(self.fusion, rankings, 2 * wanted), wanted)
            if len(found) == wanted:
                return found
        return _hydrate(snapshot, collection, _fuse(self.fusion, rankings, most), wanted) if rankings else ()

    def _ask(
        self,
        snapshot: Snapshot[Any],
        retrievers: Sequence[ConfiguredRetriever],
        query: Query,
        depth: int,
        notices: list[str],
    ) -> list[Ranking]:
        """Ask each retriever; one that fails is named and left out, unless it is the only one."""
        rankings = []
        failure: RetrievalError | None = None
        for configured in retrievers:
            try:
                hits = tuple(configured.retriever.search(snapshot.resource, query, depth))
                _check_hits(hits, depth, query.within, f"the retriever {configured.name!r}")
            except (Exception, SystemExit) as error:  # noqa: BLE001  # a plugin may raise anything; the other retrievers go on
                problem = as_klaw_error(error)
                failure = failure or RetrievalError(f"{configured.name}: {problem.message}", hint=problem.hint)
                notices.append(f"searched without {configured.name}: {problem}")
            else:
                rankings.append(Ranking(configured.name, hits, configured.weight))
                if not hits and query.within is None:
                    from klaw_core.searching.why_nothing import gaps

                    notices.extend(gaps(snapshot, configured, query.collection))
        if failure is not None and not rankings:
            raise failure
        return rankings


def _drop_moved(collection: str, retrievers: list[ConfiguredRetriever], notices: list[str]) -> None:
    """Leave out the retrievers that need vectors, since after the question was embedded the index has moved."""
    _leave_out([configured for configured in retrievers if configured.retriever.needs_vectors], retrievers)
    problem = VectorSpaceError(f"the collection {collection!r} was rebuilt meanwhile", hint="search again")
    if not retrievers:
        raise problem
    notices.append(f"searched without vectors: {problem}")


def _leave_out(these: Sequence[ConfiguredRetriever], retrievers: list[ConfiguredRetriever]) -> None:
    for configured in these:
        retrievers.remove(configured)


def _check(text: str, limit: int, mode: str) -> None:
    if mode not in get_args(Mode):
        raise QueryError(f"there is no mode {mode!r}", hint=f"one of {', '.join(get_args(Mode))}")
    if limit < 1:
        raise QueryError(f"the limit must be at least 1, got {limit}")
    if not text.strip():
        raise QueryError("the query is empty", hint='ask something: klaw search "what did we decide about auth"')
    if len(text) > MAX_QUERY_CHARACTERS:
        raise QueryError(f"the query has {len(text):,} characters, at most {MAX_QUERY_CHARACTERS:,} are allowed")


def _depth(fusion: Fusion, limit: int) -> int:
    """Return how many hits each retriever is asked for. Raise PluginError if the fusion cannot say."""
    who = f"the fusion {type(fusion).__name__}"
    with isolated(who):
        depth: Any = fusion.depth(limit)
    if not isinstance(depth, int) or depth < 1:
        raise PluginContractError(f"{who} wants {depth!r:.80} hits of each retriever")
    return min(int(depth), _DEEPEST)


def _fuse(fusion: Fusion, rankings: Sequence[Ranking], limit: int) -> Sequence[Hit]:
    """Return one ranking of several. Raise PluginError if the fusion raises or breaks its Protocol."""
    who = f"the fusion {type(fusion).__name__}"
    with isolated(who):
        fused = tuple(fusion.fuse(rankings, limit))
        _check_hits(fused, limit, None, who)
    return fused


def _check_hits(hits: Sequence[Any], depth: int, within: Keys | None, who: str) -> None:
    """Raise PluginContractError unless the hits are hits, distinct, in order, allowed and not too many."""
    kinds = set(map(type, hits))
    numbers = [index(hit.key) for hit in hits] if all(issubclass(kind, Hit) for kind in kinds) else None
    if numbers is None or (numbers and not -_LARGEST_KEY < min(numbers) <= max(numbers) < _LARGEST_KEY):
        raise PluginContractError(f"{who} returned what are no hits, or keys that no store gives")
    scores = [hit.score for hit in hits]
    keys = set(numbers)
    ordered = all(map(ge, scores, scores[1:]))
    if (
        not (ordered and all(map(math.isfinite, scores)) and _allowed(keys, within))
        or len(keys) != len(hits)
        or len(hits) > depth
    ):
        raise PluginContractError(
            f"{who} returned hits that are unsorted, repeated, not finite, not allowed or too many"
        )


def _allowed(keys: Collection[int], within: Keys | None) -> bool:
    """Return whether all keys are among those of ``within``, which are ascending; a filter may keep very many."""
    if within is None or not keys:
        return True
    if not within.size:
        return False
    import numpy as np

    found = np.fromiter(keys, np.int64, len(keys))
    places = np.searchsorted(within, found)
    return bool((within[np.minimum(places, within.size - 1)] == found).all())


def _hydrate(
    snapshot: Snapshot[Any], collection: str, hits: Sequence[Hit], wanted: int | None
) -> list[tuple[StoredChunk, Hit]]:
    """Return the chunks of the hits, without one whose text, or most of whose span, a better one already shows.

    They are fetched a part at a time, until there are as many as are ``wanted`` (None: all).
    """
    kept: list[tuple[StoredChunk, Hit]] = []
    texts: set[str] = set()
    shown: dict[str, list[Chunk]] = {}
    first, times = 0, 1
    while first < len(hits):
        size = len(hits) if wanted is None else times * (wanted - len(kept))
        part = hits[first : first + size]
        stored = {chunk.key: chunk for chunk in snapshot.chunks(collection, [hit.key for hit in part])}
        for hit in part:
            if hit.key not in stored:
                continue
            chunk, others = stored[hit.key].chunk, shown.setdefault(stored[hit.key].path, [])
            if chunk.text in texts or _is_shown(chunk, others):
                continue
            kept.append((stored[hit.key], hit))
            if len(kept) == wanted:
                return kept
            others.append(chunk)
            texts.add(chunk.text)
        first += size
        times *= 2
    return kept


def _is_shown(chunk: Chunk, others: Sequence[Chunk]) -> bool:
    """Return whether one of the others, of the same document, shows most of a chunk."""
    return any(
        2 * (min(chunk.end, other.end) - max(chunk.start, other.start)) > chunk.end - chunk.start for other in others
    )


def _result(stored: StoredChunk, hit: Hit) -> SearchResult:
    return SearchResult(
        content=stored.chunk.text,
        path=stored.path,
        start_line=stored.chunk.start_line,
        end_line=stored.chunk.end_line,
        heading=stored.chunk.heading,
        score=hit.score,
        source=stored.source,
        created_at=stored.created_at,
        chunk_id=stored.chunk.chunk_id,
        chat_id=stored.chat_id,
        explain=hit.contributions,
        context=stored.chunk.context,
    )

"""The search flow: a question in, chunks out, each with where it stands and why it ranked.

embed once if any retriever needs it → one snapshot → each retriever over-fetches, filtered inside → fusion →
hydrate → collapse what overlaps → the reranking stages, if any
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cached_property, lru_cache, partial
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
from klaw_core.searching.contracts import check_hits
from klaw_core.searching.judging import familiarity
from klaw_core.searching.retrievers import AbsentRetriever
from klaw_core.searching.scope import Scope, Target
from klaw_core.searching.spreading import Spread
from klaw_core.values.collections import MEMORY
from klaw_core.values.search import (
    WEAK_RELEVANCE,
    Filters,
    Hit,
    Query,
    Ranking,
    SearchResult,
    SearchResults,
    check_filters,
)

if TYPE_CHECKING:  # what only vectors or stages need is imported with them
    from klaw_core.embedding.query_vectors import QueryVectors
    from klaw_core.interfaces.components import Embedder, Fusion
    from klaw_core.interfaces.store import Snapshot, Store
    from klaw_core.searching.days import DayPreference
    from klaw_core.searching.reranking import Stage
    from klaw_core.searching.retrievers import ConfiguredRetriever
    from klaw_core.values.text import StoredChunk
    from klaw_core.values.vectors import SpaceRecord, Vector

Mode = Literal["hybrid", "fts", "vector"]
#: What to do with chunks that repeat a better one: leave them out, or return them as well.
Duplicates = Literal["collapse", "keep"]

# A question longer than this says nothing a shorter one would not; the embedder would pool it to mush.
MAX_QUERY_CHARACTERS = 10_000
# The most hits a retriever is asked for; also vec0's own limit.
_DEEPEST = 4096
_UNIT_TOLERANCE = 1e-3
_NOTHING_EMBEDDED = "searched without vectors: nothing is embedded yet: run `klaw embed`"
_MODES, _DUPLICATES = get_args(Mode), get_args(Duplicates)
# Without one of these words, or a digit, a question names no day. Most have none, which is found faster without cutting
# the question into words.
_DAY_WORDS = ("today", "yesterday", "ago", "last", "past", "this")
_DIGIT = re.compile(r"\d")
_MAY_NAME_A_DAY = re.compile(r"\d|\b(?:today|yesterday|ago|last|past|this)\b", re.IGNORECASE)


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
    def _known_familiarity(self) -> Callable[[str], float]:
        """How well the model knows the script of a question: kept for as many as their vectors are."""
        from klaw_core.embedding.query_vectors import MOST_KEPT

        return lru_cache(MOST_KEPT)(lambda text: familiarity(text, self.get_embedder()))

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
        collections: Sequence[str] = (MEMORY,),
        min_score: float | None = None,
        min_relevance: float | None = None,
        per_document: int | None = None,
        vector: Vector | None = None,
        duplicates: Duplicates = "collapse",
    ) -> SearchResults:
        """Return at most ``limit`` chunks of these collections, best first.

        A retriever that cannot answer is left out and named in the notices; the others' answer stands. Raise
        QueryError if the query is empty or too long, EmbeddingError, RetrievalError or VectorSpaceError if no
        retriever could answer.
        """
        _check(text, limit, mode, duplicates, per_document)
        check_filters(filters)
        search = partial(
            self._search,
            text,
            limit=limit,
            mode=mode,
            filters=filters,
            collections=collections,
            min_score=min_score,
            min_relevance=min_relevance,
            per_document=per_document,
            vector=vector,
            collapse=duplicates == "collapse",
        )
        popped = {name: self._spaces.pop((os.getpid(), name), None) for name in collections}
        known = {name: record for name, record in popped.items() if record is not None}
        if known:
            with suppress(_OutdatedError):
                return search(known=known)
        return search(known={})

    def nearest(self, question: str, texts: Sequence[str]) -> int | None:
        """Return the place of the text that is nearest to a question, None where only a server could tell, or nobody.

        The question's vector is that of its last search.
        """
        records = [record for (process, _), record in self._spaces.items() if process == os.getpid()]
        if not records or not texts:
            return None
        from klaw_core.embedding.abilities import is_remote

        with suppress(Exception, SystemExit):  # a plugin may raise anything; nothing depends on this answer
            embedder = self.get_embedder()
            if not is_remote(embedder):
                vector = self._query_vectors.embed(question, embedder, records[0], "")
                return int((embedder.embed_documents(texts) @ vector).argmax())
        return None

    def _search(
        self,
        text: str,
        *,
        limit: int,
        mode: Mode,
        filters: Filters,
        collections: Sequence[str],
        min_score: float | None,
        min_relevance: float | None,
        per_document: int | None,
        vector: Vector | None,
        collapse: bool,
        known: Mapping[str, SpaceRecord],
    ) -> SearchResults:
        """Search as :meth:`search` does. Raise _OutdatedError if a collection has left the space in ``known``."""
        notices: list[str] = []
        plans = []
        for name in collections:
            retrievers = self._usable(mode, notices)
            question = text if vector is None else vector
            embedded, space = self._embed(question, retrievers, name, notices, known)
            plans.append((name, retrievers, embedded, space))
        familiar = 1.0 if vector is not None else self._familiarity(text, [embedded for _, _, embedded, _ in plans])
        with self.store.read() as snapshot:
            targets = []
            for name, retrievers, embedded, space in plans:
                if space is not None and not self._is_in(snapshot, name, space):
                    if name in known:
                        raise _OutdatedError
                    _drop_moved(name, retrievers, notices)
                within = snapshot.select(name, filters) if filters else None
                targets.append(Target(Query(text, name, embedded, within), retrievers, familiar))
            _overlook_empty(snapshot, [name for name, _, _, space in plans if space is None], notices)
            scope = Scope(snapshot, targets, collapse)
            preference = _preferred_days(text)
            deep = bool(self.stages) or preference is not None
            spread = self._find(scope, limit, notices, Spread(None, None) if deep else Spread(limit, per_document))
            if preference is not None:
                from klaw_core.searching.days import prefer_days

                spread = _spread(scope, prefer_days(preference, spread.taken), Spread(None, None))
            if scope.unreadable:
                from klaw_core.values.findings import FIX  # seldom needed

                notices.append(f"{len(scope.unreadable):,} damaged chunks were left out: run `{FIX}`")
            hints: list[str] = []
            if not spread.count:
                self._explain_nothing(scope, filters, hints)
            _suggest(scope, spread, hints)
        found: Sequence[tuple[StoredChunk, Hit]] = spread.taken
        if self.stages and found:
            from klaw_core.searching.reranking import rerank

            found, failures = rerank(self.stages, self.store, scope.target_of(found[0][0].key).query, found, limit)
            notices.extend(failures)
        if deep:
            spread = _spread(scope, found, Spread(limit, per_document))
        also = spread.also
        results = (scope.result(stored, hit, also.get(hit.key, ())) for stored, hit in spread.taken)
        good = tuple(result for result in results if _is_good(result, min_score, min_relevance))
        return SearchResults(good, tuple(dict.fromkeys(notices + hints)), tuple(hints))

    def _explain_nothing(self, scope: Scope, filters: Filters, hints: list[str]) -> None:
        """Say why nothing was found: nothing is indexed, or no chunk passes a filter."""
        names = [target.query.collection for target in scope.targets]
        if all(map(scope.snapshot.is_empty, names)):
            hints.append("nothing is indexed yet: klaw index DIR")
            return
        selections = [target.query.within for target in scope.targets]
        if all(within is not None and within.is_empty for within in selections):
            from klaw_core.searching.why_nothing import unmatched

            hints.extend(unmatched(scope.snapshot, names, filters))

    def _usable(self, mode: Mode, notices: list[str]) -> list[ConfiguredRetriever]:
        wanted = [
            configured
            for configured in self.retrievers
            if mode == "hybrid"
            or configured.retriever.needs_vectors == (mode == "vector")
            or isinstance(configured.retriever, AbsentRetriever)
        ]
        if not wanted:
            kind = "uses vectors" if mode == "vector" else "searches words"
            raise QueryError(f"mode {mode}: no configured retriever {kind}", hint="see [[memory.retrieval]]")
        notices.extend(configured.complaint for configured in wanted if configured.problem)
        usable = [configured for configured in wanted if not configured.problem]
        if not usable:
            raise RetrievalError("; ".join(notices))
        return usable

    def _embed(
        self,
        question: str | Vector,
        retrievers: list[ConfiguredRetriever],
        collection: str,
        notices: list[str],
        spaces: Mapping[str, SpaceRecord],
    ) -> tuple[Vector | None, SpaceRecord | None]:
        """Embed the question if a retriever needs it, and say in which space; on failure leave those retrievers out.

        A question that is a vector already is only checked. ``spaces`` are those of the last search, with which a
        question that follows another needs no snapshot before its own.
        """
        needing = [configured for configured in retrievers if configured.retriever.needs_vectors]
        if not needing:
            return None, None
        record = known = spaces.get(collection)
        if record is None:
            with self.store.read() as snapshot:
                record = snapshot.space(collection)
        if record is None:  # nothing was indexed with vectors yet: no reason to load a model
            _leave_out(needing, retrievers)
            notices.append(_NOTHING_EMBEDDED)
            return None, None
        if not isinstance(question, str):
            return _checked_vector(question, record), record
        try:
            return self._query_vectors.embed(question, self.get_embedder(), record, collection), record
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

    def _familiarity(self, text: str, embedded: Sequence[Vector | None]) -> float:
        """Return how well the model knows the script of a question that it embedded."""
        if all(vector is None for vector in embedded):
            return 1.0
        try:
            return self._known_familiarity(text)
        except Exception:  # noqa: BLE001  # a plugin may raise anything; its vectors are good all the same
            return 1.0

    def _is_in(self, snapshot: Snapshot[Any], collection: str, known: SpaceRecord) -> bool:
        """Return whether the collection is in the known space, of the same weights; remember it for the next search."""
        record = snapshot.space(collection)
        if record is not known:
            from klaw_core.embedding.query_vectors import record_identity

            if record is None or record_identity(record) != record_identity(known):
                return False
        self._spaces[os.getpid(), collection] = record
        return True

    def _find(self, scope: Scope, limit: int, notices: list[str], spread: Spread) -> Spread:
        """Ask and fuse; where copies of one text leave too few results, ask again for more.

        ``spread`` is empty. Unless it wants all, ``limit`` are all that anybody will look at: no others are fetched.
        """
        depth = _depth(self.fusion, limit)
        wanted, most = spread.wanted, spread.per_document
        while True:
            rankings = scope.ask(depth, notices)
            spread = self._first(scope, rankings, depth * len(rankings), Spread(wanted, most))
            exhausted = all(len(ranking.hits) < depth for ranking in rankings)
            if spread.count >= limit or exhausted or depth >= _DEEPEST:
                return spread
            depth = min(4 * depth, _DEEPEST)

    def _first(self, scope: Scope, rankings: Sequence[Ranking], most: int, spread: Spread) -> Spread:
        """Return the first of at most ``most`` hits, as many as ``spread`` wants (None: all).

        They are looked for among the first twice as many: a smaller limit cuts off the end of what a fusion returns.
        """
        wanted = spread.wanted
        if wanted is not None and 2 * wanted < sum(len(ranking.hits) for ranking in rankings):
            first = Spread(wanted, spread.per_document)
            scope.hydrate(_fuse(self.fusion, rankings, 2 * wanted), first)
            if first.is_full:
                return first
        if rankings:
            scope.hydrate(_fuse(self.fusion, rankings, most), spread)
        spread.fill()
        return spread


def _spread(scope: Scope, found: Sequence[tuple[StoredChunk, Hit]], spread: Spread) -> Spread:
    """Return ``spread`` with what was found and put into another order."""
    for stored, hit in found:
        spread.add(scope.collection_of(hit.key), stored, hit)
    spread.fill()
    return spread


def _suggest(scope: Scope, spread: Spread, hints: list[str]) -> None:
    """Say what was probably meant, where nothing or nothing good was found."""
    known = (scope.relevance(hit.key) for _, hit in spread.taken)
    if all(relevance is not None and relevance < WEAK_RELEVANCE for relevance in known):
        from klaw_core.searching.why_nothing import suggestions

        hints.extend(suggestions(scope))


def _is_good(result: SearchResult, min_score: float | None, min_relevance: float | None) -> bool:
    """Return whether a result is as good as was asked; one whose relevance nobody can say is."""
    if min_score is not None and result.score < min_score:
        return False
    return min_relevance is None or result.relevance is None or result.relevance >= min_relevance


def _preferred_days(text: str) -> DayPreference | None:
    """Return the day that a question asks about. Most name none, and need no more than a look at their words."""
    folded = text.casefold()
    if not (any(map(folded.__contains__, _DAY_WORDS)) or _DIGIT.search(text)) or not _MAY_NAME_A_DAY.search(text):
        return None
    from klaw_core.searching.days import preferred_days

    return preferred_days(text, date.today())  # noqa: DTZ011  # a person's yesterday is that of the clock on the wall


def _checked_vector(vector: Vector, record: SpaceRecord) -> Vector:
    """Return a caller's vector. Raise QueryError unless it is float32 of unit length in the recorded space."""
    import numpy as np

    given = np.asarray(vector, dtype=np.float32)
    wanted = (record.space.dimension,)
    if given.shape != wanted or not abs(float(np.linalg.norm(given)) - 1.0) <= _UNIT_TOLERANCE:
        raise QueryError(f"the vector must be of unit length and of shape {wanted}, got shape {given.shape}")
    return given


def _overlook_empty(snapshot: Snapshot[Any], unembedded: Sequence[str], notices: list[str]) -> None:
    """Do not say that nothing is embedded where there is nothing to embed."""
    if _NOTHING_EMBEDDED in notices and all(map(snapshot.is_empty, unembedded)):
        notices[:] = [notice for notice in notices if notice != _NOTHING_EMBEDDED]


def _drop_moved(collection: str, retrievers: list[ConfiguredRetriever], notices: list[str]) -> None:
    """Leave out the retrievers that need vectors, since after the question was embedded the index has moved."""
    _leave_out([configured for configured in retrievers if configured.retriever.needs_vectors], retrievers)
    problem = VectorSpaceError(f"the collection {collection!r} was rebuilt during the search", hint="search again")
    if not retrievers:
        raise problem
    notices.append(f"searched without vectors: {problem}")


def _leave_out(these: Sequence[ConfiguredRetriever], retrievers: list[ConfiguredRetriever]) -> None:
    for configured in these:
        retrievers.remove(configured)


def _check(text: str, limit: int, mode: str, duplicates: str, per_document: int | None) -> None:
    if per_document is not None and per_document < 1:
        raise QueryError(f"per_document must be at least 1, got {per_document}", hint="None means no limit")
    if duplicates not in _DUPLICATES:
        raise QueryError(f"duplicates={duplicates!r}", hint=f"one of {', '.join(_DUPLICATES)}")
    if mode not in _MODES:
        raise QueryError(f"unknown mode {mode!r}", hint=f"one of {', '.join(_MODES)}")
    if limit < 1:
        raise QueryError(f"the limit must be at least 1, got {limit}")
    if not text.strip():
        raise QueryError("the query is empty", hint='give a query, e.g. klaw search "what did we decide about auth"')
    if len(text) > MAX_QUERY_CHARACTERS:
        raise QueryError(f"the query has {len(text):,} characters; the limit is {MAX_QUERY_CHARACTERS:,}")


def _depth(fusion: Fusion, limit: int) -> int:
    """Return how many hits each retriever is asked for. Raise PluginError if the fusion cannot say."""
    who = f"the fusion {type(fusion).__name__}"
    with isolated(who):
        depth: Any = fusion.depth(limit)
    if not isinstance(depth, int) or depth < 1:
        raise PluginContractError(f"{who} asked for {depth!r:.80} hits of each retriever")
    return min(int(depth), _DEEPEST)


def _fuse(fusion: Fusion, rankings: Sequence[Ranking], limit: int) -> Sequence[Hit]:
    """Return one ranking of several. Raise PluginError if the fusion raises or breaks its Protocol."""
    who = f"the fusion {type(fusion).__name__}"
    with isolated(who):
        fused = tuple(fusion.fuse(rankings, limit))
        check_hits(fused, limit, None, who)
    return fused

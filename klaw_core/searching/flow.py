"""The steps of a search, from a question to ranked chunks with their locations and explanations.

Embed the question, if a retriever needs its vector. Open one snapshot. Ask each retriever for more hits than the limit;
retrievers apply the filters themselves. Fuse the rankings, read the chunks, leave out overlapping ones, and apply the
reranking stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from klaw_core.errors import QueryError, RetrievalError, VectorSpaceError
from klaw_core.searching.collecting import ResultCollector
from klaw_core.searching.contracts import MAX_DEPTH, fuse, fusion_depth
from klaw_core.searching.question_embedder import NOTHING_EMBEDDED, QuestionEmbedder, SpaceChangedError, leave_out
from klaw_core.searching.retrievers import AbsentRetriever
from klaw_core.searching.scope import Scope, Target
from klaw_core.values.search import (
    NO_GOOD_MATCH,
    WEAK_RELEVANCE,
    Filters,
    Hit,
    Query,
    Ranking,
    SearchRequest,
    SearchResults,
)
from klaw_redaction import Redactor

if TYPE_CHECKING:
    from klaw_core.interfaces.components import Embedder, Fusion
    from klaw_core.interfaces.store import Snapshot, Store
    from klaw_core.searching.reranking import Stage
    from klaw_core.searching.retrievers import ConfiguredRetriever
    from klaw_core.values.candidates import Preference
    from klaw_core.values.search import Mode, SearchResult
    from klaw_core.values.text import StoredChunk
    from klaw_core.values.vectors import SpaceRecord, Vector

#: The hint for a search in empty collections.
NOTHING_INDEXED = "nothing is indexed yet: klaw index DIR"


@frozen(eq=False, repr=False)
class Searcher:
    """Searches the collections of one store. ``get_embedder`` is called only if a retriever needs a vector.

    Embedders and rerankers, which may be on a server, get questions without secrets; words are searched as given.
    """

    store: Store[Any]
    get_embedder: Callable[[], Embedder]
    retrievers: Sequence[ConfiguredRetriever]
    fusion: Fusion
    stages: Sequence[Stage] = ()
    redactor: Redactor = field(factory=Redactor)
    get_preferences: Callable[[str], Sequence[tuple[str, Preference]]] = lambda _question: ()

    @cached_property
    def _questions(self) -> QuestionEmbedder:
        return QuestionEmbedder(self.store, self.get_embedder, self.redactor)

    def search(self, request: SearchRequest) -> SearchResults:
        """Return the chunks that answer a request, which names its collections, best first.

        If a retriever fails, a notice names it and the other retrievers answer. Raise QueryError if the query is empty
        or too long, and EmbeddingError, RetrievalError or VectorSpaceError if no retriever can answer.
        """
        request.check()
        if last_spaces := self._questions.take_last_spaces(request.collections or ()):
            with suppress(SpaceChangedError):
                return self._search(request, last_spaces)
        return self._search(request, {})

    def nearest(self, question: str, texts: Sequence[str]) -> int | None:
        """Return the index of the text that is nearest to a question of the last search.

        Return None if the embedder is remote or fails, or if the last search used no vector.
        """
        return self._questions.nearest(question, list(map(self.redactor.text, texts)))

    def _search(self, request: SearchRequest, last_spaces: Mapping[str, SpaceRecord]) -> SearchResults:
        """Search as :meth:`search` does. Raise SpaceChangedError if a space differs from ``last_spaces``."""
        notices: list[str] = []
        preferences = self.get_preferences(request.text)
        plans = []
        for name in request.collections or ():
            retrievers = self._usable_retrievers(request.mode, notices)
            question = request.text if request.vector is None else request.vector
            embedded, space = self._questions.embed(question, retrievers, name, notices, last_spaces)
            plans.append((name, retrievers, embedded, space))
        vectors = [embedded for _, _, embedded, _ in plans]
        familiar = 1.0 if request.vector is not None else self._questions.familiarity(request.text, vectors)
        with self.store.read() as snapshot:
            targets = []
            for name, retrievers, embedded, space in plans:
                if space is not None and not self._questions.is_in(snapshot, name, space):
                    if name in last_spaces:
                        raise SpaceChangedError
                    _leave_out_vectors(name, retrievers, notices)
                within = snapshot.select(name, request.filters) if request.filters else None
                unrelated = _similarity_to_nothing(embedded, space)
                targets.append(Target(Query(request.text, name, embedded, within, unrelated), retrievers, familiar))
            _remove_needless_notice(snapshot, [name for name, _, _, space in plans if space is None], notices)
            scope = Scope(snapshot, targets, request.duplicates == "collapse")
            reorders = bool(self.stages or preferences)
            final = request.limit, request.per_document  # they apply to the final order
            limits = (None, None) if reorders else final
            collector = self._find(scope, request.limit, notices, *limits)
            for name, preference in preferences:
                from klaw_core.searching.preferring import prefer

                preferred = prefer(name, preference, collector.taken, notices)
                collector = _collect(scope, preferred, ResultCollector(None, None))
            if scope.unreadable:
                from klaw_core.values.findings import FIX

                notices.append(f"{len(scope.unreadable):,} damaged chunks were left out: run `{FIX}`")
            hints: list[str] = []
            if not collector.count:
                self._explain_nothing(scope, request.filters, hints)
            _suggest(scope, collector, hints)
        found: Sequence[tuple[StoredChunk, Hit]] = collector.taken
        if self.stages and found:
            from klaw_core.searching.reranking import rerank

            asked = scope.target_of(found[0][0].key).query
            asked = evolve(asked, text=self.redactor.text(asked.text))
            most = request.per_document
            found, failures = rerank(self.stages, self.store, asked, found, request.limit, per_document=most)
            notices.extend(failures)
        if reorders:
            collector = _collect(scope, found, ResultCollector(*final))
        also = collector.left_out
        ranked = [scope.result(stored, hit, also.get(hit.key, ())) for stored, hit in collector.taken]
        accepted = SearchResults(tuple(filter(request.accepts, ranked)))
        hints[:0] = _judgement(ranked, accepted, request.min_relevance)
        notices, hints = (list(map(self.redactor.text, texts)) for texts in (notices, hints))
        return SearchResults(accepted.results, tuple(dict.fromkeys(notices + hints)), tuple(hints))

    def _explain_nothing(self, scope: Scope, filters: Filters, hints: list[str]) -> None:
        """Add the reason for an empty result: nothing is indexed, or no chunk passes the filters."""
        names = [target.query.collection for target in scope.targets]
        if all(map(scope.snapshot.is_empty, names)):
            hints.append(NOTHING_INDEXED)
            return
        selections = [target.query.within for target in scope.targets]
        if all(within is not None and within.is_empty for within in selections):
            from klaw_core.searching.why_nothing import unmatched

            hints.extend(unmatched(scope.snapshot, names, filters))

    def _usable_retrievers(self, mode: Mode, notices: list[str]) -> list[ConfiguredRetriever]:
        """Return the retrievers for a mode that work. Raise QueryError or RetrievalError if there are none."""
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

    def _find(
        self, scope: Scope, limit: int, notices: list[str], wanted: int | None, per_document: int | None
    ) -> ResultCollector:
        """Ask the retrievers and fuse their rankings; ask again for more hits if copies leave fewer than ``limit``.

        ``wanted`` and ``per_document`` are those of :class:`ResultCollector`. No chunks are read beyond ``wanted``.
        """
        depth = fusion_depth(self.fusion, limit)
        while True:
            rankings = scope.ask(depth, notices)
            collector = self._fused(scope, rankings, depth * len(rankings), ResultCollector(wanted, per_document))
            exhausted = all(len(ranking.hits) < depth for ranking in rankings)
            if collector.count >= limit or exhausted or depth >= MAX_DEPTH:
                return collector
            depth = min(4 * depth, MAX_DEPTH)

    def _fused(
        self, scope: Scope, rankings: Sequence[Ranking], max_hits: int, collector: ResultCollector
    ) -> ResultCollector:
        """Fuse rankings into at most ``max_hits`` hits, and return a collector with as many as ``collector`` wants.

        Usually the first ``2 * wanted`` hits are enough. They are fused first, which is faster; a fusion with a smaller
        limit returns the same first hits.
        """
        wanted = collector.wanted
        if wanted is not None and 2 * wanted < sum(len(ranking.hits) for ranking in rankings):
            first = ResultCollector(wanted, collector.per_document)
            scope.hydrate(fuse(self.fusion, rankings, 2 * wanted), first)
            if first.is_full:
                return first
        if rankings:
            scope.hydrate(fuse(self.fusion, rankings, max_hits), collector)
        collector.fill()
        return collector


def _collect(scope: Scope, found: Sequence[tuple[StoredChunk, Hit]], collector: ResultCollector) -> ResultCollector:
    """Add chunks that were found, in their new order, to an empty collector, and return it."""
    for stored, hit in found:
        collector.add(scope.collection_of(hit.key), stored, hit)
    collector.fill()
    return collector


def _suggest(scope: Scope, collector: ResultCollector, hints: list[str]) -> None:
    """Add corrections of the question if all results are weak or there are none."""
    known = (scope.relevance(hit.key) for _, hit in collector.taken)
    if all(relevance is not None and relevance < WEAK_RELEVANCE for relevance in known):
        from klaw_core.searching.why_nothing import suggestions

        hints.extend(suggestions(scope))


def _judgement(ranked: Sequence[SearchResult], accepted: SearchResults, least: float | None) -> Sequence[str]:
    """Return the hint that no result answers the question, or that none is as relevant as asked for; usually none."""
    if accepted.nothing_fits:
        return (NO_GOOD_MATCH,)
    if accepted or not ranked or least is None:
        return ()
    best = max((result.relevance for result in ranked if result.relevance is not None), default=0.0)
    return (f"no result has a relevance of {least:g} or more; the best has {best:.2f}",)


def _similarity_to_nothing(vector: Vector | None, space: SpaceRecord | None) -> float | None:
    """Return the cosine of a question and the probe sentence, which answers none."""
    return None if vector is None or space is None else float(space.probe @ vector)


def _remove_needless_notice(snapshot: Snapshot[Any], unembedded: Sequence[str], notices: list[str]) -> None:
    """Remove the notice that nothing is embedded if there is nothing to embed."""
    if NOTHING_EMBEDDED in notices and all(map(snapshot.is_empty, unembedded)):
        notices[:] = [notice for notice in notices if notice != NOTHING_EMBEDDED]


def _leave_out_vectors(collection: str, retrievers: list[ConfiguredRetriever], notices: list[str]) -> None:
    """Remove the retrievers that need vectors, because the collection got another space during the search."""
    leave_out([configured for configured in retrievers if configured.retriever.needs_vectors], retrievers)
    problem = VectorSpaceError(f"the collection {collection!r} was rebuilt during the search", hint="search again")
    if not retrievers:
        raise problem
    notices.append(f"searched without vectors: {problem}")

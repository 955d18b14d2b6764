"""The steps of a search, from a question to ranked chunks with their locations and explanations.

Embed the question, if a retriever needs its vector. Open one snapshot. Ask each retriever for more hits than the limit;
retrievers apply the filters themselves. Fuse the rankings, read the chunks, leave out overlapping ones, and apply the
reranking stages.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import evolve, field, frozen

from klaw_core.errors import KlawError, QueryError, RetrievalError, VectorSpaceError, quoted
from klaw_core.searching.collecting import ResultCollector
from klaw_core.searching.contracts import MAX_DEPTH, fuse, fusion_depth
from klaw_core.searching.question_embedder import NOTHING_EMBEDDED, QuestionEmbedder, is_in, leave_out
from klaw_core.searching.retrievers import AbsentRetriever
from klaw_core.searching.scope import Scope, Target
from klaw_core.values.collections import MEMORY
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
    from klaw_core.searching.retrievers import ConfiguredRetriever
    from klaw_core.searching.stages import Stage
    from klaw_core.values.candidates import Preference
    from klaw_core.values.search import Mode, SearchResult
    from klaw_core.values.text import StoredChunk
    from klaw_core.values.vectors import SpaceRecord, Vector

_Preferences: TypeAlias = "Sequence[tuple[str, Preference]]"
# A collection, the retrievers that search it, and the vector of the question and its space, if a retriever needs it.
_Plan: TypeAlias = "tuple[str, list[ConfiguredRetriever], Vector | None, SpaceRecord | None]"

_IF_CORRECTED = 0.8  # the share of the relevance that is left where words of the question were replaced
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
    get_preferences: Callable[[str], _Preferences] = lambda _question: ()

    @cached_property
    def _questions(self) -> QuestionEmbedder:
        return QuestionEmbedder(self.get_embedder)

    def spaces(self, request: SearchRequest, separate: Container[str] = ()) -> Mapping[str, SpaceRecord | None]:
        """Return the collections that a request is about, and their vector spaces.

        If it names none, these are all that have content, but those that are ``separate``.
        """
        with self.store.read() as snapshot:
            names = request.collections
            if names is None:
                held = (name for name in snapshot.collections() if name not in separate)
                names = (MEMORY, *(name for name in held if name != MEMORY and not snapshot.is_empty(name)))
            return {name: None if request.mode == "fts" else snapshot.space(name) for name in names}

    def search(self, request: SearchRequest, spaces: Mapping[str, SpaceRecord | None]) -> SearchResults:
        """Return the chunks of some collections that answer a request, best first. For ``spaces`` see :meth:`spaces`.

        If no result fits, but one does once misspelled words are corrected, those of the corrected question are
        returned, and a notice says so. If a retriever fails, a notice names it and the other retrievers answer. Raise
        EmbeddingError, RetrievalError or VectorSpaceError if no retriever can answer.
        """
        preferences = self.get_preferences(request.text) if request.text.strip() else ()
        request = _narrowed(request, preferences)
        if not request.text.strip():
            return self._newest(request, spaces, preferences)
        results, corrected = self._answer(request, spaces, preferences)
        if request.vector is not None or (results and not results.nothing_fits):
            return results
        said = []
        for text in self._questions.mistaken(request.text, corrected):
            asked, meant = (quoted(self.redactor.text(each)) for each in (request.text, text))
            said.append(f"did you mean {meant}")
            with suppress(KlawError):  # what was found for the question itself is at hand
                others, _ = self._answer(evolve(request, text=text), spaces, preferences)
                doubted = [evolve(each, relevance=each.relevance and each.relevance * _IF_CORRECTED) for each in others]
                if not others.nothing_fits and (kept := tuple(filter(request.accepts, doubted))):
                    shown = f"nothing fits {asked}; showing results for {meant}"
                    return SearchResults(kept, (shown, *others.notices), (shown, *others.hints))
        return evolve(results, notices=(*results.notices, *said), hints=(*results.hints, *said))

    def _newest(self, request: SearchRequest, names: Iterable[str], preferences: _Preferences) -> SearchResults:
        from klaw_core.searching.newest import newest

        with self.store.read() as snapshot:
            scope = _scope(snapshot, request, [(name, [], None, None) for name in names], 1.0, [])
            results = newest(scope, request.limit, [each.holds for _, each in preferences if each.requires])
            hints = () if results else tuple(map(self.redactor.text, _why_nothing(scope, request.filters)))
        said = (self.redactor.text(each.notice) for _, each in preferences if each.notice)
        return SearchResults(results, (*said, *hints), hints)

    def _answer(
        self, request: SearchRequest, spaces: Mapping[str, SpaceRecord | None], preferences: _Preferences
    ) -> tuple[SearchResults, Sequence[str]]:
        """Return the results of a request as it is, and corrections of its question if none fits."""
        notices = [preference.notice for _, preference in preferences if preference.notice]
        # Embedders, which may be on a server, get the question without secrets.
        asked = self.redactor.text(request.text) if any(record is not None for record in spaces.values()) else ""
        question = asked if request.vector is None else request.vector
        plans: list[_Plan] = []
        for name, space in spaces.items():
            retrievers = self._usable_retrievers(request.mode, notices)
            plans.append((name, retrievers, *self._questions.embed(question, retrievers, name, space, notices)))
        vectors = [vector for _, _, vector, _ in plans]
        familiar = 1.0 if request.vector is not None else self._questions.familiarity(asked, vectors)
        with self.store.read() as snapshot:
            scope = _scope(snapshot, request, plans, familiar, notices)
            collector, stages = self._collected(scope, request, preferences, notices)
            if scope.unreadable:
                from klaw_core.values.findings import FIX

                notices.append(f"damaged chunks were left out ({len(scope.unreadable):,}): run `{FIX}`")
            shown = self.redactor.text(request.text) if scope.absent else ""
            hints = [f"nothing contains {quoted(name)}" for name in scope.absent or () if name in shown]
            hints += [] if collector.count else _why_nothing(scope, request.filters)
            found: Sequence[tuple[StoredChunk, Hit]] = collector.taken
            corrected = list(_suggestions(scope, found))
        if stages:
            found, failures = self._rerank(stages, scope, found, request)
            notices.extend(failures)
        if stages or preferences:
            collector = _collect(scope, found, ResultCollector(request.limit, request.per_document))
            found = collector.taken
        also = collector.left_out
        ranked = [scope.result(stored, hit, also.get(hit.key, ())) for stored, hit in found]
        accepted = SearchResults(tuple(filter(request.accepts, ranked)))
        hints[:0] = _judgement(ranked, accepted, request.min_relevance)
        notices, hints = (list(map(self.redactor.text, texts)) for texts in (notices, hints))
        return SearchResults(accepted.results, tuple(dict.fromkeys(notices + hints)), tuple(hints)), corrected

    def nearest(self, question: str, texts: Sequence[str]) -> int | None:
        """Return the index of the text that is nearest to a question of the last search.

        Return None if the embedder is remote or fails, or if the last search used no vector.
        """
        question, *texts = map(self.redactor.text, (question, *texts))
        return self._questions.nearest(question, texts)

    def _collected(
        self, scope: Scope, request: SearchRequest, preferences: _Preferences, notices: list[str]
    ) -> tuple[ResultCollector, Sequence[Stage]]:
        """Collect the results, and return the stages if one concerns any of them.

        If these or preferences change the order, all hits are collected, since any of them may come first.
        """
        final = request.limit, request.per_document
        limit = MAX_DEPTH if any(preference.requires for _, preference in preferences) else request.limit
        collector = self._find(scope, limit, notices, *((None, None) if preferences else final))
        stages = (
            self.stages if any(stage.concerns(stored) for stored, _ in collector.taken for stage in self.stages) else ()
        )
        if stages and not preferences:
            collector = self._find(scope, request.limit, notices, None, None)
        for name, preference in preferences:
            from klaw_core.searching.preferring import prefer

            preferred = prefer(name, preference, collector.taken, notices, scope.judged)
            collector = _collect(scope, preferred, ResultCollector(None, None))
        return collector, stages

    def _rerank(
        self, stages: Sequence[Stage], scope: Scope, found: Sequence[tuple[StoredChunk, Hit]], request: SearchRequest
    ) -> tuple[Sequence[tuple[StoredChunk, Hit]], Sequence[str]]:
        from klaw_core.searching.reranking import rerank

        asked = scope.target_of(found[0][0].key).query
        asked = evolve(asked, text=self.redactor.text(asked.text))
        judged = [(stored, evolve(hit, relevance=scope.judged(hit))) for stored, hit in found]
        return rerank(stages, self.store, asked, judged, request.limit, per_document=request.per_document)

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
        if usable := [configured for configured in wanted if not configured.problem]:
            return usable
        raise RetrievalError("; ".join(notices))

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


def _scope(
    snapshot: Snapshot[Any], request: SearchRequest, plans: Sequence[_Plan], familiar: float, notices: list[str]
) -> Scope:
    """Return the scope of a search. Leave out the vectors of a collection that got another space meanwhile."""
    targets = []
    for name, retrievers, vector, space in plans:
        if space is not None and not is_in(snapshot, name, space):
            _leave_out_vectors(name, retrievers, notices)
        within = snapshot.select(name, request.filters) if request.filters else None
        # The cosine of the question and the probe sentence, which answers none.
        unrelated = None if vector is None or space is None else float(space.probe @ vector)
        targets.append(Target(Query(request.text, name, vector, within, unrelated), retrievers, familiar))
    unembedded = [name for name, _, _, space in plans if space is None]
    if NOTHING_EMBEDDED in notices and all(map(snapshot.is_empty, unembedded)):  # there is nothing to embed
        notices[:] = [notice for notice in notices if notice != NOTHING_EMBEDDED]
    return Scope(snapshot, targets, request.duplicates == "collapse")


def _narrowed(request: SearchRequest, preferences: _Preferences) -> SearchRequest:
    """Return a request with the conditions that extensions read in its question, without them in the question."""
    for _, preference in preferences:
        filters = evolve(request.filters, metadata=(*request.filters.metadata, *preference.conditions))
        text = request.text if preference.question is None else preference.question
        request = evolve(request, text=text, filters=filters)
    return request


def _why_nothing(scope: Scope, filters: Filters) -> Iterable[str]:
    """Return the reason for an empty result: nothing is indexed, or no chunk passes the filters."""
    names = [target.query.collection for target in scope.targets]
    if all(map(scope.snapshot.is_empty, names)):
        return (NOTHING_INDEXED,)
    if not all((within := target.query.within) is not None and within.is_empty for target in scope.targets):
        return ()
    from klaw_core.searching.why_nothing import unmatched

    return unmatched(scope.snapshot, names, filters)


def _collect(scope: Scope, found: Sequence[tuple[StoredChunk, Hit]], collector: ResultCollector) -> ResultCollector:
    """Add chunks that were found, in their new order, to an empty collector, and return it."""
    for stored, hit in found:
        collector.add(scope.collection_of(hit.key), stored, hit)
    collector.fill()
    return collector


def _suggestions(scope: Scope, found: Sequence[tuple[StoredChunk, Hit]]) -> Iterable[str]:
    """Return corrections of the question if all results are weak or there are none."""
    known = (scope.judged(hit) for _, hit in found)
    if not all(relevance is not None and relevance < WEAK_RELEVANCE for relevance in known):
        return ()
    from klaw_core.searching.why_nothing import suggestions

    return suggestions(scope)


def _judgement(ranked: Sequence[SearchResult], accepted: SearchResults, least: float | None) -> Sequence[str]:
    """Return the hint that no result answers the question, or that none is as relevant as asked for; usually none."""
    if accepted.nothing_fits:
        return (NO_GOOD_MATCH,)
    if accepted or not ranked or least is None:
        return ()
    best = max((result.relevance for result in ranked if result.relevance is not None), default=0.0)
    return (f"no result has a relevance of {least:g} or more; the best has {best:.2f}",)


def _leave_out_vectors(collection: str, retrievers: list[ConfiguredRetriever], notices: list[str]) -> None:
    """Remove the retrievers that need vectors, because the collection got another space during the search."""
    leave_out([configured for configured in retrievers if configured.retriever.needs_vectors], retrievers)
    problem = VectorSpaceError(f"the collection {collection!r} was rebuilt during the search", hint="search again")
    if not retrievers:
        raise problem
    notices.append(f"searched without vectors: {problem}")

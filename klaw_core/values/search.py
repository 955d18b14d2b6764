r"""A search: a :class:`Ranking` of :class:`Hit`\ s per retriever, fused, then hydrated as :class:`SearchResult`\ s."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Literal, Protocol, get_args, overload

from attrs import define, field, frozen

from klaw_core.errors import QueryError
from klaw_core.values.collections import MEMORY
from klaw_core.values.metadata import Condition, Metadata, has_surrogates
from klaw_core.values.vectors import Keys, Vector

Mode = Literal["hybrid", "fts", "vector"]
#: Whether to leave out chunks that repeat a better one, or to return them.
Duplicates = Literal["collapse", "keep"]

# Characters. The mean vector of a longer question would be too vague to find anything.
MAX_QUERY_CHARACTERS = 10_000

# The factor from similarity to relevance, so that vectors and words have the same scale (docs/decisions/0030).
_SIMILARITY_SCALE = 0.3
_MIN_RANGE = 1e-3
#: Results of a lower relevance are shown as weak matches.
WEAK_RELEVANCE = 0.15
#: The notice of a search of which all results are weak.
NO_GOOD_MATCH = "no good match: most likely none of these results answers the question"


@frozen
class Filters:
    """Restricts the chunks that can be found; applied inside each retriever, before the results are limited.

    ``path`` is a prefix (``notes/2024/``), ``chat_id`` the name of a chat (``telegram_123456``); ``since`` is inclusive
    and ``until`` exclusive, both aware. Every condition of ``metadata`` must hold.
    """

    source: str | None = None
    path: str | None = None
    chat_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    metadata: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is filtered. An empty path matches every document; an empty chat id matches none."""
        given = (self.source, self.chat_id, self.since, self.until)
        return bool(self.path) or bool(self.metadata) or any(value is not None for value in given)


def _names(collections: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if isinstance(collections, str):
        return (collections,)
    return None if collections is None else tuple(dict.fromkeys(collections))


@frozen
class SearchRequest:
    """What to search for, and how: the arguments of ``Memory.search``. Without text, ``filters`` list the newest.

    ``collections`` is one name or several; None means all but those that are separate.
    """

    text: str
    limit: int = 10
    mode: Mode = "hybrid"
    filters: Filters = Filters()
    collections: tuple[str, ...] | None = field(default=None, converter=_names)
    min_score: float | None = None
    min_relevance: float | None = None
    per_document: int | None = 3
    vector: Vector | None = field(default=None, eq=False, repr=False)
    duplicates: Duplicates = "collapse"

    def check(self) -> None:
        """Raise QueryError if this cannot be searched for."""
        if self.per_document is not None and self.per_document < 1:
            raise QueryError(f"per_document must be at least 1, got {self.per_document}", hint="None means no limit")
        for name, value, known in (("duplicates", self.duplicates, Duplicates), ("mode", self.mode, Mode)):
            if value not in get_args(known):
                raise QueryError(f"unknown {name} {value!r}", hint=f"one of {', '.join(get_args(known))}")
        if self.limit < 1:
            raise QueryError(f"the limit must be at least 1, got {self.limit}")
        if not self.text.strip() and (self.vector is not None or not self.filters):
            hint = 'give a query, e.g. klaw search "what did we decide about auth"'
            raise QueryError("the query is empty", hint=hint)
        if len(self.text) > MAX_QUERY_CHARACTERS:
            raise QueryError(f"the query has {len(self.text):,} characters; the limit is {MAX_QUERY_CHARACTERS:,}")
        if self.min_score is not None and math.isnan(self.min_score):
            raise QueryError("min_score is not a number", hint="None means no minimum")
        if self.min_relevance is not None and not 0 <= self.min_relevance <= 1:
            raise QueryError(f"min_relevance must be from 0 to 1, got {self.min_relevance}")
        check_filters(self.filters)

    def accepts(self, result: SearchResult) -> bool:
        """Return whether a result reaches both minimums; an unknown relevance does."""
        if self.min_score is not None and result.score < self.min_score:
            return False
        return self.min_relevance is None or result.relevance is None or result.relevance >= self.min_relevance


class ChunkSelection(Protocol):
    """The chunks that pass the filters of a search, as the store that made it represents them.

    A retriever that shares the store's resource may recognise the store's own class and use it in a join; others call
    :meth:`keys`.
    """

    def keys(self) -> Keys:
        """Return the selected keys, int64 of shape (n,), ascending."""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is selected."""

    def among(self, keys: Sequence[int], /) -> Sequence[int]:
        """Return the selected ones of these keys, in any order, without listing all selected keys."""


@frozen
class Query:
    """The input of a retriever: text, its vector if the retriever needs one, and the allowed keys.

    ``within`` selects the keys that may be returned; None means no restriction. ``unrelated`` is the cosine of the
    vector and that of a sentence about nothing in particular: in an index with too few vectors to estimate it, a
    greater cosine means that a text has something to do with the question. None if it is unknown.
    """

    text: str
    collection: str = MEMORY
    vector: Vector | None = field(default=None, eq=False, repr=False)
    within: ChunkSelection | None = field(default=None, eq=False, repr=False)
    unrelated: float | None = None

    def hits(self, found: Sequence[tuple[int, float]], typical: float | None = None) -> list[Hit]:
        """Return keys and cosines, best first, as hits, with the excess over unrelated texts as relevance.

        The cosine of these is 0.0 in some spaces and 0.75 in others: ``typical`` is an index's estimate of it, None
        if it has too few vectors.
        """
        if typical is None and self.unrelated is not None and found:
            # Not above the last cosine, or texts that are less similar than one sentence would all be equal.
            typical = min(self.unrelated, found[-1][1])
        if typical is None:
            return [Hit(key, cosine) for key, cosine in found]
        span = max(1.0 - typical, _MIN_RANGE)
        shares = ((key, cosine, (cosine - typical) / span) for key, cosine in found)
        return [
            Hit(key, cosine, (), _SIMILARITY_SCALE * (share if 0.0 < share < 1.0 else float(share > 0.0)))
            for key, cosine, share in shares
        ]


@frozen
class Contribution:
    """One component's part in a score: a retriever's, or a reranking stage's.

    ``rank`` counts from 1; ``raw`` is the component's own score.
    """

    component: str
    rank: int
    raw: float
    weight: float
    value: float


@frozen
class Hit:
    """A key and its score, higher is better. After fusion the contributions add up to the score.

    ``relevance`` is how likely the retriever considers the hit an answer, from 0 to 1 and comparable between questions
    and retrievers; None if unknown. ``unreached``: the other retrievers could not have found it, as words cannot find
    a text in another language.
    """

    key: int
    score: float
    contributions: tuple[Contribution, ...] = ()
    relevance: float | None = None
    unreached: bool = False


@frozen
class Ranking:
    """One retriever's hits, best first, with the weight that the configuration gives the retriever."""

    retriever: str
    hits: tuple[Hit, ...]
    weight: float = 1.0


@frozen
class SearchResult:
    """A found chunk, with its place and the reason for its rank.

    ``origin`` is the source of the text, which the text itself cannot set: the name of a workspace, ``saved``,
    ``conversations``, ``documents``; for a saved text, ``source`` is the label given by its writer.
    ``context`` is the text just before the chunk. ``similarity`` is the raw score of the retriever of vectors (for the
    default metric the cosine of question and chunk), None if that retriever did not return the chunk.
    ``relevance`` is how likely the chunk answers the question, from 0 to 1 and comparable between questions; None if no
    retriever provides it. ``score`` is comparable only within one search. ``also`` are the places of other found
    chunks of the same document, which were left out. ``trust`` is the class of its writer: ``owner``, ``agent`` or
    ``foreign``, which neither the text nor its metadata can set; nor can they set ``about``, what its directory is.
    """

    content: str
    path: str
    start_line: int
    end_line: int
    heading: tuple[str, ...]
    score: float
    source: str
    created_at: datetime
    chunk_id: str
    chat_id: str | None = None
    explain: tuple[Contribution, ...] = ()
    context: str = ""
    collection: str = MEMORY
    metadata: Metadata = field(factory=dict)
    similarity: float | None = None
    origin: str = ""
    relevance: float | None = None
    also: tuple[str, ...] = ()
    trust: str = "owner"
    about: str = ""

    @property
    def is_weak(self) -> bool:
        """Whether the relevance is so low that the result most likely does not answer the question."""
        return self.relevance is not None and self.relevance < WEAK_RELEVANCE


@frozen
class SearchResults(Sequence[SearchResult]):
    """Results, best first, and notices for the user (a retriever that failed, an empty index, no good match).

    ``hints`` are those of the notices that report no failure, but explain an empty or weak result.
    """

    results: tuple[SearchResult, ...] = ()
    notices: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    @property
    def nothing_fits(self) -> bool:
        """Whether there are results, but all are weak."""
        return bool(self.results) and all(result.is_weak for result in self.results)

    @overload
    def __getitem__(self, index: int) -> SearchResult: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[SearchResult, ...]: ...
    def __getitem__(self, index: int | slice) -> SearchResult | tuple[SearchResult, ...]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[SearchResult]:
        return iter(self.results)


# These events are here, apart from all others, because a search in a new process sends no other.
@define
class SearchEvent:
    """A search was answered. Listeners may add ``notices``, and say what the ``results`` are ``about``."""

    query: str
    collections: tuple[str, ...]
    results: SearchResults = field(repr=False)
    notices: list[str] = field(factory=list, eq=False)


@frozen
class CloseEvent:
    """The memory is about to close; the store can still be read and written."""


@frozen(eq=False)
class KeySelection:
    """A selection that lists its keys, for stores whose filters return keys."""

    _keys: Keys

    def keys(self) -> Keys:
        """Return the keys, ascending."""
        return self._keys

    @property
    def is_empty(self) -> bool:
        """Whether no key is selected."""
        return not self._keys.size

    def among(self, keys: Sequence[int], /) -> Sequence[int]:
        """Return the selected ones of these keys."""
        if self.is_empty:
            return ()
        places = self._keys.searchsorted(list(keys)).clip(max=self._keys.size - 1)
        return [key for key, held in zip(keys, self._keys[places].tolist(), strict=True) if key == held]


def check_filters(filters: Filters) -> None:
    """Raise QueryError if a filter contains text that no name can contain, or an interval that contains no time."""
    for name in ("since", "until"):
        moment: datetime | None = getattr(filters, name)
        if moment is not None and moment.tzinfo is None:
            raise QueryError(f"{name} has no time zone: {moment.isoformat()}", hint="datetime(..., tzinfo=UTC)")
    if filters.since is not None and filters.until is not None and filters.since >= filters.until:
        first, end = filters.since.isoformat(), filters.until.isoformat()
        raise QueryError(f"since is not before until, so nothing can match: {first}, {end}", hint="until is exclusive")
    for name in ("source", "path", "chat_id"):
        value: str | None = getattr(filters, name)
        if value is not None and has_surrogates(value):
            raise QueryError(f"the filter {name} is not text: {value!a}", hint="give it in UTF-8")
    for condition in filters.metadata:
        if not isinstance(condition, Condition):
            raise QueryError(
                "a metadata filter is not a Condition", hint="Filters(metadata=[parse_condition('status=open')])"
            )
        if any(isinstance(text, str) and has_surrogates(text) for text in (condition.key, *condition.values)):
            raise QueryError(f"the filter {condition.key!a} is not text: {condition.value!a}", hint="give it in UTF-8")

"""The search of a question in an index of words: from its text to hits, the same for every index.

An index implements :class:`Searcher`; this module plans the question with it, takes the first step of the plan that
finds anything, and adds the coverage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol, TypeVar

from attrs import frozen

from klaw_core import Hit, StoredChunk
from klaw_words.coverage import Holders, cover
from klaw_words.plan import Counts, make_plan, narrow
from klaw_words.properties import described
from klaw_words.query import MAX_TERMS, Term, compile_query
from klaw_words.treatment import index_text

if TYPE_CHECKING:
    from klaw_words.identifiers import Words

# What every identifier has: a digit, an underscore, or a capital letter after a small one.
_NAMING = re.compile(r"[0-9_]|[a-z][A-Z]", re.ASCII)
# Rows. In a smaller collection a word in half of the rows is not necessarily common.
_FEW = 20
# The minimum number of best rows for which pairs are added to the score, so that a smaller limit gives the same order.
_CANDIDATES = 100
_MAX_DEPTH = 2**31 - 1

#: What limits a search to some chunks, or None: their keys, or what an index can test.
Limit = TypeVar("Limit")
Limit_contra = TypeVar("Limit_contra", contravariant=True)


@frozen(repr=False)
class Weights:
    """BM25's column weights: of a word in the text, in a heading, and in the context of a chunk.

    Weights are compared by value, because cached scores depend on them.
    """

    text: float = 1.0
    heading: float = 1.0
    context: float = 1.0


@frozen(eq=False, repr=False)
class Preference:
    """Phrases that are searched for in the best chunks, and the weight of their BM25 score."""

    phrases: tuple[Term, ...]
    weight: float


class Searcher(Counts, Holders, Protocol[Limit_contra]):
    """One state of an index: it counts terms for the plan, then scores chunks."""

    def expect(self, terms: Sequence[Term], /) -> None:
        """Prepare for these terms, which later calls will use."""

    def best(
        self, terms: Sequence[Term], depth: int, within: Limit_contra, preferred: Preference | None = None
    ) -> dict[int, float]:
        """Return the scores of the best ``depth`` chunks with any of the terms, ties ordered by key.

        Chunks with a preferred phrase get a higher score.
        """


def search(searcher: Searcher[Limit], text: str, limit: int, within: Limit, *, pair_weight: float) -> tuple[Hit, ...]:
    """Return at most ``limit`` hits for a question, best first, ties by key; none for a text without words.

    ``pair_weight`` is the weight of adjacent words of the question that are also adjacent in the chunk.
    """
    terms = narrow(compiled(text), searcher)
    searcher.expect(terms)
    plan = make_plan(terms, searcher)
    depth = min(max(limit, _CANDIDATES), _MAX_DEPTH)
    preferred = Preference(plan.pairs, pair_weight)
    answers = (searcher.best(step, depth, within, preferred) for step in plan.steps)
    by_key = sorted(next(filter(None, answers), {}).items())
    scores = dict(sorted(by_key, key=itemgetter(1), reverse=True)[:limit])  # equal scores stay ordered by key
    covered = cover(plan, searcher, scores)
    return tuple([Hit(key, score, (), covered.get(key)) for key, score in scores.items()])


#: The terms of a question; cached, because the notices and each collection need the same.
compiled = lru_cache(maxsize=16)(compile_query)


def notices(text: str, /) -> tuple[str, ...]:
    """Return a notice if a question has more different words than a search uses."""
    if len(text) <= MAX_TERMS or len(terms := compiled(text)) <= MAX_TERMS:
        return ()
    return (f"the question has {len(terms):,} different words; searched for the {MAX_TERMS} most informative ones",)


def absent_identifiers(text: str, get_words: Callable[[], Words | None], /) -> Sequence[str]:
    """Return the identifiers of a question, as they are written, that no chunk contains.

    ``get_words`` returns the words of the collection, or None if it has none; it is called only if necessary.
    """
    if _NAMING.search(text) is None:
        return ()
    from klaw_words.identifiers import absent

    return absent(text, get_words)


def everyday_from(rows: int, /) -> int:
    """Return in how many rows a word must be to count as everyday: half of them, or never if there are few rows."""
    half = (rows + 1) // 2
    return half if rows >= _FEW else rows + 1


def columns(stored: StoredChunk, /) -> tuple[str, str, str]:
    """Return what is indexed of a chunk, normalised: the text, the heading and the context.

    The document's title is added to the heading, without the words that a heading repeats. The properties of a document
    with a title, which a person wrote, are added to the context; those of messages and facts are labels of a program.
    """
    chunk, context = stored.chunk, stored.chunk.context
    if chunk.title:
        context = " ".join(filter(None, (described(stored.metadata), context)))
    return index_text(chunk.text), _titled(chunk.title, chunk.heading), index_text(context)


@lru_cache(maxsize=1024)
def _titled(title: str, above: tuple[str, ...]) -> str:
    """Return a title and headings, normalised. The result is cached, because adjacent chunks share them."""
    heading = index_text(" ".join(above))
    if not title:
        return heading
    known = set(heading.casefold().split())
    own = (word for word in index_text(title).split() if word.casefold() not in known)
    return " ".join((*own, heading))

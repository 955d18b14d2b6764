"""The input and output of a reranking stage, and a preference."""

from __future__ import annotations

from collections.abc import Callable

from attrs import Factory, field, frozen

from klaw_core.values.metadata import Condition
from klaw_core.values.search import Hit
from klaw_core.values.text import StoredChunk
from klaw_core.values.vectors import Vector


@frozen
class Candidate:
    """A chunk that was found, and its scores after fusion and the stages so far.

    ``hit`` has the current score and its contributions, ``fused`` those of the retrievers only. ``vector`` is the
    chunk's from the embedding cache, for a reranker that ``needs_vectors``; None if it was never embedded.
    """

    stored: StoredChunk
    hit: Hit
    fused: Hit = field(default=Factory(lambda self: self.hit, takes_self=True))
    vector: Vector | None = field(default=None, eq=False, repr=False)

    @property
    def key(self) -> int:
        """The key of the stored chunk."""
        return self.stored.key


@frozen
class Preference:
    """A bonus for some of the chunks that were found: ``weight`` is its share of the best score.

    With ``requires`` the others are left out. ``question`` replaces the question, without its ``conditions`` on
    metadata; ``notice`` tells the user how it was read. What is preferred has at least this ``relevance``.
    """

    weight: float
    holds: Callable[[StoredChunk], bool]
    requires: bool = False
    question: str | None = None
    conditions: tuple[Condition, ...] = ()
    notice: str = ""
    relevance: float | None = None


@frozen
class RerankScore:
    """A stage's result for one candidate: its new score, which replaces the old one.

    ``raw`` is what the stage computed the score from (a model's logit, an age in days), for ``--explain``; by
    default the score itself. ``relevance`` replaces that of the candidate's hit, unless it is None.
    """

    key: int
    score: float
    raw: float | None = None
    relevance: float | None = None

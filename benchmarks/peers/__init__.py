"""What people use for hybrid search beside Klaw, each in the way that its own documentation shows.

All are given the same texts, the same vectors and the same questions, and answer with ten texts. What only finds
vectors (``ranks_words`` is False) does half of the work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from corpus import Embedded, Matrix, Vector

#: How many candidates each retriever gives, where the peer lets that be chosen.
DEPTH = 50

_K = 60  # reciprocal rank fusion's constant (Cormack, Clarke and Büttcher, SIGIR 2009)


class Peer(ABC):
    """One way to search, with everything that it keeps below ``place``."""

    summary: ClassVar[str]
    ranks_words: ClassVar[bool] = True

    def __init__(self, place: Path) -> None:
        self.place = place

    @abstractmethod
    def build(self, texts: Sequence[str], vectors: Matrix) -> None:
        """Store and index everything: vector i is text i's."""

    @abstractmethod
    def open(self, questions: Embedded) -> None:
        """Open what was built, in a new process. ``questions`` stand for a model, where one must be named."""

    @abstractmethod
    def search(self, question: str, vector: Vector, limit: int) -> Sequence[str]:
        """Return the best texts for a question."""

    @abstractmethod
    def nearest(self, question: str, vector: Vector, limit: int) -> Sequence[int]:
        """Return the numbers of the texts whose vectors are found nearest."""


#: Module and class of every peer, by name; imported only when it is asked for.
PEERS: Mapping[str, str] = {
    "klaw": "peers.klaw:Klaw",
    "klaw-exact": "peers.klaw:KlawExact",
    "naive": "peers.sqlite:Naive",
    "sqlite-vec": "peers.sqlite:SqliteVec",
    "numpy": "peers.arrays:Numpy",
    "tantivy+numpy": "peers.arrays:TantivyNumpy",
    "lancedb": "peers.lance:Lance",
    "lancedb-ivf": "peers.lance:LanceIvf",
    "chroma": "peers.chroma:Chroma",
    "txtai": "peers.txt:Txtai",
}


def peer_class(name: str) -> type[Peer]:
    """Import a peer. Raise ImportError if what it needs is not installed."""
    module, _, attribute = PEERS[name].partition(":")
    found: type[Peer] = getattr(import_module(module), attribute)
    return found


def fuse(rankings: Sequence[Sequence[int]], limit: int) -> list[int]:
    """Return what reciprocal rank fusion makes of rankings, best first."""
    scores: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, number in enumerate(ranking, start=1):
            scores[number] += 1 / (_K + rank)
    return sorted(scores, key=lambda number: -scores[number])[:limit]

"""Components of every kind that do ``act`` at ``point``, and are honest everywhere else.

``act``: ``raise`` an error of its own kind, ``exit`` the program, raise one that cannot be shown (``mute``), or return
something else: ``none``, ``text``, ``number``, ``objects``.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import frozen

from klaw_core import (
    Component,
    ComponentContext,
    Document,
    Entry,
    Hit,
    Index,
    Query,
    Ranking,
    Retriever,
    Source,
    Span,
    TokenCounter,
    VectorSpace,
    estimate_tokens,
    hookimpl,
)

DIMENSION = 4
ACTS = ("raise", "exit", "mute", "none", "text", "number", "objects")


class MuteError(Exception):
    """Cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no comment")


@frozen
class Options:
    """When to do what."""

    point: str = ""
    act: str = "raise"

    def do(self, point: str, honest: Any) -> Any:
        """Return what is honest, unless this is the point."""
        if point != self.point:
            return honest
        if self.act == "raise":
            raise KeyError("the saboteur\nwas here " + "x" * 10_000)
        if self.act == "exit":
            raise SystemExit(3)
        if self.act == "mute":
            raise MuteError
        return {"none": None, "text": "saboteur", "number": -7, "objects": [object(), object()]}[self.act]


@frozen
class Embedder:
    """Every vector is the same."""

    options: Options
    max_tokens = 1000

    @property
    def space(self) -> VectorSpace:
        honest: VectorSpace = self.options.do("space", VectorSpace("saboteur", "1", DIMENSION))
        return honest

    def embed_documents(self, texts: Sequence[str], /) -> Any:
        import numpy as np

        return self.options.do("embed_documents", np.eye(1, DIMENSION, dtype=np.float32).repeat(len(texts), axis=0))

    def embed_query(self, _text: str, /) -> Any:
        import numpy as np

        return self.options.do("embed_query", np.eye(1, DIMENSION, dtype=np.float32)[0])

    def count_tokens(self, texts: Sequence[str], /) -> Any:
        return self.options.do("count_tokens", estimate_tokens(texts))


@frozen
class Chunker:
    """The whole text is one chunk."""

    options: Options

    def split(self, text: str, _count: TokenCounter, /) -> Any:
        return self.options.do("split", self._spans(text))

    def _spans(self, text: str) -> Iterator[Any]:
        heading = self.options.do("heading", ("A heading",))
        yield self.options.do("span", Span(self.options.do("start", 0), len(text), heading))


@frozen
class FirstRetriever(Retriever[Any]):
    """Finds the first chunk there ever was."""

    options: Options

    @property
    def joins(self) -> Any:
        return self.options.do("joins", object)

    @property
    def needs_vectors(self) -> Any:
        return self.options.do("needs_vectors", False)

    def search(self, _resource: object, _query: Query, _limit: int, /) -> Any:
        key, score = self.options.do("key", 1), self.options.do("score", 1.0)
        return self.options.do("search", [self.options.do("hit", Hit(key, score))])


@frozen
class NoIndex(FirstRetriever, Index[Any]):
    """Keeps no rows, and says that it holds none."""

    def migrations(self) -> Any:
        return self.options.do("migrations", ())

    def prepare(self, _resource: object, /) -> None:
        self.options.do("prepare", None)

    def reset(self, _resource: object, _collection: str, _space: object, /) -> None:
        self.options.do("reset", None)

    def add(self, _resource: object, _collection: str, _chunks: object, _vectors: object, /) -> None:
        self.options.do("add", None)

    def remove(self, _resource: object, _collection: str, _keys: object, /) -> None:
        self.options.do("remove", None)

    def keys(self, _resource: object, _collection: str, /) -> Any:
        import numpy as np

        return self.options.do("keys", np.empty(0, np.int64))


@frozen
class Fusion:
    """Puts the retrievers' hits behind each other."""

    options: Options

    def depth(self, limit: int, /) -> Any:
        return self.options.do("depth", limit)

    def fuse(self, rankings: Sequence[Ranking], _limit: int, /) -> Any:
        keys = list(dict.fromkeys(hit.key for ranking in rankings for hit in ranking.hits))
        return self.options.do("fuse", [Hit(key, 1 / (1 + rank)) for rank, key in enumerate(keys)])


@frozen
class Reranker:
    """Changes nothing."""

    options: Options

    @property
    def needs_vectors(self) -> Any:
        return self.options.do("needs_vectors", False)

    def rerank(self, _query: Query, _candidates: object, _limit: int, /) -> Any:
        return self.options.do("rerank", None)


@frozen
class LetterSource(Source):
    """Has one document."""

    options: Options

    @property
    def origin(self) -> Any:
        return self.options.do("origin", "saboteur")

    def scan(self) -> Any:
        return self.options.do("scan", [self.options.do("entry", Entry("saboteur/a.md", 4))])

    def read(self, entry: Entry, /) -> Any:
        text = self.options.do("document text", "sabotage of the harbour")
        if self.options.point == "surrogate":
            text = "half a pair: \udc80"
        zone = None if self.options.point == "no zone" else UTC
        made = Document(entry.path, text, "a", "saboteur", datetime(2026, 2, 24, tzinfo=zone))
        return self.options.do("read", made)


def _component(name: str, kind: Any) -> Component[Options, Any]:
    def build(options: Options, _context: ComponentContext) -> Any:
        return options.do("factory", kind(options))

    return Component(name, Options, factory=build, api=2)


@hookimpl
def klaw_embedders() -> Iterable[Component[Options, Any]]:
    yield _component("saboteur", Embedder)


@hookimpl
def klaw_chunkers() -> Iterable[Component[Options, Any]]:
    yield _component("saboteur", Chunker)


@hookimpl
def klaw_retrievers() -> Iterable[Component[Options, Any]]:
    yield _component("saboteur", FirstRetriever)
    yield _component("saboteur-index", NoIndex)


@hookimpl
def klaw_fusions() -> Iterable[Component[Options, Any]]:
    yield _component("saboteur", Fusion)


@hookimpl
def klaw_rerankers() -> Iterable[Component[Options, Any]]:
    yield _component("saboteur", Reranker)


@hookimpl
def klaw_sources() -> Iterable[Component[Options, Any]]:
    yield _component("saboteur", LetterSource)

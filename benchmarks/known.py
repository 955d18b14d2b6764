"""Klaw without its model: an embedder that knows each text's vector, so that only what stands around it is measured.

Everything else is the real thing: the public ``Memory``, the default configuration, the plugins as they are installed.
Texts come from a source that gives 20 of them as the lines of one document, and from a chunker that cuts lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from attrs import evolve, frozen

from klaw_core import (
    API,
    Component,
    ComponentContext,
    Document,
    Entry,
    Matrix,
    Memory,
    Source,
    Span,
    TokenCounter,
    Vector,
    VectorSpace,
)
from klaw_core.config.load import load_config
from klaw_core.embedding.run import PROBE
from klaw_core.embedding.token_estimate import estimate_tokens
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Offer

#: How many chunks a generated document has.
CHUNKS_A_DOCUMENT = 20

#: A part of a configuration: ``{"type": "fts5", …}``.
Table = Mapping[str, Any]


class KnownVectors:
    """An embedder that looks vectors up by text; what it does not know gets one of those, the probe always the same."""

    max_tokens = 254
    texts_per_call = 256

    def __init__(self, vectors: Mapping[str, Vector]) -> None:
        self._vectors = vectors
        self._all = list(vectors.values())
        dimension = len(self._all[0])
        self._probe = np.full(dimension, dimension**-0.5, np.float32)
        self.space = VectorSpace("known", "1", dimension)

    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a question."""
        if text == PROBE:
            return self._probe
        known = self._vectors.get(text)
        return self._all[crc32(text.encode()) % len(self._all)] if known is None else known

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return the vectors of texts."""
        return np.stack([self.embed_query(text) for text in texts])

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        """Return about how many tokens each text has: counting them is the model's part."""
        return estimate_tokens(texts)


class Lines:
    """A chunker for documents whose chunks are lines."""

    def split(self, text: str, count_tokens: TokenCounter, /) -> Iterator[Span]:
        """Yield every line."""
        del count_tokens
        start = 0
        for line in text.split("\n"):
            yield Span(start, start + len(line))
            start += len(line) + 1


class Texts(Source):
    """A source of documents of 20 lines: line n + 1 of document d is text 20 d + n."""

    def __init__(self, texts: Sequence[str], origin: str = "bench") -> None:
        self._texts, self.origin = texts, origin

    def scan(self) -> Iterator[Entry]:
        """Yield every document's path."""
        for number in range(-(-len(self._texts) // CHUNKS_A_DOCUMENT)):
            yield Entry(f"{self.origin}/{number:06}.md")

    def read(self, entry: Entry, /) -> Document:
        """Return a document; they are an hour apart."""
        number = int(Path(entry.path).stem)
        first = number * CHUNKS_A_DOCUMENT
        text = "\n".join(self._texts[first : first + CHUNKS_A_DOCUMENT])
        moment = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=number)
        return Document(entry.path, text, source="bench", origin=self.origin, created_at=moment)


def text_number(path: str, line: int) -> int:
    """Return which text stands in a line of a document of :class:`Texts`."""
    return int(Path(path).stem) * CHUNKS_A_DOCUMENT + line - 1


@frozen
class NoOptions:
    """Components that were made for one run have nothing to configure."""


@frozen
class Bench:
    """A Klaw in ``place``: ``vectors`` is its model, ``texts`` its source if any, ``retrieval`` its retrievers.

    ``markdown`` is for real documents: then the default chunker cuts. An empty ``vectors`` means none at all. With
    ``compress`` the store keeps texts compressed.
    """

    place: Path
    vectors: Mapping[str, Vector]
    texts: Sequence[str] = ()
    retrieval: Sequence[Table] = ()
    markdown: bool = False
    compress: bool = False

    @property
    def database(self) -> Path:
        """Return the file that everything is in."""
        return self.place / "data" / "klaw.db"

    def open(self) -> Memory:
        """Open the memory. Nothing of the machine's own configuration changes what is measured."""
        memory: dict[str, Any] = {"embedding": {"type": "known" if self.vectors else "none"}}
        if self.compress:
            memory["store"] = {"type": "sqlite", "compress": True}
        if self.texts:
            memory["sources"] = [{"type": "texts"}]
        if not self.markdown:
            memory["chunking"] = {"type": "lines"}
        if self.retrieval:
            memory["retrieval"] = [dict(retriever) for retriever in self.retrieval]
        self.place.mkdir(parents=True, exist_ok=True)
        nothing = self.place / "nothing.toml"
        nothing.touch()
        config = load_config(
            config_file=nothing, data_dir=self.place / "data", environment={}, overrides={"memory": memory}
        )
        return Memory.open(config, registry=self._registry)

    @property
    def _registry(self) -> Any:
        registry = discover()
        made: dict[str, tuple[str, object]] = {"chunker": ("lines", Lines()), "source": ("texts", Texts(self.texts))}
        if self.vectors:
            made["embedder"] = ("known", KnownVectors(self.vectors))
        offers = dict(registry.offers)
        for kind, (name, part) in made.items():
            component = Component(name, options=NoOptions, factory=partial(_given, part), api=API)
            offers[kind, name] = (Offer(component, "benchmarks"),)
        return evolve(registry, offers=offers)


def _given(part: object, _options: NoOptions, _context: ComponentContext) -> object:
    """Be the factory of a part that exists."""
    return part

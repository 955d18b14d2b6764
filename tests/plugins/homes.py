"""A home to index and search in: a real directory of notes, a real store, and an embedder that counts its calls.

A ``conftest.py`` imports the fixtures that its tests use.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from attrs import define, evolve, field, frozen

from klaw_core import (
    API,
    Component,
    EmbedderUnavailableError,
    EmbeddingError,
    KeySelection,
    Memory,
    Query,
    VectorSpace,
    estimate_tokens,
)
from klaw_core.config.load import load_config
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Offer, Registry
from klaw_testing.memory_store import MemoryStore

FAKES = Path(__file__).parents[1] / "packaging" / "fakes"
MOMENT = datetime(2026, 2, 24, 12, 0, tzinfo=UTC)

#  The vector retriever, then the word retriever. The store "kept" is the in-memory store, there again when a memory
# is reopened.
BACKENDS = {
    "memory": {"store": {"type": "kept"}, "retrieval": [{"type": "cosine", "weight": 0.5}, {"type": "words"}]},
    "sqlite": {"store": {"type": "sqlite"}, "retrieval": [{"type": "sqlite-vec", "weight": 0.5}, {"type": "fts5"}]},
    "postgres": {
        "store": {"type": "postgres"},
        "retrieval": [{"type": "pgvector", "weight": 0.5}, {"type": "pgwords"}],
    },
}

#: The distributions whose extensions are there in every test: they were made for each other.
FEATURES = {"klaw-conversations", "klaw-doctor", "klaw-memories", "klaw-notes", "klaw-rerank-basic", "klaw-tools"}

#: The stores that the fixture ``home`` is of: KLAW_TEST_STORE=postgres lets all those tests run on a server.
#: The store in RAM is there for tests; its contract holds all laws against it, and one of four tests uses it.
IN_RAM = pytest.param("memory", marks=pytest.mark.one_of(4))
STORES = [os.environ["KLAW_TEST_STORE"]] if os.environ.get("KLAW_TEST_STORE") else [IN_RAM, "sqlite"]

#: How many words of a chunk find it, at most.
WORDS = 8

#: No variable of the person who runs the tests reaches them.
ENVIRONMENT = {"KLAW_CONFIG": os.devnull}


@frozen
class NoOptions:
    pass


@frozen
class CountingOptions:
    model: str = "counting"
    dimension: int = 48


@define
class Recorder:
    """What the embedder was asked for, and when it is to fail: at call number ``fail_at``, counted from 1."""

    texts: list[str] = field(factory=list)
    questions: list[str] = field(factory=list)
    calls: int = 0
    fail_at: int | None = None
    unavailable: bool = False

    def take(self) -> list[str]:
        """Return the texts embedded since the last call of this."""
        texts, self.texts = self.texts, []
        return texts


@frozen
class CountingEmbedder:
    """Hashes words into dimensions, and writes down every text."""

    options: CountingOptions
    recorder: Recorder
    max_tokens = 1_000_000

    @property
    def space(self):
        return VectorSpace(self.options.model, "1", self.options.dimension)

    def embed_documents(self, texts, /):
        self.recorder.calls += 1
        if self.recorder.fail_at is not None and self.recorder.calls >= self.recorder.fail_at:
            kind = EmbedderUnavailableError if self.recorder.unavailable else EmbeddingError
            raise kind("the embedder was told to fail")
        self.recorder.texts.extend(texts)
        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text, /):
        self.recorder.questions.append(text)
        return self._vector(text)

    def count_tokens(self, texts, /):
        return estimate_tokens(texts)

    def _vector(self, text):
        vector = np.zeros(self.options.dimension, np.float32)
        for word in text.lower().split() or [""]:
            vector[crc32(f"{self.options.model} {word}".encode("utf-8", "replace")) % self.options.dimension] += 1
        return vector / np.linalg.norm(vector)


@frozen
class Twin(CountingEmbedder):
    """Gives a model's vectors under another name."""

    name: str

    @property
    def space(self):
        return VectorSpace(self.name, "1", self.options.dimension)


@define
class Home:
    """A directory of notes, a data directory, and what opens a memory over them."""

    root: Path
    backend: str
    recorder: Recorder = field(factory=Recorder)
    extra: list[tuple[str, Component]] = field(factory=list)
    store: MemoryStore = field(factory=MemoryStore)

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    @property
    def retrievers(self) -> tuple[str, str]:
        """The names of the vector retriever and of the word retriever."""
        vectors, words = BACKENDS[self.backend]["retrieval"]
        return vectors["type"], words["type"]

    def config(self, **memory):
        """Return the backend's configuration; ``memory`` replaces whole tables under [memory]."""
        tables = {**BACKENDS[self.backend], "embedding": {"type": "counting"}, **memory}
        if tables["store"]["type"] == "postgres":
            tables["store"] = {"dsn": _server().dsn, **tables["store"]}
        config = load_config(data_dir=self.root / "data", environment=ENVIRONMENT, overrides={"memory": tables})
        # On a server each home is another agent's.
        return evolve(config, agent=self.root.name) if self.backend == "postgres" else config

    def registry(self) -> Registry:
        installed = discover()
        mine = [
            ("embedder", Component("counting", CountingOptions, self._embedder, API)),
            ("store", Component("kept", NoOptions, lambda _options, _place: self.store, API)),
            *self.extra,
        ]
        offers = {(kind, component.name): [Offer(component, "tests")] for kind, component in mine}
        # An extension that happens to be installed adds tools, origins and checks; its own tests are elsewhere.
        known = {
            key: found
            for key, found in installed.offers.items()
            if key[0] != "extension" or found[0].distribution in FEATURES
        }
        return evolve(installed, offers={**known, **offers})

    def open(self, *, replace_damaged=False, **memory) -> Memory:
        return Memory.open(self.config(**memory), registry=self.registry(), replace_damaged=replace_damaged)

    def component(self, name: str, model: str = "counting") -> Component:
        """Return another embedder, that never fails: another runtime of the same model, or one of another."""

        def factory(_options, _place):
            return Twin(CountingOptions(model), Recorder(), name)

        return Component(name, NoOptions, factory, API)

    def write(self, relative: str, text: str, *, hours: int = 0) -> Path:
        """Write a note, dated ``hours`` after a fixed moment."""
        path = self.notes / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        self.date(relative, hours)
        return path

    def date(self, relative: str, hours: int) -> None:
        moment = MOMENT.timestamp() + 3600 * hours
        os.utime(self.notes / relative, (moment, moment))

    def _embedder(self, options, _place):
        return CountingEmbedder(options, self.recorder)


@cache
def _server():
    """Return a PostgreSQL server for this process."""
    from klaw_testing.doubles.postgres import PostgresServer

    server = PostgresServer()
    server.start()
    atexit.register(server.stop)
    return server


def _check(memory: Memory, *, embedded: bool = True) -> None:
    """Every index holds exactly the store's keys, and finds each chunk by its own words and by its own vector.

    Unless everything is ``embedded``, vectors may be missing. Of a long chunk some words are asked for, spread over it:
    any of them finds it, so that all of them would show less and take longer.
    """
    with memory._assembly.store.read() as snapshot:
        keys = snapshot.keys("memory").tolist()
        stored = snapshot.chunks("memory", keys)
        assert [item.key for item in stored] == keys
        for name, index in memory._assembly.indexes():
            held = index.keys(snapshot.resource, "memory").tolist()
            assert held == keys or (index.needs_vectors and not embedded and set(held) <= set(keys)), name
            for item in [item for item in stored if item.key in set(held)]:
                vector = memory._assembly.embedder.serving._vector(item.chunk.embedding_text)
                words = item.chunk.text.split()
                asked = " ".join(words[:: len(words) // WORDS + 1])
                query = Query(asked, "memory", vector, KeySelection(np.array([item.key])))
                (hit,) = index.search(snapshot.resource, query, 5)
                assert hit.key == item.key
                assert not index.needs_vectors or hit.score == pytest.approx(1, abs=1e-3), item.chunk.text


def _dump(memory: Memory) -> object:
    """Return all that is indexed, without keys: what two ways to the same notes must agree on."""
    with memory._assembly.store.read() as snapshot:
        stored = snapshot.chunks("memory", snapshot.keys("memory").tolist())
        origins = {item.origin for item in stored}
        return {
            "chunks": sorted((evolve(item, key=0) for item in stored), key=lambda item: (item.path, item.chunk.start)),
            "manifests": {origin: dict(snapshot.manifest("memory", origin)) for origin in origins},
            "counts": dict(snapshot.counts("memory")),
        }


@pytest.fixture
def check():
    """The invariant of every index."""
    return _check


@pytest.fixture
def dump():
    """The logical content, as comparable data."""
    return _dump


@pytest.fixture
def liars(monkeypatch):
    """The components of klaw-liar, by kind."""
    monkeypatch.syspath_prepend(FAKES / "klaw-liar")
    offered = discover(points=[EntryPoint("liar", "klaw_liar", "klaw")])
    return {kind: offered.component(kind, "liar") for kind in ("embedder", "retriever", "chunker")}


@pytest.fixture
def bomb(tmp_path, monkeypatch):
    """Install the plugin klaw-bomb; return the file that is there once it has been imported."""
    site = tmp_path / "site"
    metadata = site / "klaw_bomb-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: klaw-bomb\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[klaw]\nbomb = klaw_bomb\n")
    exploded = site / "exploded"
    (site / "klaw_bomb.py").write_text(f"open({str(exploded)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(site)
    yield exploded
    sys.modules.pop("klaw_bomb", None)


@pytest.fixture
def make_home(tmp_path):
    """Make homes in directories of their own."""
    made = []

    def make(backend: str) -> Home:
        root = Path(tempfile.mkdtemp(dir=tmp_path)).resolve()
        (root / "notes").mkdir()
        made.append(root)
        return Home(root, backend)

    yield make
    for root in made:
        shutil.rmtree(root)


def skip_on_postgres(items: list[pytest.Item], of_files: Mapping[str, Collection[str]]) -> None:
    """Skip on PostgreSQL what changes files that it does not have: tests by the name of their file."""
    skip = pytest.mark.skip(reason="changes the file of a journal, which is a table in PostgreSQL")
    for item in items:
        place, _, name = item.nodeid.partition("::")
        if "[postgres" in name and name.partition("[")[0] in of_files.get(place.rpartition("/")[2], ()):
            item.add_marker(skip)


@pytest.fixture(params=STORES)
def home(request, make_home) -> Home:
    """A home over each store."""
    return make_home(request.param)


@pytest.fixture
def memory(home):
    """A memory over the home's notes, nothing indexed yet."""
    with home.open() as opened:
        yield opened

"""``klaw init`` tries each component as work would: what it calls ready works, and what does not it names."""

import sys
from threading import Event, current_thread

import pytest
from attrs import evolve, frozen

from klaw_core import (
    API,
    AutoChoice,
    Component,
    EmbeddingError,
    KlawError,
    NoOptions,
    Retriever,
    Source,
    install_extras,
)
from klaw_core.cli.components import examine
from klaw_core.kinds import EMBEDDER
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Offer

KEYS = ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")


@frozen
class StrayRetriever(Retriever):
    """Works in a store that nobody has."""

    joins = Event
    needs_vectors = False

    def search(self, resource, query, limit, /):
        raise NotImplementedError


class UnsureRetriever(StrayRetriever):
    @property
    def needs_vectors(self):
        sys.exit("who knows")


@frozen
class StraySource(Source):
    origin = "a/path"

    def scan(self):
        return []

    def read(self, entry, /):
        raise NotImplementedError


def leave(_options, _place):
    sys.exit("the plugin has had enough")


def give(value):
    return lambda _options, _place: value


def problems(home, **memory):
    (home.root / "data").mkdir(exist_ok=True)
    return {(part.kind, part.type): part.problem for part in examine(home.config(**memory), home.registry())}


@pytest.mark.parametrize(
    ("kind", "key", "factory", "words"),
    [
        ("chunker", "chunking", give(object()), "which lacks split"),
        ("chunker", "chunking", leave, "SystemExit: the plugin has had enough"),
        ("fusion", "fusion", give(None), "which lacks depth and fuse"),
        ("source", "sources", give(StraySource()), "has the origin 'a/path', not a name"),
        ("retriever", "retrieval", give(StrayRetriever()), "needs a store that offers threading.Event"),
        ("retriever", "retrieval", give(UnsureRetriever()), "SystemExit: who knows"),
        ("store", "store", give(object()), "which lacks enlist"),
        ("embedder", "embedding", leave, "SystemExit: the plugin has had enough"),
    ],
)
def test_a_component_that_fails_at_work_is_not_ready(home, kind, key, factory, words):
    home.extra.append((kind, Component("stray", NoOptions, factory, API)))
    home.write("a.md", "the harbour")
    table = {"type": "stray"}
    memory = {key: [table] if key in {"sources", "retrieval"} else table}

    found = problems(home, **memory)

    assert words in found[kind, "stray"]
    assert [name for name, problem in found.items() if problem] == [(kind, "stray")]
    try:
        with home.open(**memory) as opened:
            said = repr(opened.index(home.notes))
    except KlawError as error:
        said = str(error)
    assert words in said


def test_a_working_component_is_ready(home):
    found = problems(home)

    assert found
    assert not any(found.values())


RANKS = {
    component.name: (component.auto.rank, component.auto.keys)
    for component in discover().components(EMBEDDER)
    if component.auto is not None
}


class TestAuto:
    """`auto` stands for the first embedder that can be built."""

    @pytest.fixture(autouse=True)
    def _no_keys(self, monkeypatch):
        for key in KEYS:
            monkeypatch.delenv(key, raising=False)

    def embedder(self, home, **factories):
        """Examine where these embedders are installed and no other; return what became of `auto`."""
        installed = home.registry()
        others = {key: offers for key, offers in installed.offers.items() if key[0] != "embedder" or key[1] == "auto"}
        mine = {
            ("embedder", name): [
                Offer(Component(name, NoOptions, factory, API, auto=AutoChoice(*RANKS[name])), f"klaw-{name}")
            ]
            for name, factory in factories.items()
        }
        registry = evolve(installed, plugins=(), offers={**others, **mine})
        (part,) = [
            part for part in examine(home.config(embedding={"type": "auto"}), registry) if part.kind == "embedder"
        ]
        return part

    def test_without_an_embedder_auto_is_missing_and_names_the_default(self, home):
        part = self.embedder(home)

        assert (part.type, part.distribution) == ("auto", "")
        assert part.problem == "embedder 'onnx' is not installed"
        assert part.remedy == install_extras(["onnx", "minilm"])

    def test_auto_uses_the_first_embedder_that_can_be_built(self, home):
        part = self.embedder(home, onnx=leave, ollama=give(object()))

        assert (part.type, part.distribution, part.problem) == ("auto", "klaw-ollama", "")

    def test_if_none_can_be_built_auto_reports_the_reason_of_the_first(self, home):
        part = self.embedder(home, onnx=leave, openai=give(object()))

        assert (part.type, part.distribution) == ("auto", "klaw-onnx")
        assert "had enough" in part.problem

    def test_an_option_that_no_embedder_has_is_reported(self, home):
        config = home.config(embedding={"type": "auto", "model": "x"})
        found = {part.type: part.problem for part in examine(config, discover())}

        assert "memory.embedding.model: unknown key" in found["auto"]


class TestBuiltOnce:
    @pytest.fixture
    def built(self, home):
        """Index a note; return the threads that build the embedder from then on, each waiting for another to come."""
        home.write("a.md", "the harbour")
        with home.open() as memory:
            memory.index(home.notes)
        threads, again = [], Event()

        def factory(options, place):
            threads.append(current_thread().name)
            again.set() if len(threads) > 1 else again.wait(0.3)  # brief: no other should come
            return home._embedder(options, place)

        counting = home.registry().component("embedder", "counting")
        home.extra.append(("embedder", evolve(counting, factory=factory)))
        return threads

    def test_the_first_search_builds_the_embedder_once(self, home, built):
        with home.open() as memory:
            assert [result.path for result in memory.search("harbour")] == ["notes/a.md"]

        assert len(built) == 1

    def test_a_component_that_could_not_be_built_is_tried_again(self, home, built):
        works = home.extra[-1][1]
        broken = Event()
        broken.set()

        def factory(options, place):
            if broken.is_set():
                raise EmbeddingError("the model is away")
            return works.factory(options, place)

        home.extra[-1] = ("embedder", evolve(works, factory=factory))
        with home.open() as memory:
            assert any("the model is away" in notice for notice in memory.search("harbour").notices)
            broken.clear()
            assert memory.search("harbour").notices == ()
        assert len(built) == 1

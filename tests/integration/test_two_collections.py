"""Two collections share one embedder: what befalls the model of one is noticed in the other."""

import numpy as np
import pytest
from attrs import define, frozen

from klaw_core import API, Component, KeySelection, NoOptions, Query, VectorSpace
from klaw_core.embedding.run import SAME_WEIGHTS, make_space_record
from klaw_core.values.text import text_hash


@define
class Weights:
    """What a model's name stands for at the moment."""

    seed: int = 1


@frozen
class Renewable:
    """A model that is known by name only, and may become another one."""

    weights: Weights
    name: str = "renewable"
    max_tokens = 1_000_000

    @property
    def space(self):
        return VectorSpace(self.name, "unknown", 32)

    def embed_documents(self, texts, /):
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text, /):
        seed = int(text_hash(f"{self.weights.seed} {text}")[:8], 16)
        vector = np.random.default_rng(seed).normal(size=32).astype(np.float32)
        return vector / np.linalg.norm(vector)

    def count_tokens(self, texts, /):
        return np.array([len(text.split()) for text in texts])


@pytest.fixture
def weights(home):
    """Those of the embedder ``renewable``."""
    weights = Weights()
    component = Component("renewable", NoOptions, lambda _options, _place: Renewable(weights), API)
    home.extra.append(("embedder", component))
    home.extra.append(("embedder", home.component("other", "other")))
    return weights


@pytest.fixture
def write(home):
    """Write a document of the collection ``docs``."""

    def write(name, text):
        directory = home.root / "manual"
        directory.mkdir(exist_ok=True)
        (directory / name).write_text(text)
        return directory

    return write


def mixed(memory, weights):
    """Return the documents of which the index claims to hold the model's vector, and holds another."""
    space, found = Renewable(weights).space, []
    with memory._assembly.store.read() as snapshot:
        for name in ("memory", "docs"):
            record = snapshot.space(name)
            if record is None or record.space != space:
                continue
            (index,) = [index for _, index in memory._assembly.indexes() if index.needs_vectors]
            for stored in snapshot.chunks(name, snapshot.keys(name).tolist()):
                vector = Renewable(weights).embed_query(stored.chunk.embedding_text)
                query = Query(stored.chunk.text, name, vector, KeySelection(np.array([stored.key])))
                hits = index.search(snapshot.resource, query, 1)
                found += [stored.path for hit in hits if hit.score < SAME_WEIGHTS]
    return found


def test_a_changed_model_is_detected_when_another_collection_starts(home, weights, write):
    directory = write("a.md", "the heron")
    with home.open(embedding={"type": "renewable"}) as memory:
        memory.index(directory, collection="docs")
    weights.seed = 2
    home.write("a.md", "the heron")  # the same chunk, whose old vector is cached
    home.write("b.md", "a buoy")
    with home.open(embedding={"type": "renewable"}) as memory:
        memory.index(home.notes)
        home.write("c.md", "a lantern")
        write("c.md", "the kingfisher")
        memory.index()
        assert mixed(memory, weights) == []
        assert not memory.search("heron", mode="vector").notices
        assert any("replaced" in notice for notice in memory.search("heron", collection="docs").notices)
        memory.reindex()
        assert mixed(memory, weights) == []
        assert not memory.search("kingfisher", collection="docs").notices


def test_each_collection_checks_its_own_probe(home, weights, write):
    home.write("b.md", "a buoy")
    directory = write("a.md", "the heron")
    with home.open(embedding={"type": "renewable"}) as memory:
        memory.index(directory, collection="docs")
        memory.index(home.notes)
        weights.seed = 2
        with memory._assembly.store.write() as transaction:  # what earlier versions let come about
            transaction.set_space("memory", make_space_record(Renewable(weights)))
        home.write("d.md", "a lantern")
        write("c.md", "the kingfisher")
        assert "has changed" in memory.index().notices[0]
        assert "manual/c.md" not in mixed(memory, weights)


def test_a_collection_without_an_embedder_does_not_affect_the_other(home, weights, write):
    home.write("b.md", "a buoy")
    directory = write("a.md", "the heron")
    chain = {"type": "renewable", "fallback": [{"type": "other"}]}
    with home.open(embedding=chain) as memory:
        memory.index(home.notes)
    weights.seed = 2
    with home.open(embedding=chain) as memory:
        memory.index(directory, collection="docs")
    with home.open(embedding=chain) as memory:
        found = memory.search("heron", collection="docs", mode="vector")
        assert (found[0].path, found.notices) == ("manual/a.md", ())
        assert memory.search("buoy").notices  # by words, and why


def test_a_collection_of_other_weights_does_not_block_the_next(home, weights, write):
    home.write("b.md", "a buoy")
    directory = write("a.md", "the heron")
    with home.open(embedding={"type": "renewable"}) as memory:
        memory.index(home.notes)
    weights.seed = 2
    with home.open(embedding={"type": "renewable"}) as memory:
        memory.index(directory, collection="docs")
        home.write("c.md", "a lantern")
        write("c.md", "the kingfisher")
        report = memory.index()
        assert memory._assembly.collection("docs").lacking() == 0
        assert (report.embedded, report.lacking) == (1, 1)
        assert "'memory' was indexed with" in report.notices[0]
        assert mixed(memory, weights) == []

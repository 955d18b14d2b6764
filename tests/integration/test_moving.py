"""A move to another vector space takes hours: what happens meanwhile, or to it, is neither lost nor brought back."""

from contextlib import suppress

import numpy as np
import pytest
from attrs import define, frozen

from klaw_core import API, Component, EmbeddingError, StoreLockedError, VectorSpace
from klaw_core.embedding.run import PROBE
from klaw_core.values.text import text_hash
from klaw_doctor.diagnosis import Diagnosis

WIDE = {"type": "counting", "dimension": 16}
NOTES = 300  # several calls' worth: one that fails leaves the others cached


@define
class Server:
    """A model that is known by name only, and may become another one, or run in another precision."""

    weights: int = 1
    precision: float | None = None
    asked: int = 0
    fail_after: int | None = None


@frozen
class Renewable:
    """Asks the server."""

    server: Server
    max_tokens = 1_000_000
    remote = True
    space = VectorSpace("renewable", "unknown", 32)

    def embed_documents(self, texts, /):
        self.server.asked += len(texts)
        if self.server.fail_after is not None and self.server.asked > self.server.fail_after:
            raise EmbeddingError("the server was told to fail")
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text, /):
        seed = int(text_hash(f"{self.server.weights} {text}")[:8], 16)
        vector = np.random.default_rng(seed).normal(size=32).astype(np.float32)
        if self.server.precision:
            vector = np.rint(vector / self.server.precision) * np.float32(self.server.precision)
        return vector / np.linalg.norm(vector)

    def count_tokens(self, texts, /):
        return np.array([len(text.split()) for text in texts])


@frozen
class NoOptions:
    pass


@pytest.fixture
def server(home):
    """The server that the embedder ``renewable`` asks."""
    server = Server()
    home.extra.append(("embedder", Component("renewable", NoOptions, lambda _options, _place: Renewable(server), API)))
    return server


def write_notes(home):
    for number in range(NOTES):
        home.write(f"{number}.md", f"heron number {number}")


def paths(memory):
    with memory._assembly.store.read() as snapshot:
        return {stored.path for stored in snapshot.chunks("memory", snapshot.keys("memory").tolist())}


def cached(memory, space, texts):
    with memory._assembly.store.read() as snapshot:
        return snapshot.cached_vectors(space, [text_hash(text) for text in texts])


def check_weights(memory, server):
    """Every vector is of the weights that the server has now."""
    embedder = Renewable(server)
    for number in (0, NOTES // 2, NOTES - 1):
        found = memory.search(f"heron number {number}", 1, mode="vector")
        assert [result.path for result in found] == [f"notes/{number}.md"]
    with memory._assembly.store.read() as snapshot:
        stored = snapshot.chunks("memory", snapshot.keys("memory").tolist())
        vectors = snapshot.cached_vectors(embedder.space, [item.chunk.embedding_hash for item in stored])
    for item in stored:
        vector = vectors[item.chunk.embedding_hash]
        assert vector @ embedder.embed_query(item.chunk.embedding_text) == pytest.approx(1, abs=1e-3)


def once(act):
    """Return a progress callback that acts once, while the vectors are made ahead."""
    done = []

    def look(now):
        if now.stage == "ahead" and not done:
            done.append(now)
            act()

    return look


def test_changes_during_a_move_are_kept(home, check):
    home.write("a.md", "the secret")
    home.write("b.md", "the rest")
    with home.open() as memory:
        memory.index(home.notes)

    def meanwhile():
        with home.open() as other:
            other.forget("notes/a.md")
            other.save("remember the harbour")
            more = home.root / "more"
            more.mkdir()
            (more / "c.md").write_text("a lantern")
            other.index(more)

    with home.open(embedding=WIDE) as memory:
        memory.reindex(on_progress=once(meanwhile))
        assert {path.partition("/")[0] for path in paths(memory)} == {"notes", "saved", "more"}
        assert "notes/a.md" not in paths(memory)
        check(memory)


def test_a_text_forgotten_during_the_swap_stays_forgotten(home, check):
    """``forget`` has removed the note and not yet excluded it when the rebuild reads what there is."""
    home.write("a.md", "the secret")
    home.write("b.md", "the rest")
    with home.open() as memory, home.open() as other:
        memory.index(home.notes)

        def exclude(now):
            if now.stage == "index" and now.documents:
                other.extension("workspaces").registry.exclude("notes", "a.md")

        memory.reindex(on_progress=exclude)
        assert paths(memory) == {"notes/b.md"}
        check(memory)


def test_a_configured_directory_is_not_treated_as_forgotten(home, check):
    home.write("a.md", "the harbour")
    with home.open(sources=[{"type": "workspace", "path": str(home.notes)}]) as memory:
        memory.index()
        memory.reindex()
        assert paths(memory) == {"notes/a.md"}
        check(memory)


def test_an_interrupted_move_continues_only_with_the_same_weights(home, server):
    write_notes(home)
    with home.open() as memory:
        memory.index(home.notes)
    server.fail_after = 280
    with home.open(embedding={"type": "renewable"}) as memory:
        with pytest.raises(EmbeddingError):
            memory.reindex()
        assert cached(memory, Renewable.space, [PROBE])
    server.fail_after, server.weights = None, 2
    with home.open(embedding={"type": "renewable"}) as memory:
        memory.reindex()
        check_weights(memory, server)
        assert not cached(memory, Renewable.space, [PROBE]), "the collection has it"


def test_the_same_weights_in_another_precision_are_the_same_model(home, server):
    """What one runtime computes in 8 bits, another computes in float32: neither embeds anew what the other has."""
    write_notes(home)
    with home.open(embedding={"type": "renewable"}) as memory:
        memory.index(home.notes)
        exact = Renewable(server).embed_query(PROBE)
        server.precision, server.asked = 0.2, 0
        assert 0.99 < exact @ Renewable(server).embed_query(PROBE) < 0.999
    with home.open(embedding={"type": "renewable"}) as memory:
        assert memory.doctor() == Diagnosis()
        memory.reindex()
        assert server.asked < NOTES / 10, "embedded again"
        assert [result.path for result in memory.search("heron number 7", 1, mode="vector")] == ["notes/7.md"]
        assert memory.doctor() == Diagnosis()


def test_an_unfinished_rebuild_of_other_weights_is_not_continued(home, server):
    write_notes(home)
    with home.open(embedding={"type": "renewable"}) as memory:
        memory.index(home.notes)

        def die(now):
            if now.stage == "index" and now.documents == NOTES:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            memory.reindex(on_progress=die)
    server.weights = 2
    with home.open(embedding={"type": "renewable"}) as memory:
        memory.reindex()
        check_weights(memory, server)


def test_a_rebuild_with_the_old_model_keeps_vectors_of_an_interrupted_move(make_home):
    home = make_home("sqlite")
    write_notes(home)
    with home.open() as memory:
        memory.index(home.notes)
    home.recorder.take()
    home.recorder.calls, home.recorder.fail_at = 0, 4
    with home.open(embedding=WIDE) as memory, suppress(EmbeddingError):
        memory.reindex()
    home.recorder.fail_at = None
    paid = set(home.recorder.take()) - {PROBE}
    assert paid
    with home.open() as memory:
        memory.reindex()
    home.recorder.take()
    with home.open(embedding=WIDE) as memory:
        memory.reindex()
        assert not paid & set(home.recorder.take())


def test_a_writer_right_after_the_swap_does_not_fail_the_move(home, memory, monkeypatch):
    home.write("a.md", "the harbour")
    memory.index(home.notes)
    store = memory._assembly.store
    rebuild, swapped = store.rebuild, []

    class Watched:
        """Stands in the place of the rebuild, and has the lock taken when it is over."""

        def __enter__(self):
            self.block = rebuild()
            return self.block.__enter__()

        def __exit__(self, *error):
            self.block.__exit__(*error)
            swapped.append(True)

    def refuse():
        if swapped:
            raise StoreLockedError("another process is writing to it", hint="wait for it to finish")
        return write()

    write = store.write
    monkeypatch.setattr(store, "rebuild", Watched)
    monkeypatch.setattr(store, "write", refuse)
    assert memory.reindex().lacking == 0
    assert swapped

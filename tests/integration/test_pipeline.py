"""The laws of an index run's second half: what is held, what is kept when, and what a stop leaves behind."""

import gc
from itertools import count

import pytest

from klaw_core import StoredChunk
from klaw_core.embedding.run import PROBE
from klaw_core.indexing.backfill import POOL


@pytest.fixture
def many(home):
    """Some more chunks than are read at once, all different."""
    for number in range(30):
        home.write(f"{number:02}.md", "\n\n".join(f"# StyledText {number}.{part}\n\nlantern" for part in range(50)))
    return home.open(chunking={"type": "markdown", "max_tokens": 8, "overlap_tokens": 0})


def watch(memory, monkeypatch, look):
    """Call ``look`` with the texts of every call, before it is answered."""
    kind = type(memory._assembly.embedder.serving)
    embed = kind.embed_documents

    def watched(self, texts, /):
        look(list(texts))
        return embed(self, texts)

    monkeypatch.setattr(kind, "embed_documents", watched)


def held(memory):
    """Return how many vectors the index has, and how many chunks there are."""
    with memory._assembly.store.read() as snapshot:
        index = next(index for _, index in memory._assembly.indexes() if index.needs_vectors)
        return len(index.keys(snapshot.resource, "memory")), len(snapshot.keys("memory"))


@pytest.mark.parametrize(("remote", "waiting"), [(True, 0), (False, POOL)])
def test_vectors_of_a_server_are_committed_before_the_next_call(home, many, monkeypatch, remote, waiting):
    answered = kept = 0

    def look(texts):
        nonlocal answered, kept
        if texts != [PROBE]:
            kept, chunks = held(many)
            assert answered - kept <= waiting
            assert chunks == 1500, "words are written before anything is embedded"
            answered += sum(text != PROBE for text in texts)

    with many as memory:
        monkeypatch.setattr(type(memory._assembly.embedder.serving), "remote", remote, raising=False)
        watch(memory, monkeypatch, look)
        memory.index(home.notes)
        assert answered == 1500 > POOL
        assert held(memory) == (1500, 1500)


def test_only_one_batch_of_chunks_is_in_memory(make_home, monkeypatch):
    home = make_home("sqlite")  # the other store holds everything, which is its nature
    for number in range(30):
        home.write(f"{number:02}.md", "\n\n".join(f"# StyledText {number}.{part}\n\nlantern" for part in range(80)))
    most = []

    calls = count()

    def look(_texts):
        if next(calls) % 3:  # it takes as long as the rest of the test
            return
        most.append(sum(type(item) is StoredChunk for item in gc.get_objects()))

    with home.open(chunking={"type": "markdown", "max_tokens": 8, "overlap_tokens": 0}) as memory:
        gc.collect()
        before = sum(type(item) is StoredChunk for item in gc.get_objects())
        watch(memory, monkeypatch, look)
        memory.index(home.notes)
        assert held(memory) == (2400, 2400)
    # The next are read while the last call's are still named: a call more, and no more than that.
    assert POOL <= max(most) - before <= POOL + 64


def test_ctrl_c_loses_only_the_current_call(home, many, monkeypatch):
    sent = []

    def look(texts):
        sent.append(texts)
        if len(sent) == 5:
            raise KeyboardInterrupt

    with many as memory:
        with monkeypatch.context() as patch:
            watch(memory, patch, look)
            with pytest.raises(KeyboardInterrupt):
                memory.index(home.notes)
        kept = sum(len(texts) for texts in sent[1:-1])
        assert held(memory) == (kept, 1500)
        home.recorder.take()
        assert memory.index().lacking == 0
        assert len(home.recorder.take()) == 1500 - kept
        assert held(memory) == (1500, 1500)


def test_a_hanging_embedder_does_not_block_readers_or_writers(home, many, monkeypatch):
    looked = []

    def look(texts):
        if texts != [PROBE] and not looked:
            with home.open(chunking={"type": "markdown", "max_tokens": 8, "overlap_tokens": 0}) as other:
                looked.append(other.search("lantern", mode="fts"))
                home.write("new.md", "a heron")
                other.index(home.notes, embed=False)

    with many as memory:
        watch(memory, monkeypatch, look)
        assert memory.index(home.notes).lacking in {0, 1}
        assert looked[0]
        assert memory.search("heron", mode="fts")[0].path == "notes/new.md"

"""What was forgotten is in no file of the data directory: not in rows, words, vectors, the log or a journal."""

from __future__ import annotations

import numpy as np
import pytest

from klaw_core import ErasingIndex, PluginError
from klaw_core.values.text import text_hash
from klaw_fts5.index import Fts5Index

# FTS5 shares the beginnings of neighbouring words: the end of the word is what must not be found.
WORD = "xylophonium"
END = b"ophonium"


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


def left_behind(home) -> list[str]:
    """Return the files that hold the word."""
    files = (path for path in (home.root / "data").rglob("*") if path.is_file())
    return sorted(path.name for path in files if END in path.read_bytes())


def database(home) -> bytes:
    return b"".join(path.read_bytes() for path in (home.root / "data").rglob("klaw.db*"))


def others(memory, count: int) -> list[str]:
    return [memory.save(f"the harbour of day {number} and its gulls").path for number in range(count)]


@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("after", [0, 3])
def test_a_saved_memory_leaves_no_bytes(home, check, before, after):
    with home.open() as memory:
        others(memory, before)
        path = memory.save(f"the secret is {WORD}").path
        others(memory, before + after)
        assert left_behind(home), "it was there"
        memory.forget(path)
        assert left_behind(home) == []
        check(memory)
    assert left_behind(home) == []


def test_its_vector_leaves_no_bytes(home):
    text = f"the secret is {WORD}"
    with home.open() as memory:
        others(memory, 3)
        path = memory.save(text).path
        with memory._assembly.store.read() as snapshot:
            space = memory._assembly.embedder.space
            vector = snapshot.cached_vectors(space, [text_hash(text)])[text_hash(text)]
        half = np.asarray(vector, "<f2").tobytes()  # as the cache keeps it
        assert half in database(home), "it was there"
        memory.forget(path)
    assert half not in database(home)
    assert np.asarray(vector, "<f4").tobytes() not in database(home)


def test_it_leaves_no_bytes_after_the_index_was_merged_into_one(home):
    with home.open() as memory:
        path = memory.save(f"the secret is {WORD}").path
        kept, *rest = others(memory, 3)
        memory.forget(rest[0])  # merges
        memory.forget(path)
        assert left_behind(home) == []
        assert memory.get(kept).content.startswith("the harbour")


def test_a_note_and_a_workspace_leave_no_bytes(home, check):
    note = home.write("a.md", f"# One\n\nthe secret is {WORD}")
    home.write("b.md", "the harbour")
    with home.open() as memory:
        memory.index(home.notes)
        memory.forget("notes/a.md")
        assert left_behind(home) == []
        check(memory)
        home.write("b.md", note.read_text())
        memory.index()
        assert left_behind(home)
        memory.forget("notes/")
        assert left_behind(home) == []


def test_the_index_is_asked_in_the_transaction_that_removes(home, monkeypatch):
    with home.open() as memory:
        path = memory.save(f"the secret is {WORD}").path

        def fail(*_arguments):
            raise RuntimeError

        monkeypatch.setattr(Fts5Index, "erase", fail)
        with pytest.raises(PluginError, match="RuntimeError"):
            memory.forget(path)
        with memory._assembly.store.read() as snapshot:
            assert len(snapshot.outline("memory", path)) == 1


def test_the_full_text_index_erases():
    assert isinstance(Fts5Index(), ErasingIndex)

"""An index run writes together what an index holds in pieces."""

import pytest

PACKED = [{"type": "sqlite-vec"}, {"type": "fts5", "exact_up_to": 0}]


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


@pytest.fixture
def memory(home):
    with home.open(retrieval=PACKED) as memory:
        yield memory


def blocks(memory):
    with memory._assembly.store.read() as snapshot:
        return snapshot.resource.execute("SELECT COUNT(*) FROM memory_words_blocks").get


def test_an_index_run_merges_its_words_into_one_block(home, memory, check):
    for number in range(3):
        memory.save(f"lantern number {number}")
    assert blocks(memory) == 3, "what is saved waits for nothing"
    before = [result.content for result in memory.search("lantern number", mode="fts")]
    home.write("a.md", "the harbour")
    memory.index(home.notes)
    assert blocks(memory) == 1
    assert sorted(result.content for result in memory.search("lantern number", mode="fts")) == sorted(before)
    check(memory)


def test_a_small_index_run_does_not_merge_all_blocks(home, memory):
    for number in range(10):
        home.write(f"a{number}.md", f"the harbour of {number}")
    memory.index(home.notes)
    assert blocks(memory) == 1
    home.write("b.md", "a pier")
    memory.index()
    assert blocks(memory) == 2

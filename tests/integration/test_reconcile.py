"""An index run compares tallies of keys: it lists them only where they differ, and misses nothing."""

import pytest

from klaw_testing.index import stored, unit_vectors


@pytest.fixture
def home(make_home):
    """A home over SQLite; the other store's indexes have no key digest."""
    return make_home("sqlite")


@pytest.fixture
def memory(home):
    for name in "abcde":
        home.write(f"{name}.md", f"the harbour of {name}")
    with home.open() as memory:
        memory.index(home.notes)
        yield memory


@pytest.fixture
def listed(memory, monkeypatch):
    """The indexes whose keys are listed, from now on."""
    found = []

    def watch(kind, keys):
        def watched(self, *place):
            found.append(self)
            return keys(self, *place)

        monkeypatch.setattr(kind, "keys", watched)

    for _, index in memory._assembly.indexes():
        watch(type(index), type(index).keys)
    return found


def keys(memory):
    with memory._assembly.store.read() as snapshot:
        return snapshot.keys("memory").tolist()


def test_a_run_that_changes_a_document_lists_no_keys(home, memory, listed, check):
    home.write("b.md", "a lantern on the pier")
    report = memory.index()
    assert (report.changed, report.embedded, report.lacking) == (1, 1, 0)
    assert memory.index().unchanged == 5
    assert not listed
    check(memory)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("too_many", [False, True])
def test_missing_and_orphaned_keys_of_an_index_are_fixed(memory, listed, check, number, too_many):
    index = memory._assembly.indexes()[number][1]
    with memory._assembly.store.write() as transaction:
        index.remove(transaction.resource, "memory", keys(memory)[:1])
        if too_many:
            stray = [stored(keys(memory)[-1] + 1, "a stray")]
            index.add(transaction.resource, "memory", stray, unit_vectors(stray, 48) if index.needs_vectors else None)
    memory.index()
    assert set(map(type, listed)) == {type(index)}
    check(memory)


@pytest.mark.parametrize("table", ["memory_fts_docsize", "vec_memory_rowids"])
def test_a_huge_key_of_a_damaged_row_does_not_exhaust_memory(memory, table):
    """SQLite's SUM raises an error where it overflows."""
    with memory._assembly.store.write() as transaction:
        column = "rowid" if table.endswith("rowids") else "id"
        names = [name for (name,) in transaction.resource.execute("SELECT name FROM sqlite_schema")]
        assert table in names, names
        sql = f"UPDATE {table} SET {column} = ? WHERE {column} = (SELECT MAX({column}) FROM {table})"
        transaction.resource.execute(sql, (2**63 - 1,))
    memory.index()
    assert {finding.check for finding in memory.doctor().findings} <= {"index-content"}

"""Several memories on one file, several threads on one memory: nobody waits for long, nobody loses anything."""

import re
import threading

import pytest

from klaw_memories.journal_extension import JournalSource

LONG = "\n\n".join(f"# StyledText {number}\n\n" + f"word{number} " * 60 for number in range(30))


def paths(memory):
    return {stored.path for stored in stored_chunks(memory)}


def stored_chunks(memory):
    with memory._assembly.store.read() as snapshot:
        return snapshot.chunks("memory", snapshot.keys("memory").tolist())


def counts(report):
    return report.added, report.changed, report.unchanged, report.removed


def test_two_memories_on_one_file_see_each_others_changes(home, check):
    home.write("a.md", "the harbour")
    with home.open() as first, home.open() as second:
        first.index(home.notes)
        assert second.search("harbour")[0].path == "notes/a.md"
        home.write("b.md", "the lighthouse")
        second.index()
        assert first.search("lighthouse", mode="fts")[0].path == "notes/b.md"
        first.forget("notes/b.md")
        assert not second.search("lighthouse", mode="fts")
        assert counts(second.index()) == (0, 0, 1, 0)
        check(first)
        check(second)


def test_two_memories_can_index_at_the_same_time(home, check, dump):
    for number in range(20):
        home.write(f"{number}.md", LONG.replace("word", f"file{number}word"))
    with home.open() as first, home.open() as second:
        failures = []

        def run(memory):
            try:
                memory.index(home.notes)
            except Exception as error:  # noqa: BLE001  # shown below
                failures.append(error)

        threads = [threading.Thread(target=run, args=(memory,)) for memory in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        check(first)
        assert len(paths(first)) == 20
        before = dump(first)
        assert counts(first.index()) == (0, 0, 20, 0)
        assert dump(second) == before


def test_documents_that_another_run_adds_after_the_scan_stay(home, check, monkeypatch):
    """It is in the manifest and not in the scan, as what was deleted would be."""
    home.write("a.md", "the harbour")
    with home.open() as first, home.open() as second:
        first.index(home.notes)
        from klaw_notes.workspace import Workspace

        scan = Workspace.scan

        def scan_slowly(workspace):
            monkeypatch.setattr(Workspace, "scan", scan)
            found = scan(workspace)
            home.write("b.md", "the lighthouse")
            second.index()
            return found

        monkeypatch.setattr(Workspace, "scan", scan_slowly)
        assert first.index().removed == 0
        assert paths(first) == {"notes/a.md", "notes/b.md"}
        check(first)


def test_texts_saved_during_a_run_stay(home, check, monkeypatch):
    with home.open() as first, home.open() as second:
        first.save("the harbour")
        scan = JournalSource.scan

        def scan_slowly(source):
            monkeypatch.setattr(JournalSource, "scan", scan)
            found = list(scan(source))
            second.save("the lighthouse")
            return found

        monkeypatch.setattr(JournalSource, "scan", scan_slowly)
        assert first.index().removed == 0
        assert first.search("lighthouse")
        check(first)


#: What a search says while a run goes on.
_IN_BETWEEN = re.compile("no vector yet|the last index run has not finished")


@pytest.mark.promise("D6", "D18", "D21")
def test_a_search_during_an_index_run_sees_complete_documents(home, memory, check):
    home.write("a.md", "harbour")
    for number in range(8):
        home.write(f"{number}.md", LONG.replace("word", f"file{number}word"))
    memory.index(home.notes)
    failures = []

    def rewrite():
        try:
            for number in range(8):
                home.write(f"{number}.md", LONG.replace("word", f"new{number}word"), hours=1)
            memory.index()
        except Exception as error:  # noqa: BLE001  # shown below
            failures.append(error)

    thread = threading.Thread(target=rewrite)
    thread.start()
    searched = 0
    while thread.is_alive() or not searched:
        results = memory.search("harbour", limit=3)
        assert results[0].path == "notes/a.md"
        assert not [notice for notice in results.notices if not _IN_BETWEEN.search(notice)]
        searched += 1
    thread.join()
    assert failures == []
    check(memory)


@pytest.mark.promise("D12")
def test_searches_work_during_a_rebuild(home, memory, check):
    for number in range(6):
        home.write(f"{number}.md", LONG.replace("word", f"file{number}word"))
    home.write("a.md", "the harbour")
    memory.index(home.notes)
    failures = []

    def rebuild():
        try:
            for _ in range(3):
                memory.reindex()
        except Exception as error:  # noqa: BLE001  # shown below
            failures.append(error)

    thread = threading.Thread(target=rebuild)
    thread.start()
    searched = 0
    while thread.is_alive() or not searched:
        results = memory.search("harbour", limit=2)
        assert results[0].path == "notes/a.md"
        assert not [notice for notice in results.notices if not _IN_BETWEEN.search(notice)]
        assert len(results[0].explain) == 2, "by words and by vectors"
        searched += 1
    thread.join()
    assert failures == []
    check(memory)


def test_threads_can_share_one_memory(home, memory, check):
    home.write("a.md", LONG)
    memory.index(home.notes)
    failures = []

    def work(number):
        try:
            for part in range(4):
                home.write(f"{number}-{part}.md", f"thread{number} wrote part{part}")
                memory.index()
                saved = memory.save(f"thread{number} saved part{part}")
                assert memory.get(saved.path).content
                assert memory.search(f"thread{number} part{part}")
                memory.forget(saved.path)
        except Exception as error:  # noqa: BLE001  # shown below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    memory.index()
    check(memory)
    assert len(paths(memory)) == 17

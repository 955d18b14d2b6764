"""A file that has not changed is not read; whatever changes in one, an index run finds it."""

import os
import shutil
from datetime import timedelta
from fnmatch import fnmatch
from types import SimpleNamespace

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from klaw_core import NewDocument, Source, StoreReadOnlyError
from klaw_core.plugins.isolation import IsolatedSource
from klaw_notes import walking
from klaw_notes.walking import Patterns, file_state
from klaw_notes.workspace import Workspace
from klaw_testing.laws import scaled


@pytest.fixture
def settled(monkeypatch):
    """Let every file have been written long ago."""
    monkeypatch.setattr(walking, "_TICK", -(10**11))


@pytest.fixture
def reads(monkeypatch):
    """The names of files whose bytes were read."""
    found = []
    original = Workspace._bytes

    def read(self, path):
        found.append(path.name)
        return original(self, path)

    monkeypatch.setattr(Workspace, "_bytes", read)
    return found


def let_the_clock_tick(directory):
    """Wait until a change in this file system has another time than any before."""
    probe = directory / ".tick"
    probe.write_text("")
    first = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == first:
        probe.write_text("x")


def found(memory, words):
    return [result.path for result in memory.search(words, mode="fts")]


def run(memory, **options):
    report = memory.index(**options)
    return report.added, report.changed, report.unchanged, report.removed


class TestReadFiles:
    @pytest.fixture
    def memory(self, home):
        for name in ("a.md", "b.md", "sub/c.md"):
            home.write(name, f"the text of {name}")
        with home.open() as memory:
            yield memory

    @pytest.mark.usefixtures("settled")
    def test_an_unchanged_file_is_not_read(self, home, memory, reads):
        memory.index(home.notes)
        reads.clear()
        assert run(memory) == (0, 0, 3, 0)
        assert reads == []

    @pytest.mark.promise("D29")
    @pytest.mark.usefixtures("settled")
    def test_verify_reads_every_file_and_changes_nothing(self, home, memory, reads, dump):
        memory.index(home.notes)
        before = dump(memory)
        reads.clear()
        assert run(memory, verify=True) == (0, 0, 3, 0)
        assert sorted(reads) == ["a.md", "b.md", "c.md"]
        assert dump(memory) == before

    @pytest.mark.promise("D28")
    def test_a_recently_written_file_is_read_again(self, home, memory, reads, monkeypatch):
        monkeypatch.setattr(walking, "_TICK", 10**15)  # however slow the machine is
        memory.index(home.notes)
        reads.clear()
        assert run(memory) == (0, 0, 3, 0)
        assert len(reads) == 3
        monkeypatch.setattr(walking, "_TICK", -(10**11))
        reads.clear()
        assert run(memory) == (0, 0, 3, 0)
        assert len(reads) == 3, "nothing was noted of it as long as it could change without a trace"
        reads.clear()
        assert run(memory) == (0, 0, 3, 0)
        assert reads == []

    @pytest.mark.promise("D5")
    @pytest.mark.parametrize("change", ["edit", "same size", "old time", "replaced", "link"])
    @pytest.mark.usefixtures("settled")
    def test_every_change_of_a_file_is_found(self, home, memory, check, change):
        memory.index(home.notes)
        path = home.notes / "a.md"
        status = path.stat()
        let_the_clock_tick(home.notes)
        text = "a heron" if change == "edit" else "the heron of" + path.read_text()[len("the heron of") :]
        if change in {"edit", "same size"}:
            path.write_text(text)
        elif change == "old time":
            path.write_text(text)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        else:
            other = home.notes / ".other.md"
            other.write_text(text)
            os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
            if change == "replaced":
                other.replace(path)
            else:
                path.unlink()
                path.symlink_to(other.name)
        assert run(memory) == (0, 1, 2, 0)
        assert found(memory, "heron") == ["notes/a.md"]
        check(memory)

    @pytest.mark.usefixtures("settled")
    def test_a_file_with_new_times_and_equal_bytes_is_not_parsed(self, home, memory, monkeypatch):
        home.write("dated.md", "---\ndate: 2024-02-29\n---\nthe text")
        memory.index(home.notes)
        let_the_clock_tick(home.notes)
        os.utime(home.notes / "dated.md")
        parsed = []
        monkeypatch.setattr("klaw_notes.workspace.read_front_matter", lambda text: parsed.append(text) or ({}, text))
        assert run(memory) == (0, 0, 4, 0)
        assert parsed == []

    @pytest.mark.usefixtures("settled")
    def test_a_touched_note_without_its_own_date_gets_a_new_date(self, home, memory, dump):
        memory.index(home.notes)
        home.date("a.md", 5)
        assert run(memory) == (0, 0, 3, 0)
        dates = {item.path: item.created_at for item in dump(memory)["chunks"]}
        assert dates["notes/a.md"] - dates["notes/b.md"] == timedelta(hours=5)

    @pytest.mark.usefixtures("settled")
    def test_a_changed_setting_reads_the_files_again(self, home, memory, reads):
        memory.index(home.notes)
        reads.clear()
        assert run(memory, directory=home.notes, version="2") == (0, 3, 0, 0)
        assert len(reads) == 3
        reads.clear()
        with home.open(chunking={"type": "plain"}) as other:
            assert run(other) == (0, 3, 0, 0)
            assert len(reads) == 3

    @pytest.mark.usefixtures("settled")
    def test_without_stored_fingerprints_every_run_reads_all_files(self, home, memory, reads, monkeypatch):
        with memory._assembly.store.write() as transaction:
            monkeypatch.setattr(type(transaction), "remember", lambda *_: None)
        memory.index(home.notes)
        reads.clear()
        assert run(memory) == (0, 0, 3, 0)
        assert len(reads) == 3

    @pytest.mark.usefixtures("settled")
    def test_a_fingerprint_that_cannot_be_stored_does_not_end_a_run(self, home, memory, monkeypatch):
        def fail(*_arguments):
            raise StoreReadOnlyError("no")

        memory.index(home.notes)
        let_the_clock_tick(home.notes)
        (home.notes / "a.md").chmod(0o640)
        monkeypatch.setattr("klaw_core.indexing.collection.Collection.remember", fail)
        assert run(memory) == (0, 0, 3, 0)

    @pytest.mark.usefixtures("settled")
    def test_a_smaller_size_limit_applies_to_indexed_files(self, root_of_large):
        entries = {item.path: item.fingerprint for item in evolve(root_of_large, max_bytes=5).scan()}
        assert entries == {"notes/large.md": ""}

    @pytest.fixture
    def root_of_large(self, home):
        shutil.rmtree(home.notes)
        home.write("large.md", "a long text")
        workspace = Workspace(home.notes, "notes")
        assert all(item.fingerprint for item in workspace.scan())
        return workspace


@settings(max_examples=scaled(300))
@given(
    st.integers(1, 2 * 10**9),
    st.lists(st.tuples(st.sampled_from(["edit", "scan"]), st.integers(0, 3 * 10**9)), max_size=30),
)
def test_law_edits_within_a_clock_tick_are_found(tick, events):
    """However coarse the clock of a file system is: equal fingerprints are of one text."""
    now, version, time = 10**18, 0, 10**18
    seen = {}
    for kind, after in events:
        now += after
        if kind == "edit":
            version, time = version + 1, now // tick * tick
            continue
        state = file_state(SimpleNamespace(st_mtime_ns=time, st_ctime_ns=time, st_ino=1, st_size=1), now)
        if state:
            assert seen.setdefault(state, version) == version


@settings(max_examples=scaled(300))
@given(
    st.lists(st.text("ab/*?[]!.-", min_size=1, max_size=6), max_size=4),
    st.text("ab/*?[]!.-", max_size=8),
)
def test_law_compiled_patterns_agree_with_fnmatch(patterns, text):
    """Patterns that were compiled together match what ``fnmatch`` matches one by one."""
    matching = [pattern for pattern in patterns if fnmatch(text, pattern)]
    compiled = Patterns.of(patterns)
    assert compiled.match(text) == bool(matching)
    assert compiled.first(text) == (matching[0] if matching else "")


class Editing(RuleBasedStateMachine):
    """A directory that is edited in every way, and indexed by what its files' times say."""

    names = st.sampled_from(["a.md", "b.md", "sub/c.md", "d.txt"])
    texts = st.sampled_from(
        ["one", "two", "---\ndate: 2024-01-01\n---\none", "---\ndate: 2024-01-01\n---\ntwo", "", "\0"]
    )

    def __init__(self, home, make_home, check, dump):
        super().__init__()
        self.home, self.make_home, self.check, self.dump = home, make_home, check, dump
        self.memory = home.open()
        home.notes.mkdir(exist_ok=True)

    @rule(name=names, text=texts, keep=st.booleans())
    def write(self, name, text, keep):
        path = self.home.notes / name
        status = path.stat() if path.is_file() else None
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        if keep and status is not None:
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    @rule(name=names, other=names)
    def move(self, name, other):
        if (self.home.notes / name).exists():
            (self.home.notes / other).parent.mkdir(exist_ok=True)
            (self.home.notes / name).replace(self.home.notes / other)

    @rule(name=names)
    def remove(self, name):
        (self.home.notes / name).unlink(missing_ok=True)

    @rule(name=names, hours=st.integers(-3, 3))
    def date(self, name, hours):
        if (self.home.notes / name).exists():
            self.home.date(name, hours)

    @rule(verify=st.booleans())
    def index(self, verify):
        self.memory.index(self.home.notes, verify=verify)
        fresh = self.make_home(self.home.backend)
        shutil.copytree(self.home.notes, fresh.notes, dirs_exist_ok=True)
        with fresh.open() as memory:
            memory.index(fresh.notes)
            assert self.dump(self.memory) == self.dump(memory)
        let_the_clock_tick(self.home.notes)

    def teardown(self):
        self.memory.close()


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
@pytest.mark.usefixtures("settled")
def test_after_any_changes_the_index_equals_a_new_one(backend, make_home, check, dump):
    run_state_machine_as_test(
        lambda: Editing(make_home(backend), make_home, check, dump),
        settings=settings(
            max_examples=scaled(12), stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


def test_a_run_reads_an_unchanged_journal_once(home, monkeypatch):
    with home.open() as memory:
        kept, gone = memory.save("the lantern"), memory.save("the pier")
        memory.add([NewDocument("boat", "the boat")])
        memory.index()
        journals, read = (memory._part("saved").journal, memory._part("documents").journal), []
        for kind in {type(journal) for journal in journals}:

            def replaying(journal, replay=kind.replay):
                read.append(journal.location)
                return replay(journal)

            monkeypatch.setattr(kind, "replay", replaying)
        memory._last_runs.clear()  # as in another process
        assert memory.index().unchanged == 3
        assert sorted(read) == sorted(journal.location for journal in journals)
        memory.forget(gone.path)
        assert (memory.index().unchanged, memory.get(kept.path).content) == (2, "the lantern")


def test_an_unchanged_journal_is_not_read_again_by_the_same_process(home, monkeypatch):
    with home.open() as memory, home.open() as other:
        kept, gone = memory.save("the lantern"), memory.save("the pier")
        memory.add([NewDocument("boat", "the boat")])
        memory.index()
        monkeypatch.setattr("klaw_core.indexing.flow.Indexer.write", None)
        assert run(memory) == (0, 0, 3, 0)
        monkeypatch.undo()
        assert run(memory, verify=True) == (0, 0, 3, 0)
        assert run(memory, force=True) == (0, 3, 0, 0)
        other.save("the mill")
        assert run(memory) == (0, 0, 4, 0)
        other.forget(gone.path)
        assert run(memory) == (0, 0, 3, 0)
        with other._assembly.store.write() as transaction:
            transaction.delete("memory", kept.path)  # the index alone
        assert run(memory) == (1, 0, 2, 0)
        assert found(memory, "lantern") == [kept.path]
        other.reindex()
        assert run(memory) == (0, 0, 3, 0)


def test_a_method_named_stamp_does_not_make_a_source_unchanged():
    class Stamping(Source):
        origin = "letters"

        def read(self, entry):
            return entry

        def scan(self):
            return ()

        def stamp(self):
            return "postmark"

    assert IsolatedSource.of(Stamping(), "letters").stamp is None

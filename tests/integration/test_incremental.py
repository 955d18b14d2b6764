"""Whatever happens to the notes between the runs, the index is what a first run over them would have made."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from klaw_testing.laws import scaled

MOMENT = datetime(2026, 2, 24, 12, 0, tzinfo=UTC)
NAMES = ("MEMORY.md", "a.md", "b.md", "sub/c.md", "sub/d[1].md", "2026-01-02.md")
PARTS = (
    "# Harbour\n\nThe pier.",
    "# Auth\n\nTokens, short ones.",
    "память и 内存",
    "word " * 120,
    "- one\n- two",
    "```\nx\n```",
)

names = st.sampled_from(NAMES)
texts = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map("\n\n".join)
hours = st.integers(0, 3)


class Notebook(RuleBasedStateMachine):
    """A person who writes, an embedder that fails at times, and a memory that is to keep up."""

    def __init__(self, home, make_home, check, dump):
        super().__init__()
        self.home, self.make_home, self.check, self.dump = home, make_home, check, dump
        self.memory = self.open(home)
        self.saved = {}  # path to what was saved, and when
        self.excluded = set()
        self.known = False  # whether the workspace was ever indexed
        self.owes = False  # whether vectors are missing because the embedder failed

    def open(self, home):
        return home.open(chunking={"type": "markdown", "max_tokens": 60, "overlap_tokens": 10})

    @rule(name=names, text=texts, hours=hours)
    def write(self, name, text, hours):
        self.home.write(name, text, hours=hours)

    @rule(name=names, junk=st.sampled_from([b"", b"\0", b"\xc3\xa9a\xe9"]))
    def spoil(self, name, junk):
        self.home.write(name, "").write_bytes(junk)

    @rule(name=names)
    def delete(self, name):
        (self.home.notes / name).unlink(missing_ok=True)

    @rule()
    def delete_directory(self):
        shutil.rmtree(self.home.notes / "sub", ignore_errors=True)

    @rule(name=names, other=names)
    def rename(self, name, other):
        if (self.home.notes / name).exists():
            (self.home.notes / other).parent.mkdir(exist_ok=True)
            (self.home.notes / name).replace(self.home.notes / other)

    @rule(name=names, hours=hours)
    def touch(self, name, hours):
        if (self.home.notes / name).exists():
            self.home.date(name, hours)

    @rule(text=texts, hours=hours)
    def save(self, text, hours):
        self.keep(text, hours)

    @rule(text=texts, hours=hours)
    def save_while_the_embedder_fails(self, text, hours):
        self.home.recorder.calls, self.home.recorder.fail_at = 0, 1
        self.keep(text, hours)
        self.home.recorder.fail_at = None
        self.owes = True

    def keep(self, text, hours):
        when = MOMENT + timedelta(hours=hours)
        self.saved[self.memory.save(text, created_at=when).path] = (text, when)

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def forget_what_was_saved(self, data):
        path = data.draw(st.sampled_from(sorted(self.saved)))
        del self.saved[path]
        assert self.memory.forget(path).paths == (path,)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def forget_a_note(self, data):
        indexed = sorted({item.path for item in self.dump(self.memory)["chunks"] if item.origin == "notes"})
        if indexed:
            path = data.draw(st.sampled_from(indexed))
            self.memory.forget(path)
            self.excluded.add(path.removeprefix("notes/"))

    @rule()
    def reopen(self):
        self.memory.close()
        self.memory = self.open(self.home)

    @rule(call=st.integers(1, 3), force=st.booleans())
    def index_while_the_embedder_fails(self, call, force):
        self.home.recorder.calls, self.home.recorder.fail_at = 0, call
        report = self.memory.index(self.home.notes, force=force)
        self.home.recorder.fail_at = None
        self.known, self.owes = True, report.lacking > 0
        if not self.owes:
            self.compare()

    @rule(force=st.booleans())
    def index(self, force):
        self.memory.index(self.home.notes, force=force)
        self.compare()
        self.home.recorder.calls = 0
        again = self.memory.index()
        assert (again.added, again.changed, again.removed, again.embedded) == (0, 0, 0, 0)
        assert self.home.recorder.calls == 0

    @precondition(lambda self: self.known)
    @rule()
    def reindex(self):
        self.memory.reindex()
        self.compare()

    def compare(self):
        """Index the same notes in a fresh home, and find the same."""
        self.known, self.owes = True, False
        fresh = self.make_home(self.home.backend)
        shutil.copytree(self.home.notes, fresh.notes, dirs_exist_ok=True)
        for name in self.excluded:
            (fresh.notes / name).unlink(missing_ok=True)
        with self.open(fresh) as memory:
            for text, when in self.saved.values():
                memory.save(text, created_at=when)
            memory.index(fresh.notes)
            assert self.dump(self.memory) == self.dump(memory)

    @invariant()
    def indexes_agree(self):
        self.check(self.memory, embedded=not self.owes)

    def teardown(self):
        self.memory.close()


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
def test_incremental_equals_full(backend, make_home, check, dump):
    run_state_machine_as_test(
        lambda: Notebook(make_home(backend), make_home, check, dump),
        settings=settings(
            max_examples=scaled(12), stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )

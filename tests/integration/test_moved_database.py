"""klaw.db is moved, deleted or replaced while a memory is open: every call says so, and what is saved is kept."""

import shutil

import pytest

from klaw_core import Chat, Message, NewDocument, StoreError
from klaw_testing.values import MOMENT

CHAT = Chat("telegram", "1")


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


def take_away(data, how, tmp_path):
    """Take the database away from an open memory."""
    if how == "directory":
        data.rename(tmp_path / "moved")
        return
    for suffix in ("", "-wal", "-shm"):
        file = data / f"klaw.db{suffix}"
        if not file.exists():
            continue
        if how == "deleted":
            file.unlink()
        else:
            shutil.move(file, tmp_path / f"moved{suffix}")
    if how == "replaced":
        shutil.copy(tmp_path / "moved", data / "klaw.db")


@pytest.mark.promise("D52")
@pytest.mark.parametrize("how", ["moved", "deleted", "replaced", "directory"])
def test_every_call_says_so(home, tmp_path, caplog, how):
    home.write("a.md", "the lantern")
    with home.open() as memory:
        memory.index(home.notes)
        before = memory.save("the ferry")
        take_away(home.root / "data", how, tmp_path)
        for call in (
            memory.status,
            *([memory.index] if how != "directory" else []),  # the list of workspaces is gone, too
            memory.embed,
            lambda: memory.search("lantern"),
            lambda: memory.forget(before.path),
            memory.documents,
            memory.recent,
        ):
            with pytest.raises(StoreError, match="was moved, deleted or replaced while it was open"):
                call()
        saved = memory.save("the boat")
        assert "not searchable before the next `klaw index`" in saved.notice
        assert "was moved, deleted or replaced" in saved.notice
        report = memory.add([NewDocument("a", "the crane")])
        assert "was moved, deleted or replaced" in report.notices[0]
        memory.conversations.append(Message("user", "the walrus", MOMENT, meta=CHAT.meta))
        assert "was moved, deleted or replaced" in caplog.messages[-1]
        assert any("was moved, deleted or replaced" in finding.what for finding in memory.doctor().findings)
        assert "was moved" in " ".join(memory.context("lantern").notices)
    with home.open() as again:
        again.index()
        for word in ("boat", "crane", "walrus"):
            assert word in again.search(word, mode="fts")[0].content, "it was kept"


def test_a_file_that_a_reindex_has_written_is_the_same_file(home):
    home.write("a.md", "the lantern")
    with home.open() as memory, home.open() as other:
        memory.index(home.notes)
        other.reindex()
        assert memory.search("lantern")
        assert memory.save("the boat").notice == ""
        assert other.search("boat")

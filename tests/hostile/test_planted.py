"""A link that others may have planted in the data directory is not written through."""

import os
import stat
from functools import partial
from pathlib import Path

import pytest

from klaw_core import Agents, Chat, KlawError, Memory, Message
from klaw_core.config.load import load_config
from klaw_testing.values import MOMENT

CHAT = Chat("telegram", "1")
FILES = (
    "saved.jsonl",
    "core_memory.json",
    "workspaces.json",
    "klaw.db",
    "klaw.db-wal",
    "klaw.db.lock",
    "documents.jsonl",
)
# Directories of the data directory, and one of each kind in them.
DIRECTORIES = ("conversations", f"conversations/{CHAT.name}", "summaries", f"summaries/{CHAT.name}", "locks")
WORDS_ONLY = {"embedding": {"type": "none"}, "retrieval": [{"type": "fts5"}]}


def configure(root):
    return load_config(
        data_dir=root / "data", environment={"KLAW_CONFIG": os.devnull}, overrides={"memory": WORDS_ONLY}
    )


def open_memory(root):
    return Memory.open(configure(root))


def use(root: Path) -> None:
    """Write every file that there is, whatever can be written; an error of Klaw's is an answer."""
    notes = root / "notes"
    notes.mkdir(exist_ok=True)
    (notes / "a.md").write_text("the harbour")
    try:
        memory = open_memory(root)
    except KlawError:
        return
    steps = (
        lambda: memory.save("the secret"),
        lambda: memory.core.update("user", "name", "the secret"),
        lambda: memory.index(notes),
        lambda: memory.conversations.append(Message("user", "the secret", MOMENT, meta=CHAT.meta)),
        lambda: memory.conversations.add_summary(CHAT, "the secret", created_at=MOMENT),
    )
    for step in steps:
        try:
            step()
        except KlawError:
            continue
    memory.close()


@pytest.mark.promise("D43", "S3")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
@pytest.mark.parametrize("name", FILES)
def test_a_link_in_a_directory_that_others_write_is_not_written_through(tmp_path, name, mode):
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(mode)
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    (data / name).symlink_to(victim)
    use(tmp_path)
    assert victim.read_bytes() == b""
    assert (data / name).is_symlink()


@pytest.mark.promise("D43", "S3")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to somebody else")
@pytest.mark.parametrize("name", FILES)
def test_a_link_of_somebody_else_is_not_written_through(tmp_path, name):
    data = tmp_path / "data"
    data.mkdir(0o700)
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    (data / name).symlink_to(victim)
    os.lchown(data / name, 1234, 1234)
    use(tmp_path)
    assert victim.read_bytes() == b""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to somebody else")
@pytest.mark.parametrize("name", ["saved.jsonl", "core_memory.json", "workspaces.json", "klaw.db.lock"])
def test_the_doctor_does_not_change_the_mode_of_what_a_planted_link_leads_to(tmp_path, name):
    use(tmp_path)
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    victim.chmod(0o644)
    planted = tmp_path / "data" / name
    with open_memory(tmp_path) as memory:
        planted.unlink()
        planted.symlink_to(victim)
        os.lchown(planted, 1234, 1234)
        memory.doctor(fix=True)
        assert stat.S_IMODE(victim.stat().st_mode) == 0o644


@pytest.mark.parametrize("name", ["saved.jsonl", "core_memory.json", "workspaces.json", "klaw.db"])
def test_a_link_of_ones_own_is_followed(tmp_path, name):
    data = tmp_path / "data"
    data.mkdir(0o700)
    (tmp_path / "elsewhere").mkdir()
    (data / name).symlink_to(tmp_path / "elsewhere" / name)
    use(tmp_path)
    assert (data / name).is_symlink()
    assert (tmp_path / "elsewhere" / name).stat().st_size > 0


def plant_directory(data: Path, name: str) -> Path:
    """Move what a directory holds elsewhere, and leave a link to it in its place; return where it is."""
    elsewhere = data.parent / "elsewhere"
    if (data / name).exists():
        (data / name).rename(elsewhere)
    else:
        elsewhere.mkdir(mode=0o700)
        (data / name).parent.mkdir(mode=0o700, exist_ok=True)
    (data / name).symlink_to(elsewhere)
    return elsewhere


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in sorted(directory.rglob("*"))}


def use_and_remove(root: Path, *, as_doctor: bool) -> None:
    """Do what writes and deletes; an error of Klaw's is an answer."""
    use(root)
    try:
        memory = open_memory(root)
    except KlawError:
        return
    steps = (
        lambda: memory.conversations.purge(CHAT),
        lambda: memory.conversations.add_summary(CHAT, "another secret", created_at=MOMENT),
        memory.index,
        memory.reindex,
        partial(memory.doctor, fix=as_doctor),
    )
    for step in steps:
        try:
            step()
        except KlawError:
            continue
    memory.close()


@pytest.mark.parametrize("lived", [True, False], ids=["with files", "empty"])
@pytest.mark.parametrize("name", DIRECTORIES)
@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_nothing_is_written_below_a_link_that_others_planted(tmp_path, name, mode, lived):
    data = tmp_path / "data"
    data.mkdir()
    if lived:
        use(tmp_path)
    elsewhere = plant_directory(data, name)
    (data / name).parent.chmod(mode)
    before = contents(elsewhere)
    use_and_remove(tmp_path, as_doctor=False)  # it makes the directory private, and the link one's own
    assert contents(elsewhere) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to somebody else")
@pytest.mark.parametrize("name", DIRECTORIES)
def test_nothing_is_written_below_a_link_of_somebody_else(tmp_path, name):
    use(tmp_path)
    elsewhere = plant_directory(tmp_path / "data", name)
    os.lchown(tmp_path / "data" / name, 1234, 1234)
    before = contents(elsewhere)
    use_and_remove(tmp_path, as_doctor=True)
    assert contents(elsewhere) == before


@pytest.mark.needs("klaw-conversations")
def test_a_planted_link_is_named_and_removes_nothing_from_the_index(tmp_path):
    use(tmp_path)
    with open_memory(tmp_path) as memory:
        memory.index()
        plant_directory(tmp_path / "data", "conversations")
        (tmp_path / "data").chmod(0o777)
        with pytest.raises(KlawError, match="conversations is a link that another user may have created"):
            memory.conversations.append(Message("user", "another", MOMENT, meta=CHAT.meta))
        memory.index()
        assert [result.path for result in memory.search("the secret") if result.origin == "conversations"]
        links = [finding for finding in memory.doctor().findings if finding.check == "planted-link"]
        assert [finding.where for finding in links] == [str(tmp_path / "data" / "conversations")]


@pytest.mark.parametrize("name", DIRECTORIES)
def test_a_directory_may_be_a_link_of_ones_own(tmp_path, name):
    use(tmp_path)
    elsewhere = plant_directory(tmp_path / "data", name)
    with open_memory(tmp_path) as memory:
        memory.conversations.append(Message("user", "the lighthouse", MOMENT, meta=CHAT.meta))
        memory.conversations.add_summary(CHAT, "a summary", created_at=MOMENT)
        memory.index()
        memory.reindex()
        assert [result for result in memory.search("lighthouse") if result.origin == "conversations"]
        assert memory.doctor().findings == ()
    assert (tmp_path / "data" / name).is_symlink()
    assert elsewhere.is_dir()


def test_an_agent_does_not_live_behind_a_planted_link(tmp_path):
    data = tmp_path / "data"
    (data / "agents").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (data / "agents" / "ann").symlink_to(tmp_path / "elsewhere")
    with Agents(configure(tmp_path)) as agents:
        agents.memory("ann").save("the harbour")
    (data / "agents").chmod(0o777)
    with Agents(configure(tmp_path)) as agents, pytest.raises(KlawError, match="another user may have created"):
        agents.memory("ann")


def test_the_doctor_looks_at_the_directory(tmp_path):
    use(tmp_path)
    data = tmp_path / "data"
    data.chmod(0o777)
    with open_memory(tmp_path) as memory:
        memory.index()
        (finding,) = memory.doctor().findings
        assert (finding.check, finding.severity, finding.where) == ("permissions", "error", str(data))
        assert "other users can create files there" in finding.what
        assert not [item for item in memory.doctor(fix=True).findings if not item.fixed]
        assert memory.doctor().findings == ()
    assert stat.S_IMODE(data.stat().st_mode) == 0o755

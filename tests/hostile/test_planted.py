"""A link that others may have planted in the data directory is not written through."""

import os
import stat
from pathlib import Path

import pytest

from klaw_core import Chat, KlawError, Memory, Message
from klaw_core.config.load import load_config
from klaw_core.testing.values import MOMENT

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
WORDS_ONLY = {"embedding": {"type": "none"}, "retrieval": [{"type": "fts5"}]}


def open_memory(root):
    config = load_config(
        data_dir=root / "data", environment={"KLAW_CONFIG": os.devnull}, overrides={"memory": WORDS_ONLY}
    )
    return Memory.open(config)


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
    )
    for step in steps:
        try:
            step()
        except KlawError:
            continue
    memory.close()


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

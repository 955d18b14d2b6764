"""The write-ahead log and its shared memory, damaged: nothing crashes, and an index has what was acknowledged."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from klaw_core import Chat, KlawError, Memory, Message
from klaw_core.config.load import load_config
from klaw_testing.values import MOMENT

CHAT = Chat("telegram", "1")
WORDS_ONLY = {"embedding": {"type": "none"}, "retrieval": [{"type": "fts5"}]}
SAVED = [f"the harbour of saved{number}" for number in range(12)]
SAMPLE = 2


def open_memory(root: Path) -> Memory:
    environment = {"KLAW_CONFIG": os.devnull}
    return Memory.open(load_config(data_dir=root / "data", environment=environment, overrides={"memory": WORDS_ONLY}))


@pytest.fixture(scope="module")
def died(tmp_path_factory, campaign):
    """What a process that died has left: a database, a log that holds something, and its shared memory."""
    root = tmp_path_factory.mktemp("died")
    (root / "notes").mkdir()
    for number in range(5):
        (root / "notes" / f"{number}.md").write_text(f"# Note\n\nthe harbour of note{number}\n")

    def live() -> None:
        memory = open_memory(root)
        memory.index(root / "notes")
        for text in SAVED:
            memory.save(text, created_at=MOMENT)
        memory.conversations.append(Message("user", "the harbour was said", MOMENT, meta=CHAT.meta))
        os._exit(0)  # without closing: the log stays

    assert campaign.in_child(live) == ""
    assert (root / "data" / "klaw.db-wal").stat().st_size > 4096
    return root


def look(root: Path) -> None:
    """Open what is left; an error of Klaw's is an answer, and then the way it names leads on."""
    try:
        with open_memory(root) as memory:
            memory.search("harbour")
            memory.doctor(fix=True)
            memory.index()
            check(memory)
    except KlawError:
        make_anew(root)


def make_anew(root: Path) -> None:
    for path in (root / "data").glob("klaw.db*"):  # "move it away, then `klaw index`"
        path.unlink()
    with open_memory(root) as memory:
        memory.index()
        check(memory)


def check(memory: Memory) -> None:
    kept = {result.content for result in memory.search("saved" + " ".join(SAVED), 50)}
    assert set(SAVED) <= kept, set(SAVED) - kept
    for number in range(5):
        assert memory.search(f"note{number}")
    assert memory.conversations.search("harbour")
    assert [finding for finding in memory.doctor().findings if finding.severity == "error"] == []


@pytest.mark.needs("klaw-conversations")
@pytest.mark.parametrize("names", [("klaw.db-wal",), ("klaw.db-shm",), ("klaw.db-wal", "klaw.db-shm")])
def test_a_damaged_log_loses_nothing_that_was_acknowledged(died, tmp_path, campaign, cases, names):
    problems = []
    for number, dice in cases.seeded(" ".join(names), SAMPLE):
        root = tmp_path / str(number)
        shutil.copytree(died, root)
        (root / "data" / "workspaces.json").write_text(
            (root / "data" / "workspaces.json").read_text().replace(str(died), str(root))
        )
        for name in names:
            path = root / "data" / name
            if dice.randrange(8) == 0:
                path.unlink()
                continue
            data = path.read_bytes()
            for _ in range(dice.randrange(1, 4)):
                data = campaign.damaged(data, dice)
            path.write_bytes(data)
        if problem := campaign.in_child(lambda root=root: look(root)):
            problems.append((number, problem[-800:]))
        shutil.rmtree(root)
    assert problems == []

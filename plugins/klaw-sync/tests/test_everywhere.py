"""Three data directories synchronise through a folder, a git repository and a server of S3, while all are written to.

Each machine has two threads: one saves, edits and forgets, the other one synchronises. At the end all have equal
dumps; nothing that was saved is lost, and nothing that was forgotten is in any file but the index, whose
tests are others.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import threading
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import boto3
import pytest
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

from klaw_core import Memory, NotFoundError
from klaw_journals import Chat, Message, NewDocument
from klaw_sync.extension import SyncExtension

MACHINES = ("desk", "laptop", "phone")
CHAT = Chat("telegram", "1")


class Machine:
    """A memory, what it has written, and what it has forgotten."""

    def __init__(self, memory: Memory, name: str, places: list[str], seed: int) -> None:
        self.memory, self.name, self.places, self.chance = memory, name, places, random.Random(f"{seed}{name}")
        self.kept: set[str] = set()
        self.gone: set[str] = set()
        self.saved: dict[str, str] = {}
        self.said: dict[str, str] = {}
        self.count = 0
        self.errors: list[BaseException] = []

    @property
    def sync(self) -> SyncExtension:
        return self.memory.extension(SyncExtension)

    def word(self) -> str:
        self.count += 1
        return f"word{self.name}{self.count:04d}end"

    def write(self, changes: int) -> None:
        """Save, edit and forget, at random."""
        for _ in range(changes):
            self.chance.choice([self.save, self.save, self.edit, self.say, self.set, self.forget, self.unsay])()

    def save(self) -> None:
        word = self.word()
        self.saved[word] = self.memory.save(f"note {word}").path
        self.kept.add(word)

    def edit(self) -> None:
        document = NewDocument(f"doc{self.chance.randrange(4)}", f"text {self.word()}")
        self.memory.add([document])

    def say(self) -> None:
        word = self.word()
        message = Message("user", f"I say {word}", datetime.now(UTC), meta=CHAT.meta)
        self.said[word] = self.memory.conversations.append(message).id
        self.kept.add(word)

    def set(self) -> None:
        key = self.chance.choice(["drink", "food"])
        if self.chance.random() < 0.7:
            self.memory.core.update("user", key, self.word(), trust=self.chance.choice(["owner", "agent"]))
            return
        words = {self.memory.core.get().user.get(key, "")} | {
            fact.value for fact in self.memory.core.history("user", key)
        }
        try:
            self.memory.core.delete("user", key)
        except NotFoundError:
            return
        self.gone |= {word for word in words if word}

    def forget(self) -> None:
        if self.saved:
            word = self.chance.choice(sorted(self.saved))
            self.memory.forget(self.saved.pop(word))
            self.gone.add(word)

    def unsay(self) -> None:
        if self.said:
            word = self.chance.choice(sorted(self.said))
            self.memory.conversations.forget(CHAT, self.said.pop(word))
            self.gone.add(word)

    def in_threads(self, changes: int, runs: int) -> list[threading.Thread]:
        def guarded(work):
            try:
                work()
            except BaseException as error:  # noqa: BLE001  # told by the test
                self.errors.append(error)

        def synchronise():
            for _ in range(runs):
                self.sync.run(self.places)  # a place that another machine changes at this moment is tried again

        works = (lambda: self.write(changes), synchronise)
        return [threading.Thread(target=guarded, args=(work,)) for work in works]

    def dump(self, path: Path) -> list[str]:
        """Return the records of an export that machines share, sorted: the history of core memory is each one's own."""
        self.memory.export(path)
        lines = path.read_text("utf-8").splitlines()
        path.unlink()
        return sorted(line for line in lines if json.loads(line).get("kind") not in {"core_history", "workspace", None})


@pytest.fixture
def places(tmp_path, monkeypatch):
    """The addresses of a folder, a bare git repository, and a bucket of a server of S3."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    config = tmp_path / "config.toml"
    config.write_text('[memory.embedding]\ntype = "none"\n')
    monkeypatch.setenv("KLAW_CONFIG", str(config))
    repository = tmp_path / "shared.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(repository)], check=True)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    s3_backends.reset()
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
    for name, value in {**keys, "AWS_ENDPOINT": address, "AWS_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3", endpoint_url=address, region_name="us-east-1").create_bucket(Bucket="memory")
    yield {"folder": str(tmp_path / "folder"), "git": str(repository), "s3": "s3://memory/of/ann"}
    server.stop()


def _together(root: Path, reached: list[list[str]], seed: int, rounds: int, changes: int) -> None:
    with ExitStack() as stack:
        machines = []
        for name, found in zip(MACHINES, reached, strict=True):
            memory = stack.enter_context(Memory.open(data_dir=root / name))
            machines.append(Machine(memory, name, found, seed))
        first, *others = machines
        code = first.sync.sync.init(first.sync.remotes(first.places)[0])
        first.sync.run(first.places)
        for each in others:
            each.sync.sync.join(each.sync.remotes(each.places)[0], code.code)
            each.sync.run(each.places)
        for _ in range(rounds):
            threads = [thread for each in machines for thread in each.in_threads(changes, 2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert [error for each in machines for error in each.errors] == []
        for _ in range(4):
            reports = [each.sync.run(each.places) for each in machines]
        assert [(report.problems, report.waiting, report.sent) for report in reports] == [((), (), 0)] * 3
        dumps = [each.dump(root / "dump.jsonl") for each in machines]
        assert dumps[0] == dumps[1] == dumps[2]
        gone = set().union(*(each.gone for each in machines))
        kept = set().union(*(each.kept for each in machines)) - gone
        assert [word for word in sorted(kept) if word not in "".join(dumps[0])] == []
        assert len(kept) > 0
    # SQLite leaves copies of rows that it moves in unused parts of its pages; docs/explanation/durability.md says so.
    written = (path for path in sorted(root.rglob("*")) if path.is_file() and path.name != "klaw.db")
    files = [(path, path.read_bytes()) for path in written]
    assert [
        (f"{path.parent.name}/{path.name}", word)
        for path, data in files
        for word in sorted(gone)
        if word.encode() in data
    ] == []
    assert len(gone) > 0


@pytest.mark.parametrize("place", ["folder", "git", "s3"])
def test_three_machines_that_are_written_to_while_they_synchronise(tmp_path, places, place):
    _together(tmp_path, [[places[place]]] * 3, seed=1, rounds=2, changes=8)


def test_each_machine_reaches_two_of_three_places(tmp_path, places):
    pairs = [["folder", "git"], ["git", "s3"], ["s3", "folder"]]
    _together(tmp_path, [[places[name] for name in pair] for pair in pairs], seed=2, rounds=2, changes=8)


@pytest.mark.one_of(9)
@pytest.mark.parametrize("seed", range(3, 6))
@pytest.mark.parametrize("place", ["folder", "git", "s3"])
def test_many_changes_on_three_machines(tmp_path, places, place, seed):
    _together(tmp_path, [[places[place]]] * 3, seed=seed, rounds=6, changes=40)

"""A directory or a named pipe in the place of a file that Klaw reads: an error or a notice, never a wait."""

import os
import shutil
import signal
from datetime import datetime

import pytest

from klaw_core import Memory, Message

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")

#: What is made again if it is missing, so that nothing need be said.
DERIVED = ("skipped.json", "recalls.jsonl")
COMMANDS = (
    "status",
    "search lantern",
    "index",
    "doctor",
    "config get memory.store",
    "save Light.",
    "facts list",
    "recent",
)
_SECONDS = 60  # more than any command takes


class WaitsForeverError(BaseException):
    """A command waits; no ``except`` of the program catches this."""


@pytest.fixture
def used(indexed, notes):
    """A home in which features have left their files."""
    (notes / "broken.md").write_bytes(b"\xff\xfe\x00")
    with Memory.open() as memory:
        said = datetime.fromisoformat("2026-03-01T12:00:00+00:00")
        memory.conversations.append(Message("user", "A lantern?", said, meta={"channel": "mail", "chat_id": "1"}))
    for command in (
        ("save", "The lantern is in the shed."),
        ("remember", "The lantern is green."),
        ("core", "set", "user", "name", "Ada"),
        ("index",),
        ("search", "lantern"),
    ):
        done = indexed(*command)
        assert done.exit_code == 0, (command, done.stderr)
    return indexed


def files_of(user_home):
    """Return the files of Klaw, without those that SQLite makes."""
    places = (user_home / name / "klaw" for name in ("config", "data", "cache"))
    found = (path for place in places for path in place.rglob("*") if path.is_file())
    return sorted(path for path in found if not path.name.endswith(("-wal", "-shm")))


def stop(*_):
    raise WaitsForeverError


@pytest.fixture
def alarm():
    """Interrupt what waits."""
    before = signal.signal(signal.SIGALRM, stop)
    yield signal.alarm
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_every_file_may_be_something_else(used, user_home, make, tmp_path, alarm):
    copy = tmp_path / "copy"
    shutil.copytree(user_home, copy)
    wrong = []
    files = files_of(user_home)
    assert {"config.toml", "klaw.db", "workspaces.json", "saved.jsonl", "skipped.json"} <= {file.name for file in files}
    for file in files:
        name = str(file.relative_to(user_home))
        shutil.rmtree(user_home)
        shutil.copytree(copy, user_home)
        os.chdir(user_home / "work")
        file.unlink()
        make(file)
        said = ""
        for command in COMMANDS:
            alarm(_SECONDS)
            try:
                done = used(*command.split())
            except WaitsForeverError:
                wrong.append(f"klaw {command} waits for {name}")
                continue
            finally:
                alarm(0)
            told = done.stdout + done.stderr
            said += told
            if not isinstance(done.exception, SystemExit | None):
                wrong.append(f"klaw {command}: {done.exception!r} because of {name}")
            elif done.exit_code and file.name not in told:
                wrong.append(f"klaw {command} fails and does not name {name}: {done.stderr}")
        if not (name.startswith("cache") or file.name in DERIVED or file.name in said):
            wrong.append(f"no command names {name}")
    assert wrong == []

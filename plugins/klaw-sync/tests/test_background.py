"""Synchronisation by itself: in a thread, and inside a server."""

from __future__ import annotations

import asyncio
import threading

import pytest

from klaw_core import KlawError, Memory, load_config
from klaw_sync import Folder, Sync, SyncReport
from klaw_sync.app import make, start
from klaw_sync.background import Synchroniser


@pytest.fixture
def memory(tmp_path):
    """A memory that is shared through a folder."""
    Sync(tmp_path / "data").init(Folder(tmp_path / "folder"))
    options = {"remotes": [str(tmp_path / "folder")], "interval_seconds": 3600}
    overrides = {"memory": {"embedding": {"type": "none"}}, "extensions": {"sync": options}}
    config = load_config(data_dir=tmp_path / "data", overrides=overrides, environment={"KLAW_CONFIG": "/dev/null"})
    with Memory.open(config) as opened:
        yield opened


@pytest.mark.parametrize(
    ("error", "problem"), [(KlawError("no network"), "no network"), (OSError("no disk"), "OSError: no disk")]
)
def test_it_runs_again_until_it_is_stopped(error, problem):
    runs = []
    third = threading.Event()

    def run():
        runs.append(len(runs))
        if len(runs) == 3:
            third.set()
        if len(runs) == 2:
            raise error
        return SyncReport()

    told = []
    running = Synchroniser(run, 0.0, told.append)
    running.start()
    assert third.wait(300)
    running.stop()
    assert told[1].problems == (problem,)


def test_a_server_synchronises_what_is_configured(memory, tmp_path):
    memory.save("the lantern")
    running = start(memory)
    assert running is not None
    running.stop()
    assert list((tmp_path / "folder").rglob("*.kseg"))


@pytest.mark.parametrize("read_only", [False, True])
def test_the_app_starts_and_stops(memory, tmp_path, read_only):
    memory.save("the lantern")
    sent = []

    async def live():
        inbox = asyncio.Queue()
        for what in ("startup", "shutdown"):
            inbox.put_nowait({"type": f"lifespan.{what}"})

        async def send(message):
            sent.append(message["type"])

        await make(memory, read_only=read_only)({"type": "lifespan"}, inbox.get, send)

    asyncio.run(live())
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert bool(list((tmp_path / "folder").rglob("*.kseg"))) != read_only


def test_a_memory_that_is_not_shared_is_left_alone(tmp_path):
    config = load_config(
        data_dir=tmp_path / "data",
        overrides={
            "memory": {"embedding": {"type": "none"}},
            "extensions": {"sync": {"remotes": [str(tmp_path / "f")]}},
        },
        environment={"KLAW_CONFIG": "/dev/null"},
    )
    with Memory.open(config) as memory:
        assert start(memory) is None

"""Synchronisation by itself: in a thread, and inside a server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from attrs import evolve

from klaw_core import KlawError, Memory, load_config
from klaw_sync import Folder, Sync, SyncReport
from klaw_sync.app import make
from klaw_sync.background import Synchroniser
from klaw_sync.extension import SyncExtension


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
@pytest.mark.promise("Y2")
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
    stop = memory.extension(SyncExtension).start()
    assert stop is not None
    stop()
    assert list((tmp_path / "folder").rglob("*.kseg"))


def lived(app):
    """Return what an application answers to a server that starts and stops."""
    sent = []

    async def live():
        inbox = asyncio.Queue()
        for what in ("startup", "shutdown"):
            inbox.put_nowait({"type": f"lifespan.{what}"})

        async def send(message):
            sent.append(message)

        await app({"type": "lifespan"}, inbox.get, send)

    asyncio.run(live())
    return sent


@pytest.mark.parametrize("read_only", [False, True])
def test_the_app_starts_and_stops(memory, tmp_path, read_only):
    memory.save("the lantern")
    sent = [message["type"] for message in lived(make(memory, read_only=read_only))]
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
        assert memory.extension(SyncExtension).start() is None


def test_a_mistake_in_a_place_is_told_the_server(memory):
    options = memory.extension(SyncExtension).options
    memory.extension(SyncExtension).options = evolve(options, remotes=(str(memory.config.data_dir),))
    failed, done = lived(make(memory))
    assert (failed["type"], done["type"]) == ("lifespan.startup.failed", "lifespan.shutdown.complete")
    assert "choose a folder of its own" in failed["message"]


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be asked to end there")
def test_klaw_watch_synchronises_too(memory, tmp_path):
    memory.save("the lantern")
    config = tmp_path / "config.toml"
    place = json.dumps(str(tmp_path / "folder"))
    config.write_text(f'[memory.embedding]\ntype = "none"\n[extensions.sync]\nremotes = [{place}]\n')
    command = [sys.executable, "-m", "klaw_core", "watch", "--data-dir", str(memory.config.data_dir)]
    environment = {**os.environ, "KLAW_CONFIG": str(config)}
    with subprocess.Popen(command, env=environment) as process:
        patience = threading.Timer(300, process.kill)
        patience.start()
        while process.poll() is None and not list((tmp_path / "folder").rglob("*.kseg")):
            time.sleep(0.05)
        process.terminate()
        assert process.wait(300) == 0
        patience.cancel()
    assert list((tmp_path / "folder").rglob("*.kseg"))

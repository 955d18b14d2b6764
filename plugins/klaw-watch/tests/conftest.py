"""A memory of notes, found by words, and a watcher over it, whose runs are waited for."""

import json
import os
import queue
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import define, field
from homes import make_home

from klaw_core import Memory, load_config
from klaw_watch import Watcher
from klaw_watch.extension import WatchExtension

__all__ = ["make_home"]

# No run takes longer, on any machine; nothing is measured by it.
PATIENCE = 300


@define(eq=False)
class Home:
    """A directory with notes, a data directory and a configuration."""

    path: Path

    @property
    def notes(self):
        return self.path / "notes"

    @property
    def data(self):
        return self.path / "data"

    def write(self, name, text):
        file = self.notes / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return file

    def configure(self, *, on_search=False, **options):
        settings = {"debounce_ms": 20, **options}
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        head = ["[memory.embedding]", 'type = "none"', "[memory.sync]", f"on_search = {json.dumps(on_search)}"]
        text = "\n".join([*head, "[extensions.watch]", *lines])
        (self.path / "klaw.toml").write_text(text, "utf-8")

    def open(self):
        return Memory.open(load_config(config_file=self.path / "klaw.toml", data_dir=self.data))

    def finds(self, text):
        with self.open() as memory:
            return any(text in result.content for result in memory.search(text, mode="fts"))

    @property
    def command(self):
        places = ["--config", str(self.path / "klaw.toml"), "--data-dir", str(self.data)]
        return [sys.executable, "-m", "klaw_core", "watch", "--json", *places]

    @contextmanager
    def process(self):
        """Start ``klaw watch`` as a process of its own; end it at the end of the block."""
        started = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
        try:
            yield started
        finally:
            if started.poll() is None:
                started.send_signal(signal.SIGKILL)
            started.communicate()


@define(eq=False)
class Watched:
    """A watcher in this process."""

    memory: Memory
    watcher: Watcher
    runs: queue.Queue = field(factory=queue.Queue)

    def until(self, condition, reason=""):
        """Wait for runs until a condition holds; return the last."""
        while True:
            run = self.runs.get(timeout=PATIENCE)
            assert run.error is None, run.error
            if condition() and (not reason or reason in run.reasons):
                return run

    def finds(self, text):
        return any(text in result.content for result in self.memory.search(text, mode="fts"))

    def until_found(self, text, reason="watch"):
        return self.until(lambda: self.finds(text), reason)

    def until_lost(self, text):
        return self.until(lambda: not self.finds(text), "watch")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KLAW_CONFIG", "KLAW_DATA_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    home = Home(Path(os.path.realpath(tmp_path)))
    home.configure()
    home.write("a.md", "# Harbour\n\nThe harbour gate opens at seven.\n")
    with home.open() as memory:
        memory.index(home.notes)
    return home


@pytest.fixture
def watch(home):
    """Watch the memory in this process, and wait until what there is at the start is indexed."""

    @contextmanager
    def started(**options):
        with home.open() as memory:
            watched = Watched(memory, None)
            with Watcher(memory, watched.runs.put, look_seconds=0.05, **options) as watched.watcher:
                assert watched.watcher.wait_ready(PATIENCE)
                if memory.extension(WatchExtension).options.on_start:
                    assert watched.runs.get(timeout=PATIENCE).reasons == ("start",)
                yield watched

    return started

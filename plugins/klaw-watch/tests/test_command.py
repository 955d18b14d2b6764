"""``klaw watch`` as a process: signals, sudden death, a second one, the unit of systemd."""

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from klaw_core import KlawError
from klaw_core.cli.kit import Settings, systemd_unit
from klaw_core.cli.program import cli
from klaw_journals import RunningExtension
from klaw_watch.command import _start_others
from klaw_watch.loop import _STOPPED_SECONDS
from klaw_watch.state import WatchDirectory

# No run takes longer, on any machine; nothing is measured by it.
PATIENCE = 300


def until(process, *triggers):
    """Read runs until one of these triggers; return its result. A process without one is killed after a while."""
    patience = threading.Timer(PATIENCE, process.kill)
    patience.start()
    try:
        for line in process.stdout:
            run = json.loads(line)
            if not set(triggers).isdisjoint(run["triggers"]):
                return run["result"]
    finally:
        patience.cancel()
    raise AssertionError(f"no run of {triggers}: {process.stderr.read()}")


def test_watch_indexes_changes_until_it_is_stopped(home):
    home.write("b.md", "A lantern.\n")
    with home.process() as process:
        assert until(process, "start") == "1 new"
        home.write("c.md", "A buoy.\n")
        assert until(process, "watch") == "1 new"
        assert home.finds("buoy")
        process.send_signal(signal.SIGHUP)
        assert until(process, "forced") == "3 changed"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0
        assert "watching 1 place, notified by the system" in said
    state = WatchDirectory.of(home.data).read()
    assert (state.pid, state.stopped) == (process.pid, True)
    with home.open() as memory:
        assert memory.doctor().healthy


@pytest.mark.parametrize(
    "line",
    [
        *("index", "index --force", "search buoy", "context buoy", "get notes/b.md", "forget notes/b.md --yes"),
        *("save Fog.", "reindex", "doctor", "doctor --fix", "status", "export all.jsonl"),
    ],
)
def test_no_command_waits_for_what_the_watcher_holds(home, line, monkeypatch, caplog):
    home.configure(on_search=True)
    home.write("b.md", "A buoy.\n")
    monkeypatch.chdir(home.path)
    monkeypatch.setattr("klaw_core.files.held.FILE_LOCK_SECONDS", 0)
    with WatchDirectory.of(home.data).only_watcher():
        for words in (["index"], line.split()):
            done = CliRunner().invoke(cli, [*words, *home.command[4:]])
            home.write("b.md", "A red buoy.\n")
            assert (done.exit_code, "locked by" in done.output + caplog.text) == (0, False), done.output


def test_a_kill_at_any_moment_loses_nothing(home):
    for number in range(2):
        with home.process() as process:
            until(process, "start")
            for note in range(30):
                home.write(f"{number}/{note}.md", f"Heron {number} of {note}.\n")
            if number % 2:
                until(process, "watch")  # some are written, and others perhaps not
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE)
        with home.open() as memory:
            (died,) = [item for item in memory.doctor().findings if item.check == "watcher"]
            assert f"process {process.pid}" in died.what
    with home.process() as process:
        until(process, "start")
        process.send_signal(signal.SIGTERM)
        process.wait(300)
    with home.open() as memory:
        assert len(list(memory.documents(limit=1000))) == 1 + 2 * 30
        assert memory.doctor().healthy


def queue_of_the_kernel() -> int:
    """Return how many events the kernel keeps for a reader (Linux); skip the test if it cannot fill the queue."""
    queue = Path("/proc/sys/fs/inotify/max_queued_events")
    fits = int(queue.read_text("ascii")) if queue.exists() else sys.maxsize
    if fits > 100_000:
        pytest.skip("the queue is longer than a test can fill, or the system does not tell")
    return fits


def test_changes_beyond_the_queue_of_the_kernel_are_found(home):
    fits = queue_of_the_kernel()
    files = [home.write(f"busy{number}.md", "A heron.\n") for number in range(2)]
    with home.process() as process:
        until(process, "start")
        process.send_signal(signal.SIGSTOP)
        for _ in range(fits // 4):  # two events each at least; of two files in turns, or they would count as one
            for file in files:
                with file.open("a") as opened:
                    opened.write(".")
        home.write("late.md", "A lantern.\n")
        time.sleep(_STOPPED_SECONDS + 1)  # a fast machine fills the queue sooner than a stop is noticed
        process.send_signal(signal.SIGCONT)
        while not home.finds("lantern"):
            until(process, "watch", "resume")
        assert home.finds("lantern")


def test_a_change_elsewhere_during_a_queue_overflow_is_found(home):
    """The process stops too shortly to notice; but it hears of so many files that more may have been lost."""
    fits = queue_of_the_kernel()
    other = home.path / "other"
    other.mkdir()
    with home.open() as memory:
        memory.index(other)
    with home.process() as process:
        until(process, "start")
        process.send_signal(signal.SIGSTOP)
        for number in range(fits * 2 // 3):  # two events each at least: made, and closed
            (home.notes / f"{number}.tmp").touch()
        (other / "late.md").write_text("A lantern.\n", "utf-8")
        process.send_signal(signal.SIGCONT)
        while not home.finds("lantern"):
            until(process, "watch")


def test_a_second_watcher_names_the_process_of_the_first(home):
    with home.process() as process:
        until(process, "start")
        second = subprocess.run(home.command, capture_output=True, text=True, check=False, timeout=300)
        assert second.returncode == 1
        assert f"process {process.pid}" in second.stderr
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0


def test_the_systemd_unit_starts_this_command(home):
    done = CliRunner().invoke(cli, ["watch", "--unit", "--data-dir", str(home.data)])
    assert done.exit_code == 0, done.output
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ExecStart=")]
    assert line.split(" ", 1)[0].startswith("ExecStart=/")
    assert line.endswith(f"watch --data-dir {home.data}")
    assert not WatchDirectory.of(home.data).is_watched()


@pytest.mark.parametrize(
    ("word", "quoted"),
    [("/a b", '"/a b"'), ("/50%", "/50%%"), ("/$HOME", "/$$HOME"), ('/a"b', '"/a\\"b"'), ("/a;b", '"/a;b"')],
)
def test_the_systemd_unit_quotes_its_arguments(word, quoted):
    shown = systemd_unit(word, ["/bin/klaw", "watch", "--data-dir", word])
    assert f"ExecStart=/bin/klaw watch --data-dir {quoted}\n" in shown


class Runs(RunningExtension):
    name = "runs"

    def __init__(self, answer):
        self.answer = answer

    def start(self):
        if isinstance(self.answer, KlawError):
            raise self.answer
        return self.answer


def test_extensions_that_run_by_themselves_are_started(home, capsys):
    def stop():
        pass

    with home.open() as memory:
        named = {"broken": KlawError("no place"), "idle": None, "busy": stop}
        for name, answer in named.items():
            memory.extensions.all()
            memory.extensions._built[name] = Runs(answer)
        assert _start_others(Settings(), memory) == [stop]
    assert "the extension broken does not run: no place" in capsys.readouterr().err

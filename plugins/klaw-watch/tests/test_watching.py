"""What changes is indexed: with real files, by the settings, whatever becomes of directories."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import pytest

from klaw_core import Chat, Message, StoreLockedError
from klaw_watch import Watcher, triggers
from klaw_watch.app import make
from klaw_watch.state import WatchDirectory


class TestFiles:
    def test_new_changed_and_removed_notes_are_indexed(self, home, watch):
        with watch() as watched:
            file = home.write("b.md", "A lantern on the pier.\n")
            run = watched.until_found("lantern")
            assert (run.report.added, run.report.unchanged) == (1, 0), "nothing else was looked at"
            file.write_text("A buoy on the pier.\n", "utf-8")
            watched.until_found("buoy")
            file.unlink()
            watched.until_lost("buoy")
            assert watched.finds("harbour")

    def test_the_ways_in_which_editors_save_are_detected(self, home, watch):
        with watch() as watched:
            file = home.notes / "a.md"
            beside = home.notes / ".a.md.swp"
            beside.write_text("Saved by renaming.\n", "utf-8")
            beside.replace(file)
            watched.until_found("renaming")
            with file.open("r+", encoding="utf-8") as opened:
                opened.truncate()
                opened.flush()
                opened.write("Saved by truncating.\n")
            watched.until_found("truncating")
            file.rename(home.notes / "a.md~")
            home.write("a.md", "Saved with a backup.\n")
            watched.until_found("backup")
            assert len(list(watched.memory.documents())) == 1

    def test_created_moved_and_removed_directories_are_indexed(self, home, watch, tmp_path):
        outside = tmp_path / "outside"
        (outside / "deep").mkdir(parents=True)
        for number in range(3):
            (outside / "deep" / f"{number}.md").write_text(f"Heron {number} stands there.\n", "utf-8")
        with watch() as watched:
            outside.rename(home.notes / "birds")
            watched.until(lambda: all(watched.finds(f"Heron {number}") for number in range(3)), "watch")
            home.write("birds/deep/late.md", "A pelican.\n")
            watched.until_found("pelican")
            (home.notes / "birds").rename(home.notes / "fowl")
            watched.until(lambda: {path.split("/")[1] for path in paths(watched)} == {"a.md", "fowl"})
            (home.notes / "fowl").rename(tmp_path / "gone")
            watched.until(lambda: paths(watched) == ["notes/a.md"])

    def test_many_changes_cause_a_full_run(self, home, watch, monkeypatch):
        monkeypatch.setattr(triggers, "MAX_FILES", 5)
        with watch() as watched:
            for number in range(60):
                home.write(f"many/{number}.md", f"Heron {number}.\n")
            watched.until(lambda: len(paths(watched)) == 61, "watch")

    def test_a_change_of_ignore_rules_updates_the_index(self, home, watch):
        home.write("drafts/d.md", "A draft of a lantern.\n")
        with watch() as watched:
            assert watched.finds("lantern")
            home.write(".gitignore", "drafts/\n")
            watched.until_lost("lantern")

    def test_files_that_are_not_notes_cause_no_run(self, home, watch):
        with watch() as watched:
            home.write(".git/objects/x.md", "A lantern.\n")
            home.write("node_modules/y.md", "A lantern.\n")
            home.write("b.md", "A buoy.\n")
            run = watched.until_found("buoy")
            assert (run.report.added, run.report.skipped) == (1, ())


def paths(watched):
    return [record.path for record in watched.memory.documents()]


class TestRoots:
    def test_a_missing_directory_keeps_its_documents_until_it_returns(self, home, watch, tmp_path):
        with watch() as watched:
            home.notes.rename(tmp_path / "away")
            wait_for(lambda: "not found" in watched.watcher.state.problem)
            assert watched.finds("harbour")
            home.write("b.md", "A lantern.\n")  # another directory of that name
            watched.until_found("lantern")
            assert watched.watcher.state.problem == ""
            assert not watched.finds("harbour")
            home.write("c.md", "A buoy.\n")
            watched.until_found("buoy")

    def test_a_directory_that_another_process_adds_is_watched(self, home, watch, tmp_path):
        other = tmp_path / "journal"
        other.mkdir()
        with watch() as watched:
            with home.open() as memory:
                memory.index(other)
            wait_for(lambda: watched.watcher.state.watched == 2)
            (other / "x.md").write_text("A lantern.\n", "utf-8")
            watched.until_found("lantern")

    def test_a_temporarily_broken_list_of_directories_is_tolerated(self, home, watch):
        with watch() as watched:
            file = home.data / "workspaces.json"
            sound = file.read_text("utf-8")
            file.write_text("{", "utf-8")
            wait_for(lambda: "workspaces.json" in watched.watcher.state.problem)
            file.write_text(sound, "utf-8")
            wait_for(lambda: watched.watcher.state.problem == "")
            home.write("b.md", "A lantern.\n")
            watched.until_found("lantern")

    @pytest.mark.parametrize("handles", [3, 12], ids=["at the start", "later"])
    def test_without_handles_files_are_polled(self, home, handles):
        """In a user namespace of its own, which has its own count of handles."""
        for number in range(8):
            home.write(f"{number}/x.md", f"Heron {number}.\n")
        script = f"""
import queue, time
from functools import partial
from pathlib import Path
from klaw_core import Memory, load_config
from klaw_watch import Watcher, watcher
watcher.FileEvents = partial(watcher.FileEvents, scan_ms=100)
runs = queue.Queue()
with Memory.open(load_config(config_file={str(home.path / "klaw.toml")!r}, data_dir={str(home.data)!r})) as memory:
    with Watcher(memory, runs.put) as watching:
        runs.get(timeout=300)
        file = Path({str(home.notes / "1/2/3/4/5/6/7/8/9/x.md")!r})
        file.parent.mkdir(parents=True)
        while not watching.state.scanning:
            time.sleep(0.01)
        file.write_text("A lantern.")
        while not memory.search("lantern", mode="fts"):
            assert runs.get(timeout=300).error is None
        print(memory.extension("watch").status()["watcher"], [f.severity for f in memory.extension("watch").check()])
"""
        limited = f'echo {handles} > /proc/sys/user/max_inotify_watches && exec "$0" -c "$1"'
        command = ["unshare", "-Ur", "sh", "-c", limited, sys.executable, script]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        except FileNotFoundError:
            pytest.skip("there is no unshare here")
        if "max_inotify_watches" in done.stderr or "unshare" in done.stderr:
            pytest.skip("no user namespace can be made here")
        assert done.returncode == 0, done.stderr
        assert "checking every file" in done.stdout
        assert "note" in done.stdout


class TestTriggers:
    def test_changes_before_the_start_are_found_unless_configured_otherwise(self, home, watch):
        home.write("b.md", "A lantern.\n")
        home.configure(on_start=False)
        with watch() as watched:
            home.write("c.md", "A buoy.\n")
            watched.until_found("buoy")
            assert not watched.finds("lantern")
        home.configure()
        with watch() as watched:
            assert watched.finds("lantern")

    def test_without_watching_files_a_forced_run_finds_them(self, home, watch):
        home.configure(watch=False)
        with watch() as watched:
            home.write("b.md", "A lantern.\n")
            watched.watcher.request()
            watched.until_found("lantern", "forced")

    def test_intervals_and_sleep_of_the_machine_cause_a_run(self, home, watch, monkeypatch):
        home.configure(watch=False, interval_minutes=1)
        slept, passed = [0.0], [0.0]
        monkeypatch.setattr("klaw_watch.loop.time.monotonic", lambda: time.perf_counter() + passed[0])
        with watch(get_slept=lambda: slept[0]) as watched:
            home.write("b.md", "A lantern.\n")
            passed[0] += 61
            watched.until_found("lantern", "interval")
            home.write("c.md", "A buoy.\n")
            slept[0] += 3600
            watched.until_found("buoy", "resume")

    def test_a_stop_of_the_process_causes_a_run(self, home, watch, monkeypatch):
        """The kernel's queue of changes may have overflowed meanwhile."""
        home.configure(watch=False)
        passed = [0.0]
        monkeypatch.setattr("klaw_watch.loop.time.monotonic", lambda: time.perf_counter() + passed[0])
        with watch() as watched:
            home.write("b.md", "A lantern.\n")
            passed[0] += 4
            watched.until_found("lantern", "resume")

    @pytest.mark.parametrize("waits", [{"conversation_messages": 3}, {"conversation_bytes": 700}])
    def test_conversations_wait_for_enough_messages(self, home, watch, waits):
        home.configure(**waits)
        with home.open() as memory:
            say(memory, "An anchor.")
        with watch() as watched:
            say(watched.memory, "A lantern.")
            assert watched.watcher._indexer.wait(300)
            home.write("b.md", "A kiln.\n")  # indexed after what was said
            watched.until_found("kiln")
            assert watched.finds("anchor")
            assert not watched.finds("lantern")
            for number in range(3):
                say(watched.memory, f"A buoy, number {number}.")
            watched.until_found("lantern", "conversation")
            assert watched.finds("buoy")

    def test_without_thresholds_conversations_are_indexed_like_files(self, watch):
        with watch() as watched:
            say(watched.memory, "A lantern.")
            wait_for(lambda: watched.watcher.state.watched == 2)
            watched.until(lambda: watched.finds("lantern"))
            say(watched.memory, "A buoy.")
            watched.until_found("buoy", "conversation")


def say(memory, text):
    memory.conversations.append(Message("user", text, datetime.now(UTC), meta=Chat("telegram", "1").meta))


def wait_for(condition):
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class TestState:
    def test_status_names_every_trigger_and_its_last_run(self, home, watch):
        with home.open() as memory:
            before = memory.status().statistics
            assert before["watcher"] == "not running"
        with watch() as watched:
            home.write("b.md", "A lantern.\n")
            watched.until_found("lantern")
            during = watched.memory.status().statistics
            assert during["watcher"].startswith("process ")
            assert during["sync_start"].endswith("nothing new")
            assert during["sync_watch"].endswith("1 new")
            names = ("search", "start", "watch", "conversation", "interval", "forced", "resume")
            assert {f"sync_{name}" for name in names} <= set(during)
            assert watched.memory.doctor().healthy
        with home.open() as memory:
            after = memory.status().statistics
            assert after["watcher"] == "not running"
            assert after["sync_watch"] == during["sync_watch"]
            assert memory.doctor().healthy

    def test_runs_of_other_processes_are_named_with_their_reason(self, home):
        home.configure(on_search=True)
        home.write("b.md", "A lantern.\n")
        with home.open() as memory:
            assert memory.status().statistics["sync_search"] == "on"
            assert memory.search("lantern", mode="fts")
            assert memory.status().statistics["sync_search"].endswith(": 1 new")
            memory.index(force=True)
            assert memory.status().statistics["sync_forced"].endswith(": 2 changed")

    def test_a_data_directory_has_at_most_one_watcher(self, home, watch):
        refused = pytest.raises(StoreLockedError, match="is running \\(process")
        with watch(), home.open() as memory, refused:
            Watcher(memory).start()
        with watch():
            assert WatchDirectory.of(home.data).is_watched()
        assert not WatchDirectory.of(home.data).is_watched()

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "runs": {"a": 1}}'])
    def test_an_invalid_state_file_is_ignored(self, home, text):
        directory = WatchDirectory.of(home.data)
        directory.path.mkdir()
        (directory.path / "state.json").write_text(text, "utf-8")
        assert directory.read() is None
        with home.open() as memory:
            assert memory.status().statistics["watcher"] == "not running"

    def test_stopping_waits_for_a_run_at_most_the_given_time(self, home, watch, monkeypatch):
        with watch() as watched:
            entered, leave = threading.Event(), threading.Event()
            index = type(watched.memory).index

            def slow(*arguments, **options):
                entered.set()
                assert leave.wait(300)
                return index(*arguments, **options)

            monkeypatch.setattr(type(watched.memory), "index", slow)
            home.write("b.md", "A lantern.\n")
            assert entered.wait(300)
            assert not watched.watcher.stop(0.01)
            with home.open() as memory:  # whoever has told it to end may end the process now
                state = WatchDirectory.of(home.data).read()
                assert state.stopped
                assert [item.check for item in memory.doctor().findings if item.check == "watcher"] == []
            leave.set()
            assert watched.watcher.stop()
        with watch() as watched:  # on a busy machine the run stopped before the note, and the next start takes it
            assert watched.finds("lantern")

    def test_problems_of_a_run_are_reported(self, home, watch, monkeypatch):
        with watch() as watched:
            monkeypatch.setattr(
                type(watched.memory), "index", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("a bug"))
            )
            home.write("b.md", "A lantern.\n")
            run = watched.runs.get(timeout=300)
            assert str(run.error) == "a bug"
            monkeypatch.undo()
            wait_for(lambda: watched.watcher.state.runs["watch"].result == "a bug")


def test_a_watcher_can_run_inside_a_server(home):
    asyncio.run(_serve(home))


async def _serve(home):
    inbox, outbox = asyncio.Queue(), asyncio.Queue()
    with home.open() as memory:
        app = asyncio.ensure_future(make(memory)({"type": "lifespan"}, inbox.get, outbox.put))
        inbox.put_nowait({"type": "lifespan.startup"})
        assert (await outbox.get())["type"] == "lifespan.startup.complete"
        second = asyncio.ensure_future(make(memory)({"type": "lifespan"}, (other := asyncio.Queue()).get, outbox.put))
        other.put_nowait({"type": "lifespan.startup"})
        failed = await outbox.get()
        assert (failed["type"], "is running" in failed["message"]) == ("lifespan.startup.failed", True)
        second.cancel()
        home.write("b.md", "A lantern.\n")
        await asyncio.to_thread(wait_for, lambda: memory.search("lantern", mode="fts"))
        inbox.put_nowait({"type": "lifespan.shutdown"})
        assert (await outbox.get())["type"] == "lifespan.shutdown.complete"
        await app
        assert not WatchDirectory.of(home.data).is_watched()
        await make(memory)({"type": "http"}, inbox.get, outbox.put)
        assert (await outbox.get())["status"] == 404
        assert json.dumps(await outbox.get(), default=str)

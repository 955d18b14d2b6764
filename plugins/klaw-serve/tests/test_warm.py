"""The warm helper: one a data directory, for one configuration, that leaves no process behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import sys
import time
from pathlib import Path

import pytest
from warm_helpers import QUESTION, all_ended, enable, left_behind, pids_of, run_by_helper, searches_of, until

from klaw_core import Memory, StoreError, StoreLockedError, load_config
from klaw_core.cli.kit import Settings
from klaw_serve.warm.state import HelperState

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


def test_without_the_setting_no_search_leaves_a_helper(home, files):
    assert home.run(*QUESTION).returncode == 0
    enable(home, enabled=False)
    assert home.run(*QUESTION).returncode == 0
    assert not files.state.exists()
    assert not files.lock().path.exists()
    refused = home.run("serve", "warm")
    assert refused.returncode == 1
    assert "klaw config set extensions.warm.enabled true" in refused.stderr


def test_the_second_search_is_answered_by_the_helper_of_the_first(home, files):
    enable(home)
    with left_behind(home, files) as (state, first):
        before = searches_of(files)
        second = run_by_helper(home, *QUESTION)
        assert searches_of(files) == before + 1
        assert (second.stdout, second.stderr, second.returncode) == (first.stdout, first.stderr, first.returncode)
        assert "twelve hundred" in second.stdout
        assert stat.S_IMODE(files.socket.stat().st_mode) == 0o600
        helper = json.loads(home.run("status", "--json").stdout)["statistics"]["warm_helper"]
        assert helper.startswith(f"process {state.pid}, since 2")
        assert ", until 2" in helper
        assert json.loads(home.run("serve", "stop", "--json").stdout) == {"stopped": state.pid}
        assert not files.running()
        assert json.loads(home.run("serve", "stop", "--json").stdout) == {"stopped": None}


def test_there_is_one_helper(home, files):
    enable(home)
    with left_behind(home, files) as (state, _):
        second = home.run("serve", "warm")
        assert second.returncode == 1
        assert f"process {state.pid}" in second.stderr
        another = run_by_helper(home, *QUESTION, "--config", home.path / "none.toml")
        assert another.returncode == 1, "a configuration that does not exist is an error of the helper's process too"
        assert files.running() == state


def _change_configuration(home, _files):
    enable(home, idle_minutes=9)


def _turn_off(home, _files):
    enable(home, enabled=False)


def _remove_data(home, _files):
    shutil.rmtree(home.data)


def _remove_socket(_home, files):
    files.socket.unlink()


def _end_server(_home, files):
    os.kill(pids_of(files)[1], signal.SIGKILL)


def test_the_helper_keeps_no_directory_but_that_of_the_data(home, files):
    enable(home)
    with left_behind(home, files):
        assert {Path(f"/proc/{pid}/cwd").resolve() for pid in pids_of(files)} == {home.data.resolve()}


def test_a_helper_that_starts_forgets_the_process_of_one_that_was_killed(home, files, monkeypatch):
    """Its number may be that of a process of the user by now."""
    from klaw_serve.warm import helper

    enable(home)
    files.write(HelperState(os.getpid(), time.time(), 60.0, "same"))
    found = []
    monkeypatch.setattr(helper, "_run", lambda *_, **__: found.append(files.running()))
    settings = Settings(data_dir=home.data, config_file=home.path / "config" / "klaw" / "config.toml")
    helper.run_helper(settings, lambda: None)
    assert found == [None]


def test_a_helper_that_is_starting_is_waited_for(files, monkeypatch):
    monkeypatch.setattr("klaw_serve.warm.state.time.sleep", lambda _: lock.end())
    lock = files.lock()
    lock.__enter__()
    assert files.stop() is None
    monkeypatch.setattr("klaw_serve.warm.state._STOP_SECONDS", -1.0)
    with files.lock(), pytest.raises(StoreLockedError, match="is starting"):
        files.stop()


def _kill(_home, files):
    os.kill(files.running().pid, signal.SIGKILL)


ENDS = [_change_configuration, _turn_off, _remove_data, _remove_socket, _end_server, _kill]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__.strip("_"))
def test_a_helper_that_does_not_fit_ends_with_all_its_processes(home, files, end):
    enable(home)
    home.run(*QUESTION)
    until(files.running, what="the helper has started")
    pids = pids_of(files)
    assert not all_ended(pids[:1])
    assert not all_ended(pids[1:])
    end(home, files)
    until(lambda: all_ended(pids), what="no process is left")
    if home.data.exists():
        enable(home, enabled=False)
        assert "twelve hundred" in home.run(*QUESTION).stdout


def test_a_changed_module_ends_the_helper(home, files, tmp_path, monkeypatch):
    """The module is the test's own: helpers of other tests have those of Klaw."""
    packages = tmp_path / "packages"
    packages.mkdir()
    module = packages / "klaw_of_a_test.py"
    module.touch()
    (packages / "sitecustomize.py").write_text("import klaw_of_a_test\n", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(packages))
    enable(home)
    with left_behind(home, files) as (state, _):
        pids = pids_of(files)
        run_by_helper(home, *QUESTION)
        assert files.running() == state
        os.utime(module, (1, 1))
        until(lambda: all_ended(pids), what="no process is left")


def test_a_new_package_ends_the_helper_and_the_cache_of_a_tool_does_not(home, files, tmp_path, monkeypatch):
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(packages))
    enable(home)
    with left_behind(home, files) as (state, first):
        pids = pids_of(files)
        (packages / ".tool_cache").mkdir()
        assert run_by_helper(home, *QUESTION).stdout == first.stdout
        assert files.running() == state
        (packages / "other").mkdir()
        until(lambda: all_ended(pids), what="no process is left")


def test_what_fails_in_the_server_is_said(home, monkeypatch, capfd):
    """Also what is a defect: `klaw status` shows it, because nobody reads the error stream of a helper."""
    from klaw_serve.warm import helper

    def fail(*_):
        raise ZeroDivisionError("no such number")

    enable(home)
    monkeypatch.setattr(helper, "_serve", fail)
    settings = Settings(data_dir=home.data, config_file=home.path / "config" / "klaw" / "config.toml")
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        with pytest.raises(StoreError, match="defect in Klaw: ZeroDivisionError: no such number"):
            helper.run_helper(settings, lambda: pytest.fail("it did not start"))
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGINT), handlers, strict=True):
            signal.signal(number, handler)
    assert "Traceback" in capfd.readouterr().err
    said = json.loads(home.run("status", "--json").stdout)["statistics"]["warm_helper"]
    assert said == "failed: defect in Klaw: ZeroDivisionError: no such number"


def test_what_fails_in_the_helper_is_said(home, files, monkeypatch):
    from klaw_serve.warm import helper

    def fail(*_, **__):
        raise ZeroDivisionError("no such number")

    enable(home)
    monkeypatch.setattr(helper, "_run", fail)
    settings = Settings(data_dir=home.data, config_file=home.path / "config" / "klaw" / "config.toml")
    with pytest.raises(ZeroDivisionError):
        helper.run_helper(settings, lambda: None)
    assert files.read().failed == "defect in Klaw: ZeroDivisionError: no such number"


def test_what_a_server_says_later_is_the_reason_of_the_helper():
    from klaw_serve.warm.helper import Server

    said, tell = os.pipe()
    process = os.fork()
    if process == 0:
        os.write(tell, b"the disk is full")
        os._exit(1)
    os.close(tell)
    server = Server(process, -1, said)
    until(lambda: not server.runs(), what="it has ended")
    with pytest.raises(StoreError, match="ended: the disk is full"):
        server.check()
    server.end()


def test_an_idle_helper_ends(home, files, monkeypatch):
    """With a limit of no time: the loop returns at its first look."""
    from klaw_serve.warm.helper import Helper, Told

    class Runs:
        life = -1

        def runs(self):
            return True

    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(files.socket.parent)
        listener.bind(files.socket.name)
        listener.listen()
        helper = Helper(files, Runs(), listener, 0.0, Told(), -1)
        helper.watched = helper.stamps(load_config(data_dir=home.data))
        before = signal.getsignal(signal.SIGCHLD)
        try:
            helper.run()
            assert files.socket.exists(), "it ended because it was idle, not because something is gone"
        finally:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, before)


def test_a_server_takes_the_place_of_the_helper(home, files):
    enable(home)
    home.run(*QUESTION)
    until(files.running, what="the helper has started")
    with home.serving() as running:
        assert running.get("/health").status == 200
        assert not files.running()
        assert home.run(*QUESTION).returncode == 0
        assert not files.running(), "a search that the server answers leaves no helper"


def test_a_helper_that_cannot_start_is_named_and_not_tried_again_at_once(home, files):
    enable(home)
    with home.serving():
        failed = home.run("serve", "warm")
        assert failed.returncode == 1
        assert "a server for" in failed.stderr
    assert "failed: a server for" in json.loads(home.run("status", "--json").stdout)["statistics"]["warm_helper"]
    assert home.run(*QUESTION).returncode == 0
    assert files.read().failed, "a helper that had started would have said so"


def test_the_status_says_that_a_helper_starts(files):
    from klaw_serve.warm.extension import WarmExtension
    from klaw_serve.warm.options import WarmOptions

    extension = WarmExtension(files.data_dir, WarmOptions(enabled=True))
    with files.lock():
        assert extension.status() == {"warm_helper": "starting"}
    assert extension.status() == {"warm_helper": "not running; the next search starts it"}


def test_a_search_of_a_program_leaves_no_helper(home, files):
    with Memory.open(load_config(data_dir=home.data, environment=home.environment)) as memory:
        memory.search("kiln")
    assert not files.lock().path.exists()

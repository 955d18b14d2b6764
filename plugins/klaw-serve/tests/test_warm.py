"""The warm helper: one a data directory, for one configuration, that leaves no process behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from ast import literal_eval
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from klaw_core import Memory, StoreLockedError, load_config
from klaw_core.cli import warm as client
from klaw_core.cli.kit import Settings
from klaw_serve.warm.state import HelperFiles, HelperState

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
QUESTION = ("search", "kiln degrees", "--json")
_PATIENCE = 300  # seconds; nothing is measured by it


def _until(condition, *, what):
    deadline = time.monotonic() + _PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return found


def _pids(files):
    """Return the processes of the running helper: its own and its server's."""
    server = json.loads((files.data_dir / "server.json").read_text())["pid"]
    return [_until(files.running, what="the helper runs").pid, server]


def _all_ended(pids):
    """Return whether these processes have ended; one that nobody has waited for has ended too."""

    def state(pid):
        with suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return "Z"

    return {state(pid) for pid in pids} == {"Z"}


def _enable(home, *, enabled=True, **more):
    path = home.path / "config" / "klaw" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"enabled = {json.dumps(enabled)}", *(f"{name} = {value}" for name, value in more.items())]
    path.write_text("\n".join(["[extensions.warm]", *lines, ""]))


@pytest.fixture
def files(home):
    return HelperFiles(home.data)


@contextmanager
def _left(home, files):
    """Let a search leave a helper behind, and end it after the block."""
    first = home.run(*QUESTION)
    assert first.returncode == 0, first.stderr
    state = _until(files.running, what="the helper has started")
    pids = _pids(files)
    try:
        yield state, first
    finally:
        home.run("serve", "stop")
        _until(lambda: _all_ended(pids), what="no process is left")


def _used(home, files, *arguments):
    """Run a command and return its result, and whether the helper has run it."""
    with suppress(FileNotFoundError):
        os.utime(files.state, (0, 0))
    result = home.run(*arguments)
    return result, files.last_search() > 0


def test_without_the_setting_no_search_leaves_a_helper(home, files):
    assert home.run(*QUESTION).returncode == 0
    _enable(home, enabled=False)
    assert home.run(*QUESTION).returncode == 0
    assert not files.state.exists()
    assert not files.lock().path.exists()
    refused = home.run("serve", "warm")
    assert refused.returncode == 1
    assert "klaw config set extensions.warm.enabled true" in refused.stderr


def test_the_second_search_is_answered_by_the_helper_of_the_first(home, files):
    _enable(home)
    with _left(home, files) as (state, first):
        second, used = _used(home, files, *QUESTION)
        assert used
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
    _enable(home)
    with _left(home, files) as (state, _):
        second = home.run("serve", "warm")
        assert second.returncode == 1
        assert f"process {state.pid}" in second.stderr
        another, _ = _used(home, files, *QUESTION, "--config", home.path / "none.toml")
        assert another.returncode == 1, "a configuration that does not exist is an error of the helper's process too"
        assert files.running() == state


def _change_configuration(home, _files):
    _enable(home, idle_minutes=9)


def _turn_off(home, _files):
    _enable(home, enabled=False)


def _remove_data(home, _files):
    shutil.rmtree(home.data)


def _remove_socket(_home, files):
    files.socket.unlink()


def _end_server(_home, files):
    os.kill(_pids(files)[1], signal.SIGKILL)


def test_a_search_is_printed_once_whatever_ends_the_helper(home, files, tmp_path):
    """The process of a search that has begun tells its client the exit status, and not the helper that has ended."""
    _enable(home)
    pipe = tmp_path / "config.toml"
    with _left(home, files) as (_, first):
        os.mkfifo(pipe)  # the search waits until somebody writes its configuration
        words = [sys.executable, "-m", "klaw_core", *QUESTION, "--config", str(pipe), "--data-dir", str(home.data)]
        process = subprocess.Popen(
            words, env=home.environment, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )
        with pipe.open("w") as written:  # opened once the search reads it
            pids = _pids(files)
            assert json.loads(home.run("serve", "stop", "--json").stdout) == {"stopped": pids[0]}
            _until(lambda: _all_ended(pids), what="the helper ends before its search")
            written.write("")
        printed, _ = process.communicate(timeout=_PATIENCE)
        assert (printed, process.returncode) == (first.stdout, 0)


def test_a_large_environment_reaches_the_helper(home, files):
    _enable(home)
    with _left(home, files) as (_, first):
        home.environment.update({f"LARGE_{number}": "x" * 100_000 for number in range(10)})
        second, used = _used(home, files, *QUESTION)
        assert used
        assert second.stdout == first.stdout


def test_the_helper_keeps_no_directory_but_that_of_the_data(home, files):
    _enable(home)
    with _left(home, files):
        assert {Path(f"/proc/{pid}/cwd").resolve() for pid in _pids(files)} == {home.data.resolve()}


def test_a_helper_that_starts_forgets_the_process_of_one_that_was_killed(home, files, monkeypatch):
    """Its number may be that of a process of the user by now."""
    from klaw_serve.warm import helper

    _enable(home)
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
    _enable(home)
    home.run(*QUESTION)
    _until(files.running, what="the helper has started")
    pids = _pids(files)
    assert not _all_ended(pids[:1])
    assert not _all_ended(pids[1:])
    end(home, files)
    _until(lambda: _all_ended(pids), what="no process is left")
    if home.data.exists():
        _enable(home, enabled=False)
        result, _ = _used(home, files, *QUESTION)
        assert "twelve hundred" in result.stdout


def test_a_changed_module_ends_the_helper(home, files):
    from klaw_serve.warm import forks

    _enable(home)
    with _left(home, files):
        pids = _pids(files)
        os.utime(forks.__file__)
        _until(lambda: _all_ended(pids), what="no process is left")


def test_a_helper_that_hangs_is_not_waited_for_and_prints_nothing_later(home, files):
    _enable(home)
    home.run(*QUESTION)
    state = _until(files.running, what="the helper has started")
    os.kill(state.pid, signal.SIGSTOP)
    pids = _pids(files)
    os.kill(pids[1], signal.SIGKILL)  # otherwise it answers the process that does not use the helper
    result = home.run(*QUESTION)
    assert (result.returncode, result.stderr) == (0, "")
    assert "twelve hundred" in result.stdout
    _until(lambda: _all_ended(pids), what="a search ends a helper that does not answer")


def test_a_process_that_dies_is_replaced_by_the_client_itself(home, monkeypatch):
    """A helper that forks, says so, and loses the process: the search runs here."""
    path = home.data / client.HELPER_SOCKET
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(path.parent)  # the whole path may be too long for an address
        listener.bind(path.name)
        path.chmod(0o600)
        listener.listen()
        arguments = [sys.executable, "-m", "klaw_core", *QUESTION, "--data-dir", str(home.data)]
        process = subprocess.Popen(
            arguments, env=home.environment, cwd=home.path, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        connection, _ = listener.accept()
        connection.recv(1 << 16)
        connection.sendall((1).to_bytes(client.HELPER_NUMBER_BYTES, "big"))
        assert connection.recv(1) == b"\n"
        connection.close()
        printed, _ = process.communicate(timeout=_PATIENCE)
    assert "twelve hundred" in printed.decode()


@pytest.mark.parametrize("mode", [0o660, 0o606])
def test_a_socket_that_others_can_use_is_not_used(home, mode, monkeypatch):
    path = home.data / client.HELPER_SOCKET
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(path.parent)  # the whole path may be too long for an address
        listener.bind(path.name)
        path.chmod(mode)
        listener.listen()
        listener.settimeout(0)
        assert "twelve hundred" in home.run(*QUESTION).stdout
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_request_of_another_installation_is_refused(home, files, monkeypatch):
    _enable(home)
    with _left(home, files), socket.socket(socket.AF_UNIX) as connection:
        monkeypatch.chdir(files.socket.parent)
        connection.connect(files.socket.name)
        body = b"\0".join([b"another", b"/", b"utf-8 strict 0 0", b"", b"", b"1", b"search", b""])
        socket.send_fds(connection, [len(body).to_bytes(client.HELPER_NUMBER_BYTES, "big") + body], [0, 1, 2])
        assert connection.recv(1) == b""
        assert files.running()


@pytest.mark.parametrize("content", [b"", b"\0\0\0\0\0\0\0\x02a\0"])
def test_a_malformed_request_does_not_end_the_helper(home, files, content, monkeypatch):
    _enable(home)
    with _left(home, files):
        with socket.socket(socket.AF_UNIX) as connection:
            monkeypatch.chdir(files.socket.parent)
            connection.connect(files.socket.name)
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
        assert _used(home, files, *QUESTION)[1]


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
    _enable(home)
    home.run(*QUESTION)
    _until(files.running, what="the helper has started")
    with home.serving() as running:
        assert running.get("/health").status == 200
        assert not files.running()
        assert home.run(*QUESTION).returncode == 0
        assert not files.running(), "a search that the server answers leaves no helper"


def test_a_helper_that_cannot_start_is_named_and_not_tried_again_at_once(home, files):
    _enable(home)
    with home.serving():
        failed = home.run("serve", "warm")
        assert failed.returncode == 1
        assert "a server for" in failed.stderr
    assert "did not start: a server for" in json.loads(home.run("status", "--json").stdout)["statistics"]["warm_helper"]
    assert home.run(*QUESTION).returncode == 0
    assert files.read().failed, "a helper that had started would have said so"


def test_a_search_of_a_program_leaves_no_helper(home, files):
    with Memory.open(load_config(data_dir=home.data, environment=home.environment)) as memory:
        memory.search("kiln")
    assert not files.lock().path.exists()


def test_the_client_guesses_the_directory_that_the_configuration_says(home, monkeypatch):
    for name in ("KLAW_DATA_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home.path))
    assert client.data_directory(["search"]) == str(load_config().data_dir)
    monkeypatch.setenv("XDG_DATA_HOME", str(home.path / "x"))
    assert client.data_directory(["search"]) == str(load_config().data_dir)
    monkeypatch.setenv("KLAW_DATA_DIR", str(home.path / "y"))
    assert client.data_directory(["search"]) == str(load_config().data_dir)
    assert client.data_directory(["search", "--data-dir", "z"]) == client.data_directory(["--data-dir=z"]) == "z"


@pytest.mark.cold_start
def test_the_client_imports_almost_nothing(home, files):
    _enable(home)
    with _left(home, files):
        code = (
            "import sys; before = set(sys.modules); sys.argv = ['klaw', 'search', 'kiln', '--data-dir', sys.argv[1]]\n"
            "from klaw_core.cli.startup import main\n"
            "try:\n    main()\nexcept SystemExit:\n    pass\n"
            "print(sorted(name for name in set(sys.modules) - before if name.startswith('klaw') or name in "
            "{'click', 'attr', 'json', 'numpy'}), file=sys.stderr)"
        )
        os.utime(files.state, (0, 0))
        done = subprocess.run(
            [sys.executable, "-c", code, str(home.data)],
            env=home.environment,
            cwd=home.path,
            capture_output=True,
            check=True,
            text=True,
            timeout=_PATIENCE,
        )
        assert files.last_search() > 0
        assert "twelve hundred" in done.stdout
        imported = set(literal_eval(done.stderr.splitlines()[-1]))
        assert imported == {"klaw_core", "klaw_core.cli", "klaw_core.cli.startup", "klaw_core.cli.warm"}

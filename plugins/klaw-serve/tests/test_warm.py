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
from attrs import evolve

from klaw_core import Memory, StoreError, StoreLockedError, load_config
from klaw_core.cli import warm as client
from klaw_core.cli.kit import Settings
from klaw_serve.warm.state import HelperFiles, HelperState

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
QUESTION = ("search", "kiln degrees", "--json")
_PATIENCE = 300  # seconds; nothing is measured by it
_UNUSED = 99
# A client that gives the helper as much time as it needs, and cannot answer by itself.
_CLIENT = f"""
import sys
from klaw_core.cli.warm import run_in_helper
status = run_in_helper(sys.argv[1:], {_PATIENCE})
sys.exit({_UNUSED} if status is None else status)
"""


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


def _searches(files):
    """Return how many searches the helper's server has answered."""
    server = json.loads((files.data_dir / "server.json").read_text())
    with _connected(files, "serve.sock") as connection:
        head = f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server['token']}\r\n"
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()
    assert " 200 " in answer.splitlines()[0]
    counts = [line for line in answer.splitlines() if line.startswith('klaw_calls_total{operation="memory.search"')]
    return sum(int(line.split()[-1]) for line in counts)


@contextmanager
def _connected(files, name=client.HELPER_SOCKET):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE)
        client.connect(connection, str(files.data_dir), name)
        yield connection


def _started(home, *arguments):
    """Start a search whose only way is the helper."""
    return subprocess.Popen(
        [sys.executable, "-c", _CLIENT, *map(str, arguments), "--data-dir", str(home.data)],
        env=home.environment,
        cwd=home.path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run_by_helper(home, *arguments):
    """Return what a search in the helper prints; it fails if the helper does not run it."""
    with _started(home, *arguments) as process:
        printed = process.communicate(timeout=_PATIENCE)
    assert process.returncode != _UNUSED, "the helper has not run it"
    return subprocess.CompletedProcess(arguments, process.returncode, *printed)


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
        before = _searches(files)
        second = _run_by_helper(home, *QUESTION)
        assert _searches(files) == before + 1
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
        another = _run_by_helper(home, *QUESTION, "--config", home.path / "none.toml")
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
        process = _started(home, *QUESTION, "--config", pipe)
        with pipe.open("w") as written:  # opened once the search reads it
            pids = _pids(files)
            assert json.loads(home.run("serve", "stop", "--json").stdout) == {"stopped": pids[0]}
            _until(lambda: _all_ended(pids), what="the helper ends before its search")
            written.write("")
        with process:
            printed, _ = process.communicate(timeout=_PATIENCE)
        assert (printed, process.returncode) == (first.stdout, 0)


def test_a_large_environment_reaches_the_helper(home, files):
    _enable(home)
    with _left(home, files) as (_, first):
        home.environment.update({f"LARGE_{number}": "x" * 100_000 for number in range(10)})
        second = _run_by_helper(home, *QUESTION)
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
        assert "twelve hundred" in home.run(*QUESTION).stdout


def test_a_changed_module_ends_the_helper(home, files):
    from klaw_serve.warm import forks

    _enable(home)
    with _left(home, files):
        pids = _pids(files)
        os.utime(forks.__file__)
        _until(lambda: _all_ended(pids), what="no process is left")


def test_a_search_does_not_use_a_helper_that_is_not_there(home):
    """So a test that asks for the helper's answer fails without one."""
    with _started(home, *QUESTION) as process:
        printed, _ = process.communicate(timeout=_PATIENCE)
    assert (printed, process.returncode) == ("", _UNUSED)
    with pytest.raises(AssertionError, match="the helper has not run it"):
        _run_by_helper(home, *QUESTION)


@contextmanager
def _stopped(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_no_search_ends_a_helper_that_is_late(home, files):
    """Neither process answers now, so the searches open the memory themselves. Later both answer, and print nothing.

    Whoever reads the output of such a search sees its end: the streams are not in the queue of a process that hangs.
    """
    _enable(home)
    with _left(home, files) as (state, first):
        pids = _pids(files)
        announced = home.data / "server.json"
        hidden = announced.rename(home.data / "hidden.json")  # otherwise a search waits for the server, for 20 seconds
        with _stopped(pids):
            for _ in range(3):
                result = home.run(*QUESTION)
                assert (result.returncode, result.stdout, result.stderr) == (0, first.stdout, "")
        hidden.rename(announced)
        before = _searches(files)
        assert _run_by_helper(home, *QUESTION).stdout == first.stdout
        assert _searches(files) == before + 1
        assert files.running() == state


@pytest.fixture
def tries(monkeypatch):
    """Make tries short, and return the list of the pauses between them."""
    from klaw_serve.warm import state

    pauses = []
    monkeypatch.setattr(state, "_TRY_SECONDS", 0.01)
    monkeypatch.setattr(state, "_FIRST_TRY_SECONDS", 0.01)
    real = time.sleep
    monkeypatch.setattr(state.time, "sleep", lambda seconds: pauses.append(seconds) or real(seconds))
    return pauses


def _aged(files, seconds=3600.0):
    """Let a helper say that it has been running for a while; return its state."""
    state = evolve(files.running(), since=time.time() - seconds)
    files.write(state)
    return state


@pytest.mark.parametrize("which", [slice(0, 1), slice(1, 2), slice(0, 2)], ids=["helper", "server", "both"])
def test_a_helper_that_answers_no_try_is_ended(home, files, tries, which, monkeypatch):
    """It is told to end and, because a stopped process is not, killed."""
    from klaw_serve.warm import state as module

    monkeypatch.setattr(module, "_STOP_SECONDS", 0.3)
    _enable(home)
    with _left(home, files):
        _aged(files)
        pids = _pids(files)
        with _stopped(pids[which]):
            files.end_a_dead_one()
            # a server that hangs is ended with its helper, by whatever process sees that it outlives the helper
            _until(lambda: _all_ended(pids[which]), what="what did not answer has ended")
        assert tries.count(module._TRY_SECONDS) >= module._TRIES


@pytest.mark.usefixtures("tries")
def test_a_helper_that_answers_one_of_the_tries_is_kept(home, files, monkeypatch):
    from klaw_serve.warm import state as module

    _enable(home)
    with _left(home, files):
        state = _aged(files)
        answers = iter([False, False, False, True])
        monkeypatch.setattr(HelperFiles, "answers", lambda *_: next(answers))
        monkeypatch.setattr(module.os, "kill", lambda *_: pytest.fail("a process was ended"))
        files.end_a_dead_one()
        assert next(answers, None) is None
        assert files.running() == state
        monkeypatch.undo()


def test_a_young_helper_is_not_examined(home, files, monkeypatch):
    _enable(home)
    with _left(home, files):
        _aged(files, 1.0)
        monkeypatch.setattr(HelperFiles, "answers", lambda *_: pytest.fail("it was asked"))
        assert not files.seems_dead(files.running())
        files.end_a_dead_one()
        monkeypatch.undo()
        assert files.answers(_PATIENCE)


def test_one_process_examines_a_helper(home, files, monkeypatch):
    _enable(home)
    with _left(home, files):
        state = _aged(files)
        monkeypatch.setattr(HelperFiles, "answers", lambda *_: False)
        assert files.seems_dead(state)
        with files._examination():
            assert not files.seems_dead(state)
            with pytest.raises(StoreLockedError, match="another process examines"):
                files.end_a_dead_one()
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("running", "configuration", "dead", "starts"),
    [
        ("nobody", "same", False, True),
        ("starting", "same", False, False),
        ("somebody", "same", False, False),
        ("somebody", "same", True, True),
        ("somebody", "another", True, False),
    ],
)
def test_a_search_starts_a_helper_if_none_runs_or_it_seems_dead(  # noqa: PLR0917  # a table
    files, monkeypatch, running, configuration, dead, starts
):
    """It ends none: the new one does, once it knows more."""
    from klaw_core import SearchEvent
    from klaw_serve.warm import extension
    from klaw_serve.warm.options import WarmOptions

    class Found:
        class config:  # noqa: N801  # an attribute
            fingerprint = "same"

    state = HelperState(os.getpid(), time.time(), 60.0, configuration) if running == "somebody" else None
    started = []
    monkeypatch.setattr(extension, "_settings_of_search", lambda: Found)
    monkeypatch.setattr(extension, "_start", started.append)
    monkeypatch.setattr(HelperFiles, "running", lambda _: state)
    monkeypatch.setattr(HelperFiles, "is_starting", lambda _: running == "starting")
    monkeypatch.setattr(HelperFiles, "seems_dead", lambda *_: dead)
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a process was ended"))
    event = SearchEvent.__new__(SearchEvent)
    extension.WarmExtension(files.data_dir, WarmOptions(enabled=True)).on(event)
    assert started == ([Found] if starts else [])


@pytest.mark.parametrize("times", [1, 5])
def test_a_killed_client_leaves_no_process(home, files, tmp_path, times):
    """The searches wait for their configuration, which nobody writes."""
    _enable(home)
    with _left(home, files) as (state, _):
        pipe = tmp_path / "config.toml"
        os.mkfifo(pipe)
        writing = os.open(pipe, os.O_RDWR)  # a search can open it, and waits
        clients = [_started(home, *QUESTION, "--config", pipe) for _ in range(times)]
        _until(lambda: len(_children(state.pid)) == 1 + times, what="all searches run")
        for process in clients:
            process.kill()
            with process:
                assert process.communicate(timeout=_PATIENCE)[0] == ""
        _until(lambda: _children(state.pid) == {_pids(files)[1]}, what="only the server is left")
        os.close(writing)
        assert _run_by_helper(home, *QUESTION).returncode == 0


def _children(pid):
    """Return the processes that this one has started, without those that have ended."""
    numbers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(number) for number in numbers if not _all_ended([number])}


def test_a_client_that_is_interrupted_says_so_as_every_search_does(home, files, tmp_path):
    _enable(home)
    with _left(home, files) as (state, _):
        pipe = tmp_path / "config.toml"
        os.mkfifo(pipe)
        writing = os.open(pipe, os.O_RDWR)
        process = _started(home, *QUESTION, "--config", pipe)
        _until(lambda: len(_children(state.pid)) == 2, what="the search runs")
        found = _children(state.pid) - {_pids(files)[1]}
        _until(lambda: _waits_for(found, pipe), what="the search reads its configuration")
        process.send_signal(signal.SIGINT)
        with process:
            printed, said = process.communicate(timeout=_PATIENCE)
        os.close(writing)
        assert (printed, process.returncode) == ("", 130)
        assert "interrupted" in said


def _waits_for(pids, pipe):
    """Return whether one of these processes has a file open."""
    opened = [path for pid in pids for path in Path(f"/proc/{pid}/fd").iterdir()]
    return any(os.path.realpath(path) == str(pipe) for path in opened)


def test_what_fails_in_the_server_is_said(home, monkeypatch, capfd):
    """Also what is a defect: `klaw status` shows it, because nobody reads the error stream of a helper."""
    from klaw_serve.warm import helper

    def fail(*_):
        raise ZeroDivisionError("no such number")

    _enable(home)
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

    _enable(home)
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
    _until(lambda: not server.runs(), what="it has ended")
    with pytest.raises(StoreError, match="ended: the disk is full"):
        server.check()
    server.end()


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_forked_search_imports_nothing(home, files, tmp_path, is_terminal, more):
    """What it imports, the helper can import once for all searches."""
    import pty  # Windows has none

    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from klaw_serve.warm import forks\n"
        "from klaw_core.cli.kit import run\n"
        "forks.preload()\n"
        "before = set(sys.modules)\n"
        "said = sys.argv.pop()\n"
        "def end(status):\n"
        "    Path(said).write_text(' '.join([str(status), *sorted(set(sys.modules) - before)]))\n"
        "    os._exit(0)\n"
        "run(in_helper=True, end=end)\n"
    )
    _enable(home)
    said = tmp_path / "said"
    with _left(home, files):
        words = [sys.executable, "-c", code, *QUESTION[:2], *more, "--data-dir", str(home.data), str(said)]
        controller, terminal = pty.openpty()
        output = terminal if is_terminal else subprocess.DEVNULL
        environment = {**home.environment, "TERM": "xterm-256color", "NO_COLOR": ""}
        subprocess.run(
            words,
            env=environment,
            cwd=home.path,
            stdin=terminal,
            stdout=output,
            stderr=output,
            timeout=_PATIENCE,
            check=True,
        )
        os.close(terminal)
        os.close(controller)
    assert said.read_text().split() == ["0"]


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
        connection.sendall(client.HELPER_GREETING)
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


def test_a_request_of_another_installation_is_refused(home, files):
    _enable(home)
    with _left(home, files), _connected(files) as connection:
        assert connection.recv(1) == client.HELPER_GREETING
        body = b"\0".join([b"another", b"/", b"utf-8 strict 0 0", b"", b"", b"1", b"search", b""])
        socket.send_fds(connection, [len(body).to_bytes(client.HELPER_NUMBER_BYTES, "big") + body], [0, 1, 2])
        assert connection.recv(1) == b""
        assert files.running()


@pytest.mark.parametrize("content", [b"", b"\0\0\0\0\0\0\0\x02a\0"])
def test_a_malformed_request_does_not_end_the_helper(home, files, content):
    _enable(home)
    with _left(home, files):
        with _connected(files) as connection:
            assert connection.recv(1) == client.HELPER_GREETING
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
        assert _run_by_helper(home, *QUESTION).returncode == 0


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
            "import sys; before = set(sys.modules)\n"
            "sys.argv = ['klaw', 'search', 'kiln', '--data-dir', *sys.argv[1:]]\n"
            "from klaw_core.cli.startup import main\n"
            "from klaw_core.cli import warm\n"
            "run, seconds = warm.run_in_helper, int(sys.argv.pop())\n"
            "warm.run_in_helper = lambda words: run(words, seconds)\n"
            "try:\n    main()\nexcept SystemExit:\n    pass\n"
            "print(sorted(name for name in set(sys.modules) - before if name.startswith('klaw') or name in "
            "{'click', 'attr', 'json', 'numpy', 'socket', 'enum', 'collections'}), file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(home.data), str(_PATIENCE)],
            env=home.environment,
            cwd=home.path,
            capture_output=True,
            check=True,
            text=True,
            timeout=_PATIENCE,
        )
        assert "twelve hundred" in done.stdout
        imported = set(literal_eval(done.stderr.splitlines()[-1]))
        assert imported == {"klaw_core", "klaw_core.cli", "klaw_core.cli.startup", "klaw_core.cli.warm"}

"""A search and the helper that runs it: what one sends to the other, and what happens if either ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest
from warm_helpers import (
    PATIENCE,
    QUESTION,
    UNUSED,
    all_ended,
    children_of,
    connected_to,
    enable,
    left_behind,
    pids_of,
    run_by_helper,
    start_search,
    until,
)

from klaw_core import load_config
from klaw_core.cli import warm as client

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


def test_a_search_is_printed_once_whatever_ends_the_helper(home, files, tmp_path):
    """The process of a search that has begun tells its client the exit status, and not the helper that has ended."""
    enable(home)
    pipe = tmp_path / "config.toml"
    with left_behind(home, files) as (_, first):
        os.mkfifo(pipe)  # the search waits until somebody writes its configuration
        process = start_search(home, *QUESTION, "--config", pipe)
        with pipe.open("w") as written:  # opened once the search reads it
            pids = pids_of(files)
            assert json.loads(home.run("serve", "stop", "--json").stdout) == {"stopped": pids[0]}
            until(lambda: all_ended(pids), what="the helper ends before its search")
            written.write("")
        with process:
            printed, _ = process.communicate(timeout=PATIENCE)
        assert (printed, process.returncode) == (first.stdout, 0)


def test_a_large_environment_reaches_the_helper(home, files):
    enable(home)
    with left_behind(home, files) as (_, first):
        home.environment.update({f"LARGE_{number}": "x" * 100_000 for number in range(10)})
        second = run_by_helper(home, *QUESTION)
        assert second.stdout == first.stdout


def test_a_search_does_not_use_a_helper_that_is_not_there(home):
    """So a test that asks for the helper's answer fails without one."""
    with start_search(home, *QUESTION) as process:
        printed, _ = process.communicate(timeout=PATIENCE)
    assert (printed, process.returncode) == ("", UNUSED)
    with pytest.raises(AssertionError, match="the helper has not run it"):
        run_by_helper(home, *QUESTION)


@pytest.mark.parametrize("times", [1, 5])
def test_a_killed_client_leaves_no_process(home, files, tmp_path, times):
    """The searches wait for their configuration, which nobody writes."""
    enable(home)
    with left_behind(home, files) as (state, _):
        pipe = tmp_path / "config.toml"
        os.mkfifo(pipe)
        writing = os.open(pipe, os.O_RDWR)  # a search can open it, and waits
        clients = [start_search(home, *QUESTION, "--config", pipe) for _ in range(times)]
        until(lambda: len(children_of(state.pid)) == 1 + times, what="all searches run")
        for process in clients:
            process.kill()
            with process:
                assert process.communicate(timeout=PATIENCE)[0] == ""
        until(lambda: children_of(state.pid) == {pids_of(files)[1]}, what="only the server is left")
        os.close(writing)
        assert run_by_helper(home, *QUESTION).returncode == 0


def test_a_client_that_is_interrupted_says_so_as_every_search_does(home, files, tmp_path):
    enable(home)
    with left_behind(home, files) as (state, _):
        pipe = tmp_path / "config.toml"
        os.mkfifo(pipe)
        writing = os.open(pipe, os.O_RDWR)
        process = start_search(home, *QUESTION, "--config", pipe)
        until(lambda: len(children_of(state.pid)) == 2, what="the search runs")
        found = children_of(state.pid) - {pids_of(files)[1]}
        until(lambda: _waits_for(found, pipe), what="the search reads its configuration")
        process.send_signal(signal.SIGINT)
        with process:
            printed, said = process.communicate(timeout=PATIENCE)
        os.close(writing)
        assert (printed, process.returncode) == ("", 130)
        assert "interrupted" in said


def _waits_for(pids, pipe):
    """Return whether one of these processes has a file open."""
    opened = [path for pid in pids for path in Path(f"/proc/{pid}/fd").iterdir()]
    return any(os.path.realpath(path) == str(pipe) for path in opened)


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
    enable(home)
    said = tmp_path / "said"
    with left_behind(home, files):
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
            timeout=PATIENCE,
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
        printed, _ = process.communicate(timeout=PATIENCE)
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
    enable(home)
    with left_behind(home, files), connected_to(files) as connection:
        assert connection.recv(1) == client.HELPER_GREETING
        body = b"\0".join([b"another", b"/", b"utf-8 strict 0 0", b"", b"", b"1", b"search", b""])
        socket.send_fds(connection, [len(body).to_bytes(client.HELPER_NUMBER_BYTES, "big") + body], [0, 1, 2])
        assert connection.recv(1) == b""
        assert files.running()


@pytest.mark.parametrize("content", [b"", b"\0\0\0\0\0\0\0\x02a\0"])
def test_a_malformed_request_does_not_end_the_helper(home, files, content):
    enable(home)
    with left_behind(home, files):
        with connected_to(files) as connection:
            assert connection.recv(1) == client.HELPER_GREETING
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
        assert run_by_helper(home, *QUESTION).returncode == 0


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
    enable(home)
    with left_behind(home, files):
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
            [sys.executable, "-c", code, str(home.data), str(PATIENCE)],
            env=home.environment,
            cwd=home.path,
            capture_output=True,
            check=True,
            text=True,
            timeout=PATIENCE,
        )
        assert "twelve hundred" in done.stdout
        imported = set(literal_eval(done.stderr.splitlines()[-1]))
        assert imported == {"klaw_core", "klaw_core.cli", "klaw_core.cli.startup", "klaw_core.cli.warm"}

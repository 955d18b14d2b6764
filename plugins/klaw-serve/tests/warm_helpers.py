"""A warm helper in tests: how a search leaves one behind, and whose processes are there."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from klaw_core.cli import warm as client

QUESTION = ("search", "kiln degrees", "--json")
PATIENCE = 300  # seconds; nothing is measured by it
UNUSED = 99
# A client that gives the helper as much time as it needs, and cannot answer by itself.
_CLIENT = f"""
import sys
from klaw_core.cli.warm import run_in_helper
status = run_in_helper(sys.argv[1:], {PATIENCE})
sys.exit({UNUSED} if status is None else status)
"""


def until(condition, *, what):
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return found


def pids_of(files):
    """Return the processes of the running helper: its own and its server's."""
    server = json.loads((files.data_dir / "server.json").read_text())["pid"]
    return [until(files.running, what="the helper runs").pid, server]


def all_ended(pids):
    """Return whether these processes have ended; one that nobody has waited for has ended too."""

    def state(pid):
        with suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return "Z"

    return {state(pid) for pid in pids} == {"Z"}


def enable(home, *, enabled=True, **more):
    path = home.path / "config" / "klaw" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"enabled = {json.dumps(enabled)}", *(f"{name} = {value}" for name, value in more.items())]
    path.write_text("\n".join(["[extensions.warm]", *lines, ""]))


@contextmanager
def left_behind(home, files):
    """Let a search leave a helper behind, and end it after the block."""
    first = home.run(*QUESTION)
    assert first.returncode == 0, first.stderr
    state = until(files.running, what="the helper has started")
    pids = pids_of(files)
    try:
        yield state, first
    finally:
        home.run("serve", "stop")
        until(lambda: all_ended(pids), what="no process is left")


def searches_of(files):
    """Return how many searches the helper's server has answered."""
    server = json.loads((files.data_dir / "server.json").read_text())
    with connected_to(files, "serve.sock") as connection:
        head = f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server['token']}\r\n"
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()
    assert " 200 " in answer.splitlines()[0]
    counts = [line for line in answer.splitlines() if line.startswith('klaw_calls_total{operation="memory.search"')]
    return sum(int(line.split()[-1]) for line in counts)


@contextmanager
def connected_to(files, name=client.HELPER_SOCKET):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        client.connect(connection, str(files.data_dir), name)
        yield connection


def start_search(home, *arguments):
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


def run_by_helper(home, *arguments):
    """Return what a search in the helper prints; it fails if the helper does not run it."""
    with start_search(home, *arguments) as process:
        printed = process.communicate(timeout=PATIENCE)
    assert process.returncode != UNUSED, "the helper has not run it"
    return subprocess.CompletedProcess(arguments, process.returncode, *printed)


def children_of(pid):
    """Return the processes that this one has started, without those that have ended."""
    numbers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(number) for number in numbers if not all_ended([number])}

"""A server's life: one for a data directory, found by others, and stopped without loss."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import threading
from http.client import HTTPException
from importlib.metadata import requires
from pathlib import Path

import pytest

from klaw_serve.http import quiet


def test_a_library_whose_undocumented_methods_are_overridden_has_an_upper_bound():
    assert [each for each in requires("klaw-serve") if each.startswith("uvicorn") and "<1" in each]


def test_a_data_directory_has_at_most_one_server(home):
    with home.serving() as running:
        refused = home.run("serve", "--port", "0")
        assert refused.returncode == 1
        assert f"127.0.0.1:{running.port}" in refused.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_server_stops_at_once_with_open_streams(home, number):
    with home.serving() as running:
        with running.raw() as stream:
            stream.sendall(
                f"GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {running.token}\r\n\r\n".encode()
            )
            assert b"200" in stream.recv(1_000)
            assert running.end(number) == 0
        assert not (home.data / "server.json").exists()
        assert not (home.data / "serve.sock").exists()


@pytest.mark.parametrize(
    ("told", "is_shown"),
    [
        ("Traceback (most recent call last):\n  …\nasyncio.exceptions.CancelledError\n\n", False),
        ("Traceback (most recent call last):\n  …\nValueError: no\n", True),
        ("Invalid HTTP request received.", False),
    ],
)
def test_a_second_interrupt_prints_no_traceback(caplog, told, is_shown):
    """It does not wait for the applications, which the event loop then cancels."""
    log = logging.getLogger("uvicorn.error")
    before = log.filters[:]
    quiet()
    log.error("%s", told)
    log.filters[:] = before
    assert (told in caplog.text) == is_shown


def test_other_processes_find_the_server_by_its_file(home):
    with home.serving() as running:
        left = json.loads((home.data / "server.json").read_text())
        assert left["url"].endswith(str(running.port))
        assert left["token"] == running.token
        with socket.socket(socket.AF_UNIX) as local:
            directory = os.open(home.data, os.O_RDONLY)
            local.connect(f"/proc/self/fd/{directory}/serve.sock")  # a path of any length
            os.close(directory)
            local.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b'"status":"ok"' in b"".join(iter(lambda: local.recv(4_000), b""))


def test_acknowledged_changes_survive_a_kill(home):
    kept = []
    with home.serving() as running:

        def write(writer):
            for number in range(1_000):
                text = f"acknowledged {writer} {number}"
                try:
                    answer = running.ask("POST", "/api/memories", {"text": text})
                except (OSError, HTTPException):  # killed before the answer, or within it
                    return
                if answer.status == 201:
                    kept.append(text)

        writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for writer in writers:
            writer.start()
        while len(kept) < 20:
            assert any(writer.is_alive() for writer in writers)
            threading.Event().wait(0.01)
        running.end(signal.SIGKILL)
        for writer in writers:
            writer.join()
    with home.serving() as again:
        found = {item["preview"] for item in again.get("/api/recent?limit=1000&origin=saved").json["documents"]}
        assert set(kept) <= found
        worst = {finding["severity"] for finding in again.get("/api/doctor").json["findings"]}
        assert "error" not in worst  # what was kept and not yet acknowledged may lack its rows


def test_agents_are_separate(home):
    ann, bob = (home.run("serve", "token", "--agent", name).stdout.strip() for name in ("ann", "bob"))
    with home.serving() as running:
        said = running.ask("POST", "/agents/ann/api/memories", {"text": "Ann's secret garden."}, token=ann)
        assert said.status == 201
        assert running.get("/agents/ann/api/search?query=garden", token=ann).json["results"]
        assert running.get("/agents/ann/api/search?query=garden").json["results"]  # the owner's token
        assert not running.get("/agents/bob/api/search?query=garden", token=bob).json["results"]
        assert not running.get("/api/search?query=garden").json["results"]
        for path in ("/api/status", "/agents/bob/api/status", "/metrics", "/agents/bob/rpc"):
            assert running.get(path, token=ann).status == 401, path
        assert running.get("/agents/ann/metrics", token=ann).status == 404
    assert home.run("serve", "token", "--agent", "../x").returncode == 1


@pytest.mark.promise("S6")
def test_only_this_machine_is_listened_to_unless_something_encrypts(home):
    with home.serving() as running:
        listening = {
            line.split()[1] for line in Path(f"/proc/{running.process.pid}/net/tcp").read_text().splitlines()[1:]
        }
        assert f"0100007F:{running.port:04X}" in listening
        assert f"00000000:{running.port:04X}" not in listening
    refused = home.run("serve", "--port", "0", "--host", "0.0.0.0")
    assert refused.returncode == 2
    assert "other machines can reach 0.0.0.0: encrypt with --tls-cert" in refused.stderr

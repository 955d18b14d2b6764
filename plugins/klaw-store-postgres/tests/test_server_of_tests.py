"""The server of the tests ends with whoever has started it, however that ends."""

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

_STARTED = """
import os
import sys
from klaw_testing.doubles.postgres import PostgresServer

server = PostgresServer()
server.start()
print(server.directory, server.dsn, flush=True)
if os.fork():  # whoever is left stops nothing
    sys.stdin.read()
    os._exit(1)
server.stop()
sys.stdin.read()
"""
_PATIENCE = 300


def _runs(pid):
    """Return whether a process runs; one that has ended and for which nobody has waited does not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_server_ends_when_whoever_started_it_is_killed(server):
    del server  # which skips, where there is none
    command = [sys.executable, "-c", _STARTED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        directory, dsn = starter.stdout.readline().split()
        assert conninfo_to_dict(dsn)["host"]
        postmaster = (Path(directory) / "postmaster.pid").read_text().split()[0]
        starter.kill()
        starter.wait()
        assert Path(directory).exists()  # the other one may need it
        starter.stdin.close()
        end = time.monotonic() + _PATIENCE
        while (Path(directory).exists() or _runs(postmaster)) and time.monotonic() < end:
            time.sleep(0.05)
        assert not Path(directory).exists()
        assert not _runs(postmaster)

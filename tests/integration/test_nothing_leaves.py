"""What the security page says of the network: without a server in the configuration, none is asked."""

import os
import socket
import subprocess
import sys

import pytest

_LIVES = """
import socket, sys
from contextlib import suppress
from datetime import UTC, datetime

asked = []

def refuse(self, address, *more):
    if self.family != getattr(socket, "AF_UNIX", None):
        asked.append(address)
        raise OSError("no network here")

class Watched(socket.socket):
    connect = connect_ex = refuse
    def sendto(self, data, *more):
        refuse(self, more[-1])

def look_up(host, *more, **options):
    asked.append(host)
    raise socket.gaierror("no network here")

socket.socket = Watched
socket.getaddrinfo = socket.gethostbyname = look_up

from klaw_core import KlawError, Memory, load_config
from klaw_journals.messages import Message

with Memory.open(load_config()) as memory:
    memory.index(sys.argv[1])
    saved = memory.save("My sister Anna lives in Bergen.")
    said = Message("user", "I moved to Split.", datetime.now(UTC), meta={"channel": "t", "chat_id": "1"})
    memory.conversations.append(said)
    memory.index()
    memory.extension("facts").extract()
    assert memory.search("where does Anna live")
    memory.context("where does Anna live")
    for tool in memory.tools():
        memory.call_tool(tool["name"], {"query": "boat", "content": "A boat.", "message": "boat", "path": saved.path})
    memory.core.update("user", "home", "Split")
    memory.doctor()
    with suppress(KlawError):  # there may be no model
        memory.reindex()
    memory.forget(saved.path)
print(asked)
"""


@pytest.mark.promise("S1")
@pytest.mark.needs("klaw-conversations", "klaw-facts", "klaw-notes")
@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="on Windows, a pair of sockets is made of the network")
def test_no_server_is_asked_that_the_configuration_does_not_name(tmp_path):
    """The default configuration, with whatever model is installed, in a process of its own."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "boat.md").write_text("# Boat\n\nThe boat lies in Split.\n", "utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KLAW_")}
    places = {"HOME": str(tmp_path), "KLAW_DATA_DIR": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "c")}
    done = subprocess.run(
        [sys.executable, "-c", _LIVES, str(notes)],
        env=environment | places,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr

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
    done = _run(tmp_path, _LIVES, str(notes))
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert _written_at_home(tmp_path) == []


_EMBEDS = """
import os
from klaw_core import load_config, Memory

with Memory.open(load_config(environment=os.environ | {"KLAW_EMBEDDER": "onnx"})) as memory:
    memory.save("My sister Anna lives in Bergen.")
    print(memory.status().embedder)
"""


@pytest.mark.promise("S1")
@pytest.mark.needs("klaw-embed-onnx")
def test_the_runtime_of_a_model_writes_no_identifier_of_the_machine(tmp_path):
    """ONNX Runtime reports its use from native code, which no patched socket sees; it begins with a file at home."""
    done = _run(tmp_path, _EMBEDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "onnx\n"
    assert _written_at_home(tmp_path) == []


def _run(directory, *arguments):
    """Run a program in a process of its own, whose home is empty."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("KLAW_", "XDG_", "ORT_"))}
    places = {"HOME": str(directory / "home"), "KLAW_DATA_DIR": str(directory / "data")}
    (directory / "home").mkdir()
    command = [sys.executable, "-c", *arguments]
    return subprocess.run(command, env=own | places, capture_output=True, text=True, check=False)


def _written_at_home(directory):
    return [path.name for path in (directory / "home").rglob("*") if path.is_file()]

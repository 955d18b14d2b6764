"""A data directory with a few notes, found by words, and servers of it: real processes."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen

from klaw_core import Memory, load_config

sys.path.insert(0, str(Path(__file__).parent))  # test modules are imported by path, and so know no neighbours

NOTES = {
    "kiln.md": "# Kiln\n\nThe kiln is fired to\ntwelve hundred degrees.\n",
    "boat.md": "# Boat\n\nThe boat lies in Split.\n",
    "script.md": "# Script\n\n<script>document.title = 'owned'</script> <img src=x onerror=alert(1)> zebra\n",
}
# A server with other limits than the program has: small ones, which a test reaches at once.
_WITH_LIMITS = """
import json, sys
from pathlib import Path
from klaw_core import Memory, load_config
from klaw_serve.options import Limits, Listening
from klaw_serve.run import serve
where, limits = sys.argv[1], json.loads(sys.argv[2])
ready = lambda url, token: print(json.dumps({"url": url}), flush=True)
memory = Memory.open(load_config(data_dir=Path(where)))
serve(memory, Listening(port=0), Limits(**limits), read_only=False, on_ready=ready)
"""


@frozen
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@frozen
class Running:
    """A server that runs, and how to ask it."""

    process: subprocess.Popen
    host: str
    port: int
    token: str
    #: No answer takes longer, on any machine; nothing is measured by it.
    patience = 300

    def ask(self, method, path, body=None, *, token=None, headers=None):
        """Ask once, with the right token unless another is given."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=self.patience)
        token = self.token if token is None else token
        given = {"Authorization": f"Bearer {token}"} if token else {}
        data = body if body is None or isinstance(body, bytes | str) else json.dumps(body)
        try:
            connection.request(method, path, data, {**given, **(headers or {})})
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, names, response.read())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def rpc(self, method, **params):
        return self.ask("POST", "/rpc", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).json

    def raw(self):
        """Return a connection that nothing was sent on yet."""
        return socket.create_connection((self.host, self.port), timeout=self.patience)

    def end(self, number=signal.SIGTERM):
        """End the server and return its exit status."""
        self.process.send_signal(number)
        return self.process.wait(self.patience)


@frozen
class Home:
    """A directory with a data directory and an indexed workspace."""

    path: Path
    compiled: Path

    @property
    def data(self):
        return self.path / "data"

    @property
    def environment(self):
        return {
            **os.environ,
            "XDG_CACHE_HOME": str(self.path / "cache"),
            "XDG_CONFIG_HOME": str(self.path / "config"),
            "HOME": str(self.path / "home"),
            "KLAW_EMBEDDER": "none",
            "NO_COLOR": "1",
            # Compiled once for all processes of the tests, which would take longest of all.
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(self.compiled),
        }

    def run(self, *arguments):
        """Run ``klaw`` in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "klaw_core", *map(str, arguments), "--data-dir", str(self.data)],
            env=self.environment,
            cwd=self.path,
            capture_output=True,
            text=True,
            check=False,
            timeout=Running.patience,
            stdin=subprocess.DEVNULL,
        )

    @contextmanager
    def serving(self, *options, limits=None):
        """Run a server until the end of the block; it must not have died before."""
        if limits is None:
            command = ["-m", "klaw_core", "serve", "--port", "0", "--json", "--data-dir", str(self.data), *options]
        else:
            command = ["-c", _WITH_LIMITS, str(self.data), json.dumps(limits)]
        with (self.path / "server.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *command],
                env=self.environment,
                cwd=self.path,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        try:
            said = ""
            while "}" not in said:
                said += process.stdout.readline() or pytest.fail((self.path / "server.log").read_text())
            host, _, port = json.loads(said)["url"].rpartition("//")[2].rpartition(":")
            token = (self.data / "serve.token").read_text().strip()
            yield Running(process, host.strip("[]"), int(port), token)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(Running.patience)
            process.stdout.close()


def make_home(path, compiled):
    made = Home(path, compiled)
    notes = path / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        (notes / name).write_text(text, "utf-8")
    with Memory.open(load_config(data_dir=made.data, environment={"KLAW_EMBEDDER": "none"})) as memory:
        memory.index(notes)
    return made


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="session")
def new_home(compiled):
    """Return a function that makes a home in a directory."""
    return lambda path: make_home(path, compiled)


@pytest.fixture
def home(tmp_path, compiled):
    """Return a home of one test's own."""
    return make_home(tmp_path, compiled)


@pytest.fixture
def files(home):
    """Return the files of the warm helper of that home."""
    from klaw_serve.warm.state import HelperFiles

    return HelperFiles(home.data)


@pytest.fixture(scope="module")
def server(tmp_path_factory, compiled):
    """Return a server that the tests of a module share."""
    with make_home(tmp_path_factory.mktemp("serving"), compiled).serving() as running:
        yield running

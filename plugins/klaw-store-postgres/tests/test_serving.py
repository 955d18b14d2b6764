"""Two servers for agents, on two machines, over one database: one memory."""

import http.client
import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

SECONDS = 60  # no answer takes longer on any machine
CONFIG = """
[memory.store]
type = "postgres"
dsn = "{dsn}"

[memory.embedding]
type = "none"
"""


@contextmanager
def serving(directory, dsn):
    """Run ``klaw serve`` on a machine, which has a data directory and a configuration of its own; give what asks it."""
    data = directory / "data"
    directory.mkdir()
    (directory / "config.toml").write_text(CONFIG.format(dsn=dsn))
    places = {name: str(directory / name) for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME")}
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "klaw_core", "serve", "--port", "0", "--json", "--data-dir", str(data)],
            env={**os.environ, **places, "KLAW_CONFIG": str(directory / "config.toml")},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        said = ""
        while "}" not in said:
            said += process.stdout.readline() or pytest.fail((directory / "server.log").read_text())
        host, _, port = json.loads(said)["url"].rpartition("//")[2].rpartition(":")
        headers = {"Authorization": f"Bearer {(data / 'serve.token').read_text().strip()}"}

        def ask(method, path, body=None):
            connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=SECONDS)
            try:
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                return json.loads(connection.getresponse().read() or "null")
            finally:
                connection.close()

        yield ask
    finally:
        process.terminate()
        process.wait(SECONDS)
        process.stdout.close()


@pytest.fixture
def dsn(server):
    """A database with nobody's memory in it: the servers name no agent."""
    import psycopg

    with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
        connection.execute("CREATE DATABASE served OWNER klaw TEMPLATE template0")
    with psycopg.connect(server._uri("postgres", "served"), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    return server._uri("klaw", "served")


def test_two_servers_on_one_database_have_one_memory(dsn, tmp_path):
    with ExitStack() as stack:
        one, two = (stack.enter_context(serving(tmp_path / name, dsn)) for name in ("one", "two"))
        saved = one("POST", "/api/memories", {"text": "the lantern hangs at the pier"})
        (found,) = two("GET", "/api/search?query=lantern")["results"]
        assert (found["path"], found["content"]) == (saved["path"], "the lantern hangs at the pier")
        assert two("DELETE", f"/api/document?path={saved['path']}")["paths"] == [saved["path"]]
        assert one("GET", "/api/search?query=lantern")["results"] == []
        two("POST", "/api/memories", {"text": "the boat lies at the quay"})
        assert one("GET", "/api/search?query=boat")["results"]

"""Vectors in LanceDB on object storage: moto speaks the protocol of S3."""

import apsw
import boto3
import numpy as np
import pytest
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

from klaw_core import Query, VectorSpace
from klaw_lancedb.index import LanceIndex
from klaw_lancedb.options import LanceOptions
from klaw_testing.index import stored

KEYS = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
REGION = "us-east-1"
SPACE = VectorSpace("made-up", "1", 16)
VECTORS = np.random.default_rng(1).standard_normal((100, SPACE.dimension)).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)


@pytest.fixture
def server():
    """A server of S3 with an empty bucket; yields how to stop it, its address, and what lists the bucket's objects."""
    s3_backends.reset()  # the buckets of all servers of a process are in one place
    running = ThreadedMotoServer(port=0)
    running.start()
    host, port = running.get_host_and_port()
    url = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"
    client = boto3.client("s3", endpoint_url=url, region_name=REGION, **KEYS)
    client.create_bucket(Bucket="memory")

    def objects():
        return [item["Key"] for item in client.list_objects_v2(Bucket="memory").get("Contents", [])]

    yield running.stop, url, objects
    running.stop()


@pytest.fixture
def open_index(server, tmp_path):
    """Open the index of an agent as another process would."""
    _, url, _ = server
    storage = {"endpoint": url, "allow_http": "true", "region": REGION, "client_max_retries": "0", **KEYS}
    opened = []

    def make(agent=""):
        folder = tmp_path / agent
        folder.mkdir(exist_ok=True)
        index = LanceIndex(LanceOptions(uri="s3://memory/klaw", storage=storage, buffer=10), folder, agent)
        connection = apsw.Connection(str(folder / "klaw.db"))
        opened.append(connection)
        if not connection.table_exists("main", "lancedb_keys"):
            for migration in index.migrations():
                migration.apply(connection)
            index.reset(connection, "memory", SPACE)
        return index, connection

    yield make
    for connection in opened:
        connection.close()


def add(index, connection, keys):
    with connection:
        index.add(connection, "memory", [stored(key, f"text {key}") for key in keys], VECTORS[np.array(keys) - 1])


def nearest(index, connection, key, limit=3):
    return [hit.key for hit in index.search(connection, Query("", "memory", VECTORS[key - 1]), limit)]


def test_vectors_are_kept_found_and_erased(server, open_index):
    _, _, objects = server
    index, connection = open_index()
    add(index, connection, range(1, 51))
    assert objects()
    other = open_index()
    assert [nearest(*other, key)[0] for key in range(1, 51)] == list(range(1, 51))
    before = {name.split("/")[1] for name in objects()}
    index.remove(connection, "memory", [7])
    index.erase(connection, "memory")
    assert 7 not in nearest(*other, 7, 50)
    after = {name.split("/")[1] for name in objects()}
    assert len(before) == len(after) == 1
    assert not before & after
    assert list(index.check(connection, "memory", SPACE)) == []


def test_agents_are_apart(server, open_index):
    _, _, objects = server
    ada, bob = open_index("ada"), open_index("bob")
    add(*ada, range(1, 21))
    add(*bob, range(31, 51))
    assert set(nearest(*ada, 1, 99)) == set(range(1, 21))
    assert set(nearest(*bob, 1, 99)) == set(range(31, 51))
    assert {name.split("/")[1] for name in objects()} == {"ada", "bob"}


def test_vectors_wait_while_the_storage_is_away(server, open_index):
    stop, _, _ = server
    stop()
    index, connection = open_index()
    add(index, connection, range(1, 51))
    assert nearest(index, connection, 9)[0] == 9
    assert "new vectors wait in klaw.db" in index.limitation

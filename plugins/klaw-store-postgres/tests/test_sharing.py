"""One memory on several machines, and from SQLite to PostgreSQL and back."""

from uuid import uuid4

import pytest
from attrs import evolve
from click.testing import CliRunner

from klaw_core import Chat, ConfigError, Memory, Message, NewDocument, StoreError
from klaw_core.config.load import load_config
from klaw_testing.values import MOMENT

CHAT = Chat("telegram", "123456")
ENVIRONMENT = {"KLAW_CONFIG": "/dev/null"}


@pytest.fixture
def machine(options, agent, tmp_path):
    """Open the same memory on a machine, which has a data directory of its own."""
    tables = {"store": {"type": "postgres", "dsn": options.dsn}, "embedding": {"type": "none"}}
    opened = []

    def open_on(name):
        config = load_config(data_dir=tmp_path / name, environment=ENVIRONMENT, overrides={"memory": tables})
        opened.append(Memory.open(evolve(config, agent=agent)))
        return opened[-1]

    yield open_on
    for memory in opened:
        memory.close()


def fill(memory):
    """Let a memory have something of every kind."""
    saved = memory.save("the lantern hangs at the pier", created_at=MOMENT)
    memory.add([NewDocument("boat", "the boat lies at the pier")])
    memory.conversations.append(Message("user", "where is the harbour?", MOMENT, meta=CHAT.meta))
    memory.conversations.add_summary(CHAT, "somebody asked for the harbour", created_at=MOMENT)
    memory.core.update("user", "name", "Ada")
    memory.index()
    return saved


def check(memory, saved):
    assert memory.get(saved.path).content == "the lantern hangs at the pier"
    assert memory.get_by_ids(["boat"])[0].text == "the boat lies at the pier"
    assert [line.message.content for line in memory.conversations.tail(CHAT, 9)] == ["where is the harbour?"]
    assert [one.content for one in memory.conversations.summaries(CHAT)] == ["somebody asked for the harbour"]
    assert memory.core.get().user == {"name": "Ada"}
    assert {found.origin for found in memory.search("harbour lantern boat", 9)} >= {"conversations", "saved"}


def test_two_machines_have_one_memory(machine, tmp_path):
    one, two = machine("one"), machine("two")
    saved = fill(one)
    for memory in (two, one, two):
        report = memory.index()
        assert (report.removed, report.skipped) == (0, ())
        check(memory, saved)
    two.forget(saved.path)
    one.index()
    assert not list(one.search("lantern", mode="fts"))
    two.reindex()
    assert [found.origin for found in one.search("boat", mode="fts")] == ["documents"]
    assert not [finding for finding in two.doctor().findings if finding.severity == "error"]
    assert not [path.name for path in (tmp_path / "one").rglob("*.json*")], "what people own is on the server"


@pytest.fixture
def places(server, tmp_path):
    """The places of an SQLite memory, of another one, and of a database of one's own."""
    import psycopg

    name = f"moved_{uuid4().hex}"
    with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER klaw TEMPLATE template0")
    with psycopg.connect(server._uri("postgres", name), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    return f"sqlite://{tmp_path}/first/klaw.db", server._uri("klaw", name), f"sqlite://{tmp_path}/second/klaw.db"


def test_a_memory_moves_to_postgresql_and_back(places, tmp_path):
    from klaw_store_postgres.command import config_of
    from klaw_store_postgres.migrating import migrate

    base = load_config(
        data_dir=tmp_path / "here", environment=ENVIRONMENT, overrides={"memory": {"embedding": {"type": "none"}}}
    )
    memories = [Memory.open(config_of(base, place)) for place in places]
    try:
        first, moved, back = memories
        saved = fill(first)
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "a.md").write_text("# The quay\n\nIt is wet.\n")
        first.index(tmp_path / "notes")
        for source, target in ((first, moved), (moved, back), (first, moved)):  # the last time there is nothing to do
            report = migrate(source, target)
            assert report.records["saved"] == 1
            assert report.differing == ()
            check(target, saved)
            assert [found.path for found in target.search("quay")] == ["notes/a.md"]
        back.save("something else")
        with pytest.raises(StoreError, match=r"lacks 0 records .* and has 1 others"):
            migrate(first, back)
    finally:
        for memory in memories:
            memory.close()


def test_the_command_prints_what_was_moved(places, tmp_path, monkeypatch):
    from klaw_core.cli.program import cli
    from klaw_store_postgres.command import config_of

    (tmp_path / "config.toml").write_text('[memory.embedding]\ntype = "none"\n')
    monkeypatch.setenv("KLAW_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("KLAW_DATA_DIR", str(tmp_path / "here"))
    with Memory.open(config_of(load_config(), places[0])) as memory:
        memory.save("the lantern hangs at the pier")
    done = CliRunner().invoke(cli, ["migrate", *places[:2]], catch_exceptions=False)
    assert "saved: 1" in done.output


def test_an_invalid_location_is_rejected(tmp_path):
    from klaw_store_postgres.command import config_of

    config = load_config(data_dir=tmp_path, environment=ENVIRONMENT)
    with pytest.raises(ConfigError, match="not the address of a memory") as caught:
        config_of(config, "mysql://klaw:hidden@host/klaw")
    assert "host" not in str(caught.value)


def test_forget_reports_that_bytes_are_erased_later(machine, monkeypatch):
    from klaw_core.cli.forget import report_forgotten
    from klaw_core.cli.kit import Settings

    memory = machine("one")
    saved = memory.save("the lantern hangs at the pier")
    said = []
    monkeypatch.setattr("klaw_core.cli.notices.notify", lambda _settings, text: said.append(text))
    report_forgotten(Settings(), memory.forget(saved.path), memory.erases_later)
    assert "when PostgreSQL vacuums its tables" in said[0]


def test_many_rows_that_were_not_vacuumed_are_reported_and_removed(machine, options, monkeypatch):
    import psycopg

    memory = machine("one")
    monkeypatch.setattr("klaw_store_postgres.store._MIN_REMOVED_ROWS", 10**9)  # other tests have removed rows, too
    assert "vacuum" not in {finding.check for finding in memory.doctor().findings}
    monkeypatch.setattr("klaw_store_postgres.store._MIN_REMOVED_ROWS", 0)
    assert "vacuum" in {finding.check for finding in memory.doctor(fix=True).findings}
    with psycopg.connect(options.dsn) as connection:
        sql = "SELECT COUNT(*) FROM pg_stat_user_tables WHERE schemaname = 'klaw' AND last_vacuum IS NOT NULL"
        assert connection.execute(sql).fetchone()[0] > 9

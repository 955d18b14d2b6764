"""Commands that need no index: they read the journals of the store, and not files that are not there."""

import json
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from klaw_core import Memory, Message, load_config
from klaw_core.cli.program import cli

META = {"channel": "telegram", "chat_id": "1"}


@pytest.fixture
def machine(tmp_path, monkeypatch, options):
    """Return a function that makes a machine: a function that runs ``klaw`` there, on one database."""
    monkeypatch.setenv("KLAW_CONFIG", "/dev/null")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def make(name):
        home = tmp_path / name
        home.mkdir()
        store = {"type": "postgres", "dsn": options.dsn, "schema": "command_line"}
        table = "\n".join(f"{key} = {json.dumps(value)}" for key, value in store.items())
        config = home / "klaw.toml"
        config.write_text(f'[memory.embedding]\ntype = "none"\n[memory.store]\n{table}\n', "utf-8")
        places = ["--config", str(config), "--data-dir", str(home / "data")]

        def run(*arguments):
            done = CliRunner().invoke(cli, [*arguments, *places])
            assert done.exit_code == 0, done.output
            return done.stdout

        run.config = lambda: load_config(config_file=config, data_dir=home / "data")
        return run

    return make


def test_what_one_machine_keeps_another_prints_and_exports(machine, tmp_path):
    one, two = machine("one"), machine("two")
    one("core", "set", "user", "name", "Ada")
    one("save", "The ferry leaves at seven.")
    with Memory.open(one.config()) as memory:
        memory.conversations.append(Message("user", "We sail on Monday.", datetime(2026, 2, 23, tzinfo=UTC), meta=META))
    assert two("core", "get", "user", "name").strip() == "Ada"
    assert "We sail on Monday." in two("logs", "--chat", "telegram_1")
    two("export", str(tmp_path / "all.jsonl"))
    exported = (tmp_path / "all.jsonl").read_text("utf-8")
    for text in ("Ada", "The ferry leaves at seven.", "We sail on Monday."):
        assert text in exported
    two("core", "delete", "user", "name")
    assert one("core", "get", "user").strip() == ""

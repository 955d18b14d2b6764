"""The store's options: what SQLite could not be told is refused."""

import math
from pathlib import Path

import pytest

from klaw_core import ConfigError, Memory, load_config
from klaw_store_sqlitevec.options import SqliteOptions


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_an_invalid_busy_timeout_is_rejected(seconds: float) -> None:
    with pytest.raises(ValueError, match="busy_timeout_seconds"):
        SqliteOptions(busy_timeout_seconds=seconds)


@pytest.mark.promise("A9")
@pytest.mark.parametrize("path", ["{agentId}.db", "memory/{agent}/klaw.db", "{AGENTID}.sqlite"])
def test_a_placeholder_for_the_agent_is_refused_with_the_place_of_its_data(path: str, tmp_path: Path) -> None:
    config = load_config(data_dir=tmp_path, environment={}, overrides={"memory": {"store": {"path": path}}})
    with pytest.raises(ConfigError, match=r"memory\.store: path: .*agents/NAME; leave \{agentId\} out"):
        Memory.open(config)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "path", ["", ".", "data/", "saved.jsonl", "config.toml", "notes/a.md", "/dev/null", "klaw.db-wal"]
)
def test_a_name_that_is_not_that_of_a_database_is_refused(path: str) -> None:
    """A reindex would replace the file by a database."""
    with pytest.raises(ValueError, match=r"path: .* ends with \.db, \.sqlite or \.sqlite3"):
        SqliteOptions(path=path)


@pytest.mark.parametrize("path", ["klaw.db", "/srv/Klaw.DB", "~/k.sqlite", "k.sqlite3"])
def test_the_name_of_a_database_is_accepted(path: str) -> None:
    assert SqliteOptions(path=path).path == path

"""What every connection is set to, whichever way it was opened."""

from contextlib import closing

import pytest

from klaw_store_sqlitevec.store import SqliteStore

#: Names and values of SQLite's documentation: 2 is FULL.
SETTINGS = {"synchronous": 2, "secure_delete": 1, "foreign_keys": 1, "journal_mode": "wal", "temp_store": 2}


@pytest.mark.promise("D9", "D27", "D44")
@pytest.mark.parametrize("way", ["read", "write", "rebuild"])
def test_every_connection_is_set_for_durability_and_erasing(tmp_path, way):
    with closing(SqliteStore(tmp_path / "klaw.db")) as store:
        if way == "rebuild":
            with store.rebuild() as fresh, fresh.write() as transaction:
                found = {name: transaction.resource.pragma(name) for name in SETTINGS}
        else:
            with getattr(store, way)() as opened:
                found = {name: opened.resource.pragma(name) for name in SETTINGS}
    assert found == SETTINGS

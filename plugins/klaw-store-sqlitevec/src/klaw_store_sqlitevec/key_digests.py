"""The key digest of a column, computed by SQLite."""

import apsw

from klaw_core import KeyDigest

_COLUMNS = "COUNT(*), COALESCE(SUM({key} % {p}), 0), COALESCE(SUM(({key} % {p}) * ({key} % {p}) % {p}), 0)"


def read_key_digest(connection: apsw.Connection, table: str, key: str) -> KeyDigest:
    """Return the digest of a column of distinct integers. Table and column must be trusted names."""
    columns = _COLUMNS.format(key=key, p=KeyDigest.MODULUS)
    return KeyDigest(*connection.execute(f"SELECT {columns} FROM {table}").get)

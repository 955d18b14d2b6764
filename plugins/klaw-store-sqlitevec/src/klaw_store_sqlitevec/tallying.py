"""The tally of a column of keys, summed by SQLite."""

import apsw

from klaw_core import Tally

_COLUMNS = "COUNT(*), COALESCE(SUM({key} % {p}), 0), COALESCE(SUM(({key} % {p}) * ({key} % {p}) % {p}), 0)"


def read_tally(connection: apsw.Connection, table: str, key: str) -> Tally:
    """Return the tally of a table's column of distinct integers; both names are the caller's own."""
    columns = _COLUMNS.format(key=key, p=Tally.MODULUS)
    return Tally(*connection.execute(f"SELECT {columns} FROM {table}").get)  # noqa: S608  # names of ours

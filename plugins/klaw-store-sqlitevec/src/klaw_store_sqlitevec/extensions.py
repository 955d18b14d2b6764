"""Tables of extensions: recognised by their names, and copied when the database is rebuilt.

All tables of the extension ``facts`` are named ``x_facts_…``. A rebuild copies everything that begins with ``x_``, and
the record of applied migrations, even if the extension is not installed: a person may have disabled it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import apsw

from klaw_core import Migration, StoreError, quoted
from klaw_store_sqlitevec.errors import damaged, store_errors
from klaw_store_sqlitevec.schema import RECORDED

_OWNER = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_OBJECTS = "SELECT type, name, sql FROM sqlite_schema WHERE name GLOB 'x_*' AND sql IS NOT NULL ORDER BY rowid"
_IN_ORDER = " ORDER BY rowid"
_Read: TypeAlias = Callable[..., Iterator[Any]]
_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)


def guard_steps(owner: str, migrations: Sequence[Migration[apsw.Connection]]) -> tuple[Migration[apsw.Connection], ...]:
    """Wrap an extension's migrations so that each raises StoreError if it changes anything but its own tables."""
    prefix = table_prefix(owner)

    def guarded(step: Callable[[apsw.Connection], None], connection: apsw.Connection) -> None:
        before = _foreign_objects(connection, prefix)
        step(connection)
        _check(connection, owner, prefix, before)

    return tuple(Migration(migration.name, partial(guarded, migration.apply)) for migration in migrations)


def table_prefix(owner: str) -> str:
    """Return the prefix of an extension's tables. Raise StoreError for an invalid name."""
    if not _OWNER.fullmatch(owner):
        raise StoreError(f"invalid extension name: {quoted(owner)}", hint="use a-z, 0-9, hyphens and underscores")
    return f"x_{owner.replace('-', '_')}_"


def _foreign_objects(connection: apsw.Connection, prefix: str) -> set[tuple[str, str | None]]:
    """Return the name and SQL of every object in the schema whose name does not begin with ``prefix``."""
    rows: list[Any] = connection.execute("SELECT name, sql FROM sqlite_schema").fetchall()
    return {(name, sql) for name, sql in rows if not name.startswith((prefix, "sqlite_"))}


def _check(connection: apsw.Connection, owner: str, prefix: str, before: set[tuple[str, str | None]]) -> None:
    """Raise StoreError if a migration of an extension has changed other tables, or refers to them.

    A rebuild assigns new keys to chunks and documents, so a reference to them would make it fail.
    """
    changed = sorted({name for name, _ in _foreign_objects(connection, prefix) ^ before})
    if changed:
        raise StoreError(
            f"a migration of the extension {owner!r} changes tables of others: {', '.join(changed)}",
            hint=f"the names of its tables, indexes and triggers must begin with {prefix}",
        )
    for kind, name, _ in _objects(connection):
        if kind == "table" and name.startswith(prefix):
            parents: list[Any] = connection.execute(f"PRAGMA foreign_key_list({_quoted(name)})").fetchall()
            for _, _, parent, *_ in parents:
                if not parent.startswith(prefix):
                    raise StoreError(f"{name} refers to {parent}, which is not a table of the extension {owner!r}")


def take_extensions(mine: apsw.Connection, other: apsw.Connection, location: str) -> None:
    """Copy all tables of extensions from another database; errors of reading it name ``location``."""

    def read(sql: str, *values: str) -> Iterator[Any]:
        with store_errors(location):  # only around reading: errors of writing belong to this database
            yield from other.execute(sql, values)

    if list(read(_OBJECTS)) and (said := next(read("PRAGMA integrity_check(1)"))[0]) != "ok":
        # The rows would be copied as they are, and the damage would no longer be seen.
        raise damaged(location, f"is damaged, and has tables of extensions: {said}")
    _take(mine, read)


def salvage_extensions(mine: apsw.Connection, other: apsw.Connection, unusable: Collection[str] = ()) -> Sequence[str]:
    """Copy what can be read of the tables of extensions of a damaged database; return what to tell.

    The tables of ``unusable`` extensions, and those without a record of migrations, are left out: their extension could
    not use them.
    """
    failed: list[str] = []

    def read(sql: str, *values: str) -> Iterator[Any]:
        try:
            yield from other.execute(sql, values)
        except (apsw.Error, UnicodeDecodeError):
            failed.append(sql)
            if sql.endswith(_IN_ORDER):  # then the rows after the damaged ones, from the last one
                with suppress(apsw.Error, UnicodeDecodeError):
                    yield from other.execute(f"{sql} DESC", values)

    mine.execute("SAVEPOINT salvage")
    try:
        _take(mine, read, "INSERT OR IGNORE")
        _drop_orphans(mine)
        left_out = _drop_unusable(mine, unusable)
    except apsw.Error as error:  # what is left does not fit together
        mine.execute("ROLLBACK TO salvage")
        return [f"the tables of extensions could not be copied from it: {error}"]
    finally:
        mine.execute("RELEASE salvage")
    tables = [name for kind, name, _ in _objects(mine) if kind == "table"]
    lost = [name for name in tables if any(_quoted(name) in sql for sql in failed)]
    if _OBJECTS in failed:
        lost.append("tables that could not be found")
    notices = [f"tables of extensions were copied as far as they could be read: {', '.join(tables)}"] if tables else []
    if left_out:
        notices.append(f"tables of extensions that could not be used are only in the copy: {', '.join(left_out)}")
    return [*notices, f"rows were lost: {', '.join(lost)}"] if lost else notices


def _drop_unusable(connection: apsw.Connection, unusable: Collection[str]) -> list[str]:
    """Remove the tables of extensions that are unusable or without migrations; return the names of the tables."""
    connection.executemany(
        "DELETE FROM klaw_migrations WHERE owner = ?", ((f"{RECORDED}{owner}",) for owner in unusable)
    )
    sql = "SELECT DISTINCT substr(owner, ?) FROM klaw_migrations WHERE owner GLOB ?"
    recorded = [str(owner) for (owner,) in connection.execute(sql, (len(RECORDED) + 1, f"{RECORDED}*"))]
    kept = tuple(table_prefix(owner) for owner in recorded if _OWNER.fullmatch(owner))
    names = [name for kind, name, _ in _objects(connection) if kind == "table" and not name.startswith(kept)]
    _drop(connection, kept)
    return names


def _drop_orphans(connection: apsw.Connection) -> None:
    """Remove the rows that refer to rows that could not be read."""
    while broken := connection.execute("PRAGMA foreign_key_check").fetchall():
        for table, key, *_ in broken:
            connection.execute(f"DELETE FROM {_quoted(str(table))} WHERE rowid = ?", (key,))


def _take(mine: apsw.Connection, read: _Read, insert: str = "INSERT") -> None:
    _drop(mine)
    objects = list(read(_OBJECTS))
    mine.execute("PRAGMA defer_foreign_keys = ON")  # rows are copied before the rows that they refer to
    virtual = [(name, sql) for kind, name, sql in objects if kind == "table" and _VIRTUAL.match(sql)]
    plain = [(name, sql) for kind, name, sql in objects if kind == "table" and not _VIRTUAL.match(sql)]
    for _, sql in plain:
        mine.execute(sql)
    for name, _ in plain:
        _copy_rows(mine, read, name, insert)
    _add_virtual(mine, virtual)
    for kind, _, sql in objects:
        if kind != "table":  # after the rows, so that triggers do not fire
            mine.execute(sql)
    mine.execute("DELETE FROM klaw_migrations WHERE owner GLOB ?", (f"{RECORDED}*",))
    steps = "SELECT owner, name, applied_at FROM klaw_migrations WHERE owner GLOB ?"
    rows = read(steps, f"{RECORDED}*")
    mine.executemany(f"{insert} INTO klaw_migrations (owner, name, applied_at) VALUES (?, ?, ?)", rows)


def _objects(connection: apsw.Connection) -> list[tuple[str, str, str]]:
    rows: list[Any] = connection.execute(_OBJECTS).fetchall()
    return rows


def _drop(connection: apsw.Connection, kept: tuple[str, ...] = ()) -> None:
    """Remove the tables of extensions, except those whose names begin with one of ``kept``.

    Before a copy, they are those that an interrupted rebuild has copied, and may be outdated.
    """
    connection.execute("PRAGMA defer_foreign_keys = ON")
    objects = _objects(connection)
    for name in [name for kind, name, sql in objects if _VIRTUAL.match(sql) and not name.startswith(kept)]:
        connection.execute(f"DROP TABLE {_quoted(name)}")  # also drops its shadow tables
    for kind in ("trigger", "view", "table"):
        for name in [name for found, name, _ in _objects(connection) if found == kind and not name.startswith(kept)]:
            connection.execute(f"DROP {kind} {_quoted(name)}")


def _copy_rows(mine: apsw.Connection, read: _Read, name: str, insert: str) -> None:
    """Copy the rows of a table with their row ids, and the next row id."""
    table = _quoted(name)
    columns = [str(row[1]) for row in mine.execute(f"PRAGMA table_xinfo({table})") if row[6] == 0]  # not generated
    without_rowid = mine.execute(f"PRAGMA table_list({table})").get[4]
    if not without_rowid and "rowid" not in map(str.lower, columns):
        columns = ["rowid", *columns]
    named = ", ".join(map(_quoted, columns))
    rows = read(f"SELECT {named} FROM {table}{'' if without_rowid else _IN_ORDER}")
    mine.executemany(f"{insert} INTO {table} ({named}) VALUES ({', '.join('?' * len(columns))})", rows)
    mine.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
    last = read("SELECT name, seq FROM sqlite_sequence WHERE name = ?", name)
    mine.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", last)


def _add_virtual(connection: apsw.Connection, tables: Sequence[tuple[str, str]]) -> None:
    """Declare virtual tables whose rows exist already, as SQLite's `.dump` does."""
    if not tables:
        return
    connection.execute("PRAGMA writable_schema = ON")
    try:
        connection.executemany(
            "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES ('table', ?1, ?1, 0, ?2)", tables
        )
    finally:
        connection.execute("PRAGMA writable_schema = RESET")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

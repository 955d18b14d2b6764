"""The filters of a search as an SQL condition. Retrievers join with it, so that no keys have to be listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field

from klaw_store_postgres.metadata import where as metadata_where
from klaw_store_postgres.texts import INDEXED_CHARACTERS, digest, prefix_end, split_path, to_milliseconds, to_text

if TYPE_CHECKING:
    from klaw_core import Condition, Filters, Keys
    from klaw_store_postgres.session import Session

_JOIN = """
JOIN documents AS document ON (document.tenant, document.generation, document.collection, document.id)
    = (chunk.tenant, chunk.generation, chunk.collection, chunk.document)
"""
_IN = "WHERE chunk.tenant = %s AND chunk.generation = %s AND chunk.collection = %s"


@define(eq=False)
class SqlSelection:
    """The chunks of a collection that pass filters, in one session. ``conditions`` are in SQL, with ``values``."""

    session: Session
    collection: str
    conditions: tuple[str, ...]
    values: tuple[Any, ...]

    _keys: Keys | None = field(default=None, init=False)
    _is_empty: bool | None = field(default=None, init=False)

    def keys(self) -> Keys:
        """Return the keys of the chunks that pass, ascending."""
        if self._keys is None:
            sql, values = self.subquery()
            self._keys = as_keys(row[0] for row in self.session.rows(f"{sql} ORDER BY chunk.key", values))
        return self._keys

    def few_keys(self, most: int) -> Keys | None:
        """Return the keys of the chunks that pass, ascending, if there are at most ``most``; None otherwise."""
        if self._keys is None:
            sql, values = self.subquery()
            keys = as_keys(row[0] for row in self.session.rows(f"{sql} LIMIT %s", [*values, most + 1]))
            if len(keys) > most:
                return None
            self._keys = np.sort(keys)
        return self._keys if len(self._keys) <= most else None

    @property
    def is_empty(self) -> bool:
        """Whether no chunk passes."""
        if self._is_empty is None:
            sql, values = self.subquery("1")
            self._is_empty = self.session.row(f"{sql} LIMIT 1", values) is None
        return self._is_empty

    def among(self, keys: Sequence[int], /) -> Sequence[int]:
        """Return the keys whose chunks pass."""
        sql, values = self.subquery()
        return [key for (key,) in self.session.rows(f"{sql} AND chunk.key = ANY(%s)", [*values, list(keys)])]

    def subquery(self, columns: str = "chunk.key") -> tuple[str, list[Any]]:
        """Return the SELECT statement of the chunks, and its values."""
        join = _JOIN if any("document." in condition for condition in self.conditions) else " "
        sql = " AND ".join((f"SELECT {columns} FROM chunks AS chunk{join}{_IN}", *self.conditions))
        return sql, [*self.session.scope, self.collection, *self.values]


def select(session: Session, collection: str, filters: Filters) -> SqlSelection:
    """Return the chunks that pass all filters."""
    conditions: list[str] = []
    values: list[Any] = []

    def add(condition: str, *parts: Any) -> None:
        conditions.append(condition)
        values.extend(parts)

    if filters.source is not None:
        add("document.source_digest = %s AND document.source = %s", digest(filters.source), to_text(filters.source))
    if filters.chat_id is not None:
        add("document.chat_digest = %s AND document.chat_id = %s", digest(filters.chat_id), to_text(filters.chat_id))
    if filters.path:
        condition, parts = path_condition("document", filters.path)
        add(condition, *parts)
    if filters.since is not None:
        add("chunk.created_at >= %s", to_milliseconds(filters.since))
    if filters.until is not None:
        add("chunk.created_at < %s", to_milliseconds(filters.until))
    for item in filters.metadata:
        _add_metadata(add, item)
    return SqlSelection(session, collection, tuple(conditions), tuple(values))


def path_condition(table: str, prefix: str) -> tuple[str, Sequence[Any]]:
    """Return the condition for rows whose path starts with ``prefix``, and its values."""
    end = prefix_end(to_text(prefix))
    head, tail = split_path(prefix)
    first = f"({table}.head, {table}.tail) >= (%s, %s)"
    if end is None:
        return first, (head, tail)
    last = end[:INDEXED_CHARACTERS], end[INDEXED_CHARACTERS:]
    return f"{first} AND ({table}.head, {table}.tail) < (%s, %s)", (head, tail, *last)


def as_keys(keys: Any) -> Keys:
    """Return keys as an array."""
    return np.fromiter(keys, np.int64)


def _add_metadata(add: Any, condition: Condition) -> None:
    sql, values = metadata_where(condition)
    negation = "NOT " if condition.operator == "!=" else ""
    add(
        f"{negation}EXISTS (SELECT 1 FROM document_metadata AS entry "
        "WHERE (entry.tenant, entry.generation, entry.collection, entry.document) "
        "= (document.tenant, document.generation, document.collection, document.id) "
        f"AND entry.key = %s AND {sql})",
        to_text(condition.key),
        *values,
    )

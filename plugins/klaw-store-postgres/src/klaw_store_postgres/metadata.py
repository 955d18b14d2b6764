"""Metadata of documents: as JSON in the document's row, and one row for each value for filters.

Numbers and booleans are compared as exact decimals, text, whose case is folded before, by code points, as
:meth:`klaw_core.Condition.holds` does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from klaw_core import Condition
from klaw_store_postgres.texts import digest, from_text, to_text

if TYPE_CHECKING:
    from klaw_core import Metadata, MetadataValue
    from klaw_store_postgres.session import Session


def to_json(metadata: Metadata) -> str | None:
    """Return metadata in the form of the documents' column; None if there is none."""
    return to_text(json.dumps(dict(metadata), ensure_ascii=False, sort_keys=True)) if metadata else None


def from_json(text: str | None) -> dict[str, MetadataValue]:
    """Return the metadata that :func:`to_json` wrote, of the same types."""
    if text is None:
        return {}
    values = json.loads(from_text(text))
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


def entries(metadata: Metadata) -> Iterator[tuple[str, int, Decimal | None, str | None]]:
    """Yield key, digest, number and text of each value."""
    for key, value in metadata.items():
        for item in Condition.compared(value):
            yield (to_text(key), *_columns(item))


def add_numbers(session: Session) -> None:
    """Add the rows for the numbers that strings are, which earlier versions did not have, to the data of all agents."""
    _add(session, "metadata ~ '\"[-+.0-9]'", lambda item, _value: not isinstance(item, str))


def add_parents(session: Session) -> None:
    """Add the rows for the tags above a tag, which earlier versions did not have, to the data of all agents."""
    _add(session, "metadata ~ '/'", lambda item, value: isinstance(item, str) and item not in value)


def fold_case(session: Session) -> None:
    """Replace the rows of text in the data of all agents, because earlier versions kept them with their case."""
    _add(session, "metadata IS NOT NULL", lambda item, _value: isinstance(item, str), "number IS NULL")


def _add(
    session: Session, condition: str, is_new: Callable[[object, Sequence[str]], bool], outdated: str = "false"
) -> None:
    """Add rows for new values that the strings of documents, chosen by an SQL condition, are compared as.

    Before, remove those rows that the SQL condition ``outdated`` chooses.
    """
    for table in ("documents", "document_metadata"):
        session.run(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    session.run(f"DELETE FROM document_metadata WHERE {outdated}")  # of this module
    found = session.rows(
        f"SELECT tenant, generation, collection, id, metadata FROM documents WHERE {condition}"  # of this module
    )
    strings = [(place, key, value) for *place, text in found for key, value in from_json(text).items()]
    values = [
        (*place, to_text(key), *_columns(item))
        for place, key, value in strings
        if isinstance(value, str | tuple)
        for item in Condition.compared(value)
        if is_new(item, value if isinstance(value, tuple) else (value,))
    ]
    session.run_many(
        "INSERT INTO document_metadata (tenant, generation, collection, document, key, digest, number, value) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        values,
    )
    for table in ("documents", "document_metadata"):
        session.run(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")


def where(condition: Condition) -> tuple[str, list[Any]]:
    """Return the SQL condition, with its values, for the rows ``entry`` whose value satisfies a condition.

    For ``!=`` it is the condition for the rows that do not, because a document without the key has no row.
    """
    columns = [_columns(value) for value in condition.values]
    if condition.operator in {"=", "!=", "in"}:
        numbers = [number for _, number, _ in columns if number is not None]
        texts = [text for _, _, text in columns if text is not None]
        return (
            "entry.digest = ANY(%s::bigint[]) AND (entry.number = ANY(%s::numeric[]) OR entry.value = ANY(%s::text[]))",
            [[hashed for hashed, _, _ in columns], numbers, texts],
        )
    ((_, number, text),) = columns
    if text is not None:
        return f"entry.value {condition.operator} %s::text", [text]
    return f"entry.number {condition.operator} %s::numeric", [number]


def _columns(value: str | float) -> tuple[int, Decimal | None, str | None]:
    if isinstance(value, str):
        return digest(f"t{value}"), None, to_text(value)
    numerator, denominator = value.as_integer_ratio()  # one pair for equal numbers, and both zeros
    return digest(f"n{numerator}/{denominator}"), Decimal(value) if numerator else Decimal(0), None

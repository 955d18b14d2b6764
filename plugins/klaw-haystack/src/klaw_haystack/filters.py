"""Haystack's filters, and the conditions that Klaw's index can check of them."""

from __future__ import annotations

from typing import Any

from haystack.errors import FilterError

from klaw_core import Condition, QueryError

_OPERATORS = {"==": "=", ">": ">", ">=": ">=", "<": "<", "<=": "<="}
_META = "meta."


def check(filters: dict[str, Any] | None) -> None:
    """Raise FilterError unless these are filters."""
    if filters and "operator" not in filters and "conditions" not in filters:
        raise FilterError("a filter is a comparison (field, operator, value) or a logic (operator, conditions)")


def conditions_of(filters: dict[str, Any] | None) -> tuple[Condition, ...]:
    """Return the comparisons that must all hold and that the index can check; the caller checks the whole filter."""
    if not filters:
        return ()
    if filters.get("operator") == "AND" and isinstance(filters.get("conditions"), list):
        return tuple(condition for part in filters["conditions"] for condition in conditions_of(part))
    field, operator, value = (filters.get(name) for name in ("field", "operator", "value"))
    if not isinstance(field, str) or not field.startswith(_META) or not isinstance(operator, str):
        return ()
    key = field.removeprefix(_META)
    try:
        if operator == "in" and isinstance(value, list):
            return (Condition(key, "in", tuple(value)),)
        # A string may be a date that Haystack compares as one.
        if operator in _OPERATORS and (operator == "==" or not isinstance(value, str)):
            return (Condition(key, _OPERATORS[operator], value),)  # type: ignore[arg-type]  # one of the operators
    except QueryError:  # a value that metadata cannot have
        pass
    return ()

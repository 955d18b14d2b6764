"""Convert filters of LangChain and LangGraph to conditions of a search."""

from __future__ import annotations

import operator as operators
from collections.abc import Mapping, Sequence
from typing import Any

from klaw_core import Condition, metadata_part

_OPERATORS = {"$eq": "=", "$ne": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<=", "$in": "in"}
_ORDERS = {"$gt": operators.gt, "$gte": operators.ge, "$lt": operators.lt, "$lte": operators.le}


def conditions_of(where: Mapping[str, Any] | None) -> tuple[Condition, ...]:
    """Return the conditions of a filter, all of which must hold. Raise ValueError if a search cannot filter by it.

    ``{"key": value}``, ``{"key": {"$gte": 3}}`` with ``$eq $ne $gt $gte $lt $lte $in``, and ``{"$and": [...]}``.
    """
    found: list[Condition] = []
    for key, wanted in (where or {}).items():
        if key == "$and":
            found.extend(condition for part in wanted for condition in conditions_of(part))
        elif key.startswith("$"):
            raise ValueError(f"unsupported filter {key!r}: use $and, or one condition for each key")
        else:
            found.extend(_condition(key, operator, value) for operator, value in _comparisons(wanted))
    return tuple(found)


def pushed_down(where: Mapping[str, Any] | None) -> tuple[Condition, ...]:
    """Return those conditions of a LangGraph filter that the index can check; :func:`holds` checks them all."""
    found = []
    for key, wanted in (where or {}).items():
        for operator, value in _comparisons(wanted):
            is_single = not isinstance(value, list) and bool(metadata_part({key: value}))
            # The index orders text without its case, and so could leave out what passes.
            known = _OPERATORS if not isinstance(value, str) else ("$eq",)
            if is_single and operator in known and operator != "$ne" and "." not in key:
                found.append(Condition(key, _OPERATORS[operator], value))  # type: ignore[arg-type]  # one of the operators
    return tuple(found)


def holds(where: Mapping[str, Any] | None, value: Mapping[str, Any]) -> bool:
    """Return whether a LangGraph item's value passes a filter; ``a.b`` looks into an object. Raise ValueError."""
    return all(
        _compare(_at(value, key), operator, wanted)
        for key, comparisons in (where or {}).items()
        for operator, wanted in _comparisons(comparisons)
    )


def _condition(key: str, operator: str, value: Any) -> Condition:
    if operator not in _OPERATORS:
        raise ValueError(f"unknown operator {operator!r} for {key!r}: use one of {', '.join(_OPERATORS)}")
    if operator == "$in":
        value = tuple(value)
    return Condition(key, _OPERATORS[operator], value)  # type: ignore[arg-type]  # one of the operators


def _comparisons(wanted: Any) -> Sequence[tuple[str, Any]]:
    if isinstance(wanted, Mapping) and wanted and all(isinstance(key, str) and key.startswith("$") for key in wanted):
        return list(wanted.items())
    return [("$eq", wanted)]


def _compare(found: Any, operator: str, wanted: Any) -> bool:
    if operator == "$eq":
        return bool(found == wanted)
    if operator == "$ne":
        return bool(found != wanted)
    if operator == "$in":
        return found in wanted
    if operator not in _OPERATORS:
        raise ValueError(f"unsupported operator {operator!r}: use one of {', '.join(_OPERATORS)}")
    if isinstance(found, str) != isinstance(wanted, str) or not isinstance(found, str | int | float):
        return False
    return bool(_ORDERS[operator](found, wanted))


def _at(value: Mapping[str, Any], key: str) -> Any:
    if key in value:
        return value[key]
    head, dot, rest = key.partition(".")
    inner = value.get(head)
    return _at(inner, rest) if dot and isinstance(inner, Mapping) else None

"""Validation of the table ``memory.sync``."""

from collections.abc import Mapping
from typing import Any

import attrs

from klaw_core.config.layers import shown
from klaw_core.values.config import SyncSettings

_PLACE = "memory.sync"
_MAX_VALUE = 2**31

#: The keys of the table.
KEYS = tuple(field.name for field in attrs.fields(SyncSettings))


def sync_settings(table: Any, problems: list[str]) -> SyncSettings:
    """Return the table as settings; append each problem, with its place, to ``problems``."""
    if not isinstance(table, Mapping):
        problems.append(f"{_PLACE}: expected a table, got {shown(table)}")
        return SyncSettings()
    values = {key: table[key] for key in KEYS}
    wrong = {key: expected for key, value in values.items() if (expected := _expected(key, value))}
    problems.extend(f"{_PLACE}.{key}: expected {expected}, got {shown(values[key])}" for key, expected in wrong.items())
    return SyncSettings() if wrong else SyncSettings(**values)


def _expected(key: str, value: Any) -> str:
    """Return a description of the expected value, or ``""`` if the value is valid."""
    if isinstance(getattr(SyncSettings(), key), bool):
        return "" if isinstance(value, bool) else "true or false"
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_VALUE
    return "" if good else "a whole number of at least 0"

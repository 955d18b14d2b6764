"""The tables of settings under ``memory``: each is an attrs class, whose fields are its keys, defaults and limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import attrs

from klaw_core.config.layers import shown
from klaw_core.values.config import CacheSettings, ConversationSettings, SearchSettings, SyncSettings

S = TypeVar("S", bound=attrs.AttrsInstance)

#: The classes by table name.
SETTINGS: Mapping[str, type[attrs.AttrsInstance]] = {
    "conversations": ConversationSettings,
    "cache": CacheSettings,
    "search": SearchSettings,
    "sync": SyncSettings,
}

#: Keys of earlier versions, by table, each with the setting that replaced it.
MOVED: Mapping[tuple[str, str], str] = {
    ("sync", key): f"extensions.watch.{key}"
    for key in ["on_start", "watch", "debounce_ms", "conversation_messages", "conversation_bytes", "interval_minutes"]
}


def keys_of(kind: type[attrs.AttrsInstance]) -> tuple[str, ...]:
    """Return the keys of a table of settings."""
    return tuple(field.name for field in attrs.fields(kind))


def table_of(settings: attrs.AttrsInstance) -> dict[str, Any]:
    """Return settings as a TOML table."""
    values = attrs.asdict(settings, recurse=False)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def read_settings(kind: type[S], place: str, table: Any, problems: list[str]) -> S:
    """Return the table as settings. Append each problem, with its place, to ``problems``; then return the defaults."""
    if not isinstance(table, Mapping):
        problems.append(f"{place}: expected a table, got {shown(table)}")
        return kind()
    fields = [field for field in attrs.fields(kind) if field.name in table]
    wrong = [
        f"{place}.{field.name}: expected {expected}, got {shown(table[field.name])}"
        for field in fields
        if (expected := _expected(field, table[field.name]))
    ]
    problems.extend(wrong)
    if wrong:
        return kind()
    given = {field.name: table[field.name] for field in fields}
    settings = kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
    if isinstance(settings, ConversationSettings):
        problems.extend(_pattern_problems(f"{place}.redact", settings.redact))
    return settings


def _expected(field: attrs.Attribute[Any], value: Any) -> str:
    """Return a description of the expected value; empty if the value is valid."""
    if isinstance(field.default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(field.default, int):
        least = field.metadata.get("at_least", 0)  # below 2**63 are SQLite's integers
        good = isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63
        return "" if good else f"a whole number of at least {least}"
    roles = field.metadata.get("roles")
    good = isinstance(value, list) and all(isinstance(item, str) and (not roles or item in roles) for item in value)
    if good:
        return ""
    return f"an array of roles ({', '.join(roles)})" if roles else "an array of strings"


def _pattern_problems(place: str, patterns: Iterable[str]) -> list[str]:
    """Return the problems of redaction patterns."""
    problems = []
    for index, pattern in enumerate(patterns):
        import regex  # type: ignore[import-untyped]  # it ships no types; imported only if a pattern is configured

        try:
            compiled = regex.compile(pattern)
        except regex.error as error:
            problems.append(f"{place}[{index}]: not a regular expression: {error}")
            continue
        if compiled.fullmatch(""):
            problems.append(f"{place}[{index}]: the pattern matches the empty string, so it would match everywhere")
    return problems

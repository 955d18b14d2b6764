"""Validation of the table ``memory.conversations``."""

from collections.abc import Callable, Mapping
from typing import Any

from klaw_core.config.layers import shown
from klaw_core.values.config import ConversationSettings

_PLACE = "memory.conversations"
_ROLES = ("user", "assistant", "system", "tool")
_MIN_CHUNK_TOKENS = 8


def conversation_settings(table: Any, problems: list[str]) -> ConversationSettings:
    """Return the table as settings; append each problem, with its place, to ``problems``."""
    if not isinstance(table, Mapping):
        problems.append(f"{_PLACE}: expected a table, got {shown(table)}")
        return ConversationSettings()
    found = len(problems)
    for key, check in _CHECKS.items():
        if key in table and (expected := check(table[key])):
            problems.append(f"{_PLACE}.{key}: expected {expected}, got {shown(table[key])}")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in table.items() if key in KEYS
    }
    if len(problems) > found:
        return ConversationSettings()
    settings = ConversationSettings(**values)
    for index, pattern in enumerate(settings.redact):
        problems.extend(f"{_PLACE}.redact[{index}]: {problem}" for problem in _pattern_problems(pattern))
    return settings


def _pattern_problems(pattern: str) -> list[str]:
    import regex  # type: ignore[import-untyped]  # it ships no types; imported only if a pattern is configured

    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        return [f"not a regular expression: {error}"]
    return ["the pattern matches the empty string, so it would match everywhere"] if compiled.fullmatch("") else []


def _strings(value: Any) -> str:
    good = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return "" if good else "an array of strings"


def _roles(value: Any) -> str:
    good = not _strings(value) and all(role in _ROLES for role in value)
    return "" if good else f"an array of roles ({', '.join(_ROLES)})"


def _whole(least: int) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return "" if good else f"a whole number of at least {least}"

    return check


def _truth(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


_CHECKS: Mapping[str, Callable[[Any], str]] = {
    "include_roles": _roles,
    "redact": _strings,
    "redact_secrets": _truth,
    "redact_notes": _truth,
    "max_tokens": _whole(_MIN_CHUNK_TOKENS),
    "packed_tokens": _whole(0),
    "context_tokens": _whole(0),
}

#: The keys of the table.
KEYS = tuple(_CHECKS)

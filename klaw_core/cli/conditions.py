"""Conditions on metadata as people type them: ``status=open``, ``year>=2024``, ``tag=a,b``."""

from __future__ import annotations

import re

from klaw_core.errors import QueryError, quoted
from klaw_core.values.metadata import Condition, is_single

_WRITTEN = re.compile(r"\s*([^\s=!<>]+)\s*(=|!=|<=|>=|<|>)(?![=<>!])(.*)", re.DOTALL)


def parse_condition(text: str) -> Condition:
    """Return the condition that ``key=value``, ``key!=value``, ``key>=3`` or ``key=a,b`` (one of them) means.

    Numbers, ``true`` and ``false`` are read as such; a value in double quotes is a string. Raise QueryError.
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise QueryError(f"{quoted(text)} is not a condition", hint="use key=value, key!=value, key>=3 or key=a,b")
    key, operator, written = match.group(1), match.group(2), match.group(3).strip()
    values = tuple(_parsed(part.strip()) for part in written.split(",")) if operator == "=" else (_parsed(written),)
    return Condition(key, "in", values) if len(values) > 1 else Condition(key, operator, values[0])  # type: ignore[arg-type]  # one of the operators, by the pattern


def _parsed(text: str) -> str | int | float | bool:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for kind in (int, float) if "_" not in text else ():  # 1_000 is a number only in Python
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if is_single(number) else text
    return text

"""Change one table of a TOML text, and leave every other byte as it is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from klaw_tools.text_lines import inserted, is_blank_line, last_line, newline_of, removed

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'')
#: What a value consists of, as far as its end depends on it. A long string may end with two quotes of its own.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:\'{0,2})|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[{]|[\]}]|\n',
    re.DOTALL,
)


def parse(text: str) -> dict[str, Any]:
    """Return the value of a text. Raise ValueError if it is no TOML."""
    return tomllib.loads(text)


def with_entry(text: str, keys: Sequence[str], name: str, value: Mapping[str, Any] | None) -> str:
    """Return a text with a table below ``keys``, or without it if the value is None.

    A new table is written at the end, with an empty line before it, which is removed with it. Raise ValueError if the
    text is no TOML, or has no place for the table.
    """
    path = (*keys, name)
    if _existing(parse(text), path) == value:
        return text
    statements = [*_statements(text)]
    for each in statements:
        if each.path == path[: len(each.path)] and not each.is_header and len(each.path) < len(path):
            shown = ".".join(each.path)
            raise ValueError(f"{shown!r} is written in one line; write it as tables: [{shown}.NAME]")
    groups = _own(statements, path)
    if value is not None and not groups:
        gap = newline_of(text) if text else ""
        return inserted(text, len(text), _written(path, value, text), before=gap)
    for number, group in reversed([*enumerate(groups)]):
        if value is not None and number == 0:
            start, end = group[0].start, group[-1].end
            text = text[:start] + _replacement(group[0], path, value, text, text[:end]) + text[end:]
        else:
            text = _without(text, group)
    return text


@frozen
class _Statement:
    """A header of a table, or a key with a value: its path from the root, and its lines."""

    path: tuple[str, ...]
    header: tuple[str, ...]
    is_header: bool
    start: int
    end: int


def _existing(data: Any, path: Sequence[str]) -> Any:
    for depth, key in enumerate(path):
        if not isinstance(data, dict):
            raise ValueError(f"{path[depth - 1]!r} is not a table")  # noqa: TRY004  # the value is wrong, not a type
        if key not in data:
            return None
        data = data[key]
    return data


def _own(statements: Sequence[_Statement], path: Sequence[str]) -> list[list[_Statement]]:
    """Return the statements of a table, those that follow each other together."""
    groups: list[list[_Statement]] = []
    continues = False
    for each in statements:
        is_own = each.path[: len(path)] == path
        if is_own and continues:
            groups[-1].append(each)
        elif is_own:
            groups.append([each])
        continues = is_own
    return groups


def _without(text: str, group: Sequence[_Statement]) -> str:
    start, end = group[0].start, group[-1].end
    if group[0].is_header:
        if is_blank_line(above := last_line(text[:start])):
            start -= len(above)
        elif not start and is_blank_line(below := text[end : text.find("\n", end) + 1]):
            end += len(below)
    return removed(text, start, end)


def _written(path: Sequence[str], value: Mapping[str, Any], text: str) -> str:
    import tomlkit

    document: Any = tomlkit.document()
    table = document
    for key in path:
        table[key] = tomlkit.table()
        table = table[key]
    table.update(value)
    return tomlkit.dumps(document).replace("\n", newline_of(text))


def _replacement(first: _Statement, path: Sequence[str], value: Mapping[str, Any], text: str, upto: str) -> str:
    """Return a table in the form that it has: with a header, or as the value of a key."""
    import tomlkit

    if first.is_header:
        written = _written(path, value, text)
    else:
        inline = tomlkit.inline_table()
        inline.update(value)
        key = ".".join(tomlkit.key(each).as_string() for each in path[len(first.header) :])
        written = f"{key} = {inline.as_string()}{newline_of(text)}"
    return written if upto.endswith("\n") else written.rstrip("\r\n")


def _statements(text: str) -> Iterator[_Statement]:
    """Yield the statements of valid TOML."""
    at = 0
    header: tuple[str, ...] = ()
    while at < len(text):
        start, place = at, _past_space(text, at)
        if text[place : place + 1] in ("", "\r", "\n", "#"):
            at = _next_line(text, place)
        elif text[place] == "[":
            header, place = _key(text, place + (2 if text.startswith("[[", place) else 1))
            at = _next_line(text, place)
            yield _Statement(header, header, True, start, at)
        else:
            key, place = _key(text, place)
            at = _next_line(text, _value_end(text, place + 1))
            yield _Statement((*header, *key), header, False, start, at)


def _key(text: str, place: int) -> tuple[tuple[str, ...], int]:
    """Return the parts of the key at a place, and where it ends."""
    parts: list[str] = []
    while not parts or text[place] == ".":
        place = _past_space(text, place + bool(parts))
        bare = _BARE.match(text, place)
        found = bare or _QUOTED.match(text, place)
        if found is None:
            raise ValueError(f"no key at character {place}")
        parts.append(found[0] if bare else tomllib.loads(f"key = {found[0]}")["key"])
        place = _past_space(text, found.end())
    return tuple(parts), place


def _value_end(text: str, place: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, place):
        depth += (token[0] in "[{") - (token[0] in "]}")
        if token[0] == "\n" and not depth:
            return token.start()
    return len(text)


def _past_space(text: str, place: int) -> int:
    while text[place : place + 1] in (" ", "\t"):
        place += 1
    return place


def _next_line(text: str, place: int) -> int:
    return text.find("\n", place) + 1 or len(text)

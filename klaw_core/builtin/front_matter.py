"""Front matter of a note: metadata, not text.

A note may begin with a block of YAML between two lines of ``---``, as Obsidian, Hugo and Jekyll write it
(https://jekyllrb.com/docs/front-matter/), or of TOML between two lines of ``+++``, as Hugo and Zola do
(https://gohugo.io/content-management/front-matter/). Its values become the document's metadata. In the text that is
chunked the block is replaced by spaces, so that it is never searched as prose and every offset and line number stays
true.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import Any

from klaw_core.errors import RecordError
from klaw_core.values.metadata import MAX_KEYS, Metadata, check_metadata, to_value

# More than any real note has; parsing YAML takes a microsecond a byte.
_MAX_CHARACTERS = 20_000
_BLOCK = re.compile(r"---[ \t]*(?:\r\n|\r|\n)(.*?)(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?:(?:\r\n|\r|\n)|\Z)", re.DOTALL)
_TOML_BLOCK = re.compile(r"\+\+\+[ \t]*(?:\r\n|\r|\n)(.*?)(?<=[\r\n])\+\+\+[ \t]*(?:(?:\r\n|\r|\n)|\Z)", re.DOTALL)
# What PyYAML raises for values that are not what their tag or form says, such as `!!bool maybe`.
_UNUSABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# A line of a block that was meant to be YAML: a key, an item of a list, a comment, or what is indented below a key.
_FIELD_LINE = re.compile(r"[\w][\w .-]{0,60}:(?:\s|\Z)|-(?:\s|\Z)|#|\s")
# A value in a value in a value: PyYAML refuses it, from version 6.0.4 on, if there are very many.
_NESTED = ("[[[", "{{{")
_SOLID = re.compile(r"[^\r\n]")
# What notes call the day they were written on, in order of preference, in any case.
_DATE_KEYS = ("date", "created", "created_at", "created at", "creation date", "published")
# Hugo's and Zola's tables of a page's own parameters and its terms.
_TOML_TABLES = ("params", "extra", "taxonomies")
# A list in one string: `tags: a, b`.
_LISTS = ("tags", "aliases")


def read_front_matter(text: str) -> tuple[Metadata, str]:
    """Return the metadata of a note, and its text with the front matter blanked out.

    A block that is not a YAML mapping is text like any other, unless each of its lines looks like one of a mapping: a
    template or a slip of the pen is no prose either. Values that metadata cannot hold (nested mappings, nulls) are
    left out.
    """
    if text.startswith("+++"):
        return _read_toml(text)
    if not text.startswith("---"):
        return {}, text
    match = _BLOCK.match(text[:_MAX_CHARACTERS])
    if match is None:
        return {}, text
    values = _parsed(match.group(1))
    if values is None:
        values = _plain_values(match.group(1))
    if values is None:
        return {}, text
    return _as_metadata(values), _SOLID.sub(" ", match.group(0)) + text[match.end() :]


def written_date(metadata: Metadata, keys: Sequence[str] = _DATE_KEYS) -> datetime | None:
    """Return the day or time that the metadata says a note was written, in UTC; None if it does not say."""
    found = {key.casefold(): value for key, value in metadata.items()}
    for key in keys:
        value = found.get(key)
        if isinstance(value, str) and (moment := _moment(value)) is not None:
            return moment
    return None


def _read_toml(text: str) -> tuple[Metadata, str]:
    """Return what a block of TOML says; tables that Hugo and Zola keep the writer's own keys in count as well."""
    match = _TOML_BLOCK.match(text[:_MAX_CHARACTERS])
    if match is None:
        return {}, text
    import tomllib

    try:
        values = tomllib.loads(match.group(1).replace("\r\n", "\n").replace("\r", "\n"))
    except (ValueError, RecursionError):
        return {}, text
    for name in _TOML_TABLES:
        table = values.pop(name, None)
        if isinstance(table, dict):
            values = {**table, **values}
    return _as_metadata(values), _SOLID.sub(" ", match.group(0)) + text[match.end() :]


def _parsed(block: str) -> dict[Any, Any] | None:
    import yaml  # imported for the first note that has front matter

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Aliases can expand to any size; no note needs them.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(block, Loader=loader)):
            return None
        values = yaml.load(block, Loader=loader)  # noqa: S506  # a safe loader
    except (yaml.YAMLError, *_UNUSABLE):
        return None
    return values if isinstance(values, dict) else {} if values is None else None


def _plain_values(block: str) -> dict[Any, Any] | None:
    """Return the plain values of a block that is no YAML; None if one of its lines looks like prose."""
    lines = [line for line in block.splitlines() if line.strip()]
    if not lines or not lines[0][0].isalpha() or not all(map(_FIELD_LINE.match, lines)):
        return None
    pairs = (line.partition(":") for line in lines if not line[0].isspace() and line[0] not in "-#")
    values = ((key.strip(), value.strip()) for key, _, value in pairs)
    return {key: value.strip("\"'").strip() for key, value in values if value and not value.startswith(_NESTED)}


def _as_metadata(values: dict[Any, Any]) -> Metadata:
    found: dict[str, Any] = {}
    for key, value in values.items():
        if len(found) == MAX_KEYS:
            break
        name = str(key)
        if name in _LISTS and isinstance(value, str):
            value = [part.strip().removeprefix("#") for part in value.split(",") if part.strip()]  # noqa: PLW2901  # the same value as a list
        try:
            found |= check_metadata({name: to_value(value)})
        except RecordError:
            continue
    return found


def _moment(text: str) -> datetime | None:
    text = text.replace("/", "-")
    try:
        day = date.fromisoformat(text)
    except ValueError:
        pass
    else:
        return datetime.combine(day, time(), UTC)
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # or a moment that UTC cannot express
        return None

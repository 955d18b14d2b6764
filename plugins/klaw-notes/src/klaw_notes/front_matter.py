"""Front matter of a note: metadata, not text.

A note may begin with a block of YAML between two lines of ``---``, as Obsidian, Hugo and Jekyll write it
(https://jekyllrb.com/docs/front-matter/), or of TOML between two lines of ``+++``, as Hugo and Zola do
(https://gohugo.io/content-management/front-matter/). Its values become the document's metadata. In the text that is
chunked, spaces replace the block: it is not searched as prose, and offsets and line numbers stay correct.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from functools import cache
from typing import Any

from klaw_core import Metadata, RecordError, check_metadata
from klaw_core.values.metadata import MAX_KEYS, is_single, number_of
from klaw_words.days import DATE_KEYS, written_moment

# The longest block that is parsed, longer than in any real note: parsing YAML takes a microsecond per byte.
_MAX_CHARACTERS = 20_000
_BLOCK = re.compile(r"---[ \t]*(?:\r\n|\r|\n)(.*?)(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?:(?:\r\n|\r|\n)|\Z)", re.DOTALL)
_TOML_BLOCK = re.compile(r"\+\+\+[ \t]*(?:\r\n|\r|\n)(.*?)(?<=[\r\n])\+\+\+[ \t]*(?:(?:\r\n|\r|\n)|\Z)", re.DOTALL)
# Exceptions that PyYAML raises for values that contradict their tag or form, such as `!!bool maybe`.
_UNUSABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# A line of a block that is meant to be YAML: a key, a list item, a comment, or an indented line below a key.
_FIELD_LINE = re.compile(r"[\w][\w .-]{0,60}:(?:\s|\Z)|-(?:\s|\Z)|#|\s")
# The values of YAML 1.2's core schema that are not text: tag, form, first characters.
_RESOLVERS = (
    ("null", "~|null|Null|NULL|", ("~", "n", "N", "")),
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("merge", "<<", "<"),
)
# Deeply nested values; PyYAML 6.0.4 and later refuse them.
_NESTED = ("[[[", "{{{")
_SOLID = re.compile(r"[^\r\n]")
# The tables in which Hugo and Zola keep a page's own parameters and terms.
_TOML_TABLES = ("params", "extra", "taxonomies")
# A list in one string: `tags: a, b`. None of them has an empty item.
_LISTS = ("tags", "aliases")
# Levels of maps and lists in one another. Untrusted values may be nested more deeply.
_MAX_DEPTH = 8
# The items of a list that is not valid YAML, such as `[a, , b]` and `[#a, @b]`, in quotes or not.
_ITEM = re.compile(r"""\s*("[^"]*"(?=\s*(?:[,\n]|\Z))|'[^']*'(?=\s*(?:[,\n]|\Z))|[^,\n]*)(?:[,\n]|\Z)""")
_DASH = re.compile(r"\s*-(?:\s+|\Z)")
# What is verbatim in TOML (strings, comments), and a number or a time that is a value.
_TOML_TOKENS = re.compile(
    r'''(?P<verbatim>"""(?:\\.|[^\\])*?"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|\#[^\n]*)
    |(?<![\w.:+"'-])[-+]?\d[\w:.+-]*(?:[ ]\d\d:[\w:.+-]*)?(?=[ \t]*(?:[],}\#\n]|\Z))''',
    re.DOTALL | re.VERBOSE,
)


def read_front_matter(text: str) -> tuple[Metadata, str]:
    """Return the metadata of a note, and its text with the front matter blanked out.

    A block that is not a YAML mapping is ordinary text, unless every line looks like a line of a mapping: a template
    or a block with a typo is not prose. A value in a mapping has the keys with dots between them: ``author.name``; the
    values of several mappings in a list are a list. Values that metadata cannot contain (nulls) are left out.
    """
    if text.startswith("+++"):
        return _read_toml(text)
    if not text.startswith("---"):
        return {}, text
    match = _BLOCK.match(text[:_MAX_CHARACTERS])
    if match is None:
        return {}, text
    values = parse_yaml(match.group(1))
    if values is None:
        values = _plain_values(match.group(1))
    if values is None:
        return {}, text
    return _as_metadata(values), _SOLID.sub(" ", match.group(0)) + text[match.end() :]


def written_date(metadata: Metadata, keys: Sequence[str] = DATE_KEYS) -> datetime | None:
    """Return the time in UTC at which a note was written according to its metadata; None if it has none."""
    found = {key.casefold(): value for key, value in metadata.items()}
    for key in keys:
        value = found.get(key)
        if isinstance(value, str | int | float) and (moment := written_moment(str(value))) is not None:
            return moment
    return None


def _read_toml(text: str) -> tuple[Metadata, str]:
    """Read a block of TOML, including the tables in which Hugo and Zola keep the writer's own keys."""
    match = _TOML_BLOCK.match(text[:_MAX_CHARACTERS])
    if match is None:
        return {}, text
    import tomllib

    try:
        block = match.group(1).replace("\r\n", "\n").replace("\r", "\n")
        values = tomllib.loads(_TOML_TOKENS.sub(_as_text, block), parse_float=_as_written)
    except (ValueError, RecursionError):
        return {}, text
    for name in _TOML_TABLES:
        table = values.pop(name, None)
        if isinstance(table, dict):
            values = {**table, **values}
    return _as_metadata(values), _SOLID.sub(" ", match.group(0)) + text[match.end() :]


def parse_yaml(block: str) -> dict[Any, Any] | None:
    """Return the values of a block; None if it is not a mapping in valid YAML without aliases."""
    import yaml  # imported for the first note that has front matter

    loader = _loader()
    try:
        # Aliases can expand to any size; no note needs them.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(block, Loader=loader)):
            return None
        values = yaml.load(block, Loader=loader)  # noqa: S506  # a safe loader
    except (yaml.YAMLError, *_UNUSABLE):
        return None
    # A block of comments only is text, an empty one is not.
    return values if isinstance(values, dict) else None if block.strip() else {}


@cache
def _loader() -> Any:
    """Return a safe loader of YAML 1.2's core schema, in which ``no``, ``12:30`` and a date are text.

    PyYAML reads YAML 1.1 (https://github.com/yaml/pyyaml/issues/486). A number that is written in another form than
    its own, such as ``02700`` or ``1.10``, stays as it was written.
    """
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("CoreSchemaLoader", (base,), {"yaml_implicit_resolvers": {}})
    for tag, pattern, first in _RESOLVERS:
        loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), list(first))
    loader.add_constructor("tag:yaml.org,2002:int", _number)
    loader.add_constructor("tag:yaml.org,2002:float", _number)
    return loader


def _number(_loader: Any, node: Any) -> Any:
    return _as_written(node.value)


def _as_text(token: re.Match[str]) -> str:
    """Return a number or time of TOML as a string, unless its value has the same form as what was written."""
    text = token[0]
    return text if token["verbatim"] or _as_written(text) != text else f'"{text}"'


def _as_written(text: str) -> Any:
    number = number_of(text)
    return text if str(number) != text else number


def _plain_values(block: str) -> dict[Any, Any] | None:
    """Return the values of a block that is not valid YAML, each field read by itself; None if a line is prose.

    What is not valid even so is the rest of its line.
    """
    lines = [line for line in block.splitlines() if line.strip()]
    if not lines or not lines[0][0].isalpha() or not all(map(_FIELD_LINE.match, lines)):
        return None
    fields: list[list[str]] = []
    for line in lines:
        if line[0].isspace() or line[0] in "-#":
            fields[-1].append(line)
        else:
            fields.append([line])
    values: dict[Any, Any] = {}
    for first, *more in fields:
        parsed = parse_yaml("\n".join((first, *more)))
        key, _, value = (part.strip() for part in first.partition(":"))
        if parsed is not None:
            values |= parsed
        elif not value and more and all(map(_DASH.match, more)):
            values[key] = [_unquoted(_DASH.sub("", line, count=1)) for line in more]
        elif value and not value.startswith(_NESTED):
            values[key] = _plain_value("\n".join((value, *more)))
    return values


def _plain_value(text: str) -> str | list[str]:
    """Return a value that is not valid YAML: a list in brackets, of which the last may be missing, or its line."""
    inner, _, after = text[1:].partition("]")
    if text[0] != "[" or "[" in inner or after.partition(" #")[0].strip():
        return _unquoted(text.partition("\n")[0])
    return [item for match in _ITEM.finditer(inner) if (item := _unquoted(match[1]))]


def _unquoted(text: str) -> str:
    return text.strip().strip("\"'").strip()


def _as_metadata(values: Mapping[Any, Any]) -> Metadata:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        for name, item in _flat(str(key), value, is_listed=False, depth=0):
            if isinstance(item, list):
                known = flat.setdefault(name, [])
                if isinstance(known, list):
                    known += item
            else:
                flat.setdefault(name, item)
    found: dict[str, Any] = {}
    for name, value in flat.items():
        if len(found) == MAX_KEYS:
            break
        if name in _LISTS and isinstance(value, str):
            value = [part.strip().removeprefix("#") for part in value.split(",")]  # noqa: PLW2901  # the same value as a list
        if name in _LISTS and isinstance(value, list):
            value = [part for part in value if part.strip()]  # noqa: PLW2901
        try:
            found |= check_metadata({name: value})
        except RecordError:
            continue
    return found


def _flat(name: str, value: Any, *, is_listed: bool, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the values below a key, those of a list as lists of strings, that metadata can contain.

    A date or time is its ISO 8601 string. An item of a list without a value is one not yet written.
    """
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _flat(f"{name}.{key}", below, is_listed=is_listed, depth=depth + 1)
    elif isinstance(value, list | tuple):
        if not any(isinstance(item, Mapping | list | tuple) for item in value):
            yield name, []
        for item in value:
            yield from _flat(name, item, is_listed=True, depth=depth + 1)
    else:
        single = value.isoformat() if isinstance(value, datetime | date | time) else value
        if is_single(single):
            yield name, [_written(single)] if is_listed else single


def _written(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

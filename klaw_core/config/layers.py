"""Layers of tables: read them, refuse what an untrusted one may not set, and lay one over the other."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

Table = dict[str, Any]

# Deeper than any option: what walks the tables below may recurse.
_MOST_LEVELS = 20
_LONGEST_SHOWN = 80
# More than a configuration ever holds, and little enough to read: a project's klaw.toml is a stranger's.
_LARGEST_FILE = 1024 * 1024
# tomllib takes 250 MB for a key of 8,000 parts; a quoted part counts as one that is not.
_QUOTED = re.compile(r""""[^"\n]*"|'[^'\n]*'""")
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:[\w-]+[ \t]*\.[ \t]*){{{_MOST_LEVELS}}}")

#: The data directory of a project that has a memory of its own.
PROJECT_MEMORY = ".klaw"

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

# What a project's klaw.toml may set without being trusted: how rankings are merged. Anything else could load code, send
# notes to a server, or write elsewhere; how text is cut concerns the index, which other directories share.
_FREE = ("memory.fusion",)
_FREE_IN_OWN_MEMORY = ("memory.chunking", *_FREE)


@frozen(eq=False, repr=False)
class Layer:
    """One source of settings: a file, or the environment. ``owns_index``: the index in force is the project's own."""

    name: str
    table: Table
    path: Path | None = None
    trusted: bool = True
    owns_index: bool = False


def read_file(path: Path, problems: list[str]) -> Table | None:
    """Read a TOML file, or return None if there is none; any other problem is appended, and the table is then empty."""
    table: Table = {}
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
        if len(data) > _LARGEST_FILE:
            problems.append(f"{path}: larger than {_LARGEST_FILE:,} bytes")
        elif _DEEP_KEY.search(_QUOTED.sub("q", text)):
            problems.append(f"{path}: nested too deeply")
        else:
            import tomllib  # here, because most commands find one file or none

            table = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        problems.append(f"{path}: not valid UTF-8")
    except RecursionError:
        problems.append(f"{path}: nested too deeply")
    except ValueError as error:  # not TOML; a number of more digits than Python reads; a NUL in the path
        problems.append(f"{path}: not valid TOML: {error}")
    if _levels(table) > _MOST_LEVELS:
        problems.append(f"{path}: nested too deeply")
        return {}
    return table


def _levels(table: Table) -> int:
    """Return how deep tables and arrays stand in each other, without recursion."""
    level, values = 0, list[Any]([table])
    while values:
        level += 1
        inner = [value.values() if isinstance(value, Mapping) else value for value in values]
        values = [item for items in inner for item in items if isinstance(item, Mapping | list)]
    return level


def overlay(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Table:
    """Lay ``upper`` over ``lower``: tables merge, anything else replaces.

    A table that picks another ``type`` replaces the whole table: the options of one component mean
    nothing to another.
    """
    merged = dict(lower)
    for key, value in upper.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            other_type = "type" in old and "type" in value and value["type"] != old["type"]
            merged[key] = dict(value) if other_type else overlay(old, value)
        else:
            merged[key] = value
    return merged


def forbidden(layer: Layer) -> Iterator[str]:
    """Yield a problem for each setting that this layer may not make because it is not trusted."""
    if layer.trusted:
        return
    hint = "move it to your own configuration, or run `klaw config trust`"
    free = _FREE_IN_OWN_MEMORY if layer.owns_index else _FREE
    for place, value in leaves(layer.table):
        if not place.startswith(tuple(f"{table}." for table in free)):
            other = (
                "; a project with a memory of its own may: `klaw init --here`"
                if place.startswith("memory.chunking.")
                else ""
            )
            yield f"{layer.name}: a project may not set {place}: {hint}{other}"
        elif any(_VARIABLE.search(text) or _leads_outside(text) for text in _strings_in(value)):
            yield f"{layer.name}: a project may not use a variable or an outside path in {place}: {hint}"


def _leads_outside(text: str) -> bool:
    return text.startswith("~") or ".." in text or Path(text).is_absolute()


def _strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _strings_in(item)


def leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value that is not a table, with its dotted place; arrays of tables by index."""
    for key, value in table.items():
        place = join(prefix, key)
        if isinstance(value, Mapping):
            yield from leaves(value, place)
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            for index, item in enumerate(value):
                yield from leaves(item, f"{place}[{index}]")
        else:
            yield place, value


def join(place: str, key: str) -> str:
    """Return the place of a key in the table at ``place``; a key that is not bare is quoted, as in TOML."""
    written = key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)
    return f"{place}.{written}" if place else written


def shown(value: Any) -> str:
    """Return a value as an error message shows it: on one line, and short."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python writes
        return "a very large number"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def expand(value: Any, place: str, environment: Mapping[str, str], unset: dict[str, str]) -> Any:
    """Replace ``${VAR}`` in every string by the environment's value; ``unset`` gets a problem by place for others."""
    if isinstance(value, str):

        def variable(match: re.Match[str]) -> str:
            name = match[1]
            if name not in environment:
                unset[place] = f"{place}: the environment has no variable {name}"
            return environment.get(name, "")

        return _VARIABLE.sub(variable, value)
    if isinstance(value, Mapping):
        return {key: expand(item, join(place, key), environment, unset) for key, item in value.items()}
    if isinstance(value, list):
        return [expand(item, f"{place}[{index}]", environment, unset) for index, item in enumerate(value)]
    return value


def project_file(start: Path) -> Path | None:
    """Return the nearest ``klaw.toml`` in ``start`` or above it, not above the home directory."""
    return _nearest_above(start, "klaw.toml", os.path.isfile)


def project_memory(start: Path) -> Path | None:
    """Return the nearest directory ``.klaw`` in ``start`` or above it, not above the home directory."""
    return _nearest_above(start, PROJECT_MEMORY, os.path.isdir)


def _nearest_above(start: Path, name: str, is_there: Callable[[Path], bool]) -> Path | None:
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # Path.home() raises where there is none
    for directory in (start, *start.parents):
        candidate = directory / name
        if is_there(candidate):
            return candidate
        if directory == home:
            break
    return None

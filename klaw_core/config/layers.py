"""Layers of tables: read them, refuse what an untrusted one may not set, and lay one over the other."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

Table = dict[str, Any]

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

# What a project's klaw.toml may set without being trusted: how text is cut and how rankings are merged.
# Anything else could load code, send notes to a server, or write elsewhere.
_FREE_FOR_PROJECTS = ("memory.chunking", "memory.fusion")


@frozen
class Layer:
    """One source of settings: a file, or the environment."""

    name: str
    table: Table
    path: Path | None = None
    trusted: bool = True


def read_file(path: Path, problems: list[str]) -> Table:
    """Read a TOML file; a problem is appended, not raised, and the table is then empty."""
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{path}: not valid TOML: {error}")
    except UnicodeDecodeError:
        problems.append(f"{path}: not valid UTF-8")
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror}")
    return {}


def overlay(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Table:
    """Lay ``upper`` over ``lower``: tables merge, anything else replaces.

    A table that picks another ``type`` replaces the whole table: the options of one component mean
    nothing to another.
    """
    merged = dict(lower)
    for key, value in upper.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            other_type = "type" in value and value["type"] != old.get("type")
            merged[key] = dict(value) if other_type else overlay(old, value)
        else:
            merged[key] = value
    return merged


def forbidden(layer: Layer) -> Iterator[str]:
    """Yield a problem for each setting that this layer may not make because it is not trusted."""
    if layer.trusted:
        return
    mend = "move it to your own configuration, or run `klaw config trust`"
    for place, value in leaves(layer.table):
        if not place.startswith(tuple(f"{free}." for free in _FREE_FOR_PROJECTS)):
            yield f"{layer.name}: a project may not set {place}: {mend}"
        elif isinstance(value, str) and (_VARIABLE.search(value) or Path(value).is_absolute() or ".." in value):
            yield f"{layer.name}: a project may not use a variable or an outside path in {place}: {mend}"


def leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value that is not a table, with its dotted place; arrays of tables by index."""
    for key, value in table.items():
        place = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from leaves(value, f"{place}.")
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            for index, item in enumerate(value):
                yield from leaves(item, f"{place}[{index}].")
        else:
            yield place, value


def expand(value: Any, place: str, environment: Mapping[str, str], problems: list[str]) -> Any:
    """Replace ``${VAR}`` in every string by the environment's value; an unset one is a problem."""
    if isinstance(value, str):

        def variable(match: re.Match[str]) -> str:
            name = match[1]
            if name not in environment:
                problems.append(f"{place}: the environment has no variable {name}")
            return environment.get(name, "")

        return _VARIABLE.sub(variable, value)
    if isinstance(value, Mapping):
        return {
            key: expand(item, f"{place}.{key}" if place else key, environment, problems) for key, item in value.items()
        }
    if isinstance(value, list):
        return [expand(item, f"{place}[{index}]", environment, problems) for index, item in enumerate(value)]
    return value


def project_file(start: Path) -> Path | None:
    """Return the nearest ``klaw.toml`` in ``start`` or above it, not above the home directory."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # Path.home() raises where there is none
    for directory in (start, *start.parents):
        candidate = directory / "klaw.toml"
        if candidate.is_file():
            return candidate
        if directory == home:
            break
    return None

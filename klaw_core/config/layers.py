"""Configuration layers: read them, reject settings that an untrusted layer may not make, and merge them."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_core.files.atomic import open_regular

Table = dict[str, Any]

# Nested tables. No option is deeper, and the limit makes recursion over tables safe.
_MAX_LEVELS = 20
# Characters of a value in an error message.
_MAX_SHOWN = 80
# Bytes. A project's klaw.toml may come from a stranger, so its size is limited.
_MAX_FILE_BYTES = 1024 * 1024
# A dotted key with too many parts: tomllib needs 250 MB for a key of 8,000 parts.
_QUOTED = re.compile(r""""[^"\n]*"|'[^'\n]*'""")
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:[\w-]+[ \t]*\.[ \t]*){{{_MAX_LEVELS}}}")

#: The name of a project's own data directory.
PROJECT_MEMORY = ".klaw"

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

# The tables that an untrusted klaw.toml may set. Other tables could load code, send notes to a server, or write to
# other places. Chunking is allowed only if the project has its own index: other directories share the user's index.
_UNTRUSTED_TABLES = ("memory.fusion",)
_UNTRUSTED_TABLES_WITH_OWN_INDEX = ("memory.chunking", *_UNTRUSTED_TABLES)


@frozen(eq=False, repr=False)
class Layer:
    """One source of settings: a file or the environment. ``owns_index`` means that the project has its own index."""

    name: str
    table: Table
    path: Path | None = None
    trusted: bool = True
    owns_index: bool = False


def read_file(path: Path, problems: list[str], *, named: bool = False) -> Table | None:
    """Read a TOML file; return None if it does not exist. A person may have ``named`` a pipe, which is waited for.

    Any other problem is appended to ``problems``, and an empty table is returned.
    """
    table: Table = {}
    try:
        with path.open("rb") if named else open_regular(path) as file:
            data = file.read(_MAX_FILE_BYTES + 1)
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
        if len(data) > _MAX_FILE_BYTES:
            problems.append(f"{path}: larger than {_MAX_FILE_BYTES:,} bytes")
        elif _DEEP_KEY.search(_QUOTED.sub("q", text)):
            problems.append(f"{path}: nested too deeply")
        else:
            import tomllib  # imported late: many commands read no configuration file

            table = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror}; see `ls -ld {path.parent} {path}`")
    except UnicodeDecodeError:
        problems.append(f"{path}: not valid UTF-8")
    except RecursionError:
        problems.append(f"{path}: nested too deeply")
    except ValueError as error:  # invalid TOML, an integer with too many digits, or a NUL in the path
        problems.append(f"{path}: not valid TOML: {error}")
    if _levels(table) > _MAX_LEVELS:
        problems.append(f"{path}: nested too deeply")
        return {}
    return table


def _levels(table: Table) -> int:
    """Return the nesting depth of tables and arrays, computed without recursion."""
    level, values = 0, list[Any]([table])
    while values:
        level += 1
        inner = [value.values() if isinstance(value, Mapping) else value for value in values]
        values = [item for items in inner for item in items if isinstance(item, Mapping | list)]
    return level


def overlay(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Table:
    """Merge ``upper`` into a copy of ``lower``: tables are merged, other values are replaced.

    A table with another ``type`` replaces the whole table, because each component has its own options.
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
    """Yield a problem for each setting that this layer may not make; a trusted layer may make all."""
    if layer.trusted:
        return
    hint = "move it to your own configuration, or run `klaw config trust`"
    allowed = _UNTRUSTED_TABLES_WITH_OWN_INDEX if layer.owns_index else _UNTRUSTED_TABLES
    for place, value in leaves(layer.table):
        if not place.startswith(tuple(f"{table}." for table in allowed)):
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
    """Yield the dotted place and the value of everything that is not a table; places in arrays have an index."""
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
    """Return the place of a key in the table at ``place``; a key that is not a TOML bare key is quoted."""
    written = key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)
    return f"{place}.{written}" if place else written


def shown(value: Any) -> str:
    """Format a value for an error message: on one line, and short."""
    try:
        text = repr(value)
    except ValueError:  # an integer with too many digits for Python to format
        return "a very large number"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def expand(value: Any, place: str, environment: Mapping[str, str], unset: dict[str, str]) -> Any:
    """Replace ``${VAR}`` in every string with the variable's value.

    For a variable that is not set, add a problem to ``unset``, with the place as key.
    """
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
    """Return the nearest ``klaw.toml`` in ``start`` or its parents; the search ends at the home directory."""
    return _nearest_above(start, "klaw.toml", os.path.isfile)


def project_memory(start: Path) -> Path | None:
    """Return the nearest directory ``.klaw`` in ``start`` or its parents; the search ends at the home directory."""
    return _nearest_above(start, PROJECT_MEMORY, os.path.isdir)


def _nearest_above(start: Path, name: str, is_there: Callable[[Path], bool]) -> Path | None:
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # Path.home() raises if there is no home directory
    for directory in (start, *start.parents):
        candidate = directory / name
        if is_there(candidate):
            return candidate
        if directory == home:
            break
    return None

"""Edit the user's configuration file; its comments, order and formatting are preserved.

A *place* is a dotted path, written as in Klaw's messages: ``memory.fusion.k``, ``memory.retrieval[0].weight``.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import tomlkit
from tomlkit.exceptions import TOMLKitError

from klaw_core.config.tables import DEFAULTS
from klaw_core.errors import ConfigError
from klaw_core.files.atomic import locked, read_regular, write_atomically

Step = str | int
T = TypeVar("T")

_STEP = re.compile(r"([A-Za-z0-9_-]+)((?:\[\d+\])*)")
_KEPT = {"type", "weight"}  # keys that belong to the table, not to the component it picks


def parse_place(place: str, *, whole: bool = False) -> tuple[Step, ...]:
    """Split a place into steps: ``("memory", "retrieval", 0, "weight")``.

    With ``whole`` the place may also name an entry of an array of tables. Raise ConfigError for an invalid place.
    """
    steps: list[Step] = []
    for part in place.split("."):
        match = _STEP.fullmatch(part)
        if match is None:
            raise ConfigError(
                [f"{place!r} is not a valid setting name"], hint="use a form like memory.retrieval[0].weight"
            )
        steps += [match[1], *(int(index) for index in re.findall(r"\d+", match[2]))]
    if isinstance(steps[-1], int) and not whole:
        raise ConfigError([f"{place} is a table"], hint=f"name a key of it: {place}.type")
    return tuple(steps)


def parse_value(text: str) -> Any:
    """Parse ``text`` as a TOML value; return it unchanged if it is not one."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if parsed.keys() == {"value"} else text


def with_value(source: str, place: str, value: Any) -> tuple[str, tuple[str, ...]]:
    """Set ``place`` to a value; return the new TOML text and the places that were removed.

    Changing a table's ``type`` removes the options of the old component, because the new one does not know them.
    Missing tables are created; an array of tables can grow by one entry. Before the first retriever is changed, the
    default retrievers are written to the file. Raise ConfigError if the text is not TOML or a parent is not a table.
    """
    document = _parse(source)
    steps = parse_place(place)
    table: Any = document
    for at, step in enumerate(steps[:-1]):
        table = _descend(table, step, steps[at + 1], _written(steps[: at + 1]))
    key = steps[-1]
    if not isinstance(table, MutableMapping):
        raise ConfigError([f"{place}: its parent is not a table"])
    removed = []
    if key == "type" and table.get("type", _default_type(steps, value)) != value:
        removed = [name for name in table if name not in _KEPT]
        for name in removed:
            del table[name]
    is_new = not table
    table[key] = value
    if is_new and isinstance(table, tomlkit.items.Table):
        table.add(tomlkit.nl())  # an empty line after the new table
    parent = place.rpartition(".")[0]
    return tomlkit.dumps(document), tuple(f"{parent}.{name}" for name in removed)


def without_value(source: str, place: str) -> tuple[str, bool]:
    """Remove ``place`` (a key or a whole table); return the TOML text and whether the place was set.

    A parent table that becomes empty stays, with its comments. Raise ConfigError.
    """
    document = _parse(source)
    steps = parse_place(place, whole=True)
    table: Any = document
    for step in steps[:-1]:
        table = _at(table, step)
    if _at(table, steps[-1]) is None:
        return source, False
    del table[steps[-1]]
    return tomlkit.dumps(document), True


def _at(table: Any, step: Step) -> Any:
    """Return the value at a step, or None."""
    if isinstance(step, int):
        return table[step] if isinstance(table, list) and step < len(table) else None
    return table.get(step) if isinstance(table, Mapping) else None


def list_directory(file: Path, key: str, directory: Path) -> None:
    """Add a directory to the top-level array ``key`` of the file. Raise the errors of :func:`edit`."""
    edit(file, lambda source: (with_listed(source, key, directory), None))


def with_listed(source: str, key: str, directory: Path) -> str:
    """Add a directory to the top-level array ``key``; return the TOML text. Raise ConfigError."""
    document = _parse(source)
    listed = document.get(key)
    if listed is None:
        document[key] = [str(directory)]
    elif not isinstance(listed, list):
        raise ConfigError([f"{key}: expected an array of strings"])
    elif str(directory) not in listed:
        listed.append(str(directory))
    return tomlkit.dumps(document)


def read_source(file: Path) -> str:
    """Return the file's text, or an empty string if the file does not exist. Raise ConfigError if it cannot be read."""
    try:
        return read_regular(file).decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError([f"{file}: not valid UTF-8"], hint="save the file as UTF-8") from error
    except OSError as error:
        raise ConfigError([f"{file}: cannot be read: {error.strerror}"], hint="check it and its permissions") from error


def edit(file: Path, change: Callable[[str], tuple[str, T]]) -> T:
    """Replace the file's text with the first value that ``change`` returns for it, and return the second one.

    Until then no other process edits the file, so no change is lost. Symbolic links are followed, not replaced. Raise
    ConfigError, StoreReadOnlyError.
    """
    place = file.resolve()
    with locked(place.parent):
        source = read_source(place)
        text, result = change(source)
        if text != source:
            write_atomically(place, text)
    return result


def _parse(source: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(source)
    except TOMLKitError as error:
        raise ConfigError([f"not valid TOML: {error}"], hint="fix it in an editor: `klaw config path`") from error


def _descend(table: Any, step: Step, following: Step, place: str) -> Any:
    """Return the table or array at ``step``; create it if it is missing."""
    if isinstance(step, int):
        return _entry(table, step, place)
    if not isinstance(table, MutableMapping):
        raise ConfigError([f"{place}: its parent is not a table"])
    if step not in table:
        made = _defaults(place) if isinstance(following, int) else None
        table[step] = _table() if made is None else made
    return table[step]


def _entry(tables: Any, index: int, place: str) -> Any:
    if not isinstance(tables, list):
        raise ConfigError([f"{place}: expected an array of tables"])
    if index == len(tables):
        tables.append(tomlkit.inline_table() if isinstance(tables, tomlkit.items.Array) else _table())
    if index >= len(tables):
        raise ConfigError([f"{place}: no such table; there are {len(tables)}, counted from 0"])
    return tables[index]


def _written(steps: Sequence[Step]) -> str:
    """Format steps as a place, the inverse of :func:`parse_place`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _default_type(steps: tuple[Step, ...], otherwise: Any) -> Any:
    """Return the default at these steps, or ``otherwise`` if there is none."""
    defaults: Any = DEFAULTS
    for step in steps:
        defaults = defaults.get(step) if isinstance(defaults, Mapping) else None
    return otherwise if defaults is None else defaults


def _table(values: Mapping[str, Any] | None = None) -> tomlkit.items.Table:
    table = tomlkit.table()
    table.update(values or {})
    return table


def _defaults(place: str) -> tomlkit.items.AoT:
    """Return the tables that an array has by default, since what is written replaces them."""
    tables = tomlkit.aot()
    entries = DEFAULTS["memory"].get(place.removeprefix("memory."))
    for entry in entries if isinstance(entries, list) else ():
        tables.append(_table(entry))
    if tables:
        tables[-1].add(tomlkit.nl())  # an empty line after the last table
    return tables

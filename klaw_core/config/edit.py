"""Changes to the user's configuration file that keep its comments, its order and its formatting.

A *place* is dotted as in every message of Klaw: ``memory.fusion.k``, ``memory.retrieval[0].weight``.
"""

import re
import tomllib
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from klaw_core.config.tables import DEFAULTS
from klaw_core.errors import ConfigError
from klaw_core.files.atomic import write_atomically

Step = str | int

_STEP = re.compile(r"([A-Za-z0-9_-]+)((?:\[\d+\])*)")
_KEPT = {"type", "weight"}  # keys that belong to the table, not to the component it picks


def parse_place(place: str, *, whole: bool = False) -> tuple[Step, ...]:
    """Return the steps of a place: ``("memory", "retrieval", 0, "weight")``; of a table too, if ``whole``.

    Raise ConfigError.
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
    """Return what ``text`` means in TOML; text that means nothing there is a string."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if parsed.keys() == {"value"} else text


def with_value(source: str, place: str, value: Any) -> tuple[str, tuple[str, ...]]:
    """Return TOML text in which ``place`` has the value, and the places that had to go for it.

    A table that picks another ``type`` loses the options of the old one: they mean nothing to the new.
    Missing tables are made, of an array the next one only; the retrievers, which have defaults as a whole, are
    written out first. Raise ConfigError if the text is not TOML or the place runs through something that is no table.
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
        table.add(tomlkit.nl())  # an empty line before what follows
    parent = place.rpartition(".")[0]
    return tomlkit.dumps(document), tuple(f"{parent}.{name}" for name in removed)


def without_value(source: str, place: str) -> tuple[str, bool]:
    """Return TOML text that says nothing about ``place`` (a key or a whole table), and whether it did before.

    A table that is left empty stays, with its comments. Raise ConfigError.
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
    """Return what stands at a step, None if nothing does."""
    if isinstance(step, int):
        return table[step] if isinstance(table, list) and step < len(table) else None
    return table.get(step) if isinstance(table, Mapping) else None


def with_listed(source: str, key: str, directory: Path) -> str:
    """Return TOML text whose top-level array ``key`` lists a directory. Raise ConfigError."""
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
    """Return the file's text, empty if there is no such file yet. Raise ConfigError if it cannot be read."""
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError([f"{file}: not valid UTF-8"]) from error
    except OSError as error:
        raise ConfigError([f"{file}: cannot be read: {error.strerror}"]) from error


def write_source(file: Path, source: str) -> None:
    """Replace the file's text at once, or not at all. A link is followed, not replaced. Raise StoreReadOnlyError."""
    write_atomically(file.resolve(), source)


def _parse(source: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(source)
    except TOMLKitError as error:
        raise ConfigError([f"not valid TOML: {error}"], hint="fix it in an editor: `klaw config path`") from error


def _descend(table: Any, step: Step, following: Step, place: str) -> Any:
    """Return what stands at ``step``, making it if it is missing."""
    if isinstance(step, int):
        return _entry(table, step, place)
    if not isinstance(table, MutableMapping):
        raise ConfigError([f"{place}: its parent is not a table"])
    if step not in table:
        made = _retrievers() if place == "memory.retrieval" else tomlkit.aot()
        table[step] = made if isinstance(following, int) else _table()
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
    """Return the place that these steps lead to."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _default_type(steps: tuple[Step, ...], otherwise: Any) -> Any:
    """Return the type that a table of the file has while it names none."""
    defaults: Any = DEFAULTS
    for step in steps:
        defaults = defaults.get(step) if isinstance(defaults, Mapping) else None
    return otherwise if defaults is None else defaults


def _table(values: Mapping[str, Any] | None = None) -> tomlkit.items.Table:
    table = tomlkit.table()
    table.update(values or {})
    return table


def _retrievers() -> tomlkit.items.AoT:
    tables = tomlkit.aot()
    for entry in DEFAULTS["memory"]["retrieval"]:
        tables.append(_table(entry))
    tables[-1].add(tomlkit.nl())  # an empty line before what follows
    return tables

"""Load one frozen :class:`Config` from the configuration files and the environment.

Layers in order of precedence, lowest first: defaults, the user's file, the data directory's ``config.toml``, the
project's ``klaw.toml``, ``KLAW_*`` variables, options.
"""

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve

from klaw_core.config.files import ConfigFiles
from klaw_core.config.layers import Layer, Table, expand, forbidden, join, overlay, shown
from klaw_core.config.places import user_directory
from klaw_core.config.settings import MOVED, SETTINGS, keys_of, read_settings
from klaw_core.config.tables import AUTO, COMPONENT_ARRAYS, COMPONENTS, DEFAULTS, OTHER_TABLES, extension_selection
from klaw_core.errors import ConfigError
from klaw_core.holds import operation
from klaw_core.kinds import CHUNKER, CONVERTER, Kind
from klaw_core.values.config import Config, Selection

#: The table of the agents' own settings, and the directory of their data directories (``DataDirectory.agents``).
AGENTS = "agents"
_TOP = ("memory", "extensions", "plugins", "trusted_projects", "project_memories", AGENTS)
#: The keys of an agent's own settings: ``[agents.NAME]``, and the file ``agents/NAME/config.toml``.
AGENT_KEYS = ("enabled", "memory", "extensions")
#: The tables under ``memory``, which are fields of :class:`Config` of the same names.
MEMORY_KEYS = (*COMPONENTS, *COMPONENT_ARRAYS, *OTHER_TABLES)
# Types that do not name one embedder.
_NO_FALLBACK = {AUTO, "none"}
_Check = Callable[[Sequence[Selection], Collection[str]], Sequence[str]]
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"", "0", "false", "no", "off"}


@operation
def load_config(
    *,
    config_file: str | Path | None = None,
    data_dir: str | Path | None = None,
    directory: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    check: _Check = lambda _selections, _disabled: (),
) -> Config:
    """Read every layer and return the configuration.

    ``config_file`` and ``data_dir`` correspond to the options of the same names. The search for a project's
    ``klaw.toml`` starts in ``directory`` (None: no project). ``environment`` replaces that of the process, and
    ``overrides`` takes precedence over everything.

    Component options are normally checked later, at assembly. If there is a problem already, ``check`` is called with
    the selections and the disabled plugins, so that all problems are reported together. It is not called if a layer or
    the list of disabled plugins cannot be read. Raise ConfigError with every problem found.
    """
    environment = os.environ if environment is None else environment
    if "" in (config_file, data_dir, directory):  # `Path("")` is the current directory
        raise ConfigError(["the path of a file or a directory is empty"], hint="give one, or leave it out")
    files = ConfigFiles(_path(config_file), _path(data_dir), _path(directory), environment)
    if files.data_dir.parent.name == AGENTS:
        from klaw_core.config.agents import opened_agent

        owner = partial(load_config, config_file=config_file, directory=directory, environment=environment, check=check)
        if (found := opened_agent(files.data_dir, owner, environment, overrides)) is not None:
            return found
    return _load(files, environment, overrides, check)


def _load(
    files: ConfigFiles, environment: Mapping[str, str], overrides: Mapping[str, Any] | None, check: _Check
) -> Config:
    problems: list[str] = []
    layers = files.layers(problems)
    unread = bool(problems)
    if overrides:
        layers.append(Layer("options", dict(overrides)))
    table: Table = dict(DEFAULTS)
    used = [("", table)]
    for layer in layers:
        problems.extend(_unknown_keys(layer))
        refused = list(forbidden(layer))
        problems.extend(refused)
        if not refused:  # a message about a value would reveal the content of a ${VAR} in it
            table = overlay(table, layer.table)
            used.append((layer.name, layer.table))
    unset: dict[str, str] = {}
    expanded = expand({key: value for key, value in table.items() if key != AGENTS}, "", environment, unset)
    selections = selections_in(expanded, unset, problems)
    if not any(_sets("reranking", layer.table) for layer in layers):
        selections["reranking"] = tuple(evolve(each, is_default=True) for each in selections.get("reranking", ()))
    disabled = _disabled(expanded["plugins"], environment, problems)
    for key in ("trusted_projects", "project_memories"):
        _strings(expanded[key], key, problems)
    offline = is_offline(environment, problems)
    if problems:
        if not unread and disabled is not None:
            problems.extend(check(_picked(selections), disabled))
        raise ConfigError(list(dict.fromkeys(problems)), hint="`klaw config path` prints the path of your file")
    config = Config(
        data_dir=files.data_dir,
        own_data_dir=files.data_dir != user_directory("data"),
        notices=files.notices,
        cache_dir=user_directory("cache"),
        disabled_plugins=disabled or (),
        offline=offline,
        default_retrieval=not any(_sets("retrieval", layer.table) for layer in layers),
        files=tuple(layer.path for layer in layers if layer.path is not None),
        table=table,
        layers=tuple(used),
        **selections,
    )
    if table[AGENTS] == {}:
        return config
    from klaw_core.config.agents import with_agents

    return with_agents(config, table[AGENTS], environment)


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)


def _sets(key: str, table: Mapping[str, Any]) -> bool:
    memory = table.get("memory")
    return isinstance(memory, Mapping) and key in memory


def _unknown_keys(layer: Layer) -> list[str]:
    agents = layer.table.get(AGENTS)
    named = agents.items() if isinstance(agents, Mapping) else ()
    of_agents = (unknown_keys_in(layer.name, join(AGENTS, name), table, AGENT_KEYS) for name, table in named)
    return [*unknown_keys_in(layer.name, "", layer.table, _TOP), *(problem for found in of_agents for problem in found)]


def unknown_keys_in(name: str, place: str, table: Any, known: tuple[str, ...]) -> list[str]:
    """Return a problem for each unknown key in a layer's table at ``place`` that may contain ``memory``."""

    def inner(table: Any, key: str) -> Any:
        return table.get(key) if isinstance(table, Mapping) else None

    memory = inner(table, "memory")
    tables = [
        (place, table, known),
        (join(place, "memory"), memory, MEMORY_KEYS),
        *((join(join(place, "memory"), key), inner(memory, key), keys_of(kind)) for key, kind in SETTINGS.items()),
        (join(place, "plugins"), inner(table, "plugins"), ("disabled",)),
    ]
    return [
        f"{name}: unknown key {join(where, key)}{_instead(where, key) or nearest(key, known)}"
        for where, table, known in tables
        if isinstance(table, Mapping)
        for key in table
        if key not in known
    ]


def _instead(where: str, key: str) -> str:
    new = MOVED.get((where.rpartition(".")[2], key))
    return f"; replaced by {new}" if new else ""


def nearest(key: str, known: tuple[str, ...]) -> str:
    """Return ``; did you mean 'x'?`` with the known key most similar to ``key``, or else the list of known keys."""
    from difflib import get_close_matches

    match = get_close_matches(key, known, n=1)
    return f"; did you mean {match[0]!r}?" if match else f"; known: {', '.join(known)}"


def selections_in(table: Mapping[str, Any], unset: dict[str, str], problems: list[str]) -> dict[str, Any]:
    """Return what the tables ``memory`` and ``extensions`` select and set, by the fields of :class:`Config`.

    Append each problem. ``unset`` has the variables that are not set, by place.
    """
    return _with_unset(_selections(table, problems), unset, problems)


def _selections(table: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    memory = table["memory"]
    if not isinstance(memory, Mapping):
        problems.append("memory: expected a table")
        return {}
    chosen: dict[str, Any] = {
        key: _selection(kind.name, f"memory.{key}", memory[key], problems)
        for key, kind in COMPONENTS.items()
        if key in memory
    }
    for key, kind in COMPONENT_ARRAYS.items():
        entries = memory.get(key)
        if key == "reranking" and isinstance(entries, Mapping):  # a single stage may be written as a plain table
            chosen[key] = (_selection(kind.name, "memory.reranking", entries, problems),)
            continue
        if not isinstance(entries, list):
            problems.append(f"memory.{key}: expected an array of tables, [[memory.{key}]]")
            continue
        chosen[key] = tuple(
            _selection(kind.name, f"memory.{key}[{index}]", entry, problems) for index, entry in enumerate(entries)
        )
    chosen["formats"] = _by_name(CHUNKER, "memory.formats", memory.get("formats"), problems)
    chosen["converters"] = _by_name(CONVERTER, "memory.converters", memory.get("converters"), problems)
    chosen["extensions"] = _extensions(table.get("extensions"), problems)
    for key, settings in SETTINGS.items():
        chosen[key] = read_settings(settings, f"memory.{key}", memory.get(key), problems)
    if not chosen.get("retrieval"):
        problems.append("memory.retrieval: at least one retriever is needed")
    for key in ("retrieval", "reranking"):  # an explanation of a score identifies components by name
        types = [selection.type for selection in chosen.get(key, ())]
        twice = sorted({name for name in types if name and types.count(name) > 1})
        problems.extend(f"memory.{key}: the {COMPONENT_ARRAYS[key]} {name!r} is listed twice" for name in twice)
    return chosen


# Tables with optional components. An unset variable in one of them disables only that component.
_DISPENSABLE = ("embedding", "reranking", "language_model")


def _with_unset(chosen: dict[str, Any], unset: dict[str, str], problems: list[str]) -> dict[str, Any]:
    """Mark the optional components that use an unset variable; append all other unset variables to ``problems``."""
    optional = [item for key in _DISPENSABLE for item in _as_selections(chosen.get(key))]
    dispensable = [each.place for item in optional for each in (item, *item.fallback)]

    def marked(item: Selection) -> Selection:
        own = [problem for place, problem in unset.items() if _owner(place, dispensable) == item.place]
        fallback = tuple(map(marked, item.fallback))
        return evolve(item, fallback=fallback, problem="; ".join(own))

    problems.extend(problem for place, problem in unset.items() if not _owner(place, dispensable))
    found = dict(chosen)
    for key in _DISPENSABLE if unset else ():
        if isinstance(chosen.get(key), tuple):
            found[key] = tuple(map(marked, chosen[key]))
        elif key in chosen:
            found[key] = marked(chosen[key])
    return found


def _as_selections(chosen: Any) -> Sequence[Selection]:
    return chosen if isinstance(chosen, tuple) else () if chosen is None else (chosen,)


def _owner(place: str, tables: Sequence[str]) -> str:
    """Return the innermost of these tables that contains an option, or ``""``; ``type`` is not an option."""
    inside = [table for table in tables if place.startswith(f"{table}.") and place != f"{table}.type"]
    return max(inside, key=len, default="")


def _by_name(kind: Kind[Any], place: str, tables: Any, problems: list[str]) -> dict[str, Selection]:
    """Return selections by the names of their tables; ``type`` defaults to that name."""
    if not isinstance(tables, Mapping):
        problems.append(f"{place}: expected tables, [{place}.NAME], got {shown(tables)}")
        return {}
    found: dict[str, Selection] = {}
    for name, table in tables.items():
        named = {"type": name, **table} if isinstance(table, Mapping) else table
        found[name] = _selection(kind.name, join(place, name), named, problems)
    return found


def _extensions(tables: Any, problems: list[str]) -> dict[str, Selection]:
    if not isinstance(tables, Mapping):
        problems.append(f"extensions: expected tables, [extensions.NAME], got {shown(tables)}")
        return {}
    found: dict[str, Selection] = {}
    for name, table in tables.items():
        if isinstance(table, Mapping):
            found[name] = extension_selection(name, table)
        else:
            problems.append(f"{join('extensions', name)}: expected a table, got {shown(table)}")
    return found


def _picked(selections: Mapping[str, Any]) -> list[Selection]:
    """Return the selections that name a component, except defaults that may be missing."""
    chosen = (
        tuple(value.values()) if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
        for value in selections.values()
    )
    return [
        item for group in chosen for item in group if isinstance(item, Selection) and item.type and not item.is_default
    ]


# The keys that belong to the table and not to the component.
_RESERVED = {"retriever": ("weight",), "reranker": ("paths",)}


def _selection(kind: str, place: str, table: Any, problems: list[str]) -> Selection:
    if not isinstance(table, Mapping):
        problems.append(f"{place}: expected a table with a key 'type'")
        return Selection(kind, "", place)
    name = table.get("type")
    if not isinstance(name, str) or not name:
        problems.append(f"{place}.type: expected the name of a {kind}, got {shown(name)}")
        name = ""
    weight = table.get("weight", 1.0) if kind == "retriever" else 1.0
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= sys.float_info.max:
        problems.append(f"{place}.weight: expected a number of at least 0, got {shown(weight)}")
        weight = 1.0
    reserved = {"type", *_RESERVED.get(kind, ())}
    paths = table.get("paths", []) if kind == "reranker" else []
    if not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths):
        problems.append(f"{place}.paths: expected a list of path prefixes, got {shown(paths)}")
        paths = []
    fallback: tuple[Selection, ...] = ()
    if place == "memory.embedding":
        reserved.add("fallback")
        fallback = _fallback(table.get("fallback", []), f"{place}.fallback", problems)
    options = {key: value for key, value in table.items() if key not in reserved}
    return Selection(kind, name, place, options, float(weight), fallback, paths=tuple(paths))


def _fallback(entries: Any, place: str, problems: list[str]) -> tuple[Selection, ...]:
    """Return the fallback embedders; each is a table with the same keys as ``memory.embedding``."""
    if not isinstance(entries, list):
        problems.append(f"{place}: expected an array of tables, [[{place}]]")
        return ()
    chosen = tuple(_selection("embedder", f"{place}[{index}]", entry, problems) for index, entry in enumerate(entries))
    problems.extend(
        f"{item.place}.type: {item.type!r} cannot be a fallback embedder"
        for item in chosen
        if item.type in _NO_FALLBACK
    )
    return chosen


def _strings(value: Any, place: str, problems: list[str]) -> tuple[str, ...] | None:
    """Return an array of strings as a tuple; otherwise append a problem and return None."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    problems.append(f"{place}: expected an array of strings, got {shown(value)}")
    return None


def disabled_plugins(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the plugins that ``KLAW_DISABLE_PLUGINS`` disables."""
    value = (os.environ if environment is None else environment).get("KLAW_DISABLE_PLUGINS", "")
    return tuple(filter(None, map(str.strip, value.split(","))))


def _disabled(plugins: Any, environment: Mapping[str, str], problems: list[str]) -> tuple[str, ...] | None:
    """Return the plugins that the files and the environment disable; append a problem and return None on error."""
    if not isinstance(plugins, Mapping):
        problems.append(f"plugins: expected a table, got {shown(plugins)}")
        return None
    named = _strings(plugins.get("disabled", []), "plugins.disabled", problems)
    return None if named is None else (*named, *disabled_plugins(environment))


def is_offline(environment: Mapping[str, str], problems: list[str]) -> bool:
    """Return whether ``KLAW_OFFLINE`` forbids the network; append a problem for a value that is not 1 or 0."""
    value = environment.get("KLAW_OFFLINE", "").strip().lower()
    if value not in _TRUE | _FALSE:
        problems.append(f"KLAW_OFFLINE: expected 1 or 0, got {shown(value)}")
    return value in _TRUE

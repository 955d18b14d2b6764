"""The configuration of an agent: the part of the owner's that it inherits, and its own settings.

An agent is less trusted than the owner, so it inherits only what its memory needs to work and what limits it. See
docs/decisions/0071-what-an-agent-inherits.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve

from klaw_core.config.files import DATA_CONFIG
from klaw_core.config.layers import Layer, expand, join, leaves, overlay, read_file, shown
from klaw_core.config.load import AGENT_KEYS, AGENTS, MEMORY_KEYS, selections_in, unknown_keys_in
from klaw_core.config.places import user_directory
from klaw_core.config.settings import table_of
from klaw_core.config.tables import COMPONENT_ARRAYS, COMPONENTS
from klaw_core.errors import ConfigError, NotFoundError
from klaw_core.files.layout import own_directory
from klaw_core.values.config import Config, ConversationSettings, Selection
from klaw_redaction import Redactor

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
# Files that only a data directory has: another directory may have a directory `agents` too.
_MARKS = ("klaw.db", "serve.token", "saved.jsonl", "workspaces.json")
#: The fields of :class:`Config` that an agent inherits; all other fields have their defaults. Of the options in
#: ``_FILTERED``, :func:`klaw_core.config.options.withheld` leaves some to the owner.
INHERITED = frozenset(
    {
        "cache_dir",  # models and conversions, which are computed from files that the agent has itself
        "store",  # within the agent's own directory, or kept apart by the store
        "chunking",
        "embedding",  # with its key: without the same embedder the agent has another vector space, or none
        "retrieval",
        "fusion",
        "reranking",
        "formats",
        "converters",
        "extensions",
        "conversations",  # redaction
        "search",
        "cache",
        "sync",
        "disabled_plugins",
        "offline",
        "default_retrieval",
    }
)

_FILTERED = ("chunking", "fusion", "reranking", "formats", "converters", "extensions")


def check_agent_name(name: str) -> None:
    """Raise NotFoundError for a name that cannot be a directory's."""
    if not _NAME.fullmatch(name):
        raise NotFoundError(f"{name!r} is not a valid agent name", hint="use letters, digits and -._@+")
    if Redactor().text(name) != name:
        raise NotFoundError(f"{name!r} is a secret, not a name of an agent", hint="choose another name")


def opened_agent(
    data_dir: Path,
    load_owner: Callable[..., Config],
    environment: Mapping[str, str],
    overrides: Mapping[str, Any] | None,
) -> Config | None:
    """Return the configuration of the agent to which a data directory belongs; None if it is no agent's.

    So the memory of an agent has the same settings in every program. ``load_owner`` loads the owner's configuration
    for a data directory. Raise ConfigError as it does, and if the agent has no memory.
    """
    owner_dir, name = data_dir.parent.parent, data_dir.name
    usual = Path(environment.get("KLAW_DATA_DIR") or user_directory("data"))
    if not _NAME.fullmatch(name) or not (owner_dir == usual or any((owner_dir / mark).exists() for mark in _MARKS)):
        return None
    config = agent_config(load_owner(data_dir=owner_dir), name, environment=environment, overrides=overrides)
    if config is None:
        raise agent_error(name, ["its memory is disabled: enabled = false"])
    return config


def agent_config(
    owner: Config,
    name: str,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config | None:
    """Return the configuration of an agent; None if its own settings disable its memory.

    Its own settings are ``[agents.NAME]`` of the owner, then ``agents/NAME/config.toml``, then ``overrides``. Raise
    NotFoundError for an invalid name, ConfigError with every problem, StoreReadOnlyError if a link of another user
    leads to the file.
    """
    check_agent_name(name)
    problems: list[str] = []
    file = own_directory(owner.data_dir, AGENTS, name, DATA_CONFIG)
    table = read_file(file, problems)
    of_file = Layer(str(file), table or {}, file)
    problems += unknown_keys_in(of_file.name, "", of_file.table, AGENT_KEYS)
    own: Mapping[str, Any] = {}
    for layer in (owner.agents.get(name, {}), of_file.table, overrides or {}):
        own = overlay(own, layer)
    base = evolve(_inherited(owner, name), files=() if table is None else (file,))
    config = _with_own(base, own, os.environ if environment is None else environment, problems)
    if problems:
        raise agent_error(name, problems)
    return config if own.get("enabled", True) else None


def agent_error(name: str, problems: Iterable[str]) -> ConfigError:
    """Return the error of an agent's configuration."""
    named = [f"agent {name!r}: {problem}" for problem in problems]
    return ConfigError(named, hint=f"its settings are in agents/{name}/config.toml and in [{join('agents', name)}]")


def with_agents(owner: Config, tables: Any, environment: Mapping[str, str]) -> Config:
    """Return the owner's configuration with the tables ``[agents.NAME]``. Raise ConfigError with every problem."""
    if not isinstance(tables, Mapping):
        raise ConfigError([f"{AGENTS}: expected tables, [agents.NAME], got {shown(tables)}"])
    problems = [f"{join(AGENTS, name)}: expected a table" for name in tables if not isinstance(tables[name], Mapping)]
    problems += (
        f"{join(AGENTS, name)}: invalid name: use letters, digits and -._@+"
        for name in tables
        if not _NAME.fullmatch(name)
    )
    if not problems:
        owner = evolve(owner, agents=tables)
        for name, table in tables.items():
            found: list[str] = []
            _named(owner, name, table, environment, found)
            problems += (f"{join(AGENTS, name)}.{problem}" for problem in found)
    if problems:
        raise ConfigError(problems, hint="`klaw config path` prints the path of your file")
    return owner


def agent_selections(owner: Config, environment: Mapping[str, str]) -> Iterator[Selection]:
    """Yield the components that ``[agents.NAME]`` tables configure, each with its place in the file."""
    for name, table in owner.agents.items():
        for selection in _named(owner, name, table, environment, []).selections():
            yield evolve(selection, place=f"{join(AGENTS, name)}.{selection.place}")


def _named(
    owner: Config, name: str, table: Mapping[str, Any], environment: Mapping[str, str], problems: list[str]
) -> Config:
    """Return what a table ``[agents.NAME]`` makes of an agent's configuration; append each problem.

    A variable that is not set is no problem here, because only the agent's memory needs it.
    """
    return _with_own(_inherited(owner, name), table, _AnyVariable(environment), problems)


class _AnyVariable(dict[str, str]):
    """An environment in which every variable is set."""

    def __contains__(self, name: object) -> bool:
        return True


def _inherited(owner: Config, name: str) -> Config:
    """Return the configuration of an agent without settings of its own."""
    shared: dict[str, Any] = {field: getattr(owner, field) for field in INHERITED}
    shared |= {field: _each(shared[field], _marked) for field in _FILTERED}
    shared |= {field: _each(shared[field], _confined) for field in ("store", "retrieval")}
    return Config(data_dir=owner.data_dir / AGENTS / name, agent=name, own_data_dir=True, **shared)


def _each(selected: Any, change: Callable[[Selection], Selection]) -> Any:
    """Change the selections in a field of :class:`Config`."""
    if isinstance(selected, Mapping):
        return {name: change(selection) for name, selection in selected.items()}
    return tuple(map(change, selected)) if isinstance(selected, tuple) else change(selected)


def _marked(selection: Selection, own: Collection[str] = ()) -> Selection:
    """Return a selection that says which options are the owner's: those with a value at a place that is not ``own``."""
    inherited = (
        name
        for name, value in selection.options.items()
        if any(place not in own for place, _ in leaves({name: value}, selection.place))
    )
    return evolve(selection, inherited=tuple(inherited))


def _confined(selection: Selection) -> Selection:
    """Return a selection without the options that lead to a place outside of the data directory: all would share it."""
    return evolve(selection, options={key: value for key, value in selection.options.items() if _stays_inside(value)})


def _stays_inside(value: Any) -> bool:
    if not isinstance(value, str):
        return True
    return not (value.startswith("~") or Path(value).is_absolute() or ".." in Path(value).parts)


def _with_own(base: Config, own: Mapping[str, Any], environment: Mapping[str, str], problems: list[str]) -> Config:
    """Return the configuration with an agent's own settings; append each problem."""
    enabled, own_memory, own_extensions = own.get("enabled", True), own.get("memory", {}), own.get("extensions", {})
    tables = {"memory": own_memory, "extensions": own_extensions}
    wrong = [key for key, value in tables.items() if not isinstance(value, Mapping)]
    problems += (f"{key}: expected a table" for key in wrong)
    if not isinstance(enabled, bool):
        problems.append("enabled: expected true or false")
    if wrong:
        return base
    unset: dict[str, str] = {}
    expanded = expand(tables, "", environment, unset)
    merged = overlay(_as_table(base), expanded)
    found = selections_in(merged, unset, problems)
    changed = {key: found[key] for key in (*own_memory, *(["extensions"] if own_extensions else ())) if key in found}
    mark = partial(_marked, own={place for place, _ in leaves(expanded)})
    changed |= {key: _each(changed[key], mark) for key in _FILTERED if key in changed}
    if "conversations" in changed:
        changed["conversations"] = _not_weaker(base.conversations, changed["conversations"], problems)
    default_retrieval = base.default_retrieval and "retrieval" not in own_memory
    return evolve(base, default_retrieval=default_retrieval, table=merged, **changed)


def _not_weaker(owner: ConversationSettings, own: ConversationSettings, problems: list[str]) -> ConversationSettings:
    """Return an agent's settings with the owner's redaction too; append a problem for each switch it turns off."""
    off = [key for key in ("redact_secrets", "redact_notes") if getattr(owner, key) and not getattr(own, key)]
    problems += (f"memory.conversations.{key}: an agent cannot turn off what the owner has turned on" for key in off)
    return evolve(own, redact=tuple(dict.fromkeys((*owner.redact, *own.redact))))


def _as_table(config: Config) -> dict[str, Any]:
    """Return a configuration as the tables of a file, with variables expanded."""
    memory: dict[str, Any] = {}
    for key in MEMORY_KEYS:
        value = getattr(config, key)
        if key in COMPONENTS:
            memory |= {} if value is None else {key: _selected(value)}
        elif key in COMPONENT_ARRAYS:
            memory[key] = [_selected(each) for each in value]
        elif isinstance(value, Mapping):
            memory[key] = {name: _selected(each) for name, each in value.items()}
        else:
            memory[key] = table_of(value)
    return {"memory": memory, "extensions": {name: dict(each.options) for name, each in config.extensions.items()}}


def _selected(selection: Selection) -> dict[str, Any]:
    weight = {"weight": selection.weight} if selection.kind == "retriever" else {}
    fallback = [_selected(each) for each in selection.fallback]
    others = {
        **({"paths": list(selection.paths)} if selection.paths else {}),
        **({"fallback": fallback} if fallback else {}),
    }
    return {"type": selection.type, **weight, **selection.options, **others}

"""The effective settings: configured values, and the defaults of all other options."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs
import tomlkit

from klaw_core.config.layers import leaves
from klaw_core.config.options import build_options, secret_options, withheld
from klaw_core.config.tables import COMPONENT_ARRAYS, COMPONENTS, DEFAULTS, OTHER_TABLES
from klaw_core.errors import PluginError, PluginNotFoundError
from klaw_core.hookspecs import Component
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Registry
from klaw_core.values.config import Config, Selection

#: Shown instead of a secret that is not written as ``${VAR}``.
MASK = "***"

# Names of secret options, for components that are not installed and so cannot declare their secrets.
_SECRET_NAME = re.compile(r"(?:^|[._-])(?:api_?key|key|token|secret|password|credentials?)$", re.IGNORECASE)
_VARIABLES = re.compile(r"(?:\$\{[A-Za-z_][A-Za-z0-9_]*\})*")


@attrs.frozen
class Setting:
    """One setting: its dotted place and its value. ``${VAR}`` is not expanded, and literal secrets are masked."""

    place: str
    value: Any
    is_default: bool


def effective(config: Config, registry: Registry | None = None) -> list[Setting]:
    """Return all settings in the order of the configuration file; a component's options follow its ``type``."""
    registry = registry or discover(disabled=config.disabled_plugins)
    defaults = dict(leaves(DEFAULTS))
    lacking = tuple(_lacking(config, registry))
    found = [
        Setting(place, value, is_default=place in defaults and defaults[place] == value)
        for place, value in leaves(config.table)
        if not any(place == other or place.startswith(f"{other}.") for other in lacking)
    ]
    written = tuple(setting.place for setting in found)
    for selection in config.selections():
        found += [
            Setting(f"{selection.place}.{name}", value, is_default=True)
            for name, value in option_defaults(registry, selection).items()
            if not _is_written(f"{selection.place}.{name}", written)
        ]
    order = ("", *COMPONENTS, *COMPONENT_ARRAYS, *OTHER_TABLES)
    tables = {name: position for position, name in enumerate(order)}
    shown = [attrs.evolve(item, value=masked(item.place, item.value, config, registry)) for item in found]
    return sorted(shown, key=lambda setting: _order(setting.place, tables))


def masked(place: str, value: Any, config: Config, registry: Registry | None = None) -> Any:
    """Return a setting's value for display: a secret is masked unless it is written as ``${VAR}``."""
    if isinstance(value, str) and _VARIABLES.fullmatch(value):
        return value
    registry = registry or discover(disabled=config.disabled_plugins)
    secrets = _secret_places(config, registry)
    secret = _SECRET_NAME.search(place) or any(place == other or place.startswith(f"{other}.") for other in secrets)
    return MASK if secret else value


def _secret_places(config: Config, registry: Registry) -> Iterator[str]:
    for selection in (*config.selections(), *_of_agents(config)):
        with suppress(PluginError):
            options = registry.component(selection.kind, selection.type).options
            yield from (f"{selection.place}.{name}" for name in secret_options(options))


def _lacking(config: Config, registry: Registry) -> Iterator[str]:
    """Yield the places of inherited options that an agent does not have."""
    for selection in config.selections():
        with suppress(PluginError):
            component = registry.component(selection.kind, selection.type)
            yield from (f"{selection.place}.{name}" for name in withheld(component, selection))


def _of_agents(config: Config) -> Iterator[Selection]:
    """Yield the components that the tables of agents configure."""
    if config.agents:
        from klaw_core.config.agents import agent_selections

        yield from agent_selections(config, os.environ)


def _is_written(place: str, written: Sequence[str]) -> bool:
    """Return whether the configuration sets this option, or a key in it if it is a table."""
    return any(other == place or other.startswith(f"{place}.") for other in written)


def _order(place: str, tables: Mapping[str, int]) -> tuple[int, str]:
    """Return a sort key that groups settings by table and keeps their order."""
    name = place.removeprefix("memory.").partition(".")[0]
    bare = name.partition("[")[0]
    return (tables.get(bare, 0) if place.startswith("memory.") else len(tables), name)


def option_defaults(registry: Registry, selection: Selection) -> dict[str, Any]:
    """Return the options of a component that have a default, and the defaults; empty if it is not installed."""
    try:
        component = registry.component(selection.kind, selection.type)
    except PluginError:
        return {}
    return dict(_defaults(component))


def _defaults(component: Component[Any, Any]) -> Iterator[tuple[str, Any]]:
    for field in attrs.fields(component.options):
        default = field.default
        if default is attrs.NOTHING:
            continue
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # its stub declares a function
            if default.takes_self:
                continue
            default = default.factory()
        if default is not None:
            yield field.alias or field.name, _plain(default)


def check_options(config: Config) -> tuple[list[str], list[str]]:
    """Return the problems of all component options, and a notice for each component that cannot be used yet.

    An unknown component whose name is similar to a known one counts as a problem.
    """
    registry = discover(disabled=config.disabled_plugins)
    problems: list[str] = []
    missing: list[str] = []
    for selection in (*config.selections(), *_of_agents(config)):
        try:
            component = registry.component(selection.kind, selection.type)
        except PluginError as error:
            typo = isinstance(error, PluginNotFoundError) and error.near
            (problems if typo else missing).append(f"{selection.place}: {error}")
            continue
        if selection.problem:
            missing.append(selection.problem)
        else:
            build_options(component, selection, problems)
    return problems, missing


def toml(value: Any) -> str:
    """Format a value as TOML; a table is written on one line."""
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update(_plain(value))
        return str(table.as_string())
    text: str = tomlkit.item(_plain(value)).as_string()
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value if isinstance(value, str | int | float | bool) else str(value)

"""Agents whose configuration ``klaw mcp install`` can write: where it is, its format, and what a server looks like.

A distribution adds an agent with an entry point of the group ``klaw.mcp_clients`` that names a ``Client``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from io import StringIO
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_core import ConfigError
from klaw_mcp import jsonc

GROUP = "klaw.mcp_clients"
#: The name of the server in every configuration.
SERVER = "klaw"

_BY_HAND = "add the output of `klaw mcp install --print` by hand"


def standard(command: Sequence[str]) -> dict[str, Any]:
    """Return a server as most agents describe it, given its command line."""
    return {"command": command[0], "args": list(command[1:])}


def typed(command: Sequence[str]) -> dict[str, Any]:
    """Return a server with the type of its transport."""
    return {"type": "stdio", **standard(command)}


def _opencode(command: Sequence[str]) -> dict[str, Any]:
    return {"type": "local", "command": list(command), "enabled": True}


def _copilot(command: Sequence[str]) -> dict[str, Any]:
    return {"type": "local", **standard(command), "tools": ["*"]}


def _zed(command: Sequence[str]) -> dict[str, Any]:
    return {**standard(command), "env": {}}


def _goose(command: Sequence[str]) -> dict[str, Any]:
    described = {"name": SERVER, "type": "stdio", "enabled": True, "cmd": command[0], "args": list(command[1:])}
    return {**described, "envs": {}, "timeout": 300}


@frozen
class Client:
    """An agent: the files in which it configures servers, and the keys of the table of servers in them.

    ``user`` returns the file for all projects, ``project`` is the file for one, relative to its directory, or None if
    there is none. ``describe`` returns the entry of a server, given its command line. The suffix of a file is its
    format: JSON, TOML or YAML.
    """

    name: str
    user: Callable[[], Path]
    project: str | None
    keys: tuple[str, ...]
    describe: Callable[[Sequence[str]], Mapping[str, Any]] = standard

    def file(self, scope: str) -> Path:
        """Return the configuration file of a scope. Raise ConfigError if the agent has none for it."""
        if scope == "user":
            return self.user()
        if self.project is None:
            raise ConfigError([f"{self.name} has no project configuration"], hint="leave out --scope")
        return Path.cwd() / self.project


def _home(name: str, variable: str = "") -> Callable[[], Path]:
    def place() -> Path:
        root = os.environ.get(variable) if variable else ""
        return Path(root) / Path(name).name if root else Path.home() / name

    return place


def _settings(name: str, *, mac: str = "", windows: str = "") -> Callable[[], Path]:
    """Return where a program keeps a file of its settings: below ``mac`` and ``windows``, if it has its own places."""

    def place() -> Path:
        if mac and sys.platform == "darwin":
            return Path.home() / "Library/Application Support" / mac
        if windows and sys.platform == "win32":
            return Path(os.environ.get("APPDATA") or Path.home() / "AppData/Roaming") / windows
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / name

    return place


def _everywhere(name: str) -> Callable[[], Path]:
    return _settings(name, mac=name, windows=name)


_CLINE = "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"

_OWN = (
    Client("claude-code", _home(".claude.json"), ".mcp.json", ("mcpServers",), typed),
    Client("claude-desktop", _everywhere("Claude/claude_desktop_config.json"), None, ("mcpServers",)),
    Client("cline", _everywhere(_CLINE), None, ("mcpServers",)),
    Client("cline-cli", _home(".cline/data/settings/cline_mcp_settings.json"), None, ("mcpServers",)),
    Client("codex", _home(".codex/config.toml", "CODEX_HOME"), ".codex/config.toml", ("mcp_servers",)),
    Client(
        "copilot-cli", _home(".copilot/mcp-config.json", "COPILOT_HOME"), ".github/mcp.json", ("mcpServers",), _copilot
    ),
    Client("cursor", _home(".cursor/mcp.json"), ".cursor/mcp.json", ("mcpServers",)),
    Client("gemini-cli", _home(".gemini/settings.json"), ".gemini/settings.json", ("mcpServers",)),
    Client(
        "goose",
        _settings("goose/config.yaml", windows="Block/goose/config/config.yaml"),
        None,
        ("extensions",),
        _goose,
    ),
    Client("opencode", _settings("opencode/opencode.json"), "opencode.json", ("mcp",), _opencode),
    Client("vscode", _everywhere("Code/User/mcp.json"), ".vscode/mcp.json", ("servers",), typed),
    Client("windsurf", _home(".codeium/windsurf/mcp_config.json"), None, ("mcpServers",)),
    Client(
        "zed",
        _settings("zed/settings.json", windows="Zed/settings.json"),
        ".zed/settings.json",
        ("context_servers",),
        _zed,
    ),
)


def clients() -> Mapping[str, Client]:
    """Return the agents by name: Klaw's own, and those of other distributions. Raise ConfigError for a broken one."""
    found = {client.name: client for client in _OWN}
    for point in entry_points(group=GROUP):
        try:
            client = point.load()
        except Exception as error:
            raise ConfigError([f"the agent {point.name!r} of {point.value} cannot be loaded: {error}"]) from error
        if not isinstance(client, Client):
            raise ConfigError([f"{point.value} is no klaw_mcp.clients.Client"])
        found[client.name] = client
    return found


def with_server(file: Path, before: str, keys: Sequence[str], server: Mapping[str, Any] | None) -> str:
    """Return the text of a configuration with the server, or without it if that is None.

    Tables that become empty are removed with it. Other settings and comments stay. Raise ConfigError if the text has
    another format.
    """
    what, edit = _FORMATS[file.suffix.removeprefix(".")]
    try:
        return edit(before, keys, server)
    except Exception as error:
        raise ConfigError([f"{file} is not {what} of the expected form: {error}"], hint=_BY_HAND) from error


def _json(before: str, keys: Sequence[str], server: Mapping[str, Any] | None) -> str:
    if not before.strip():
        return before if server is None else jsonc.with_entry("{}\n", keys, SERVER, server)
    return jsonc.with_entry(before, keys, SERVER, server)


_Library = tuple[Callable[[str], Any], Callable[[Any], str], Callable[[], Any]]


def _edited(library: _Library, before: str, keys: Sequence[str], server: Mapping[str, Any] | None) -> str:
    """Return a text with or without the server, changed by a library that keeps comments."""
    parse, write, empty = library
    document = (parse(before) if before.strip() else None) or empty()
    tables = [document]
    for key in keys:
        if key not in tables[-1] and server is None:
            return before
        tables[-1].setdefault(key, empty())
        tables.append(tables[-1][key])
    if server is None:
        if tables[-1].pop(SERVER, None) is None:
            return before
        for table, key in reversed([*zip(tables, keys, strict=False)]):
            if not table[key]:
                del table[key]
    else:
        tables[-1][SERVER] = empty()
        tables[-1][SERVER].update(server)
    return write(document)


def _toml(before: str, keys: Sequence[str], server: Mapping[str, Any] | None) -> str:
    import tomlkit

    return _edited((tomlkit.parse, tomlkit.dumps, tomlkit.table), before, keys, server)


def _yaml(before: str, keys: Sequence[str], server: Mapping[str, Any] | None) -> str:
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000

    def write(document: Any) -> str:
        stream = StringIO()
        yaml.dump(document, stream)
        return stream.getvalue()

    return _edited((yaml.load, write, CommentedMap), before, keys, server)


_Edit = Callable[[str, Sequence[str], Mapping[str, Any] | None], str]
_FORMATS: Mapping[str, tuple[str, _Edit]] = {"json": ("JSON", _json), "toml": ("TOML", _toml), "yaml": ("YAML", _yaml)}

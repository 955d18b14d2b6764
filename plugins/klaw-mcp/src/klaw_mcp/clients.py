"""Agents whose configuration ``klaw mcp install`` can write: where it is, its format, and what a server looks like.

A distribution adds an agent with an entry point of the group ``klaw.mcp_clients`` that names a ``Client``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import Any

from attrs import frozen

from klaw_core import ConfigError
from klaw_mcp import toml_text, yaml_text
from klaw_tools import jsonc

GROUP = "klaw.mcp_clients"
#: The name of the server in every configuration.
SERVER = "klaw"

_BOM = "\ufeff"


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


def with_server(client: Client, file: Path, before: str, server: Mapping[str, Any] | None) -> str:
    """Return the text of a configuration with the server, or without it if that is None.

    Tables that were added for the server are removed with it. Every other byte stays, and a byte order mark; in JSON
    and TOML also the keys of the server that Klaw does not set. Raise ConfigError if the text has another format.
    """
    what, form = _FORMATS[file.suffix.removeprefix(".")]
    bare = before.removeprefix(_BOM)
    try:
        if server is not None and form is not yaml_text:
            server = _merged(_at(form.parse(bare), (*client.keys, SERVER)), server)
        after: str = form.with_entry(bare, client.keys, SERVER, server)
        _require_same_others(form, bare, after, client, server)
    except Exception as error:
        problem = f"{file} is not {what} of the expected form: {' '.join(str(error).split())}"
        raise ConfigError([problem], hint=_by_hand(client, server)) from error
    return before[: len(before) - len(bare)] + after


def _merged(there: Any, server: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a server with the keys that a person added to the one that is there, in their order."""
    return {**there, **server} if isinstance(there, dict) else server


def printed(client: Client, file: Path, server: Mapping[str, Any]) -> str:
    """Return the server alone, as it is written into a file that is empty."""
    return with_server(client, file, "", server)


def _by_hand(client: Client, server: Mapping[str, Any] | None) -> str:
    if server is None:
        return f"remove {SERVER!r} from {'.'.join(client.keys)!r} by hand"
    return f"add the output of `klaw mcp install {quote(client.name)} --print` by hand"


def _require_same_others(
    form: ModuleType, before: str, after: str, client: Client, server: Mapping[str, Any] | None
) -> None:
    """Raise ValueError if a change concerns more than the server: some texts have no place for it."""
    path = (*client.keys, SERVER)
    wanted = {} if server is None else form.parse(form.with_entry("", client.keys, SERVER, server))
    changed = form.parse(after)
    # By their texts, because a number may be none (NaN), which equals nothing.
    if repr(_others(changed, path)) != repr(_others(form.parse(before), path)) or _at(changed, path) != _at(
        wanted, path
    ):
        raise ValueError(f"{'.'.join(client.keys)!r} cannot be changed without a change of another setting")


def _others(data: Any, path: Sequence[str]) -> Any:
    """Return settings without an entry, and without what is empty on the way to it."""
    if not isinstance(data, dict):
        return data
    rest = {**data}
    inner = rest.pop(path[0], None)
    kept = _others(inner, path[1:]) if len(path) > 1 else None
    return {**rest, path[0]: kept} if kept else rest


def _at(data: Any, path: Sequence[str]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


_FORMATS: Mapping[str, tuple[str, ModuleType]] = {
    "json": ("JSON", jsonc),
    "toml": ("TOML", toml_text),
    "yaml": ("YAML", yaml_text),
}

"""``klaw mcp install``: write the configuration of an agent, so that it starts ``klaw mcp`` itself."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from klaw_core import ConfigError
from klaw_core.cli.kit import (
    Settings,
    common_options,
    confirm_client_file,
    data,
    own_command,
    pass_settings,
    print_json,
    read_client_file,
    write_client_file,
)

_NAME = "klaw"


@frozen
class Client:
    """An agent: the files in which it configures servers, and the keys in them. ``project`` is None if it has none."""

    name: str
    user: Callable[[], Path]
    project: str | None
    keys: tuple[str, ...]
    typed: bool = False

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


def _vscode() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support/Code/User/mcp.json"
    root = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(root) / "Code" / "User" / "mcp.json"


CLIENTS = {
    client.name: client
    for client in (
        Client("claude-code", _home(".claude.json"), ".mcp.json", ("mcpServers",), typed=True),
        Client("codex", _home(".codex/config.toml", "CODEX_HOME"), ".codex/config.toml", ("mcp_servers",)),
        Client("cursor", _home(".cursor/mcp.json"), ".cursor/mcp.json", ("mcpServers",)),
        Client("vscode", _vscode, ".vscode/mcp.json", ("servers",), typed=True),
    )
}


@click.command("install", short_help="Add Klaw to an agent's configuration.")
@click.argument("client", type=click.Choice(tuple(CLIENTS)))
@click.option(
    "--scope",
    type=click.Choice(("user", "project")),
    default="user",
    show_default=True,
    help="Where the server is registered.",
)
@click.option("--read-only", is_flag=True, help="Offer only tools that change nothing.")
@click.option("--allow-forget", is_flag=True, help="Also offer memory_forget.")
@click.option("-c", "--collection", "collections", multiple=True, metavar="NAME", help="Collections to search.")
@click.option("--print", "only_print", is_flag=True, help="Print the configuration instead of writing it.")
@click.option("-y", "--yes", is_flag=True, help="Write without confirmation.")
@common_options
@pass_settings
def install(
    settings: Settings,
    *,
    client: str,
    scope: str,
    read_only: bool,
    allow_forget: bool,
    collections: tuple[str, ...],
    only_print: bool,
    yes: bool,
) -> None:
    """Add `klaw mcp` to the configuration of CLIENT, with absolute paths and this data directory.

    The command shows the change and asks for confirmation. It keeps the other settings, and a backup of the file.
    """
    if only_print and yes:
        raise click.UsageError("--print writes nothing, so leave --yes out")
    check_together(read_only=read_only, allow_forget=allow_forget)
    chosen = CLIENTS[client]
    options = [
        *(["--read-only"] if read_only else []),
        *(["--allow-forget"] if allow_forget else []),
        *(part for name in collections for part in ("--collection", name)),
    ]
    server = _server(settings, options, typed=chosen.typed)
    file = chosen.file(scope)
    text = added(file, chosen.keys, server)
    if only_print:
        print_json({"file": str(file), "server": server}) if settings.json else data().block(text)
        return
    if not yes:
        place = ".".join((*chosen.keys, _NAME))
        confirm_client_file(file, f"  {place} = {json.dumps(dict(server), indent=2, ensure_ascii=False)}")
    kept = write_client_file(file, text)
    if settings.json:
        print_json({"file": str(file), "backup": None if kept is None else str(kept), "server": server})
        return
    data().line(f"written: {file}" + (f" (copy of the old file: {kept})" if kept else ""))
    data().line(f"restart {client} to load the tools of klaw")


def check_together(*, read_only: bool, allow_forget: bool) -> None:
    """Raise UsageError for permissions of which one has no effect."""
    if read_only and allow_forget:
        raise click.UsageError("--read-only leaves out memory_forget, which --allow-forget offers; pass one of them")


def _server(settings: Settings, options: Sequence[str], *, typed: bool) -> dict[str, Any]:
    """Return the configuration with which an agent starts the server."""
    command, *arguments = own_command(settings, "mcp")
    described = {"command": command, "args": [*arguments, *options]}
    return {"type": "stdio", **described} if typed else described


def added(file: Path, keys: Sequence[str], server: Mapping[str, Any]) -> str:
    """Return the text of a configuration with the server added. Raise ConfigError if the file cannot be parsed."""
    before = read_client_file(file)
    if file.suffix == ".toml":
        return _added_toml(file, before, keys, server)
    try:
        table: Any = json.loads(before) if before.strip() else {}
        place = table
        for key in keys:
            place = place.setdefault(key, {})
        place[_NAME] = dict(server)
    except (ValueError, AttributeError, TypeError) as error:
        hint = "add the output of `klaw mcp install --print` by hand"
        raise ConfigError([f"{file} is not plain JSON of the expected form: {error}"], hint=hint) from error
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


def _added_toml(file: Path, before: str, keys: Sequence[str], server: Mapping[str, Any]) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document: Any = tomlkit.parse(before)
        place = document
        for key in keys:
            if key not in place:
                place[key] = tomlkit.table(is_super_table=True)
            place = place[key]
        entry = tomlkit.table()
        for name, value in server.items():
            entry[name] = value
        place[_NAME] = entry
    except (TOMLKitError, TypeError, AttributeError) as error:
        raise ConfigError([f"{file} is not TOML of the expected form: {error}"], hint="fix the file first") from error
    text: str = tomlkit.dumps(document)
    return text

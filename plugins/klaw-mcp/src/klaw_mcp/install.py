"""``klaw mcp install``: write the configuration of an agent, so that it starts ``klaw mcp`` itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from klaw_core.cli.kit import (
    Settings,
    common_options,
    confirm_client_file,
    data,
    notify,
    own_command,
    pass_settings,
    print_json,
    read_client_file,
    write_client_file,
)
from klaw_mcp.clients import SERVER, Client, clients, printed, with_server


def _client(_ctx: click.Context, _param: click.Parameter, name: str) -> Client:
    """Return an agent by its name; only when one is given, agents of other distributions are looked for."""
    known = clients()
    if name not in known:
        raise click.BadParameter(f"{name!r} is not one of {', '.join(sorted(known))}")
    return known[name]


def _names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in sorted(clients()) if name.startswith(incomplete)]


@click.command("install", short_help="Add Klaw to an agent's configuration.")
@click.argument("client", callback=_client, shell_complete=_names)
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
@click.option("--remove", is_flag=True, help="Remove Klaw from the configuration instead.")
@click.option("--print", "only_print", is_flag=True, help="Print the entry of Klaw instead of writing it.")
@click.option("-y", "--yes", is_flag=True, help="Write without confirmation.")
@common_options
@pass_settings
def install(
    settings: Settings,
    *,
    client: Client,
    scope: str,
    read_only: bool,
    allow_forget: bool,
    collections: tuple[str, ...],
    remove: bool,
    only_print: bool,
    yes: bool,
) -> None:
    """Add `klaw mcp` to the configuration of CLIENT, with absolute paths and this data directory.

    CLIENT is claude-code, claude-desktop, cline (in VS Code), cline-cli, codex, copilot-cli, cursor, gemini-cli, goose,
    opencode, vscode, windsurf or zed. The command shows the change and asks for confirmation. It keeps the other
    settings, and a backup of the file.
    """
    if only_print and yes:
        raise click.UsageError("--print writes nothing, so leave --yes out")
    if remove and (read_only or allow_forget or collections):
        raise click.UsageError("--remove takes no options of the server")
    check_together(read_only=read_only, allow_forget=allow_forget)
    if collections:
        _say_unknown(settings, collections)
    options = [
        *(["--read-only"] if read_only else []),
        *(["--allow-forget"] if allow_forget else []),
        *(part for name in collections for part in ("--collection", name)),
    ]
    server = None if remove else dict(client.describe([*own_command(settings, "mcp"), *options]))
    file = client.file(scope)
    if only_print:
        _print(settings, client, file, server)
        return
    before = read_client_file(file)
    text = with_server(client, file, before, server)
    if not yes and text != before:
        shown = "" if remove else f" = {json.dumps(server, indent=2, ensure_ascii=False)}"
        confirm_client_file(file, f"  {'removed: ' if remove else ''}{_place(client)}{shown}")
    kept = None if text == before else write_client_file(file, text, before)
    if settings.json:
        print_json({"file": str(file), "backup": None if kept is None else str(kept), "server": server})
        return
    if text == before:
        data().line(f"unchanged: {file} {'does not have' if remove else 'already has'} klaw")
        return
    data().line(f"written: {file}" + (f" (copy of the old file: {kept})" if kept else ""))
    data().line(f"restart {client.name} to {'unload' if remove else 'load'} the tools of klaw")


def _print(settings: Settings, client: Client, file: Path, server: Mapping[str, Any] | None) -> None:
    """Print the entry alone: the file may be unreadable, and other settings in it are often secret."""
    if settings.json:
        print_json({"file": str(file), "server": server})
    elif server is None:
        data().line(f"removed: {_place(client)}")
    else:
        data().block(printed(client, file, server))


def _place(client: Client) -> str:
    return ".".join((*client.keys, SERVER))


def _say_unknown(settings: Settings, collections: Sequence[str]) -> None:
    """Print a notice for each collection that does not exist; it may be created before the server starts."""
    with settings.open_memory() as memory:
        known = memory.collections()
    for name in collections:
        if name not in known:
            notify(settings, f"there is no collection {name!r} yet; known: {', '.join(known)}")


def check_together(*, read_only: bool, allow_forget: bool) -> None:
    """Raise UsageError for permissions of which one has no effect."""
    if read_only and allow_forget:
        raise click.UsageError("--read-only leaves out memory_forget, which --allow-forget offers; pass one of them")

"""``klaw serve``: keep the memory open and warm, for all agents and people on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

from klaw_core.cli.kit import (
    Settings,
    common_options,
    data,
    echo,
    given_options,
    notify,
    own_command,
    pass_settings,
    print_json,
    refuse_before_subcommand,
    systemd_unit,
)
from klaw_serve.options import DEFAULT_PORT, Listening

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("serve", invoke_without_command=True, short_help="Serve the memory to agents and people on this machine.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST", help="Listen on this address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    default=DEFAULT_PORT,
    show_default=True,
    help="Listen on this port; 0: a free one.",
)
@click.option("--tls-cert", type=_FILE, metavar="FILE", help="Encrypt, with this certificate (PEM).")
@click.option("--tls-key", type=_FILE, metavar="FILE", help="Its key, if in a separate file.")
@click.option("--behind-proxy", is_flag=True, help="A proxy in front of Klaw encrypts.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="Also accept this host name.")
@click.option(
    "--oauth",
    metavar="URL",
    default="",
    help="Let remote clients of MCP sign in at this public address (https://NAME).",
)
@click.option("--read-only", is_flag=True, help="Offer only calls that change nothing.")
@click.option("--unit", "only_unit", is_flag=True, help="Print a systemd unit that runs this command, and exit.")
@common_options
@pass_settings
@click.pass_context
def command(
    context: click.Context,
    settings: Settings,
    *,
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    behind_proxy: bool,
    names: tuple[str, ...],
    oauth: str,
    read_only: bool,
    only_unit: bool,
) -> None:
    """Serve REST, JSON-RPC, WebSocket, MCP (if klaw-mcp is installed) and a page, until interrupted.

    Calls need the token in the data directory: `klaw serve token` prints it.
    """
    if context.invoked_subcommand is not None:
        refuse_before_subcommand(context)
        return
    if oauth:
        oauth, name = _public(oauth)
        names = (*names, name)
        if not (tls_cert or behind_proxy):
            raise click.UsageError("--oauth needs encryption: --tls-cert, or --behind-proxy if a proxy encrypts")
    listening = Listening(host, port, tls_cert, tls_key, behind_proxy, names, oauth)
    if not (listening.is_local or tls_cert or behind_proxy):
        raise click.UsageError(
            f"other machines can reach {host}: encrypt with --tls-cert, or pass --behind-proxy if a proxy encrypts"
        )
    if tls_key and not tls_cert:
        raise click.UsageError("--tls-key needs --tls-cert")
    if only_unit:
        _print_unit(context, settings)
        return
    from klaw_serve.heaps import limit_heaps

    limit_heaps()  # before threads begin
    from klaw_serve.options import Limits
    from klaw_serve.run import serve
    from klaw_serve.warm.state import HelperFiles

    HelperFiles(settings.load_config().data_dir).stop()  # the server does more, and there can be one

    def ready(url: str, token: str) -> None:
        if settings.json:
            print_json({"url": url})
        elif data().is_terminal:
            notify(settings, f"serving at {url}, with a page at {url}/#token={token}", "stop with Ctrl+C")
        else:  # others can read the log, and the address has the token
            notify(settings, f"serving at {url}")

    serve(settings.open_memory(), listening, Limits(), read_only=read_only, on_ready=ready)


def _public(url: str) -> tuple[str, str]:
    """Return a public address without a slash at its end, and its host. Raise UsageError if it is none."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme == "https" and parts.hostname and parts.path in {"", "/"} and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or parts.query or parts.fragment or "@" in parts.netloc:
        raise click.UsageError(f"--oauth {url!r}: expected an address like https://memory.example.org")
    return f"https://{parts.netloc}", str(parts.hostname)


def _print_unit(context: click.Context, settings: Settings) -> None:
    """Print the unit of systemd that runs the command that was given."""
    words = ["serve"]
    for name, option in given_options(context).items():
        value = context.params[name]
        for each in value if isinstance(value, tuple) else (value,):
            if name != "only_unit":
                words += (
                    [option] if each is True else [option, str(each.absolute() if isinstance(each, Path) else each)]
                )
    description = f"Klaw serves its memory ({settings.load_config().data_dir})"
    text = systemd_unit(description, own_command(settings, *words), TimeoutStopSec=20)
    print_json({"unit": text}) if settings.json else echo(text, nl=False)


@command.command("token", short_help="Print the token that clients need.")
@click.option("--agent", default="", metavar="NAME", help="The token for this agent's memory only.")
@common_options
@pass_settings
def token_command(settings: Settings, *, agent: str) -> None:
    """Print the token that opens the memory, or the memory of one agent; create it if there is none."""
    from klaw_core import Agents, NotFoundError
    from klaw_serve.tokens import Tokens

    config = settings.load_config()
    if agent:
        with Agents(config) as agents:  # raises for an invalid agent name
            if agents.memory(agent) is None:
                raise NotFoundError(f"the agent {agent!r} has no memory: its settings have enabled = false")
    token = Tokens(config.data_dir).make(agent)
    print_json({"token": token}) if settings.json else data().line(token)


@command.command("warm", short_help="Run the helper that answers `klaw search` quickly.")
@common_options
@pass_settings
def warm_command(settings: Settings) -> None:
    """Run the warm helper here, until it is idle; with [extensions.warm] on, `klaw search` leaves one behind."""
    if sys.platform == "win32":
        from klaw_core import StoreError

        raise StoreError("a warm helper needs Unix sockets, which Windows lacks", hint="use `klaw serve` instead")
    if sys.platform != "win32":  # mypy reads no import after a `raise`
        from klaw_serve.warm.helper import run_helper

        run_helper(settings, lambda: notify(settings, "the warm helper answers; end it with `klaw serve stop`"))


@command.command("stop", short_help="End the warm helper.")
@common_options
@pass_settings
def stop_command(settings: Settings) -> None:
    """End the warm helper of this memory, if one runs, and wait until it has ended."""
    from klaw_serve.warm.state import HelperFiles

    state = HelperFiles(settings.load_config().data_dir).stop()
    if settings.json:
        print_json({"stopped": state.pid if state else None})
    else:
        notify(settings, f"ended process {state.pid}" if state else "no warm helper runs")

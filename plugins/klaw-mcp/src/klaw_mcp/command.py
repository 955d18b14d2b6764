"""``klaw mcp``: serve the memory to an agent, or write an agent's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from klaw_core.cli.kit import Settings, common_options, pass_settings, refuse_before_subcommand
from klaw_mcp.install import check_together, install

if TYPE_CHECKING:
    from klaw_mcp.tools import Policy


@click.group(
    "mcp", invoke_without_command=True, short_help="Serve the memory to an agent over the Model Context Protocol."
)
@click.option("--read-only", is_flag=True, help="Offer only tools that change nothing.")
@click.option("--allow-forget", is_flag=True, help="Also offer memory_forget.")
@click.option(
    "-c",
    "--collection",
    "collections",
    multiple=True,
    metavar="NAME",
    help="Collections to search. [default: all but separate ones]",
)
@click.option("--tool", "extra", multiple=True, metavar="NAME", help="Also offer this tool of an extension.")
@common_options
@pass_settings
@click.pass_context
def command(
    context: click.Context,
    settings: Settings,
    *,
    read_only: bool,
    allow_forget: bool,
    collections: tuple[str, ...],
    extra: tuple[str, ...],
) -> None:
    """Serve tools, documents and a prompt on standard input and output, until input ends.

    Agents start this command themselves; `klaw mcp install claude-code` writes the configuration for that.
    """
    if context.invoked_subcommand is not None:
        refuse_before_subcommand(context)
        return
    check_together(read_only=read_only, allow_forget=allow_forget)
    from klaw_mcp.stdio import run

    def make_policy() -> Policy:
        from klaw_mcp.tools import Policy

        return Policy(read_only, allow_forget, collections, extra)

    run(settings.open_memory, make_policy)


command.add_command(install)

"""``klaw facts``: show facts, change them, extract them from messages."""

from __future__ import annotations

import click

from klaw_core.cli.kit import Settings, common_options, pass_settings
from klaw_facts.commands.changing import edit, end, pin, reopen, retract, review, undo
from klaw_facts.commands.extracting import extract, import_command, retry
from klaw_facts.commands.reading import history, list_command, search, show, stats


@click.group("facts", invoke_without_command=True, short_help="Show, change and extract facts.")
@common_options
@pass_settings
@click.pass_context
def command(context: click.Context, settings: Settings) -> None:
    """Show and change facts. Without a subcommand: `klaw facts list`.

    ID is the id of a fact, or the beginning of an id. `klaw forget facts/ID` deletes a fact permanently.
    """
    del settings
    if context.invoked_subcommand is None:
        context.invoke(list_command)


for part in (
    *(list_command, search, show, history, stats),
    *(edit, end, reopen, retract, pin, review, undo),
    *(extract, retry, import_command),
):
    command.add_command(part)

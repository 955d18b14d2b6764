"""``klaw facts``: look at facts, change them, take them from what was said."""

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
    """Show what is true now, since when and where it was said; without a command, `klaw facts list`.

    ID is a fact's id or the beginning of it. `klaw forget facts/ID` removes a fact for good.
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

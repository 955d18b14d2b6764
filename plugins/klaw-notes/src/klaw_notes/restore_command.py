"""``klaw restore``: restore a forgotten note."""

from __future__ import annotations

import click

from klaw_core.cli.kit import Settings, common_options, pass_settings
from klaw_notes.completion import forgotten_notes


@click.command("restore", short_help="Restore a forgotten note.")
@click.argument("path", shell_complete=forgotten_notes)
@common_options
@pass_settings
def command(settings: Settings, *, path: str) -> None:
    """Index the note PATH (notes/a.md, or its file) again after klaw forget has excluded it.

    A forgotten memory cannot be restored: its text was deleted.
    """
    from klaw_core.cli.reports import report_run

    with settings.open_memory() as memory:
        report = memory.restore(path)
    report_run(settings, path, report)

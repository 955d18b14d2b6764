"""``klaw reindex``: everything anew, as after a change of model."""

from __future__ import annotations

import click

from klaw_core.cli.settings import Settings, common_options, pass_settings


@click.command("reindex", short_help="Embed and cut everything anew, as after a change of model.")
@common_options
@pass_settings
def command(settings: Settings) -> None:
    """Cut every note and embed every passage anew with the configured embedder.

    Search goes on meanwhile; an interrupted run is finished by `klaw index`.
    """
    from klaw_core.cli.progress import progress_bar
    from klaw_core.cli.reports import interruptible, report_run

    with settings.open_memory() as memory, interruptible(settings):
        with progress_bar(settings) as on_progress:
            report = memory.reindex(on_progress=on_progress)
        report_run(settings, "reindexed", report)

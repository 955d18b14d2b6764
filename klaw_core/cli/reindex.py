"""``klaw reindex``: everything anew, as after a change of model."""

from __future__ import annotations

import click

from klaw_core.cli.settings import Settings, common_options, pass_settings


@click.command("reindex", short_help="Build the index anew from the files, as after a change of model.")
@common_options
@pass_settings
def command(settings: Settings) -> None:
    """Build the index anew, with the configured embedder, beside the one in use, and put it in its place.

    Searches go on meanwhile. An interrupted run changes nothing, and the next one goes on where it stopped.
    """
    from klaw_core.cli.progress import progress_bar
    from klaw_core.cli.reports import interruptible, report_run

    with (
        settings.open_memory() as memory,
        interruptible(settings, "the index is as it was, `klaw reindex` goes on from here"),
    ):
        with progress_bar(settings) as on_progress:
            report = memory.reindex(on_progress=on_progress)
        report_run(settings, "reindexed", report)

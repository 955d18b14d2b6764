"""``klaw embed``: compute missing vectors."""

from __future__ import annotations

import click

from klaw_core.cli.settings import Settings, common_options, pass_settings


@click.command("embed", short_help="Compute the vectors that are missing.")
@click.option("--batch-size", type=click.IntRange(1), metavar="N", help="Texts per request. [default: the embedder's]")
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", help="Stop after N chunks.")
@common_options
@pass_settings
def command(settings: Settings, *, batch_size: int | None, limit: int | None) -> None:
    """Embed the chunks that have no vector yet, e.g. after `klaw index --no-embed`: those of new documents first.

    You can stop it at any time and run it again: finished vectors are kept. The exit status is 1 if the embedder fails.
    A text that the embedder rejects is skipped, and found by words alone.
    """
    from klaw_core.cli.notices import notify
    from klaw_core.cli.output import data
    from klaw_core.cli.progress import progress_bar
    from klaw_core.cli.reports import interruptible, report_run

    with (
        settings.open_memory() as memory,
        interruptible(settings, "finished vectors are kept; `klaw embed` continues from there"),
    ):
        with progress_bar(settings) as on_progress:
            report = memory.embed(limit=limit, texts_per_call=batch_size, on_progress=on_progress)
        if report.embedded or report.cached or report.lacking or settings.json:
            report_run(settings, "embedded", report)
        elif report.notices:
            notify(settings, *report.notices)
        elif not settings.quiet:
            data().line("every chunk has its vector")
        if report.notices:
            raise click.exceptions.Exit(1)

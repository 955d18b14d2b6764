"""``klaw index``: directories in, an index that agrees with them out."""

from __future__ import annotations

import click

from klaw_core.cli.settings import Settings, common_options, pass_settings


@click.command("index", short_help="Index directories of notes, or bring the index up to date.")
@click.argument("directories", nargs=-1, metavar="[DIR]...")
@click.option("--name", metavar="NAME", help="What paths in results begin with. [default: the directory's name]")
@click.option(
    "-c",
    "--collection",
    default="memory",
    show_default=True,
    metavar="NAME",
    help="memory, docs, or a name of your own.",
)
@click.option("--version", metavar="TEXT", help="The version of what is documented, kept with each chunk.")
@click.option("--force", is_flag=True, help="Cut every note anew, changed or not.")
@click.option("--no-embed", is_flag=True, help="Index words only; klaw embed does the rest.")
@common_options
@pass_settings
def command(
    settings: Settings,
    *,
    directories: tuple[str, ...],
    name: str | None,
    collection: str,
    version: str | None,
    force: bool,
    no_embed: bool,
) -> None:
    """Index the Markdown notes below each DIR; without one, everything that was indexed before.

    Only new and changed notes are read into the index, and deleted ones leave it. A directory is remembered:
    the next time `klaw index` is enough. Words find what is new at once, vectors as they are computed; where that
    fails, the run still succeeds and says how many are left to `klaw embed`.
    """
    if name is not None and len(directories) != 1:
        raise click.UsageError("--name names one directory; give exactly one")
    if not directories and (version is not None or collection != "memory"):
        raise click.UsageError("--collection and --version are about directories; give at least one")
    from klaw_core.cli.output import print_json
    from klaw_core.cli.progress import progress_bar
    from klaw_core.cli.reports import as_dict, interruptible, report_run
    from klaw_core.cli.roots import workspace_of

    reports = []
    with (
        settings.open_memory() as memory,
        interruptible(settings, "what is done is kept, `klaw index` goes on from there"),
    ):
        for directory in directories or (None,):
            with progress_bar(settings) as on_progress:
                report = memory.index(
                    directory,
                    name=name,
                    collection=collection,
                    version=version,
                    force=force,
                    embed=not no_embed,
                    on_progress=on_progress,
                )
            title = "all notes" if directory is None else workspace_of(memory, directory)
            reports.append(as_dict(title, report))
            if not settings.json:
                report_run(settings, title, report)
    if settings.json:
        print_json(reports if len(reports) != 1 else reports[0])

"""``klaw export``: write the user's own data to one file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klaw_core.cli.kit import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core import KlawError
    from klaw_journals.records import ExportReport


@click.command("export", short_help="Export saved memories, conversations and other records.")
@click.argument("file", required=False, type=click.Path(allow_dash=True))
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "okf"]),
    default="jsonl",
    help="okf: notes and saved memories as a directory in Open Knowledge Format, for other programs",
)
@common_options
@pass_settings
def command(settings: Settings, *, file: str | None, form: str) -> None:
    """Write your own data to FILE as JSON Lines: saved memories, conversations, and all other journals; - is stdout."""
    if form == "okf":
        _bundle(settings, file or "klaw-okf")
    else:
        _records(settings, file or "klaw-export.jsonl")


def _bundle(settings: Settings, directory: str) -> None:
    if directory == "-":
        raise click.UsageError("a bundle is a directory, and cannot be written to standard output")
    with settings.open_memory() as memory:
        links: Any = memory.extension("links")
        report = links.bundle(memory, Path(directory))
    _report(settings, directory, report)


def _records(settings: Settings, file: str) -> None:
    from klaw_core import discover
    from klaw_core.cli.kit import notify
    from klaw_core.extensions.host import build_extensions
    from klaw_doctor.export import export
    from klaw_journals.opening import keeps_journals

    if Path(file).is_dir():
        raise click.BadParameter(f"File {file!r} is a directory.", param_hint="'[FILE]'")
    target = sys.stdout.buffer if file == "-" else Path(file)
    failed: Mapping[str, KlawError] = {}
    config = settings.load_config()
    if keeps_journals(settings, config):
        with settings.open_memory() as memory:
            report = memory.export(target)
            failed = memory.extensions.problems()
    else:
        # The files are sufficient, so export also works if the database cannot be opened.
        extensions, failed = build_extensions(config, discover(disabled=config.disabled_plugins))
        report = export(extensions, config.data_dir, target)
    sys.stdout.flush()  # a write error must come before the success message
    _report(settings, file, report)
    notify(settings, *(f"left out the extension {name}: {error}" for name, error in failed.items()))


def _report(settings: Settings, file: str, report: ExportReport) -> None:
    from klaw_core import to_json
    from klaw_core.cli.kit import notify, print_json
    from klaw_doctor.commands.counts import records

    if settings.json and file != "-":
        print_json({"file": file, **to_json(report)})
    else:
        notify(settings, f"exported {records(report.counts) or 'nothing'}" + (f" to {file}" if file != "-" else ""))
    notify(settings, *report.notices, *(f"left out {item.path}: {item.reason}" for item in report.skipped))

"""``klaw export``: write the user's own data to one file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klaw_core.cli.kit import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core import KlawError
    from klaw_journals.records import ExportReport


@click.command("export", short_help="Export saved memories, conversations and other records.")
@click.argument("file", default="klaw-export.jsonl", type=click.Path(dir_okay=False, allow_dash=True))
@common_options
@pass_settings
def command(settings: Settings, *, file: str) -> None:
    """Write your own data to FILE as JSON Lines: saved memories, conversations, and all other journals; - is stdout."""
    from klaw_core import discover
    from klaw_core.cli.kit import notify
    from klaw_core.extensions.host import build_extensions
    from klaw_doctor.export import export
    from klaw_journals.opening import keeps_journals

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

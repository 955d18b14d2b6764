"""``klaw import``: add the records of an export."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from klaw_core import RecordError
from klaw_core.cli.kit import Settings, common_options, pass_settings
from klaw_core.values.metadata import TRUST_CLASSES


@click.command("import", short_help="Import the records of an export.")
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--from", "importer", metavar="PROGRAM", help="Read the export of another program: chatgpt, mem0 …")
@click.option("--dry-run", is_flag=True, help="Count what would be imported; change nothing.")
@click.option(
    "--trust",
    type=click.Choice(TRUST_CLASSES),
    metavar="CLASS",
    help="Who wrote the texts: owner, agent or foreign. [default: as exported; foreign with --from]",
)
@click.option("--workspaces", is_flag=True, help="Also add its workspaces, with their exclude patterns.")
@common_options
@pass_settings
def command(
    settings: Settings, *, file: str, importer: str | None, dry_run: bool, trust: str | None, workspaces: bool
) -> None:
    """Import FILE, written by `klaw export`; - reads standard input. Existing records are not changed.

    With --from, FILE is another program's export, a file or a directory. `klaw plugins` lists the programs.
    """
    from klaw_core import to_json
    from klaw_core.cli.kit import data, notify, print_json
    from klaw_doctor.commands.counts import records

    with _whole(file) as source, settings.open_memory() as memory:
        report = memory.import_(source, importer=importer, workspaces=workspaces, dry_run=dry_run, trust=trust)
    if settings.json:
        print_json(to_json(report))
    elif not settings.quiet:
        added = records(report.added) or "nothing new"
        present = sum(report.present.values())
        done = "would import" if dry_run else "imported"
        data().line(f"{done} {added}" + (f"; {present:,} already present" if present else ""))
    notify(settings, *(f"not imported: {reason}" for reason in report.kept))
    notify(settings, *(f"skipped {item.path}: {item.reason}" for item in report.skipped))
    notify(settings, *report.notices)
    if dry_run:
        return
    if report.added.keys() & {"workspace", "message", "document"}:
        notify(settings, "run `klaw index` to find the imported texts")


@contextmanager
def _whole(file: str) -> Iterator[Path]:
    """Yield the file; standard input is copied to a temporary file first, because an import reads it twice."""
    if file != "-":
        yield Path(file)
        return
    with tempfile.TemporaryDirectory(prefix="klaw-import-") as directory:
        path = Path(directory) / "standard input"
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        try:
            yield path
        except RecordError as error:
            raise RecordError(error.message.replace(str(path), "standard input"), hint=error.hint) from error

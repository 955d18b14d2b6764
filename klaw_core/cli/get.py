"""``klaw get``: a note or some of its lines, named as ``klaw search`` shows them."""

from __future__ import annotations

import re

import attrs
import click

from klaw_core.cli.settings import Settings, common_options, pass_settings

# path, path:40 (from there on), path:40:20 (so many lines) or path:40-60 (as search prints it)
_TARGET = re.compile(r"(?P<path>.+?)(?::(?P<first>\d+)(?::(?P<count>\d+)|-(?P<last>\d+))?)?", re.DOTALL)


@click.command("get", short_help="Print a note, or some of its lines.")
@click.argument("target")
@common_options
@pass_settings
def command(settings: Settings, *, target: str) -> None:
    """Print TARGET: PATH, PATH:LINE, PATH:LINE:COUNT, or PATH:FIRST-LAST as copied from a result.

    PATH is a result's path (notes/a.md), a file in an indexed directory, or a result's chunk id.
    """
    path, first, lines = parse_target(target)
    with settings.open_memory() as memory:
        passage = memory.get(path, first, lines)
    from klaw_core.cli.output import clean, data, print_json

    if settings.json:
        print_json(attrs.asdict(passage, recurse=False))
        return
    # A pipe gets the note as it is; a terminal must not be driven by it.
    content = clean(passage.content) if data().is_terminal else passage.content
    click.echo(content, nl=not content.endswith("\n"))


def parse_target(target: str) -> tuple[str, int, int | None]:
    """Return path, first line and number of lines (None: to the end). Raise UsageError if the range is empty."""
    match = _TARGET.fullmatch(target)
    if match is None:
        raise click.UsageError("TARGET is empty; give a path such as notes/a.md:40:20")
    first = int(match["first"] or 1)
    if match["last"] is None:
        return match["path"], first, int(match["count"]) if match["count"] else None
    last = int(match["last"])
    if last < first:
        raise click.UsageError(f"{target!r} ends at line {last}, before it begins at line {first}")
    return match["path"], first, last - first + 1

"""``klaw get``: print a note or some of its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from klaw_core.cli.completion import document_paths
from klaw_core.cli.settings import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core.memory import Memory
    from klaw_core.values.runs import Excerpt


@click.command("get", short_help="Print a note, or some of its lines.")
@click.argument("target", shell_complete=document_paths)
@common_options
@pass_settings
def command(settings: Settings, *, target: str) -> None:
    """Print TARGET: PATH, PATH:LINE, PATH:LINE:COUNT, or PATH:FIRST-LAST as copied from a result.

    PATH#HEADING prints one section: notes/a.md#Plans, papers/b.pdf#page=3. PATH is a result's path (notes/a.md), a file
    in an indexed directory, or a result's chunk id.
    """
    if not target:
        raise click.UsageError("TARGET is empty; give a path such as notes/a.md:40:20")
    with settings.open_memory() as memory:
        excerpt = _excerpt(memory, target)
    from klaw_core.cli.json_forms import to_json
    from klaw_core.cli.notices import notify
    from klaw_core.cli.output import print_json
    from klaw_core.cli.streams import echo

    if settings.json:
        print_json(to_json(excerpt))
        return
    if excerpt.notice:
        notify(settings, excerpt.notice)
    echo(excerpt.content, nl=not excerpt.content.endswith("\n"))


def _excerpt(memory: Memory, target: str) -> Excerpt:
    """Return the lines that TARGET names. Raise UsageError for an invalid range, NotFoundError."""
    from klaw_core.cli.targets import parse_target
    from klaw_core.errors import NotFoundError, QueryError

    try:
        return memory.get(target)  # first without a range: a file name may end with :40
    except NotFoundError:
        try:
            path, first, lines = parse_target(target)
        except QueryError as error:
            raise click.UsageError(error.message) from None
        if path != target:
            return memory.get(path, first, lines)
        if (document := _document_in(memory, target)) is not None:
            bad = target[len(document) + 1 :]
            raise click.UsageError(
                f"{bad!r} after {document} is not a line range; use LINE, LINE:COUNT or FIRST-LAST"
            ) from None
        raise


def _document_in(memory: Memory, target: str) -> str | None:
    """Return the longest part of ``target`` before a colon that names a document, or None."""
    from klaw_core.errors import NotFoundError

    path = target
    while ":" in path:
        path = path.rpartition(":")[0]
        try:
            memory.get(path)
        except NotFoundError:
            continue
        return path
    return None

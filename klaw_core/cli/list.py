"""``klaw list``: list documents, saved memories, chats or workspaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from klaw_core.cli.completion import document_paths
from klaw_core.cli.listings import Listing, chosen_format, format_option, show
from klaw_core.cli.settings import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core.memory import Memory
    from klaw_core.values.tools import Json

_PAGE = 1000  # documents per query


@click.command("list", short_help="List documents, saved memories, chats or workspaces.")
@click.argument("prefix", required=False, default="", shell_complete=document_paths)
@click.option("--saved", is_flag=True, help="Saved memories, newest first, with their first words.")
@click.option("--chats", is_flag=True, help="Chats, the most recently active first.")
@click.option("--workspaces", is_flag=True, help="Workspaces (directories of notes).")
@click.option("-c", "--collection", metavar="NAME", help="Only this collection. [default: all]")
@click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="Show at most N. [default: all]")
@click.option(
    "--after", metavar="PATH", default="", help="Only documents after this path (the last one of the previous page)."
)
@format_option
@common_options
@pass_settings
def command(
    settings: Settings,
    *,
    prefix: str,
    saved: bool,
    chats: bool,
    workspaces: bool,
    collection: str | None,
    limit: int | None,
    after: str,
    form: str | None,
) -> None:
    """List the indexed documents by path: all, or only paths that start with PREFIX (notes/2026/)."""
    chosen_form = chosen_format(settings, form)
    kinds = [name for name, chosen in (("saved", saved), ("chats", chats), ("workspaces", workspaces)) if chosen]
    if len(kinds) > 1:
        raise click.UsageError(f"{' and '.join(f'--{name}' for name in kinds)} cannot be used together")
    kind = next(iter(kinds), None)
    if kind is not None and (prefix or after or collection):
        raise click.UsageError(f"--{kind} lists all of them; PREFIX, --after and --collection apply to documents only")
    if kind == "workspaces":
        _list_workspaces(click.get_current_context().find_root(), form=form, limit=limit)
        return
    with settings.open_memory() as memory:
        if kind == "saved":
            from klaw_core.cli.recent import listing_of

            listing = listing_of(memory.recent(limit, origin="saved"), "nothing is saved yet: klaw save TEXT")
        elif kind == "chats":
            listing = _chats(memory, limit)
        else:
            listing = _documents(memory, prefix, collection, after, limit)
    show(settings, listing, chosen_form)


def _list_workspaces(root: click.Context, **options: object) -> None:
    """Run ``klaw workspace list``. Raise PluginNotFoundError if it is not installed."""
    assert isinstance(root.command, click.Group)
    workspace = root.command.get_command(root, "workspace")
    assert isinstance(workspace, click.Group)
    root.invoke(workspace.commands["list"], **options)


def _documents(memory: Memory, prefix: str, collection: str | None, after: str, limit: int | None) -> Listing:
    from klaw_core.cli.moments import shown_day
    from klaw_core.cli.output import StyledText
    from klaw_core.values.collections import MEMORY

    names = memory.collections() if collection is None else (collection,)
    rows = [row for name in names for row in _rows(memory, name, prefix, after, limit)][:limit]
    other = any(row["collection"] != MEMORY for row in rows)
    what = f"no document's path starts with {prefix!r}" if prefix else "nothing is indexed yet: klaw index DIR"
    return Listing(
        rows,
        ("path", "origin", "collection", "created_at"),
        "path",
        lambda row: [
            StyledText(shown_day(row["created_at"]), "dim"),
            StyledText(row["path"], "bold cyan"),
            *([StyledText(row["collection"], "dim")] if other else []),
        ],
        "no documents after that path" if after else what,
    )


def _rows(memory: Memory, collection: str, prefix: str, after: str, limit: int | None) -> Iterator[Json]:
    """Yield a collection's documents, page by page."""
    from klaw_core.cli.json_forms import to_json

    left = limit
    while left is None or left > 0:
        size = _PAGE if left is None else min(left, _PAGE)
        page = memory.documents(collection=collection, prefix=prefix, after=after, limit=size)
        for record in page:
            yield {
                "path": record.path,
                "origin": record.origin,
                "collection": collection,
                "created_at": to_json(record.created_at),
            }
        if len(page) < size:
            return
        after = page[-1].path
        left = None if left is None else left - len(page)


def _chats(memory: Memory, limit: int | None) -> Listing:
    from klaw_core.cli.json_forms import to_json
    from klaw_core.cli.output import StyledText, counted

    return Listing(
        [to_json(chat) for chat in memory.conversations.chats()[:limit]],
        ("name", "first_day", "last_day", "days"),
        "name",
        lambda row: [
            StyledText(row["last_day"], "dim"),
            StyledText(row["name"], "bold cyan"),
            StyledText(f"{counted(row['days'], 'day')} since {row['first_day']}", "dim"),
        ],
        "there are no chats yet",
    )

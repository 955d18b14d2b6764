"""``klaw recent``: show the newest documents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from klaw_core.cli.dates import since as parse_since
from klaw_core.cli.listings import Listing, chosen_format, format_option, show
from klaw_core.cli.settings import Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_core.values.documents import ListedDocument


@click.command("recent", short_help="Show the newest documents.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=10, show_default=True, metavar="N", help="Show at most N."
)
@click.option("--since", metavar="WHEN", callback=parse_since, help="Only from WHEN on: 2026-02-24, 2026-02, 7d.")
@click.option("-c", "--collection", metavar="NAME", help="Only this collection. [default: all]")
@format_option
@common_options
@pass_settings
def command(
    settings: Settings, *, limit: int, since: datetime | None, collection: str | None, form: str | None
) -> None:
    """Show the newest notes, saved memories and conversations, with the first words of each.

    The date of a note is taken from its name or front matter, or else from the file's modification time.
    """
    from klaw_core.cli.moments import shown_day

    form = chosen_format(settings, form)
    with settings.open_memory() as memory:
        found = memory.recent(limit, since=since, collection=collection)
    nothing = "nothing is indexed yet: klaw index DIR"
    empty = nothing if since is None else f"nothing since {shown_day(since.isoformat())}"
    show(settings, listing_of(found, empty), form)


def listing_of(documents: Sequence[ListedDocument], empty: str) -> Listing:
    """Return a list of documents with the first words of each."""
    from klaw_core.cli.json_forms import to_json
    from klaw_core.cli.moments import shown_day
    from klaw_core.cli.output import StyledText

    return Listing(
        [to_json(document) for document in documents],
        ("path", "created_at", "source", "title", "preview"),
        "path",
        lambda row: [
            StyledText(shown_day(row["created_at"]), "dim"),
            StyledText(row["path"], "bold cyan"),
            *([StyledText(row["title"], "dim")] if row["title"] else []),
        ],
        empty,
        below=lambda row: row["preview"],
    )

"""``klaw save``: save a text as a memory."""

from __future__ import annotations

import sys
from datetime import datetime

import click

from klaw_core.cli.kit import Settings, common_options, pass_settings, when


@click.command("save", short_help="Save a text as a memory.")
@click.argument("text", nargs=-1, required=True)
@click.option("--source", default="manual", show_default=True, metavar="LABEL", help="Source shown in results.")
@click.option("--chat", "chat_id", metavar="NAME", help="Chat it comes from: CHANNEL_ID, e.g. telegram_123456.")
@click.option("--date", "created_at", metavar="WHEN", callback=when, help="When it was said. [default: now]")
@common_options
@pass_settings
def command(
    settings: Settings, *, text: tuple[str, ...], source: str, chat_id: str | None, created_at: datetime | None
) -> None:
    """Save TEXT as a memory and print its path; use - to read TEXT from standard input."""
    words = sys.stdin.read() if text == ("-",) else " ".join(text)
    with settings.open_memory() as memory:
        saved = memory.save(words, source=source, chat_id=chat_id, created_at=created_at)
    from klaw_core import to_json
    from klaw_core.cli.kit import echo, notify, print_json

    if settings.json:
        print_json(to_json(saved))
    else:
        echo(saved.path)
    if saved.notice:
        notify(settings, saved.notice)

"""``klaw context``: print the context for a message."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from klaw_core.cli.kit import (
    FreeText,
    Settings,
    StyledText,
    as_of,
    common_options,
    counted,
    data,
    echo,
    notify,
    pass_settings,
    print_json,
)
from klaw_core.values.metadata import TRUST_CLASSES

if TYPE_CHECKING:
    from klaw_core import Memory


@click.command("context", short_help="Print the context for a message, as a model would get it.")
@click.argument("message", nargs=-1, type=FreeText(), required=True)
@click.option("--chat", metavar="NAME", help="The chat that the message belongs to: CHANNEL_ID.")
@click.option(
    "--budget", type=click.IntRange(min=1), default=1000, show_default=True, metavar="N", help="At most N tokens."
)
@click.option("--as-of", metavar="WHEN", callback=as_of, help="Facts that were true then. [default: now]")
@click.option("--known-at", metavar="WHEN", callback=as_of, help="Facts that were known then. [default: now]")
@click.option("--seen", multiple=True, metavar="SOURCE", help="Leave out an item that the model already has.")
@click.option(
    "--trust",
    type=click.Choice(TRUST_CLASSES),
    metavar="CLASS",
    help="Take what the owner, an agent or foreign writers wrote: owner, agent or foreign. [default: agent]",
)
@click.option("--explain", is_flag=True, help="List the items and their sources.")
@common_options
@pass_settings
def command(
    settings: Settings,
    *,
    message: tuple[str, ...],
    chat: str | None,
    budget: int,
    as_of: datetime | None,
    known_at: datetime | None,
    seen: tuple[str, ...],
    trust: str | None,
    explain: bool,
) -> None:
    """Print the text from memory for a prompt with MESSAGE: core memory, profile, facts, and the best chunks."""
    with settings.open_memory() as memory:
        if chat is not None:
            _check_chat(settings, memory, chat)
        ask = partial(memory.context, " ".join(message), chat=chat, budget=budget, as_of=as_of, known_at=known_at)
        ask = partial(ask, trust=trust)
        context = ask(seen=seen)
        if seen and not context.declined:
            known = {item.source for item in ask().items}
            notify(settings, *(f"no item of the context has the source {name!r}" for name in seen if name not in known))
    notify(settings, *context.notices)
    if not "".join(message).strip():
        notify(settings, "the message is empty, so nothing was searched for")
    if settings.json:
        from klaw_core import to_json

        print_json(to_json(context))
        return
    if context.declined:
        notify(settings, f"nothing was looked up: {context.declined}")
    if explain:
        out = data()
        out.line(f"{context.tokens:,} of {budget:,} tokens")
        rows: list[list[StyledText | str]] = [
            [item.part, item.heading, StyledText(item.source, "cyan")] for item in context.items
        ]
        out.rows(rows)
    elif text := str(context):
        echo(text)
    elif not context.declined:
        notify(settings, f"nothing in memory fits the message and {counted(budget, 'token')}")


def _check_chat(settings: Settings, memory: Memory, name: str) -> None:
    """Print a notice if a chat has no messages. Raise RecordError if this is not the name of a chat."""
    from klaw_core import Chat

    if not memory.conversations.journal.files(Chat.parse(name)).files:
        notify(settings, f"no messages from chat {name!r}")

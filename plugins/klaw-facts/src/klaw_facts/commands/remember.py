"""``klaw remember``: keep a fact."""

from __future__ import annotations

import sys
from datetime import datetime

import click

from klaw_core.cli.kit import (
    Settings,
    StyledText,
    common_options,
    data,
    notify,
    pass_settings,
    print_json,
    since,
)
from klaw_facts.commands.printing import fact_json, split_slot, tell_ends

_SHARE = click.FloatRange(0, 1)


@click.command("remember", short_help="Keep a fact, which may end the value before.")
@click.argument("text", nargs=-1, required=True)
@click.option("--slot", metavar="NAME=VALUE", callback=split_slot, help="What it is the value of: home=Lyon.")
@click.option("--subject", default="user", show_default=True, metavar="NAME", help="Whom it is about.")
@click.option("--category", metavar="NAME", help="Its category. [default: by its words]")
@click.option("--from", "valid_from", metavar="WHEN", callback=since, help="Since when it is true.")
@click.option("--importance", type=_SHARE, metavar="X", help="0 to 1. [default: by its category]")
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="A tag; may be repeated.")
@click.option("--pin", "is_pinned", is_flag=True, help="Put it into every context.")
@common_options
@pass_settings
def command(
    settings: Settings,
    *,
    text: tuple[str, ...],
    slot: tuple[str, str] | None,
    subject: str,
    category: str | None,
    valid_from: datetime | None,
    importance: float | None,
    tags: tuple[str, ...],
    is_pinned: bool,
) -> None:
    """Keep TEXT as a fact; a lone - reads it from standard input. Prints its id.

    A new value of a slot that has one value at a time ends the value before, which stays in the history.
    """
    words = sys.stdin.read() if text == ("-",) else " ".join(text)
    name, value = slot or (None, None)
    with settings.open_memory() as memory:
        from klaw_facts.facts import Facts

        facts = memory.extension(Facts)
        fact = facts.remember(
            words,
            subject=subject,
            category=category,
            slot=name,
            value=value,
            valid_from=valid_from,
            importance=importance,
            tags=tags,
            is_pinned=is_pinned,
        )
        everything = list(facts.state().facts.values())
    if settings.json:
        print_json({**fact_json(fact), "ended": [old.id for old in everything if old.ended_by == fact.id]})
        return
    data().line(StyledText(fact.id, "bold cyan"))
    if fact.confirmations > 1:
        notify(settings, "known already; confirmed")
    elif fact.slot:
        notify(settings, f"{fact.slot} = {fact.value}")
    tell_ends(settings, fact, everything)

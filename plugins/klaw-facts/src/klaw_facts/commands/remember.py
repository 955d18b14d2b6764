"""``klaw remember``: store a fact."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from klaw_core.cli.kit import (
    FreeText,
    MayBeEmpty,
    NumberRange,
    Settings,
    StyledText,
    common_options,
    data,
    notify,
    pass_settings,
    print_json,
    when,
)
from klaw_facts.commands.opening import open_facts
from klaw_facts.commands.printing import fact_json, split_slot, tell_ends

if TYPE_CHECKING:
    from klaw_facts.options import FactsOptions
    from klaw_facts.values import Fact

_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN = 3  # other values of a slot that are listed
_SHARE = NumberRange(0, 1)


@click.command("remember", short_help="Store a fact; it can end the previous value of a slot.")
@click.argument("text", nargs=-1, type=FreeText(), required=True)
@click.option("--slot", metavar="NAME=VALUE", callback=split_slot, help="Slot and value: home=Lyon.")
@click.option(
    "--subject", default="user", show_default=True, metavar="NAME", help="The person or thing that it is about."
)
@click.option("--category", metavar="NAME", help="Category. [default: recognised in TEXT]")
@click.option("--from", "valid_from", metavar="WHEN", callback=when, help="Since when it is true.")
@click.option("--importance", type=_SHARE, metavar="X", help="0 to 1. [default: depends on the category]")
@click.option("--tag", "tags", type=MayBeEmpty(), multiple=True, metavar="NAME", help="A tag; repeatable.")
@click.option("--project", metavar="NAME", help="The project that it belongs to.")
@click.option("--pin", "is_pinned", is_flag=True, help="Include it in every context.")
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
    project: str | None,
    is_pinned: bool,
) -> None:
    """Store TEXT as a fact and print its id; - alone reads standard input.

    A new value of a slot that has one value at a time ends the previous value, which stays in the history.
    """
    words = sys.stdin.read() if text == ("-",) else " ".join(text)
    name, value = slot or (None, None)
    with open_facts(settings) as facts:
        fact = facts.remember(
            words,
            subject=subject,
            category=category,
            slot=name,
            value=value,
            valid_from=valid_from,
            importance=importance,
            tags=tags,
            metadata={"project": project} if project else {},
            is_pinned=is_pinned,
        )
        state = facts.state()
        everything = list(state.facts.values())
        if facts.journal.gate.has_secret(words):
            notify(settings, "what says a secret was left out")
    if settings.json:
        print_json({**fact_json(fact), "ended": [old.id for old in everything if old.ended_by == fact.id]})
        return
    data().line(StyledText(fact.id, "bold cyan"))
    if fact.confirmations > 1:
        notify(settings, "already known; confirmed")
    elif fact.slot:
        notify(settings, f"{fact.slot} = {fact.value}")
    if slot is None:
        _tell_other_statements(settings, fact, words)
    tell_ends(settings, fact, everything, state.waiting())
    _tell_other_values(settings, fact, everything, facts.options)


def _tell_other_values(settings: Settings, fact: Fact, everything: Iterable[Fact], options: FactsOptions) -> None:
    """Report that earlier values stay, if it is not declared whether the slot has one value at a time."""
    if not fact.slot or options.is_declared(fact.slot):
        return
    now = datetime.now(UTC)
    others = [
        old.value
        for old in everything
        if (old.slot, old.subject) == (fact.slot, fact.subject) and old.value != fact.value and old.is_visible_at(now)
    ]
    if others:
        values = ", ".join(str(value) for value in others[-_SHOWN:])
        command = declare_single(fact.slot, options.slots)
        notify(settings, f"{fact.slot} keeps its other values ({values}); for one value at a time: {command}")


def _tell_other_statements(settings: Settings, fact: Fact, text: str) -> None:
    """Report the other slots that a text states: a fact has at most one."""
    from klaw_facts.extracting.slots import slot_of, statements

    parts = statements(text.strip())
    for part in parts if len(parts) > 1 else ():
        if (found := slot_of(part)) and found[0] != fact.slot:
            command = f"klaw remember {shlex.quote(part)}"
            notify(settings, f"{found[0]} is not set, because a fact has one slot; to store it as well: {command}")


def declare_single(slot: str, slots: Mapping[str, str]) -> str:
    """Return the command that declares a slot single; ``slots`` are the declared slots of the configuration."""
    if _KEY.fullmatch(slot):
        return f"klaw config set extensions.facts.slots.{shlex.quote(slot)} single"
    # Such a name cannot be part of a setting's name; the whole table is set.
    table = {**slots, slot: "single"}
    pairs = ", ".join(f'{json.dumps(name, ensure_ascii=False)} = "{kind}"' for name, kind in table.items())
    return f"klaw config set extensions.facts.slots {shlex.quote(f'{{{pairs}}}')}"

"""``klaw facts edit``, ``end``, ``reopen``, ``retract``, ``pin``, ``review`` and ``undo``."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from klaw_core.cli.kit import (
    Settings,
    StyledText,
    common_options,
    counted,
    data,
    notify,
    pass_settings,
    print_json,
    since,
)
from klaw_facts.commands.printing import show_change, split_slot

if TYPE_CHECKING:
    from klaw_facts.fold import State
    from klaw_facts.values import Proposal

_REASON = click.option("--reason", default="", metavar="TEXT", help="Why.")


@click.command("edit", short_help="Change a fact.")
@click.argument("name", metavar="ID")
@click.argument("text", nargs=-1)
@click.option("--slot", metavar="NAME=VALUE", callback=split_slot, help="What it is the value of: home=Lyon.")
@click.option("--subject", metavar="NAME", help="Whom it is about.")
@click.option("--category", metavar="NAME", help="Its category.")
@click.option("--importance", type=click.FloatRange(0, 1), metavar="X", help="0 to 1.")
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="Its tags, in place of those before.")
@click.option("--from", "valid_from", metavar="WHEN", callback=since, help="Since when it is true.")
@click.option("--to", "valid_to", metavar="WHEN", callback=since, help="Until when it was true.")
@common_options
@pass_settings
def edit(
    settings: Settings, /, *, name: str, text: tuple[str, ...], slot: tuple[str, str] | None, **given: Any
) -> None:
    """Change the fact ID: its TEXT, or what the options say. What it said before stays in its journal."""
    changes = {key: value for key, value in given.items() if value not in (None, ())}
    if text:
        changes["text"] = " ".join(text)
    if "tags" in changes:
        changes["tags"] = list(changes["tags"])
    if slot:
        changes["slot"], changes["value"] = slot
    if not changes:
        raise click.UsageError("nothing to change; give a TEXT or an option")
    with settings.open_memory() as memory:
        from klaw_facts.facts import Facts

        fact = memory.extension(Facts).keeper.edit(name, **changes)
    show_change(settings, fact, "changed")


@click.command("end", short_help="Say until when a fact was true.")
@click.argument("name", metavar="ID")
@click.option("--to", "valid_to", metavar="WHEN", callback=since, help="Until when. [default: now]")
@_REASON
@common_options
@pass_settings
def end(settings: Settings, *, name: str, valid_to: datetime | None, reason: str) -> None:
    """Say that the fact ID is no longer true. It stays in the history."""
    with settings.open_memory() as memory:
        from klaw_facts.facts import Facts

        fact = memory.extension(Facts).keeper.end(name, valid_to, reason)
    show_change(settings, fact, "ended")


@click.command("reopen", short_help="Take back the end, the retraction or the archiving of a fact.")
@click.argument("name", metavar="ID")
@common_options
@pass_settings
def reopen(settings: Settings, *, name: str) -> None:
    """Show the fact ID as true again, whether it had ended, was retracted or archived."""
    with settings.open_memory() as memory:
        from klaw_facts.facts import Facts

        fact = memory.extension(Facts).keeper.reopen(name)
    show_change(settings, fact, "reopened")


@click.command("retract", short_help="Say that a fact was never true.")
@click.argument("name", metavar="ID")
@_REASON
@common_options
@pass_settings
def retract(settings: Settings, *, name: str, reason: str) -> None:
    """Say that the fact ID was never true. It stays in the history; `klaw forget facts/ID` removes it."""
    with settings.open_memory() as memory:
        from klaw_facts.facts import Facts

        fact = memory.extension(Facts).keeper.retract(name, reason)
    show_change(settings, fact, "retracted")


@click.command("pin", short_help="Put a fact into every context.")
@click.argument("name", metavar="ID")
@click.option("--off", is_flag=True, help="No longer.")
@common_options
@pass_settings
def pin(settings: Settings, *, name: str, off: bool) -> None:
    """Put the fact ID into every context."""
    with settings.open_memory() as memory:
        from klaw_facts.facts import Facts

        fact = memory.extension(Facts).keeper.pin(name, on=not off)
    show_change(settings, fact, "unpinned" if off else "pinned")


@click.command("review", short_help="Decide on the ends that wait for you.")
@click.argument("proposal", required=False, default="")
@click.option("--accept/--refuse", "accept", default=None, help="End the fact, or leave it as it is.")
@common_options
@pass_settings
def review(settings: Settings, *, proposal: str, accept: bool | None) -> None:
    """List the ends of facts that a rule or a model proposes, or decide on PROPOSAL.

    What a person wrote is never ended without being asked, and neither are many facts at once.
    """
    if bool(proposal) != (accept is not None):
        raise click.UsageError("to decide, give a PROPOSAL and --accept or --refuse; to list them, neither")
    with settings.open_memory() as memory:
        from klaw_facts.facts import Facts

        facts = memory.extension(Facts)
        if proposal and accept is not None:
            fact = facts.keeper.decide(proposal, accept=accept)
            show_change(settings, fact, "ended" if accept else "kept")
            return
        waiting, state = facts.keeper.review(), facts.state()
    _show_proposals(settings, waiting, state)


def _show_proposals(settings: Settings, waiting: list[Proposal], state: State) -> None:
    from klaw_core import to_json

    if settings.json:
        print_json(to_json(waiting))
        return
    if not waiting:
        notify(settings, "nothing waits for a decision")
    out = data()
    for item in waiting:
        old, new = state.facts[item.fact], state.facts.get(item.by_fact)
        until = f" on {item.valid_to.date().isoformat()}" if item.valid_to else ""
        out.line(StyledText(item.id, "bold cyan"), f"  end{until}: {old.text} ({old.id})")
        if new is not None:
            out.line(StyledText(f"because of {new.id}: {new.text}", "dim"), indent=4)
    if waiting:
        notify(settings, f"klaw facts review {waiting[0].id} --accept, or --refuse")


@click.command("undo", short_help="Take back everything that a batch did.")
@click.argument("batch")
@common_options
@pass_settings
def undo(settings: Settings, *, batch: str) -> None:
    """Take back the facts, ends and confirmations of BATCH, which `klaw facts show` names. Its messages stay read."""
    with settings.open_memory() as memory:
        from klaw_facts.facts import Facts

        count = memory.extension(Facts).keeper.undo(batch)
    if settings.json:
        print_json({"facts": count})
    elif not settings.quiet:
        data().line(f"took back what the batch did to {counted(count, 'fact')}")

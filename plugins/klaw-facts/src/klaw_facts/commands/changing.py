"""``klaw facts edit``, ``end``, ``reopen``, ``retract``, ``pin``, ``review`` and ``undo``."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

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
from klaw_facts.commands.printing import show_change, show_undone, split_slot

if TYPE_CHECKING:
    from klaw_facts.fold import State
    from klaw_facts.values import Proposal

_REASON = click.option("--reason", type=MayBeEmpty(), default="", metavar="TEXT", help="Why.")


@click.command("edit", short_help="Change a fact.")
@click.argument("name", metavar="ID")
@click.argument("text", nargs=-1, type=FreeText())
@click.option("--slot", metavar="NAME=VALUE", callback=split_slot, help="Slot and value: home=Lyon.")
@click.option("--subject", metavar="NAME", help="The person or thing that it is about.")
@click.option("--category", metavar="NAME", help="Category.")
@click.option("--importance", type=NumberRange(0, 1), metavar="X", help="0 to 1.")
@click.option(
    "--tag",
    "tags",
    type=MayBeEmpty(),
    multiple=True,
    metavar="NAME",
    help="New tags, which replace the old ones.",
)
@click.option("--from", "valid_from", metavar="WHEN", callback=when, help="Since when it is true.")
@click.option("--to", "valid_to", metavar="WHEN", callback=when, help="Until when it was true.")
@common_options
@pass_settings
def edit(
    settings: Settings, /, *, name: str, text: tuple[str, ...], slot: tuple[str, str] | None, **given: Any
) -> None:
    """Change the TEXT of the fact ID, or the fields that the options name. The journal keeps the old version."""
    changes = {key: value for key, value in given.items() if value not in (None, ())}
    if text:
        changes["text"] = " ".join(text)
    if "tags" in changes:
        changes["tags"] = list(changes["tags"])
    if slot:
        changes["slot"], changes["value"] = slot
    if not changes:
        raise click.UsageError("nothing to change; pass a TEXT or an option")
    with open_facts(settings) as facts:
        fact = facts.keeper.edit(name, **changes)
    show_change(settings, fact, "changed")


@click.command("end", short_help="End a fact: it is no longer true.")
@click.argument("name", metavar="ID")
@click.option("--to", "valid_to", metavar="WHEN", callback=when, help="The end. [default: now]")
@_REASON
@common_options
@pass_settings
def end(settings: Settings, *, name: str, valid_to: datetime | None, reason: str) -> None:
    """Record that the fact ID is no longer true. It stays in the history."""
    with open_facts(settings) as facts:
        fact = facts.keeper.end(name, valid_to, reason)
    show_change(settings, fact, "ended")


@click.command("reopen", short_help="Reverse the end, retraction or archiving of a fact.")
@click.argument("name", metavar="ID")
@common_options
@pass_settings
def reopen(settings: Settings, *, name: str) -> None:
    """Show the fact ID as true again, whether it had ended, was retracted or archived."""
    with open_facts(settings) as facts:
        fact = facts.keeper.reopen(name)
    show_change(settings, fact, "reopened")


@click.command("retract", short_help="Retract a fact: it was never true.")
@click.argument("name", metavar="ID")
@_REASON
@common_options
@pass_settings
def retract(settings: Settings, *, name: str, reason: str) -> None:
    """Record that the fact ID was never true. It stays in the history; `klaw forget facts/ID` deletes it."""
    with open_facts(settings) as facts:
        fact = facts.keeper.retract(name, reason)
    show_change(settings, fact, "retracted")


@click.command("pin", short_help="Include a fact in every context.")
@click.argument("name", metavar="ID")
@click.option("--off", is_flag=True, help="Stop including it.")
@common_options
@pass_settings
def pin(settings: Settings, *, name: str, off: bool) -> None:
    """Include the fact ID in every context."""
    with open_facts(settings) as facts:
        fact = facts.keeper.pin(name, on=not off)
    show_change(settings, fact, "unpinned" if off else "pinned")


@click.command("review", short_help="Accept or refuse proposed ends of facts.")
@click.argument("proposal", required=False, default="")
@click.option("--accept/--refuse", "accept", default=None, help="End the fact, or leave it as it is.")
@common_options
@pass_settings
def review(settings: Settings, *, proposal: str, accept: bool | None) -> None:
    """List the ends of facts that a rule or a model proposes, or decide on PROPOSAL.

    To end a fact that a person wrote, or many facts at once, a rule or a model needs a person's decision.
    """
    if bool(proposal) != (accept is not None):
        raise click.UsageError(
            "to decide, pass a PROPOSAL and --accept or --refuse; to list the proposals, pass neither"
        )
    with open_facts(settings) as facts:
        if proposal and accept is not None:
            fact = facts.keeper.decide(proposal, accept=accept)
            show_change(settings, fact, "ended" if accept else "kept")
            return
        waiting, state = facts.keeper.review(), facts.state()
    _show_proposals(settings, waiting, state)


def _show_proposals(settings: Settings, waiting: list[Proposal], state: State) -> None:
    from klaw_core import to_json
    from klaw_facts.validity import told

    if settings.json:
        print_json(to_json(waiting))
        return
    if not waiting:
        notify(settings, "there are no proposals to decide on")
    out = data()
    for item in waiting:
        old, new = state.facts[item.fact], state.facts.get(item.by_fact)
        until = f" as of {told(item.valid_to, item.precision)}" if item.valid_to else ""
        out.line(StyledText(item.id, "bold cyan"), f"  end{until}: {old.text} ({old.id})")
        if new is not None:
            out.line(StyledText(f"replaced by {new.id}: {new.text}", "dim"), indent=4)
    if waiting:
        notify(settings, f"to decide: klaw facts review {waiting[0].id} --accept (or --refuse)")


@click.command("undo", short_help="Reverse everything that a batch did.")
@click.argument("batch")
@common_options
@pass_settings
def undo(settings: Settings, *, batch: str) -> None:
    """Reverse all changes of BATCH, an id that `klaw facts show` prints. Its messages are not read again.

    BATCH may be a run of `klaw compress`, which `klaw compress --list` prints, or `last`, the last one.
    """
    with open_facts(settings) as facts:
        done = facts.undo(batch)
    show_undone(settings, done)

"""``klaw core``: show and change core memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klaw_core.cli.kit import FreeText, Settings, common_options, pass_settings

if TYPE_CHECKING:
    from klaw_memories.core_memory import CoreMemory

_SECTION = click.Choice(("user", "agent"))  # klaw_memories.core_memory.SECTIONS, repeated to avoid the import


@click.group("core", short_help="Show and change core memory.")
@common_options
def command() -> None:
    """Show and change core memory: the few facts that are part of every prompt of an agent.

    SECTION is user or agent.
    """


@command.command("get", short_help="Print everything, one section, or one key.")
@click.argument("section", type=_SECTION, required=False)
@click.argument("key", required=False)
@common_options
@pass_settings
def get_command(settings: Settings, *, section: str | None, key: str | None) -> None:
    """Print all of core memory, one SECTION of it, or the value of one KEY."""
    from klaw_core import NotFoundError, to_json
    from klaw_core.cli.kit import StyledText, data, notify, print_json
    from klaw_memories.core_memory import Spellings

    with _core(settings) as core:
        facts = core.get()
    if section is None:
        if settings.json:
            print_json(to_json(facts))
        elif rendered := facts.render():
            data().block(rendered)
        else:
            notify(settings, "core memory is empty; to add a fact: klaw core set user name NAME")
        return
    known = facts.user if section == "user" else facts.agent
    if key is None:
        if settings.json:
            print_json(dict(known))
            return
        for name, value in known.items():
            data().line(StyledText(name, "bold cyan"), f" = {value}")
        if not known:
            notify(settings, f"core memory has no facts in section {section!r}")
        return
    key = Spellings(known).find(key)
    if key not in known:
        known_keys = ", ".join(known) or "nothing yet"
        raise NotFoundError(f"core memory has no key {key!r} in section {section!r}", hint=f"known keys: {known_keys}")
    if settings.json:
        print_json(known[key])
    else:
        data().block(known[key])


@command.command("set", short_help="Set one key.")
@click.argument("section", type=_SECTION)
@click.argument("key")
@click.argument("value", nargs=-1, type=FreeText(), required=True)
@common_options
@pass_settings
def set_command(settings: Settings, *, section: str, key: str, value: tuple[str, ...]) -> None:
    """Set KEY of SECTION to VALUE; use - to read VALUE from standard input."""
    text = sys.stdin.read().rstrip("\n") if value == ("-",) else " ".join(value)
    with _core(settings) as core:
        core.update(section, key, text)
    _report(settings, {"section": section, "key": key, "value": text})


@command.command("delete", short_help="Remove one key.")
@click.argument("section", type=_SECTION)
@click.argument("key")
@common_options
@pass_settings
def delete_command(settings: Settings, *, section: str, key: str) -> None:
    """Remove KEY from SECTION. It is an error if KEY does not exist."""
    with _core(settings) as core:
        core.delete(section, key)
    _report(settings, {"section": section, "key": key, "deleted": True})


@command.command("history", short_help="List what an agent has replaced or removed.")
@click.argument("section", type=_SECTION, required=False)
@click.argument("key", required=False)
@common_options
@pass_settings
def history_command(settings: Settings, *, section: str | None, key: str | None) -> None:
    """List what you wrote and an agent has replaced or removed, the oldest first.

    `klaw core set` sets a value again; `klaw core delete` also erases what this list has of a key.
    """
    from klaw_core import to_json
    from klaw_core.cli.kit import StyledText, data, notify, print_json, shown_day

    with _core(settings) as core:
        found = core.history(section, key)
    if settings.json:
        print_json(to_json(found))
        return
    for fact in found:
        name = StyledText(f"{fact.section}.{fact.key}", "bold cyan")
        data().line(name, f" = {fact.value}", StyledText(f"  (changed by {fact.by}, {shown_day(fact.at)})", "dim"))
    if not found:
        notify(settings, "no agent has replaced or removed what you wrote there")


@command.command("import", short_help="Add what a USER.md says about the user.")
@click.argument("file", type=click.Path(path_type=Path))
@common_options
@pass_settings
def import_command(settings: Settings, *, file: Path) -> None:
    """Add the facts of FILE, a USER.md, to the section user. Keys that exist keep their values.

    Facts are lines such as `Name: Ada`, and the text below headings.
    """
    from klaw_core import to_json
    from klaw_core.cli.kit import StyledText, counted, data, notify, print_json
    from klaw_memories.user_md import read_user_md

    text = read_user_md(file)
    with _core(settings) as core:
        added = core.init_from_user_md(text, again=True)
    if settings.json:
        print_json(to_json(dict(added)))
        return
    for key, value in added.items():
        data().line(StyledText(key, "bold cyan"), f" = {value}")
    notify(settings, f"{counted(len(added), 'fact')} added to core memory" if added else "nothing new for core memory")


@contextmanager
def _core(settings: Settings) -> Iterator[CoreMemory]:
    """Open core memory without opening the database, which may be damaged."""
    from klaw_journals.opening import open_journals
    from klaw_memories.core_memory import CoreMemory

    with open_journals(settings) as journals:
        yield CoreMemory(journals.text("core_memory"))


def _report(settings: Settings, change: dict[str, object]) -> None:
    from klaw_core.cli.kit import data, print_json

    if settings.json:
        print_json(change)
    elif not settings.quiet:
        done = "removed" if change.get("deleted") else "set"
        data().line(f"{done} {change['section']}.{change['key']}")

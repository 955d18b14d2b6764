"""``klaw people``: list the people of the memory, merge and split them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from klaw_core.cli.kit import (
    Listing,
    Settings,
    StyledText,
    chosen_format,
    common_options,
    counted,
    data,
    format_option,
    notify,
    pass_settings,
    print_json,
    show,
)
from klaw_facts.commands.opening import open_facts

if TYPE_CHECKING:
    from klaw_facts.people import Person

_COLUMNS = ("id", "names", "chats", "sender_ids", "identities", "facts")


@click.group("people", invoke_without_command=True, short_help="Show who said something; say that two people are one.")
@common_options
@pass_settings
@click.pass_context
def command(context: click.Context, settings: Settings) -> None:
    """Show the people of the memory, and say who of them are one. Without a subcommand: `klaw people list`.

    A person is `CHANNEL:SENDER_ID`, `CHAT/NAME`, or `owner`: the person whose memory it is. Facts of two people never
    end each other.
    """
    del settings
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@click.command("list", short_help="List everybody who said something.")
@format_option
@common_options
@pass_settings
def list_command(settings: Settings, /, *, form: str | None = None) -> None:
    """List every person with names, chats, sender's ids and the number of facts, the owner first."""
    form = chosen_format(settings, form)
    with open_facts(settings) as facts:
        people = facts.people.list()
    from klaw_core import to_json

    rows = [to_json(person) for person in people]
    show(settings, Listing(rows, _COLUMNS, "id", _cells, "nobody has said anything"), form)


def _cells(row: Mapping[str, Any]) -> Sequence[StyledText | str]:
    others = [name for name in row["identities"] if name != row["id"]]
    told = [row["id"], ", ".join(row["names"]), ", ".join(row["chats"]), f"also {', '.join(others)}" if others else ""]
    name, names, chats, also = (" ".join(text.split()) for text in told)
    return [
        *(StyledText(name, "bold cyan"), names, StyledText(chats, "dim"), counted(row["facts"], "fact")),
        StyledText(also, "dim"),
    ]


@click.command("merge", short_help="Say that two people are one.")
@click.argument("name", metavar="PERSON")
@click.argument("others", metavar="PERSON...", nargs=-1, required=True)
@common_options
@pass_settings
def merge(settings: Settings, *, name: str, others: tuple[str, ...]) -> None:
    """Count two or more people as one. PERSON is from `klaw people list`, or a name that only one person has.

    Their values of a slot then follow each other, as if one person had stated them. `klaw people split` reverses it.
    """
    with open_facts(settings) as facts:
        person = facts.people.merge(name, *others)
        waiting = len(facts.keeper.review())
    _tell(settings, [person], "merged")
    if waiting and not settings.json:
        notify(settings, f"{counted(waiting, 'proposed end')} to decide: klaw facts review")


@click.command("split", short_help="Reverse the last merge of a person.")
@click.argument("name", metavar="PERSON")
@common_options
@pass_settings
def split(settings: Settings, *, name: str) -> None:
    """Reverse the last merge that named PERSON, and restore the facts that it ended."""
    with open_facts(settings) as facts:
        people = facts.people.split(name)
    _tell(settings, people, "split")


def _tell(settings: Settings, people: Sequence[Person], what: str) -> None:
    if settings.json:
        from klaw_core import to_json

        print_json(to_json(people))
    elif not settings.quiet:
        for person in people:
            name, names = (" ".join(text.split()) for text in (person.id, ", ".join(person.identities)))
            data().line(f"{what} ", StyledText(name, "bold cyan"), f" ({names}): {counted(person.facts, 'fact')}")


for part in (list_command, merge, split):
    command.add_command(part)
